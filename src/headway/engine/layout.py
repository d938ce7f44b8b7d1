"""Matrices in the order in which the engine's kernels read them.

Shapes: O outputs, I inputs, both as a weight matrix (O, I) has them; B blocks of 16 outputs, G groups of 4 inputs. What
is padded is zero.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

BLOCK = 16
GROUP = 4

Floats = npt.NDArray[np.float32]
Scalar = TypeVar("Scalar", bound=np.generic)


@dataclass(frozen=True, slots=True)
class PackedMatrix:
    """``weight``: float32 (B, I, 16), or with a ``scale`` uint8 (B, G, 16, 4) of the 8-bit weights + 128.

    ``scale`` and ``bias`` have a number an output, padded to whole blocks.
    """

    weight: npt.NDArray[np.float32] | npt.NDArray[np.uint8]
    scale: Floats | None
    bias: Floats | None


def pack_matrix(weight_OI: Floats, bias_O: Floats | None = None, *, is_int8: bool) -> PackedMatrix:
    """A matrix in float32, or in 8 bits: each output's weights are whole numbers from -127 to 127 times its scale."""
    padded_OI = pad(weight_OI, BLOCK, axis=0)
    bias = None if bias_O is None else pad(bias_O.astype(np.float32), BLOCK, axis=0)
    if not is_int8:
        blocks = padded_OI.astype(np.float32).reshape(-1, BLOCK, padded_OI.shape[1])
        return PackedMatrix(np.ascontiguousarray(blocks.transpose(0, 2, 1)), None, bias)
    scale_O, whole_OI = quantise(padded_OI)
    stored_OI = pad((whole_OI + 128).astype(np.uint8), GROUP, axis=1, value=128)
    blocks = stored_OI.reshape(-1, BLOCK, stored_OI.shape[1] // GROUP, GROUP)
    return PackedMatrix(np.ascontiguousarray(blocks.transpose(0, 2, 1, 3)), scale_O, bias)


def quantise(weight_OI: Floats) -> tuple[Floats, npt.NDArray[np.int16]]:
    """A scale for each row, its largest weight / 127, and the weights in that unit, rounded to whole numbers."""
    scale_O = np.abs(weight_OI).max(axis=1).astype(np.float32) / np.float32(127)
    unit_O = np.where(scale_O > 0, scale_O, 1)
    whole_OI = np.rint(weight_OI / unit_O[:, None]).clip(-127, 127)
    return scale_O, whole_OI.astype(np.int16)


def stack(parts: Sequence[Floats]) -> Floats:
    """Matrices (or biases) one below the other, each padded to whole blocks."""
    return np.concatenate([pad(part, BLOCK, axis=0) for part in parts])


def pad(array: npt.NDArray[Scalar], multiple: int, *, axis: int, value: int = 0) -> npt.NDArray[Scalar]:
    """The array, longer by zeros (or ``value``) so that its length is a multiple."""
    missing = -array.shape[axis] % multiple
    if not missing:
        return array
    widths = [(0, missing if place == axis else 0) for place in range(array.ndim)]
    return np.pad(array, widths, constant_values=value)
