"""Greedy search: the most probable token at every step, until EOS; of trees with their reward of leaves.

It equals a beam of one at length penalty 0. (With a penalty above 0 a beam of one would go on past the first EOS for a
better score; greedy search never does.)

Drawing at random takes the same walk with another choice of the token (``search/sample.py``).

Shapes: B sentences, S source positions, R outputs under way, V vocabulary, T tokens so far.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor

from headway.search.constraint import Constraint
from headway.search.hypothesis import Hypothesis
from headway.search.length import length_penalty
from headway.search.predictor import Predictor
from headway.text.tokenizer import BOS_ID, EOS_ID

State = TypeVar("State")
Pick = Callable[[Tensor, int, Tensor], Tensor]


@dataclass(frozen=True, slots=True)
class _Rows:
    """The outputs under way: which they are, their newest token, and the log-probability so far (float32).

    ``token_ids_RT`` are all their tokens, kept only where the constraint looks back.
    """

    sentence_R: Tensor
    token_R: Tensor
    log_prob_R: Tensor
    constraint: Constraint
    token_ids_RT: Tensor | None


def greedy_search(
    predictor: Predictor[State],
    source_BS: Tensor,
    source_mask_BS: Tensor,
    *,
    constraint: Constraint,
    alpha: float,
    pick: Pick | None = None,
) -> list[Hypothesis]:
    """One hypothesis for each row of the constraint. ``alpha`` is the length penalty, which only enters the score.

    ``pick`` chooses the token of each row, given which outputs they are, the step, and the log-probabilities with -inf
    for what may not be chosen; absent, the most probable.
    """
    state = predictor.start(source_BS, source_mask_BS)
    rows = _open(constraint)
    chosen: list[_Rows] = []
    for step in range(int(constraint.limit_B.max())):
        log_probs, state = predictor.predict(rows.token_R, state)
        rows = _extend(rows, log_probs, step, pick)
        chosen.append(rows)
        alive = (rows.token_R != EOS_ID).nonzero().squeeze(1)
        if not alive.numel():
            break
        if alive.numel() < rows.token_R.numel():
            rows = _select(rows, alive)
            state = predictor.select(state, alive)
    return _collect(chosen, constraint.limit_B.tolist(), alpha)


def _open(constraint: Constraint) -> _Rows:
    """Every output at BOS."""
    limit_R = constraint.limit_B
    return _Rows(
        sentence_R=torch.arange(limit_R.numel(), device=limit_R.device),
        token_R=torch.full_like(limit_R, BOS_ID),
        log_prob_R=torch.zeros_like(limit_R, dtype=torch.float32),
        constraint=constraint,
        token_ids_RT=limit_R.new_zeros(limit_R.numel(), 0) if constraint.looks_back else None,
    )


def _extend(rows: _Rows, log_probs_RV: Tensor, step: int, pick: Pick | None) -> _Rows:
    """Every output one token longer; of the most probable the lowest token id (torch.max gives the first)."""
    scores_RV = rows.log_prob_R[:, None] + log_probs_RV
    past_RT = rows.token_ids_RT
    past_R1T = None if past_RT is None else past_RT[:, None, :]
    rows.constraint.forbid(scores_RV[:, None, :], step, past_R1T)
    if pick is None:
        token_R = rows.constraint.rank(scores_RV[:, None, :], past_R1T).squeeze(1).max(dim=1).indices
    else:
        token_R = pick(rows.sentence_R, step, log_probs_RV.masked_fill(scores_RV == -torch.inf, -torch.inf))
    log_prob_R = scores_RV.gather(1, token_R[:, None]).squeeze(1)
    return _Rows(
        rows.sentence_R,
        token_R=token_R,
        log_prob_R=log_prob_R,
        constraint=rows.constraint,
        token_ids_RT=None if past_RT is None else torch.cat([past_RT, token_R[:, None]], dim=1),
    )


def _select(rows: _Rows, alive: Tensor) -> _Rows:
    """Only the outputs that go on."""
    return _Rows(
        rows.sentence_R[alive],
        token_R=rows.token_R[alive],
        log_prob_R=rows.log_prob_R[alive],
        constraint=rows.constraint.select(alive),
        token_ids_RT=None if rows.token_ids_RT is None else rows.token_ids_RT[alive],
    )


def _collect(chosen: list[_Rows], limits: list[int], alpha: float) -> list[Hypothesis]:
    """The hypotheses from the tokens chosen at each step."""
    token_ids: list[list[int]] = [[] for _ in limits]
    log_probs = [0.0] * len(limits)
    for rows in chosen:
        for sentence, token, log_prob in zip(
            rows.sentence_R.tolist(), rows.token_R.tolist(), rows.log_prob_R.tolist(), strict=True
        ):
            token_ids[sentence].append(token)
            log_probs[sentence] = log_prob
    return [
        Hypothesis(
            tuple(ids),
            log_prob=log_prob,
            score=log_prob / length_penalty(len(ids), alpha),
            is_cut=len(ids) == limit,
        )
        for ids, log_prob, limit in zip(token_ids, log_probs, limits, strict=True)
    ]
