"""A search held to trees: which tokens may come next, by the tokens so far.

Nothing is remembered from step to step: the past tokens say all, and they are there. So hypotheses may change places,
be dropped or doubled as a search likes.

Shapes: B sentences, N hypotheses of each, V vocabulary, T tokens so far, L leaves of the longest sentence.
"""

from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor

from headway.search.tree_form import TreeForm
from headway.text.reserved import EOS_ID, PAD_ID


@dataclass(frozen=True, slots=True)
class WellFormed:
    """Brackets by token, and the leaves of each sentence.

    ``depth_V``: 1 for a token that opens a node, -1 for one that closes it. ``closing_V``: what closes an
    opening token, PAD for others. ``leaf_BL``: which leaf must stand where, PAD where any may.
    """

    depth_V: Tensor
    closing_V: Tensor
    is_leaf_V: Tensor
    leaf_BL: Tensor
    num_leaves_B: Tensor
    max_openings: int | None = None
    leaf_reward: float = 0.0

    def forbid(self, scores_BNV: Tensor, token_ids_BNT: Tensor, limit_B: Tensor) -> None:
        """Set to -inf, in place, all after which no tree can come of it within the limit (EOS counted).

        While the tokens so far begin a tree, something is always left.
        """
        step = token_ids_BNT.shape[2]
        depth_BNT = self.depth_V[token_ids_BNT].cumsum(dim=2)
        depth_BN = depth_BNT[:, :, -1] if step else torch.zeros_like(token_ids_BNT.sum(dim=2))
        missing_BN = self.num_leaves_B[:, None] - self.is_leaf_V[token_ids_BNT].sum(dim=2)
        room_B1 = limit_B[:, None] - step - 1  # tokens that may come after this one
        may_open_BN = (missing_BN > 0) & (room_B1 >= missing_BN + depth_BN + 2)
        if self.max_openings is not None and step >= self.max_openings:
            may_open_BN &= (self.depth_V[token_ids_BNT[:, :, -self.max_openings :]] != 1).any(dim=2)
        opens_BNV = may_open_BN[:, :, None] & (self.depth_V == 1)
        allowed_BNV = opens_BNV | ((missing_BN > 0)[:, :, None] & self._next_leaves(missing_BN))
        closing_BN = self._closing(token_ids_BNT, depth_BNT) if step else torch.full_like(depth_BN, PAD_ID)
        allowed_BNV.scatter_(2, closing_BN[:, :, None], True)
        allowed_BNV[:, :, PAD_ID] = False
        allowed_BNV[:, :, EOS_ID] = (missing_BN == 0) & (depth_BN == 0)
        scores_BNV.masked_fill_(~allowed_BNV, -torch.inf)

    def rank(self, scores_BNV: Tensor, token_ids_BNT: Tensor) -> Tensor:
        """What extensions by each token are ranked by: their scores, and the reward of the leaves that they have."""
        if not self.leaf_reward:
            return scores_BNV
        num_leaves_BN = self.is_leaf_V[token_ids_BNT].sum(dim=2)
        return scores_BNV + self.leaf_reward * (num_leaves_BN[:, :, None] + self.is_leaf_V)

    def _next_leaves(self, missing_BN: Tensor) -> Tensor:
        """The leaves that may stand at the next place of a leaf (B, N, V)."""
        place_BN = (self.num_leaves_B[:, None] - missing_BN).clamp(max=self.leaf_BL.shape[1] - 1)
        wanted_BN1 = self.leaf_BL.gather(1, place_BN)[:, :, None]
        tokens_V = torch.arange(self.is_leaf_V.numel(), device=wanted_BN1.device)
        return torch.where(wanted_BN1 == PAD_ID, self.is_leaf_V, tokens_V == wanted_BN1)

    def _closing(self, token_ids_BNT: Tensor, depth_BNT: Tensor) -> Tensor:
        """What may close the innermost open node; PAD where none is open, or it is empty.

        It was opened by the last opening token that led to the present depth.
        """
        opens_BNT = self.depth_V[token_ids_BNT] == 1
        places_T = torch.arange(1, token_ids_BNT.shape[2] + 1, device=token_ids_BNT.device)
        place_BN = (places_T * (opens_BNT & (depth_BNT == depth_BNT[:, :, -1:]))).amax(dim=2)
        opened_BN = token_ids_BNT.gather(2, (place_BN - 1).clamp(min=0)[:, :, None]).squeeze(2)
        is_open_BN = (depth_BNT[:, :, -1] > 0) & ~opens_BNT[:, :, -1]
        return self.closing_V[opened_BN].masked_fill(~is_open_BN, PAD_ID)

    def select(self, sentences: Tensor) -> Self:
        """The same of the given sentences, by index, in that order."""
        return replace(self, leaf_BL=self.leaf_BL[sentences], num_leaves_B=self.num_leaves_B[sentences])


def well_formed(form: TreeForm, device: torch.device) -> WellFormed:
    """The rules of a form, as tensors."""
    brackets = form.brackets
    depth_V = torch.zeros(brackets.vocab_size, dtype=torch.int64)
    closing_V = torch.full_like(depth_V, PAD_ID)
    is_leaf_V = torch.zeros_like(depth_V, dtype=torch.bool)
    opening, closing = (torch.tensor(ids, dtype=torch.int64) for ids in (brackets.opening, brackets.closing))
    depth_V[opening], depth_V[closing] = 1, -1
    closing_V[opening] = closing
    is_leaf_V[torch.tensor(brackets.leaves, dtype=torch.int64)] = True
    longest = max(len(leaves) for leaves in form.leaves_B)
    padded = [[*leaves, *[PAD_ID] * (longest - len(leaves))] for leaves in form.leaves_B]
    return WellFormed(
        depth_V.to(device),
        closing_V=closing_V.to(device),
        is_leaf_V=is_leaf_V.to(device),
        leaf_BL=torch.tensor(padded, dtype=torch.int64, device=device),
        num_leaves_B=torch.tensor([len(leaves) for leaves in form.leaves_B], device=device),
        max_openings=form.max_openings,
        leaf_reward=form.leaf_reward,
    )
