"""Sampling: each token is drawn from the model's distribution, in place of the most probable one.

The numbers that decide come from a counter-based stream of their own for every output: its key is made of the seed, the
source's token ids (of the prefix where there is no source) and which of the source's samples it is, its n-th number
decides the n-th token. So an output depends on these alone: not on the rest of the batch, the order of lines, the
number of samples or of threads. The same line twice gives the same samples twice.

Shapes: B sentences, S source positions, O outputs, R of them under way, V vocabulary, T positions,
K the most probable tokens.
"""

from hashlib import blake2b
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from headway.search.candidates import best_places
from headway.search.constraint import Constraint
from headway.search.greedy import greedy_search
from headway.search.hypothesis import Hypothesis
from headway.search.predictor import Predictor
from headway.search.repeated import Repeated, repeat_constraint
from headway.search.settings import Sampling, SearchSettings
from headway.text.tokenizer import PAD_ID

State = TypeVar("State")

HEAD = 256  # tokens, among which the fewest that reach top-p mostly are


def sample_search(
    predictor: Predictor[State],
    source_BS: Tensor,
    source_mask_BS: Tensor,
    *,
    constraint: Constraint,
    settings: SearchSettings,
    sampling: Sampling,
) -> list[list[Hypothesis]]:
    """The ``n_best`` samples of each source as they were drawn, equal ones too; log_prob is the model's own."""
    count = settings.n_best
    lengths = source_mask_BS.sum(dim=1).tolist()
    prefixes = [[token for token in prefix if token != PAD_ID] for prefix in constraint.prefix_BP.tolist()]
    sources = [
        ids[:length] or prefix for ids, length, prefix in zip(source_BS.tolist(), lengths, prefixes, strict=True)
    ]
    longest = int(constraint.limit_B.max())
    numbers_OT = torch.from_numpy(
        np.stack([uniform_numbers(ids, longest, seed=sampling.seed, place=k) for ids in sources for k in range(count)])
    ).to(device=source_BS.device, dtype=_precise(source_BS.device))

    def pick(output_R: Tensor, step: int, log_probs_RV: Tensor) -> Tensor:
        return draw(log_probs_RV, numbers_OT[output_R, step], sampling)

    samples = greedy_search(
        Repeated(predictor, count),
        source_BS,
        source_mask_BS,
        constraint=repeat_constraint(constraint, count),
        alpha=settings.length_penalty,
        pick=pick,
    )
    return [samples[first : first + count] for first in range(0, len(samples), count)]


def uniform_numbers(source_ids: list[int], count: int, *, seed: int, place: int) -> np.ndarray:
    """The numbers from [0, 1), float64, that decide sample ``place`` of a source; more of them begin with the same."""
    content = np.array([seed, place], dtype="<u8").tobytes() + np.array(source_ids, dtype="<i8").tobytes()
    key = np.frombuffer(blake2b(content, digest_size=16).digest(), dtype="<u8")
    return np.random.Generator(np.random.Philox(key=key)).random(count)


def draw(log_probs_RV: Tensor, number_R: Tensor, sampling: Sampling) -> Tensor:
    """The token of each row at which the cumulative probability, in order of token ids, passes the row's number.

    In order of ids, and not of probability, a rounding error of the model moves the boundaries between tokens by as
    much, and never makes two tokens change places.
    """
    probability_RV = cut(log_probs_RV, sampling)
    cumulative_RV = probability_RV.cumsum(dim=1)
    total_R1 = cumulative_RV[:, -1:]
    # Never the whole sum, where the search would run past the last token.
    wanted_R1 = torch.minimum(number_R[:, None] * total_R1, torch.nextafter(total_R1, torch.zeros_like(total_R1)))
    return torch.searchsorted(cumulative_RV, wanted_R1, right=True).squeeze(1)


def cut(log_probs_RV: Tensor, sampling: Sampling) -> Tensor:
    """The distribution to draw from: the model's at the temperature, without what the cuts take away."""
    logits_RV = log_probs_RV.to(_precise(log_probs_RV.device)) / sampling.temperature
    probability_RV = logits_RV.softmax(dim=1)
    if sampling.top_k is not None or sampling.top_p is not None:
        probability_RV = _cut_tail(probability_RV, top_k=sampling.top_k, top_p=sampling.top_p)
    if sampling.epsilon is not None:
        likely_RV = probability_RV >= sampling.epsilon
        likely_RV.scatter_(1, probability_RV.argmax(dim=1, keepdim=True), True)
        probability_RV = _normalised(probability_RV * likely_RV)
    return probability_RV


def _cut_tail(probability_RV: Tensor, *, top_k: int | None, top_p: float | None, head: int = HEAD) -> Tensor:
    """Without the tokens beyond the first ``top_k``, then beyond the first whose sum reaches ``top_p``.

    Among equally probable tokens the lower ids come first. Without ``top_k`` only the ``head`` most probable tokens are
    put in order, and all of them in the rows where that is not enough.
    """
    size = head if top_k is None else top_k
    if size < probability_RV.shape[1]:
        ordered_RK, token_RK = best_places(probability_RV, size)
    else:
        ordered_RK, token_RK = probability_RV.sort(dim=1, descending=True, stable=True)
    ordered_RK = ordered_RK if top_k is None else _normalised(ordered_RK)
    is_short_R = torch.zeros_like(ordered_RK[:, 0], dtype=torch.bool)
    if top_p is not None:
        sums_RK = ordered_RK.cumsum(dim=1)
        is_short_R = (sums_RK[:, -1] < top_p) & (top_k is None and head < probability_RV.shape[1])
        ordered_RK = _normalised(ordered_RK * (sums_RK - ordered_RK < top_p))
    kept_RV = torch.zeros_like(probability_RV).scatter(1, token_RK, ordered_RK)
    rows = is_short_R.nonzero().squeeze(1)
    if rows.numel():
        kept_RV[rows] = _cut_tail(probability_RV[rows], top_k=None, top_p=top_p, head=probability_RV.shape[1])
    return kept_RV


def _normalised(weight_RV: Tensor) -> Tensor:
    """The same, with a sum of 1."""
    return weight_RV / weight_RV.sum(dim=1, keepdim=True)


def _precise(device: torch.device) -> torch.dtype:
    """Double precision where the device has it."""
    return torch.float32 if device.type == "mps" else torch.float64
