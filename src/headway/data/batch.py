"""What one forward pass reads.

Shapes: B sentences, S source positions, T target positions.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from headway.text.reserved import BOS_ID, PAD_ID


@dataclass(frozen=True, slots=True)
class Batch:
    """Token ids (int64), padded with 0: sources end in EOS; target_in is BOS y1..yn, target_out is y1..yn EOS."""

    source_BS: Tensor
    target_in_BT: Tensor
    target_out_BT: Tensor

    @property
    def source_mask_BS(self) -> Tensor:
        """True at real tokens."""
        return self.source_BS != 0

    @property
    def num_target_tokens(self) -> int:
        """Real target tokens, EOS counted: what the loss is a mean over."""
        return int((self.target_out_BT != 0).sum())

    @property
    def num_tokens(self) -> int:
        """Real tokens of both sides."""
        return int((self.source_BS != 0).sum()) + self.num_target_tokens

    @property
    def num_padded_tokens(self) -> int:
        """Positions of both sides, padding counted."""
        return self.source_BS.numel() + self.target_out_BT.numel()

    def to(self, device: torch.device) -> "Batch":
        """The same batch on another device."""
        return Batch(
            self.source_BS.to(device, non_blocking=True),
            self.target_in_BT.to(device, non_blocking=True),
            self.target_out_BT.to(device, non_blocking=True),
        )


def pad(sentences: Sequence[Sequence[int]], device: torch.device) -> Tensor:
    """One tensor (B, S) of all sentences, padded."""
    longest = max(len(ids) for ids in sentences)
    padded = [[*ids, *[PAD_ID] * (longest - len(ids))] for ids in sentences]
    return torch.tensor(padded, dtype=torch.int64, device=device)


def forced_batch(sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]], device: torch.device) -> Batch:
    """What forces the targets upon a model, pair by pair. Sources and targets end in EOS."""
    target_in = [[BOS_ID, *target[:-1]] for target in targets]
    return Batch(pad(sources, device), target_in_BT=pad(target_in, device), target_out_BT=pad(targets, device))
