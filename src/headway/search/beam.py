"""Beam search: the best few hypotheses of every sentence, side by side, until none under way can win.

At each step the 2 x beam best extensions are looked at. Those among the best ``beam`` that end in EOS are finished;
the best ``beam`` of the others go on. (Each hypothesis has one EOS, so at least ``beam`` of the 2 x beam go on.)
A finished hypothesis keeps its score and is never extended. A sentence stops when no hypothesis under way can still
exceed the worst kept finished score: its probability can only fall, and its length can at most be the limit.

Among equal scores the earlier hypothesis, then the lower token id, comes first, on every device.

Shapes: B sentences under way, S source positions, N hypotheses of each under way (1 at the first step, then the beam),
V vocabulary, R = B x N rows, C candidates, M finished hypotheses kept of each sentence, T tokens so far.
"""

from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor

from headway.search.candidates import Candidates, Chooser, Live, MostProbable
from headway.search.constraint import Constraint
from headway.search.hypothesis import Hypothesis
from headway.search.length import length_penalty
from headway.search.predictor import Predictor
from headway.search.settings import SearchSettings
from headway.text.tokenizer import BOS_ID, EOS_ID, PAD_ID, UNK_ID

State = TypeVar("State")


@dataclass(frozen=True, slots=True)
class _Finished:
    """The best finished hypotheses, best first, padded with PAD. A score of -inf marks an empty place."""

    token_ids_BMT: Tensor
    log_prob_BM: Tensor
    score_BM: Tensor


def beam_search(
    predictor: Predictor[State],
    source_BS: Tensor,
    source_mask_BS: Tensor,
    *,
    constraint: Constraint,
    settings: SearchSettings,
    chooser: Chooser | None = None,
) -> list[list[Hypothesis]]:
    """The ``n_best`` hypotheses of each source, best first; fewer where fewer exist.

    ``chooser`` decides which extensions are looked at; absent, the most probable.
    """
    state = predictor.start(source_BS, source_mask_BS)
    chooser = chooser or MostProbable()
    live, finished = _open(constraint)
    results: list[list[Hypothesis]] = [[] for _ in range(constraint.limit_B.numel())]
    sentences = list(range(len(results)))
    step = 0
    while sentences:
        log_probs, state = predictor.predict(_newest_tokens(live), state)
        log_probs = log_probs.view(*live.log_prob_BN.shape, -1)
        candidates = chooser.extend(live, log_probs, constraint=constraint, step=step, size=2 * settings.beam_size)
        ended, going_on = _split_finished(candidates, settings.beam_size)
        finished = _keep_best(finished, _finish(live, ended, step, settings.length_penalty), settings.n_best)
        stop = _may_stop(finished, going_on, constraint, settings)
        _collect(results, sentences, finished, constraint=constraint, stop=stop)
        kept = (~stop).nonzero().squeeze(1)
        sentences = [sentences[place] for place in kept.tolist()]
        if sentences:
            state = predictor.select(state, _parent_rows(going_on, kept, live.log_prob_BN.shape[1]))
            chooser = chooser.follow(ended, going_on, kept)
            live = _select_live(live, going_on, kept)
            finished = _select_finished(finished, kept)
            constraint = constraint.select(kept)
        step += 1
    return results


def _open(constraint: Constraint) -> tuple[Live, _Finished]:
    """One hypothesis of no token for every sentence, and none finished."""
    limit_B = constraint.limit_B
    log_prob_BN = torch.zeros_like(limit_B, dtype=torch.float32)[:, None]
    token_ids_BNT = limit_B.new_zeros(limit_B.numel(), 1, 0)
    nothing = log_prob_BN[:, :0]
    return Live(token_ids_BNT, log_prob_BN), _Finished(token_ids_BNT[:, :0], nothing, nothing)


def _newest_tokens(live: Live) -> Tensor:
    """The last token of every hypothesis, as rows; BOS at the first step."""
    token_ids_BNT = live.token_ids_BNT
    if token_ids_BNT.shape[2] == 0:
        return torch.full_like(live.log_prob_BN, BOS_ID, dtype=torch.int64).flatten()
    return token_ids_BNT[:, :, -1].flatten()


def _split_finished(candidates: Candidates, beam_size: int) -> tuple[Candidates, Candidates]:
    """Candidates that end among the best ``beam_size``, and the best ``beam_size`` that go on.

    Both keep a place for those that do not belong, with log-probability -inf (and UNK for the token, so that a
    Predictor never sees EOS).
    """
    ends_BC = candidates.token_BC == EOS_ID
    ended = Candidates(
        candidates.parent_BC[:, :beam_size],
        candidates.token_BC[:, :beam_size],
        candidates.log_prob_BC.masked_fill(~ends_BC, -torch.inf)[:, :beam_size],
        candidates.rank_BC[:, :beam_size],
    )
    rank_BC, order_BC = candidates.rank_BC.masked_fill(ends_BC, -torch.inf).sort(dim=1, descending=True, stable=True)
    log_prob_BC = candidates.log_prob_BC.masked_fill(ends_BC, -torch.inf).gather(1, order_BC)
    token_BC = candidates.token_BC.gather(1, order_BC).masked_fill(log_prob_BC == -torch.inf, UNK_ID)
    going_on = Candidates(
        candidates.parent_BC.gather(1, order_BC)[:, :beam_size],
        token_BC[:, :beam_size],
        log_prob_BC[:, :beam_size],
        rank_BC[:, :beam_size],
    )
    return ended, going_on


