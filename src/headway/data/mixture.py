"""Which pairs an epoch has, where corpora have weights: a pair of weight w comes w times an epoch on average.

In every epoch each pair of a corpus comes floor(w) times. For the rest, w - floor(w) of 1, a corpus has one order of
its pairs, drawn by the seed; each epoch takes the next part of it, and after the last pair comes the first again. So
with weight 0.25 every epoch has another quarter, four epochs have each pair once, and over any number of epochs two
pairs of a corpus never differ by more than one.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

MILLIONTHS = 10**6  # weights are told apart no finer


@dataclass(frozen=True, slots=True)
class Share:
    """One corpus in a store: how many pairs it has there, after those of the corpora before it, and its weight."""

    pairs: int
    weight: Fraction

    def whole_copies(self) -> int:
        """How often each pair comes in every epoch."""
        return int(self.weight)

    def part(self, epoch: int) -> tuple[int, int]:
        """Where an epoch's part begins in the endless repetition of the corpus's order, and where it ends."""
        each = (self.weight - int(self.weight)) * self.pairs
        return int(each * epoch), int(each * (epoch + 1))


@dataclass(frozen=True, slots=True)
class Mixture:
    """The corpora of a store, in their order."""

    shares: tuple[Share, ...]

    def fewest(self) -> int:
        """Pairs that every epoch has at least."""
        return sum(int(share.weight * share.pairs) for share in self.shares)

    def epoch_pairs(self, *, seed: int, epoch: int) -> NDArray[np.int64] | None:
        """The pair numbers of an epoch, as often as each comes, corpus by corpus; None where all come once.

        Which they are depends on seed and epoch alone.
        """
        if all(share.weight == 1 for share in self.shares):
            return None
        pairs: list[NDArray[np.int64]] = []
        first = 0
        for number, share in enumerate(self.shares):
            pairs += [np.arange(first, first + share.pairs)] * share.whole_copies()
            begin, end = share.part(epoch)
            if end > begin:
                order = _order(share.pairs, f"headway mixture {seed} {number}")
                pairs.append(first + order[np.arange(begin, end) % share.pairs])
            first += share.pairs
        return np.concatenate(pairs) if pairs else np.empty(0, np.int64)


def weights(counts: Sequence[int], given: Sequence[float], *, temperature: float) -> list[Fraction]:
    """The weights of corpora with so many pairs, in millionths, for weights given and a sampling temperature T.

    A corpus's share of an epoch is proportional to (pairs times weight) ^ (1 / T), and the epoch's length stays what
    it is with T = 1. The larger T, the more even the shares (Arivazhagan et al. 2019, Section 3.2).
    """
    sizes = [count * weight for count, weight in zip(counts, given, strict=True)]
    total = sum(sizes)
    if temperature == 1 or not total:
        return [_in_millionths(weight) for weight in given]
    powers = [(size / total) ** (1 / temperature) for size in sizes]
    return [
        _in_millionths(total * power / sum(powers) / count) if count else Fraction(1)
        for count, power in zip(counts, powers, strict=True)
    ]


def quotas(counts: Sequence[int], wanted: Sequence[Fraction], *, total: int) -> list[int]:
    """Divide ``total`` in proportion to ``wanted``, but never more than ``counts`` each.

    Where a count is too small for its part, the others share the rest in the same proportion. Fractions are dropped.
    """
    given = [Fraction(0)] * len(counts)
    free = [number for number, count in enumerate(counts) if count]
    left = Fraction(min(total, sum(counts)))
    while free:
        each = left / sum(wanted[number] for number in free)
        full = [number for number in free if wanted[number] * each >= counts[number]]
        for number in full or free:
            given[number] = Fraction(counts[number]) if full else wanted[number] * each
        if not full:
            break
        free = [number for number in free if number not in full]
        left -= sum(counts[number] for number in full)
    return [int(part) for part in given]


def _in_millionths(weight: float) -> Fraction:
    return max(Fraction(round(weight * MILLIONTHS), MILLIONTHS), Fraction(1, MILLIONTHS))


def _order(count: int, name: str) -> NDArray[np.int64]:
    """The numbers below ``count`` in an order that ``name`` draws, from raw words alone: NumPy never changes those."""
    key = int.from_bytes(hashlib.sha256(name.encode()).digest()[:16], "little")
    return np.argsort(np.random.Philox(key=key).random_raw(count), kind="stable")
