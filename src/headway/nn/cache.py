"""Keys and values kept between decoding steps.

Shapes: B sentences or rows, G heads of keys and values, S key positions, K d_k, V d_v.
"""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class KeyValue:
    """What attention looks things up in. A value: every operation gives a new one."""

    key_BGSK: Tensor
    value_BGSV: Tensor

    def append(self, newer: "KeyValue") -> "KeyValue":
        """These positions, then the newer ones."""
        return KeyValue(
            torch.cat((self.key_BGSK, newer.key_BGSK), dim=2),
            torch.cat((self.value_BGSV, newer.value_BGSV), dim=2),
        )

    def last(self, num_positions: int) -> "KeyValue":
        """No more than so many of the latest positions; a view until something is appended."""
        first = max(0, self.key_BGSK.shape[2] - num_positions)
        return KeyValue(self.key_BGSK[:, :, first:], self.value_BGSV[:, :, first:])

    def select(self, rows_R: Tensor) -> "KeyValue":
        """The given rows in the given order."""
        return KeyValue(self.key_BGSK.index_select(0, rows_R), self.value_BGSV.index_select(0, rows_R))