def _grow(live: Live, candidates: Candidates) -> Tensor:
    """The token ids of each candidate: its parent's and the new one."""
    num_tokens = live.token_ids_BNT.shape[2]
    parent_ids = live.token_ids_BNT.gather(1, candidates.parent_BC[:, :, None].expand(-1, -1, num_tokens))
    return torch.cat([parent_ids, candidates.token_BC[:, :, None]], dim=2)


def _finish(live: Live, ended: Candidates, step: int, alpha: float) -> _Finished:
    """The hypotheses that ended at this step, with their scores."""
    log_prob_BM = ended.log_prob_BC
    return _Finished(_grow(live, ended), log_prob_BM, log_prob_BM / length_penalty(step + 1, alpha))


def _keep_best(finished: _Finished, new: _Finished, n_best: int) -> _Finished:
    """The ``n_best`` highest scores of both; among equals the earlier."""
    longer = torch.nn.functional.pad(finished.token_ids_BMT, (0, 1), value=PAD_ID)
    token_ids_BMT = torch.cat([longer, new.token_ids_BMT], dim=1)
    log_prob_BM = torch.cat([finished.log_prob_BM, new.log_prob_BM], dim=1)
    score_BM = torch.cat([finished.score_BM, new.score_BM], dim=1)
    order_BM = score_BM.argsort(dim=1, descending=True, stable=True)
    best = order_BM[:, :n_best]
    return _Finished(
        token_ids_BMT.gather(1, best[:, :, None].expand(-1, -1, token_ids_BMT.shape[2])),
        log_prob_BM.gather(1, best),
        score_BM.gather(1, best),
    )


def _may_stop(finished: _Finished, going_on: Candidates, constraint: Constraint, settings: SearchSettings) -> Tensor:
    """True for the sentences whose kept finished scores no hypothesis under way can exceed.

    The bound: a log-probability never rises, and the largest penalty is that of the limit. Without ``n_best`` finished
    hypotheses the worst score is -inf, so only a sentence with nothing under way stops.
    """
    limit_B = constraint.limit_B
    best_log_prob_B = going_on.log_prob_BC.amax(dim=1)
    reachable_B = best_log_prob_B / _penalty(limit_B, settings.length_penalty)
    is_full = finished.score_BM.shape[1] >= settings.n_best
    worst_B = finished.score_BM[:, -1] if is_full else torch.full_like(reachable_B, -torch.inf)
    at_limit_B = limit_B <= finished.token_ids_BMT.shape[2]
    return (worst_B >= reachable_B) | at_limit_B


def _penalty(length_B: Tensor, alpha: float) -> Tensor:
    """``length_penalty`` of many lengths at once (float32)."""
    return ((5 + length_B.float()) / 6) ** alpha


def _collect(
    results: list[list[Hypothesis]],
    sentences: list[int],
    finished: _Finished,
    *,
    constraint: Constraint,
    stop: Tensor,
) -> None:
    """Write the finished hypotheses of the sentences that stop into ``results``."""
    for place in stop.nonzero().squeeze(1).tolist():
        limit = int(constraint.limit_B[place])
        for ids, log_prob, score in zip(
            finished.token_ids_BMT[place].tolist(),
            finished.log_prob_BM[place].tolist(),
            finished.score_BM[place].tolist(),
            strict=True,
        ):
            if score > -torch.inf:
                token_ids = tuple(ids[: ids.index(EOS_ID) + 1])
                results[sentences[place]].append(
                    Hypothesis(token_ids, log_prob=log_prob, score=score, is_cut=len(token_ids) == limit)
                )


def _parent_rows(going_on: Candidates, kept: Tensor, num_live: int) -> Tensor:
    """The predictor row that each hypothesis of the kept sentences extends."""
    return (kept[:, None] * num_live + going_on.parent_BC[kept]).flatten()


def _select_live(live: Live, going_on: Candidates, kept: Tensor) -> Live:
    """The hypotheses that go on, one token longer, of the kept sentences."""
    return Live(_grow(live, going_on)[kept], going_on.log_prob_BC[kept])


def _select_finished(finished: _Finished, kept: Tensor) -> _Finished:
    """The finished hypotheses of the kept sentences."""
    return _Finished(finished.token_ids_BMT[kept], finished.log_prob_BM[kept], finished.score_BM[kept])
