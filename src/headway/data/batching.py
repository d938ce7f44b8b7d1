"""Which pairs make a step: batches by a budget of tokens, from shuffled buckets of about equal length.

Section 5.1 of the paper: "sentence pairs were batched together by approximate sequence length". A side's width is the
longest of its sentences and one more for EOS (or BOS). A step costs its rows times the wider side.

Memory: some 50 bytes a pair while an epoch is planned, 16 bytes a pair afterwards.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import overload

import numpy as np
from numpy.typing import NDArray

from headway.data.store import Lengths, Store
from headway.errors import DataError

Indices = NDArray[np.int64]
Step = tuple[Indices, ...]  # one array of pair numbers a microbatch

SMALLEST_FIRST = 0.5  # of a budget: the first cut is drawn between this and 1, so that the cuts move every epoch


@dataclass(frozen=True, slots=True)
class _Widths:
    """Columns that each pair needs on each side, EOS counted, and on the wider of them."""

    source: Lengths
    target: Lengths
    longer: Lengths
    multiple: int  # every width is one of this number

    def of(self, rows: NDArray[np.integer]) -> "_Widths":
        """The widths of some of the pairs."""
        return _Widths(self.source[rows], self.target[rows], self.longer[rows], self.multiple)


@dataclass(frozen=True)
class Plan(Sequence[Step]):
    """The steps of an epoch, in their order. What makes a step is settled; its microbatches are cut when asked for."""

    order: NDArray[np.integer]  # places in the epoch, step by step, as they were cut
    ends: Indices  # where each of these steps begins in ``order``, and where the last ends
    shuffled: Indices  # the steps in the order of training
    pairs: Indices | None  # the pair at each place; absent: the place is its number
    widths: _Widths = field(repr=False)
    microbatch_tokens: int | None = None

    def __len__(self) -> int:
        return len(self.shuffled)

    @overload
    def __getitem__(self, index: int) -> Step: ...
    @overload
    def __getitem__(self, index: slice) -> list[Step]: ...
    def __getitem__(self, index: int | slice) -> Step | list[Step]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        return tuple(
            places.astype(np.int64) if self.pairs is None else self.pairs[places] for places in self.places(index)
        )

    def places(self, index: int) -> tuple[NDArray[np.integer], ...]:
        """As a step, with places in the epoch in place of pair numbers: they tell copies of a pair apart."""
        number = self.shuffled[index]
        rows = self.order[self.ends[number] : self.ends[number + 1]]
        if self.microbatch_tokens is None:
            return (rows,)
        mine = self.widths.of(rows)
        order = _order(mine, np.zeros(len(rows)))
        ends = _cut(mine.longer[order], self.microbatch_tokens)
        return tuple(rows[order[begin:end]] for begin, end in pairwise(ends))


def plan(
    source_lengths: Lengths | Indices,
    target_lengths: Lengths | Indices,
    *,
    batch_tokens: int,
    microbatch_tokens: int | None = None,
    seed: int,
    epoch: int,
    length_multiple: int = 1,
    pairs: Indices | None = None,
) -> Plan:
    """Divide the pairs of an epoch into steps, each in exactly one microbatch of one step.

    Lengths are in tokens without BOS and EOS. ``pairs`` has the numbers of the epoch's pairs, each as often as it
    comes (absent: all, once). As one block a step has at most ``batch_tokens`` positions on its wider
    side; its rows, longest first, are then cut into microbatches of at most ``microbatch_tokens`` (absent: one). Which
    pairs make a step, and the order of steps, follow from lengths, ``batch_tokens``, ``length_multiple`` (widths are
    rounded up to it), ``pairs``, ``seed`` and ``epoch`` alone. DataError when there is no pair, or one is longer than
    a budget.
    """
    widths = _widths(source_lengths, target_lengths, length_multiple)
    _check(widths, "train.batch_tokens", batch_tokens)
    if microbatch_tokens is not None:
        _check(widths, "train.microbatch_tokens", microbatch_tokens)
    if pairs is not None:
        widths = widths.of(pairs)
        _check(widths, "train.batch_tokens", batch_tokens)
    random = _generator(seed, epoch)
    noise = _uniform(random, len(widths.longer))
    noise -= _uniform(random, len(widths.longer))
    order = _order(widths, noise)
    share = SMALLEST_FIRST + (1 - SMALLEST_FIRST) * float(_uniform(random, 1)[0])
    ends = _cut(widths.longer[order], batch_tokens, first_share=share)
    shuffled = np.argsort(random.random_raw(len(ends) - 1), kind="stable")
    return Plan(order, np.asarray(ends), shuffled, pairs, widths, microbatch_tokens)


def plan_epoch(
    store: Store,
    *,
    batch_tokens: int,
    microbatch_tokens: int | None = None,
    seed: int,
    epoch: int,
    length_multiple: int = 1,
) -> Plan:
    """The steps of an epoch of a store, whose corpora come as often as their weights say."""
    return plan(
        store.source_lengths,
        store.target_lengths,
        batch_tokens=batch_tokens,
        microbatch_tokens=microbatch_tokens,
        seed=seed,
        epoch=epoch,
        length_multiple=length_multiple,
        pairs=store.mixture.epoch_pairs(seed=seed, epoch=epoch),
    )


def padding_share(
    steps: Sequence[Step],
    source_lengths: Lengths | Indices,
    target_lengths: Lengths | Indices,
    *,
    length_multiple: int = 1,
) -> float:
    """Share of all positions, both sides and every microbatch, that hold no real token (EOS is one): 0 to 1."""
    widths = _widths(source_lengths, target_lengths, length_multiple)
    positions = real = 0
    for step in steps:
        for rows in step:
            positions += len(rows) * int(widths.source[rows].max() + widths.target[rows].max())
            real += int(source_lengths[rows].sum() + target_lengths[rows].sum()) + 2 * len(rows)
    return 1 - real / positions if positions else 0.0


def _widths(source_lengths: Lengths | Indices, target_lengths: Lengths | Indices, multiple: int) -> _Widths:
    source, target = (
        (-(-(lengths + 1) // multiple) * multiple).astype(np.int32, copy=False)
        for lengths in (source_lengths, target_lengths)
    )
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
    words = random.random_raw(count)
    words >>= np.uint64(11)
    numbers = words.astype(np.float64)
    numbers *= 2.0**-53
    return numbers


def _order(widths: _Widths, noise: NDArray[np.float64]) -> NDArray[np.integer]:
    """Pairs by their wider side, widest first; those alike in it by how much the sides differ, and noise (tokens).

    The difference runs up through one width and down through the next, so that neighbours are alike on both sides at
    the seam too. ``noise`` is used up.
    """
    upwards = np.where(widths.longer // widths.multiple % 2, 1, -1).astype(np.int32)
    span = 2.0 * float(widths.longer.max()) + 4  # more than difference and noise can make, so widths never mix
    key = widths.longer * span
    key += upwards * (widths.source - widths.target)
    key += noise
    np.negative(key, out=key)
    order = np.argsort(key, kind="stable")
    return order.astype(np.int32) if len(order) <= np.iinfo(np.int32).max else order


def _cut(costs: Lengths, budget: int, *, first_share: float = 1.0) -> list[int]:
    """Cut pairs in their order into the longest runs whose rows times highest cost stay within the budget: the cuts.

    The first run gets a share of the budget, unless everything fits into one. A last run of less than half the rows
    of the one before shares with it, so that no step rests on a handful of pairs.
    """
    if len(costs) * int(costs.max()) <= budget:
        return [0, len(costs)]
    ends = [0]
    limit = max(int(budget * first_share), int(costs[0]))
    while ends[-1] < len(costs):
        begin = ends[-1]
        highest = np.maximum.accumulate(costs[begin : begin + limit // int(costs[begin])], dtype=np.int64)
        fitting = np.searchsorted(highest * np.arange(1, len(highest) + 1), limit, side="right")
        ends.append(begin + int(fitting))
        limit = budget
    _balance_last(ends, costs, budget)
    return ends


def _balance_last(ends: list[int], costs: Lengths, budget: int) -> None:
    """Move the last cut to the middle of the last two runs, where they are very unequal and the budget allows it."""
    before, cut, last = ends[-3:]
    middle = (before + last + 1) // 2
    if 2 * (last - cut) < cut - before and (last - middle) * int(costs[middle:].max()) <= budget:
        ends[-2] = middle
