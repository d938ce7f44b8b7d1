"""Keys and values kept between decoding steps.

Shapes: B sentences or rows, H heads, S key positions, K d_k, V d_v.
"""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class KeyValue:
    """What attention looks things up in. A value: every operation gives a new one."""

    key_BHSK: Tensor
    value_BHSV: Tensor

    def append(self, newer: "KeyValue") -> "KeyValue":
        """These positions, then the newer ones."""
        return KeyValue(
            torch.cat((self.key_BHSK, newer.key_BHSK), dim=2),
            torch.cat((self.value_BHSV, newer.value_BHSV), dim=2),
        )

    def select(self, rows_R: Tensor) -> "KeyValue":
        """The given rows in the given order."""
        return KeyValue(self.key_BHSK.index_select(0, rows_R), self.value_BHSV.index_select(0, rows_R))
