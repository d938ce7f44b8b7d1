"""Convolutions over positions: contiguous, dilated and depthwise-separable; causal or centred (Section 4).

Shapes: B sentences or rows, T positions, D numbers of an input, E numbers of an output, W width of the kernel, P
positions kept or padded, L = T + P, R rows.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from headway.nn.sequence import SequenceLayer


@dataclass(frozen=True, slots=True)
class Inputs:
    """The latest inputs, as many as a kernel sees besides the new one; zeros stand before the first."""

    x_BPD: Tensor

    def select(self, rows_R: Tensor) -> "Inputs":
        """The given rows in the given order."""
        return Inputs(self.x_BPD.index_select(0, rows_R))


def convolution(x_BTD: Tensor, weight_EDW: Tensor, bias_E: Tensor, *, dilation: int, causal: bool) -> Tensor:
    """A convolution by its definition: y_t = b + sum_j W_j x_(t + (j - before) dilation), (B, T, E).

    j runs over the W places of the kernel. Before it stand W - 1 of them where it is causal, else W / 2 rounded down.
    Beyond the ends x is zero.
    """
    width = weight_EDW.shape[2]
    padded_BLD = pad(x_BTD, width, dilation=dilation, causal=causal)
    y_BTE = bias_E.expand(*x_BTD.shape[:2], -1)
    for place in range(width):
        shifted_BTD = padded_BLD[:, place * dilation : place * dilation + x_BTD.shape[1]]
        y_BTE = y_BTE + shifted_BTD @ weight_EDW[:, :, place].T
    return y_BTE


def depthwise(x_BTD: Tensor, weight_DW: Tensor, *, dilation: int, causal: bool) -> Tensor:
    """As ``convolution``, with each of the D numbers by itself and without a bias: (B, T, D)."""
    padded_BLD = pad(x_BTD, weight_DW.shape[1], dilation=dilation, causal=causal)
    y_BTD = torch.zeros_like(x_BTD)
    for place in range(weight_DW.shape[1]):
        y_BTD = y_BTD + padded_BLD[:, place * dilation : place * dilation + x_BTD.shape[1]] * weight_DW[:, place]
    return y_BTD


def pad(x_BTD: Tensor, width: int, *, dilation: int, causal: bool) -> Tensor:
    """Zeros before x, and after it unless the kernel is causal; of an even width one more of them before: (B, L, D)."""
    before = width - 1 if causal else width // 2
    return functional.pad(x_BTD, (0, 0, before * dilation, (width - 1 - before) * dilation))


def _real(x_BTD: Tensor, mask_BT: Tensor | None) -> Tensor:
    """Zeros at padding, as beyond the ends."""
    return x_BTD if mask_BT is None else x_BTD.masked_fill(~mask_BT[..., None], 0.0)


def _over(layer: nn.Conv1d, padded_BLD: Tensor) -> Tensor:
    """Torch's layer, which wants positions last: (B, T, E)."""
    return layer(padded_BLD.transpose(1, 2)).transpose(1, 2)


def _with_past(x_B1D: Tensor, past: Inputs | None, num_positions: int) -> Tensor:
    """The latest inputs, then the new one: (B, P + 1, D)."""
    if past is None:
        return functional.pad(x_B1D, (0, 0, num_positions, 0))
    return torch.cat((past.x_BPD, x_B1D), dim=1)


class Convolution(SequenceLayer[Inputs]):
    """A kernel of ``kernel_size`` positions, ``dilation`` apart, that mixes all numbers; ``d_output`` absent: d_model.

    A stack whose dilations grow by the kernel's size at each layer sees n positions after log n layers (van den Oord
    et al. 2016; Kalchbrenner et al. 2016).
    """

    def __init__(
        self, d_model: int, kernel_size: int, *, causal: bool, dilation: int = 1, d_output: int | None = None
    ) -> None:
        super().__init__()
        self.causal = causal
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.kernel = nn.Conv1d(d_model, d_model if d_output is None else d_output, kernel_size, dilation=dilation)

    def forward(self, x_BTD: Tensor, /, mask_BT: Tensor | None = None) -> Tensor:
        """All positions: (B, T, E)."""
        x_BTD = _real(x_BTD, mask_BT)
        return _over(self.kernel, pad(x_BTD, self.kernel_size, dilation=self.dilation, causal=self.causal))

    def step(self, x_B1D: Tensor, past: Inputs | None, /) -> tuple[Tensor, Inputs]:
        """One new position: (B, 1, E), and the latest (W - 1) dilation inputs."""
        assert self.causal
        x_BLD = _with_past(x_B1D, past, (self.kernel_size - 1) * self.dilation)
        return _over(self.kernel, x_BLD), Inputs(x_BLD[:, 1:])

    def plain(self, x_BTD: Tensor, mask_BT: Tensor | None = None) -> Tensor:
        """The definition: (B, T, E)."""
        weight_EDW, bias_E = self.kernel.weight, self.kernel.bias
        assert bias_E is not None
        return convolution(_real(x_BTD, mask_BT), weight_EDW, bias_E, dilation=self.dilation, causal=self.causal)


class SeparableConvolution(SequenceLayer[Inputs]):
    """A kernel for each number by itself, then one matrix for all numbers of a position (Chollet 2016)."""

    def __init__(self, d_model: int, kernel_size: int, *, causal: bool, dilation: int = 1) -> None:
        super().__init__()
        self.causal = causal
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.kernel = nn.Conv1d(d_model, d_model, kernel_size, dilation=dilation, groups=d_model, bias=False)
        self.pointwise = nn.Linear(d_model, d_model)

    def forward(self, x_BTD: Tensor, /, mask_BT: Tensor | None = None) -> Tensor:
        """All positions: (B, T, D)."""
        x_BTD = _real(x_BTD, mask_BT)
        padded_BLD = pad(x_BTD, self.kernel_size, dilation=self.dilation, causal=self.causal)
        return self.pointwise(_over(self.kernel, padded_BLD))

    def step(self, x_B1D: Tensor, past: Inputs | None, /) -> tuple[Tensor, Inputs]:
        """One new position: (B, 1, D), and the latest (W - 1) dilation inputs."""
        assert self.causal
        x_BLD = _with_past(x_B1D, past, (self.kernel_size - 1) * self.dilation)
        return self.pointwise(_over(self.kernel, x_BLD)), Inputs(x_BLD[:, 1:])

    def plain(self, x_BTD: Tensor, mask_BT: Tensor | None = None) -> Tensor:
        """The definition: (B, T, D)."""
        weight_DW = self.kernel.weight[:, 0]
        mixed_BTD = depthwise(_real(x_BTD, mask_BT), weight_DW, dilation=self.dilation, causal=self.causal)
        return mixed_BTD @ self.pointwise.weight.T + self.pointwise.bias
