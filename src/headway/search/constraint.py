"""Which tokens a search may choose at a step.

Shapes: B sentences, N hypotheses of each, V vocabulary, P prefix positions.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from headway.text.tokenizer import BOS_ID, EOS_ID, PAD_ID


@dataclass(frozen=True, slots=True)
class Constraint:
    """The most tokens a sentence may have (EOS counted) and the tokens it must begin with (0: free)."""

    limit_B: Tensor
    prefix_BP: Tensor
    first_limit: int  # the smallest of limit_B: before it no step needs to look at the limits

    def forbid(self, scores_BNV: Tensor, step: int) -> None:
        """Set to -inf, in place, all that may not be the token at ``step`` (the first is 0).

        PAD and BOS never; inside a forced prefix all but its token; at the last allowed position all but EOS.
        """
        scores_BNV[:, :, PAD_ID] = -torch.inf
        scores_BNV[:, :, BOS_ID] = -torch.inf
        if step < self.prefix_BP.shape[1]:
            prefix_B = self.prefix_BP[:, step]
            _force(scores_BNV, prefix_B, prefix_B != PAD_ID)
        if step + 1 >= self.first_limit:
            _force(scores_BNV, torch.full_like(self.limit_B, EOS_ID), self.limit_B <= step + 1)

    def select(self, sentences: Tensor) -> "Constraint":
        """The constraint of the given sentences, by index, in that order."""
        limit_B = self.limit_B[sentences]
        return constrain(limit_B, self.prefix_BP[sentences])


def constrain(limit_B: Tensor, prefix_BP: Tensor) -> Constraint:
    """A constraint from limits and prefixes (int64, prefixes padded with 0)."""
    return Constraint(limit_B, prefix_BP, first_limit=int(limit_B.min()) if limit_B.numel() else 0)


def _force(scores_BNV: Tensor, token_B: Tensor, forced_B: Tensor) -> None:
    """Leave only ``token_B`` to the sentences where ``forced_B`` is True."""
    other_BV = torch.arange(scores_BNV.shape[2], device=token_B.device) != token_B[:, None]
    scores_BNV.masked_fill_((other_BV & forced_B[:, None])[:, None, :], -torch.inf)
