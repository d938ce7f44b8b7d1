"""Hypotheses under way, their extensions by one token, and the choice among these that makes a kind of beam search.

Shapes: B sentences under way, N hypotheses of each, V vocabulary, C candidates, T tokens so far, K kept sentences.
"""

from dataclasses import dataclass
from typing import Protocol, Self

import torch
from torch import Tensor

from headway.search.constraint import Constraint


@dataclass(frozen=True, slots=True)
class Live:
    """Hypotheses under way, best first. A log-probability (float32) of -inf marks a place without a hypothesis."""

    token_ids_BNT: Tensor
    log_prob_BN: Tensor


@dataclass(frozen=True, slots=True)
class Candidates:
    """Extensions, best first: the hypothesis each extends, its new token, and the log-probability with it.

    ``rank_BC`` is what they are ordered by, highest first; a log-probability of -inf marks a place without one, and
    has a rank of -inf too.
    """

    parent_BC: Tensor
    token_BC: Tensor
    log_prob_BC: Tensor
    rank_BC: Tensor


class Chooser(Protocol):
    """Which extensions a beam looks at, and in what order."""

    def extend(self, live: Live, log_probs_BNV: Tensor, *, constraint: Constraint, step: int, size: int) -> Candidates:
        """The extensions of each sentence by one token, ``size`` of them or more, fewer where fewer exist."""
        ...

    def follow(self, ended: Candidates, going_on: Candidates, kept_K: Tensor) -> Self:
        """The chooser of the next step: of the kept sentences, when these candidates ended and those go on."""
        ...


class MostProbable:
    """Plain beam search: the most probable extensions, but for what the constraint rewards."""

    def extend(self, live: Live, log_probs_BNV: Tensor, *, constraint: Constraint, step: int, size: int) -> Candidates:
        """The ``size`` most probable extensions of each sentence."""
        scores_BNV = live.log_prob_BN[:, :, None] + log_probs_BNV
        constraint.forbid(scores_BNV, step, live.token_ids_BNT)
        vocab_size = scores_BNV.shape[2]
        rank_BNV = constraint.rank(scores_BNV, live.token_ids_BNT)
        rank_BC, place_BC = best_places(rank_BNV.flatten(1), size)
        log_prob_BC = rank_BC if rank_BNV is scores_BNV else scores_BNV.flatten(1).gather(1, place_BC)
        return Candidates(place_BC // vocab_size, place_BC % vocab_size, log_prob_BC, rank_BC=rank_BC)

    def follow(self, ended: Candidates, going_on: Candidates, kept_K: Tensor) -> Self:
        """The same: it holds nothing."""
        return self


def best_places(scores: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """The ``size`` highest of each row and their places, highest first, among equals the lowest place.

    torch.topk promises nothing about equals. Those it chose are put in order; where it had to choose among equals (more
    values reach the lowest chosen one than fit), the row is sorted instead. Values of -inf need no order.
    """
    size = min(size, scores.shape[1])
    place = scores.topk(size, dim=1).indices.sort(dim=1).values
    value, order = scores.gather(1, place).sort(dim=1, descending=True, stable=True)
    place = place.gather(1, order)
    lowest = value[:, -1:]
    tied = (((scores >= lowest).sum(dim=1) > size) & (lowest[:, 0] > -torch.inf)).nonzero().squeeze(1)
    if tied.numel():
        ordered = scores[tied].sort(dim=1, descending=True, stable=True)
        value[tied] = ordered.values[:, :size]
        place[tied] = ordered.indices[:, :size]
    return value, place
