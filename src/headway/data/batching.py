"""Which pairs make a step: batches by a budget of tokens, from shuffled buckets of about equal length.

Section 5.1 of the paper: "sentence pairs were batched together by approximate sequence length". A side's width is the
longest of its sentences and one more for EOS (or BOS). A step costs its rows times the wider side.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from headway.errors import DataError

Indices = NDArray[np.int64]
Step = tuple[Indices, ...]  # one array of pair numbers a microbatch

SMALLEST_FIRST = 0.5  # of a budget: the first cut is drawn between this and 1, so that the cuts move every epoch


@dataclass(frozen=True, slots=True)
class _Widths:
    """Columns that each pair needs on each side, EOS counted, and on the wider of them."""

    source: Indices
    target: Indices
    longer: Indices
    multiple: int  # every width is one of this number

    def of(self, rows: Indices) -> "_Widths":
        """The widths of some of the pairs."""
        return _Widths(self.source[rows], self.target[rows], self.longer[rows], self.multiple)


def plan(
    source_lengths: Indices,
    target_lengths: Indices,
    *,
    batch_tokens: int,
    microbatch_tokens: int | None = None,
    seed: int,
    epoch: int,
    length_multiple: int = 1,
) -> list[Step]:
    """Divide all pairs into the steps of one epoch, each pair in exactly one microbatch of one step.

    Lengths are in tokens without BOS and EOS. As one block a step has at most ``batch_tokens`` positions on its wider
    side; its rows, longest first, are then cut into microbatches of at most ``microbatch_tokens`` (absent: one). Which
    pairs make a step, and the order of steps, follow from lengths, ``batch_tokens``, ``length_multiple`` (widths are
    rounded up to it), ``seed`` and ``epoch`` alone. DataError when there is no pair, or one is longer than a budget.
    """
    widths = _widths(source_lengths, target_lengths, length_multiple)
    _check(widths, "train.batch_tokens", batch_tokens)
    if microbatch_tokens is not None:
        _check(widths, "train.microbatch_tokens", microbatch_tokens)
    random = _generator(seed, epoch)
    noise = _uniform(random, len(widths.longer)) - _uniform(random, len(widths.longer))
    order = _order(widths, noise)
    share = SMALLEST_FIRST + (1 - SMALLEST_FIRST) * float(_uniform(random, 1)[0])
    steps = _cut(order, widths.longer[order], batch_tokens, first_share=share)
    shuffled = np.argsort(random.random_raw(len(steps)), kind="stable")
    if microbatch_tokens is None:
        return [(steps[number],) for number in shuffled]
    return [_microbatches(steps[number], widths, microbatch_tokens) for number in shuffled]


def padding_share(
    steps: Sequence[Step], source_lengths: Indices, target_lengths: Indices, *, length_multiple: int = 1
) -> float:
    """Share of all positions, both sides and every microbatch, that hold no real token (EOS is one): 0 to 1."""
    widths = _widths(source_lengths, target_lengths, length_multiple)
    positions = real = 0
    for step in steps:
        for rows in step:
            positions += len(rows) * int(widths.source[rows].max() + widths.target[rows].max())
            real += int(source_lengths[rows].sum() + target_lengths[rows].sum()) + 2 * len(rows)
    return 1 - real / positions if positions else 0.0


def _widths(source_lengths: Indices, target_lengths: Indices, multiple: int) -> _Widths:
    source, target = (-(-(lengths + 1) // multiple) * multiple for lengths in (source_lengths, target_lengths))
    return _Widths(source, target, np.maximum(source, target), multiple)


def _check(widths: _Widths, name: str, budget: int) -> None:
    if not len(widths.longer):
        raise DataError("data/batching: there is no sentence pair to batch; wanted at least 1. Prepare other text.")
    index = int(widths.longer.argmax())
    longest = int(widths.longer[index])
    if longest > budget:
        raise DataError(
            f"data/batching: pair {index + 1:,} of {len(widths.longer):,} needs {longest:,} tokens on its longer side, "
            f"EOS counted; {name} is {budget:,}. Set {name} to {longest} or more, or data.max_tokens to {budget} "
            "or less."
        )


def _generator(seed: int, epoch: int) -> np.random.Philox:
    """A stream of its own for every seed and epoch. Only raw 64-bit words are drawn: NumPy never changes those."""
    digest = hashlib.sha256(f"headway batching {seed} {epoch}".encode()).digest()
    return np.random.Philox(key=int.from_bytes(digest[:16], "little"))


def _uniform(random: np.random.Philox, count: int) -> NDArray[np.float64]:
    """Numbers from 0 up to but not 1, evenly spread: the upper 53 bits of each word."""
    return (random.random_raw(count) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _order(widths: _Widths, noise: NDArray[np.float64] | float) -> Indices:
    """Pairs by their wider side, widest first; those alike in it by how much the sides differ, and noise (tokens).

    The difference runs up through one width and down through the next, so that neighbours are alike on both sides at
    the seam too.
    """
    upwards = np.where(widths.longer // widths.multiple % 2, 1, -1)
    span = 2.0 * float(widths.longer.max()) + 4  # more than difference and noise can make, so widths never mix
    key = widths.longer * span + upwards * (widths.source - widths.target) + noise
    return np.argsort(-key, kind="stable")


def _cut(order: Indices, costs: Indices, budget: int, *, first_share: float = 1.0) -> list[Indices]:
    """Cut pairs in their order into the longest runs whose rows times highest cost stay within the budget.

    The first run gets a share of the budget, unless everything fits into one. A last run of less than half the rows
    of the one before shares with it, so that no step rests on a handful of pairs.
    """
    if len(order) * int(costs.max()) <= budget:
        return [order]
    ends = [0]
    limit = max(int(budget * first_share), int(costs[0]))
    while ends[-1] < len(order):
        begin = ends[-1]
        highest = np.maximum.accumulate(costs[begin : begin + limit // int(costs[begin])])
        fitting = np.searchsorted(highest * np.arange(1, len(highest) + 1), limit, side="right")
        ends.append(begin + int(fitting))
        limit = budget
    _balance_last(ends, costs, budget)
    return [order[begin:end] for begin, end in pairwise(ends)]


def _balance_last(ends: list[int], costs: Indices, budget: int) -> None:
    """Move the last cut to the middle of the last two runs, where they are very unequal and the budget allows it."""
    before, cut, last = ends[-3:]
    middle = (before + last + 1) // 2
    if 2 * (last - cut) < cut - before and (last - middle) * int(costs[middle:].max()) <= budget:
        ends[-2] = middle


def _microbatches(rows: Indices, widths: _Widths, budget: int) -> Step:
    mine = widths.of(rows)
    order = _order(mine, 0.0)
    return tuple(_cut(rows[order], mine.longer[order], budget))
