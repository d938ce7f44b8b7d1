"""Which tokens a search may choose at a step.

Shapes: B sentences, N hypotheses of each, V vocabulary, P prefix positions, T tokens so far, M places of a run,
X tokens that no output has.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from headway.search.well_formed import WellFormed
from headway.text.tokenizer import BOS_ID, EOS_ID, PAD_ID


@dataclass(frozen=True, slots=True)
class Constraint:
    """The most tokens a sentence may have (EOS counted) and the tokens it must begin with (0: free).

    ``no_repeat_ngram``: no run of so many tokens may occur twice in an output; 0 is no rule. ``never_X``: PAD, BOS and
    what else no output may have. ``trees``: outputs must be trees; without it, they may be anything.
    """

    limit_B: Tensor
    prefix_BP: Tensor
    never_X: Tensor
    first_limit: int  # the smallest of limit_B: before it no step needs to look at the limits
    no_repeat_ngram: int = 0
    trees: WellFormed | None = None

    @property
    def looks_back(self) -> bool:
        """Whether what may come next depends on the tokens so far."""
        return self.no_repeat_ngram > 0 or self.trees is not None

    def forbid(self, scores_BNV: Tensor, step: int, token_ids_BNT: Tensor | None = None) -> None:
        """Set to -inf, in place, all that may not be the token at ``step`` (the first is 0).

        PAD, BOS and the like never; the last token of a run that was there before; inside a forced prefix all but its
        token, which may end such a run; at the last allowed position all but EOS. EOS ends no run, so something is
        always left. ``token_ids_BNT`` are the tokens so far, which ``no_repeat_ngram`` and ``trees`` look at.
        """
        scores_BNV.index_fill_(2, self.never_X, -torch.inf)
        if token_ids_BNT is not None and 0 < self.no_repeat_ngram <= step:
            self._forbid_repeats(scores_BNV, token_ids_BNT)
        if self.trees is not None:
            assert token_ids_BNT is not None, "trees need the tokens so far"
            self.trees.forbid(scores_BNV, token_ids_BNT, self.limit_B)
        if step < self.prefix_BP.shape[1]:
            prefix_B = self.prefix_BP[:, step]
            _force(scores_BNV, prefix_B, prefix_B != PAD_ID)
        if step + 1 >= self.first_limit:
            _force(scores_BNV, torch.full_like(self.limit_B, EOS_ID), self.limit_B <= step + 1)

    def rank(self, scores_BNV: Tensor, token_ids_BNT: Tensor | None = None) -> Tensor:
        """What a search ranks extensions by: their scores, where trees reward no leaves."""
        if self.trees is None:
            return scores_BNV
        assert token_ids_BNT is not None, "trees need the tokens so far"
        return self.trees.rank(scores_BNV, token_ids_BNT)

    def _forbid_repeats(self, scores_BNV: Tensor, token_ids_BNT: Tensor) -> None:
        """Set to -inf each token before which the last ``no_repeat_ngram`` - 1 tokens stood already.

        Tokens of a forced prefix are never set here: ``forbid`` leaves them alone.
        """
        context = self.no_repeat_ngram - 1
        num_tokens = token_ids_BNT.shape[2]
        after_BNM = token_ids_BNT[:, :, context:]
        repeats_BNM = torch.ones_like(after_BNM, dtype=torch.bool)
        for place in range(context):
            window_BNM = token_ids_BNT[:, :, place : num_tokens - context + place]
            newest_BN1 = token_ids_BNT[:, :, num_tokens - context + place, None]
            repeats_BNM &= window_BNM == newest_BN1
        if num_tokens < self.prefix_BP.shape[1]:
            repeats_BNM &= (self.prefix_BP[:, num_tokens] == PAD_ID)[:, None, None]
        # PAD is forbidden anyway: a place that repeats nothing writes there.
        scores_BNV.scatter_(2, after_BNM.masked_fill(~repeats_BNM, PAD_ID), -torch.inf)

    def select(self, sentences: Tensor) -> "Constraint":
        """The constraint of the given sentences, by index, in that order."""
        limit_B = self.limit_B[sentences]
        return replace(
            self,
            limit_B=limit_B,
            prefix_BP=self.prefix_BP[sentences],
            first_limit=_first_limit(limit_B),
            trees=None if self.trees is None else self.trees.select(sentences),
        )


def constrain(
    limit_B: Tensor, prefix_BP: Tensor, *, no_repeat_ngram: int = 0, reserved: Sequence[int] = ()
) -> Constraint:
    """A constraint from limits and prefixes (int64, prefixes padded with 0), and ids that no output may have."""
    never_X = torch.tensor([PAD_ID, BOS_ID, *reserved], device=limit_B.device)
    return Constraint(limit_B, prefix_BP, never_X, _first_limit(limit_B), no_repeat_ngram=no_repeat_ngram)


def _first_limit(limit_B: Tensor) -> int:
    return int(limit_B.min()) if limit_B.numel() else 0


def _force(scores_BNV: Tensor, token_B: Tensor, forced_B: Tensor) -> None:
    """Leave only ``token_B`` to the sentences where ``forced_B`` is True."""
    other_BV = torch.arange(scores_BNV.shape[2], device=token_B.device) != token_B[:, None]
    scores_BNV.masked_fill_((other_BV & forced_B[:, None])[:, None, :], -torch.inf)
