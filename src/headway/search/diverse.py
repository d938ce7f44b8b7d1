"""Diverse beam search (Vijayakumar et al. 2016): groups of hypotheses that avoid what the groups before them chose.

The beam is divided into groups, each with a beam search of its own. At a step the first group chooses as ever; to the
next, a token costs ``strength`` for every hypothesis of earlier groups that goes on with that token at this step (the
Hamming diversity of the paper). The cost decides what is looked at and never enters a hypothesis's score.
Departure: the end of a sentence costs nothing, so a group is not driven on because another came to its end.

Shapes: B groups under way (of all sentences), N hypotheses of each, V vocabulary, C candidates, S sentences, K kept
groups, E groups of the same rank, one a sentence.
"""

from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Self, TypeVar

import torch
from torch import Tensor

from headway.search.beam import beam_search
from headway.search.candidates import Candidates, Live, best_places
from headway.search.constraint import Constraint
from headway.search.hypothesis import Hypothesis
from headway.search.predictor import Predictor
from headway.search.repeated import Repeated, repeat_constraint
from headway.search.settings import Diversity, SearchSettings
from headway.text.tokenizer import EOS_ID

State = TypeVar("State")


@dataclass(frozen=True, slots=True)
class GroupChooser:
    """Which sentence and which of its groups each row of hypotheses is; groups of a sentence may have left."""

    diversity: Diversity
    sentence_B: Tensor
    group_B: Tensor

    def extend(self, live: Live, log_probs_BNV: Tensor, *, constraint: Constraint, step: int, size: int) -> Candidates:
        """The best ``size`` extensions of each group, ordered by log-probability less what its tokens cost."""
        scores_BNV = live.log_prob_BN[:, :, None] + log_probs_BNV
        constraint.forbid(scores_BNV, step, live.token_ids_BNT)
        num_groups, num_live, vocab_size = scores_BNV.shape
        beam_size, size = size // 2, min(size, num_live * vocab_size)
        place_BC = scores_BNV.new_zeros((num_groups, size), dtype=torch.int64)
        rank_BC = scores_BNV.new_zeros((num_groups, size))
        chosen_SV = scores_BNV.new_zeros((int(self.sentence_B.max()) + 1, vocab_size))
        for group in range(self.diversity.groups):
            rows_E = (self.group_B == group).nonzero().squeeze(1)
            sentence_E = self.sentence_B[rows_E]
            costs_E1V = self.diversity.strength * chosen_SV[sentence_E][:, None, :]
            rank, place = best_places((scores_BNV[rows_E] - costs_E1V).flatten(1), size)
            rank_BC[rows_E], place_BC[rows_E] = rank, place
            chosen_SV[sentence_E] += _chosen(rank, place % vocab_size, vocab_size, beam_size)
        log_prob_BC = scores_BNV.flatten(1).gather(1, place_BC)
        return Candidates(place_BC // vocab_size, place_BC % vocab_size, log_prob_BC, rank_BC)

    def follow(self, ended: Candidates, going_on: Candidates, kept_K: Tensor) -> Self:
        """The same, of the kept groups."""
        return replace(self, sentence_B=self.sentence_B[kept_K], group_B=self.group_B[kept_K])


def diverse_search(
    predictor: Predictor[State],
    source_BS: Tensor,
    source_mask_BS: Tensor,
    *,
    constraint: Constraint,
    settings: SearchSettings,
    diversity: Diversity,
) -> list[list[Hypothesis]]:
    """The ``n_best`` hypotheses of each source, best first: each group's best, then each group's second, and so on."""
    groups = diversity.groups
    beam_size = settings.beam_size // groups
    sentence = torch.arange(source_BS.shape[0], device=source_BS.device)
    chooser = GroupChooser(
        diversity,
        sentence_B=sentence.repeat_interleave(groups),
        group_B=torch.arange(groups, device=source_BS.device).repeat(sentence.numel()),
    )
    found = beam_search(
        Repeated(predictor, groups),
        source_BS,
        source_mask_BS,
        constraint=repeat_constraint(constraint, groups),
        settings=replace(settings, beam_size=beam_size, n_best=min(settings.n_best, beam_size)),
        chooser=chooser,
    )
    return [_merge(found[first : first + groups], settings.n_best) for first in range(0, len(found), groups)]


def _chosen(rank_EC: Tensor, token_EC: Tensor, vocab_size: int, beam_size: int) -> Tensor:
    """How many of the hypotheses that go on chose each token (E, V)."""
    goes_on_EC = (token_EC != EOS_ID) & (rank_EC > -torch.inf)
    goes_on_EC &= goes_on_EC.cumsum(dim=1) <= beam_size
    return rank_EC.new_zeros((rank_EC.shape[0], vocab_size)).scatter_add(1, token_EC, goes_on_EC.to(rank_EC.dtype))


def _merge(groups: list[list[Hypothesis]], n_best: int) -> list[Hypothesis]:
    """The first ``n_best`` different outputs by their place within a group, then by group; sorted by score."""
    different: dict[tuple[int, ...], Hypothesis] = {}
    for of_one_place in zip_longest(*groups):
        for hypothesis in of_one_place:
            if hypothesis is not None:
                different.setdefault(hypothesis.token_ids, hypothesis)
    return sorted(list(different.values())[:n_best], key=lambda hypothesis: -hypothesis.score)
