"""How long texts are: exact counts of each length, and what is read off them."""

import math
from array import array
from collections import Counter
from dataclasses import dataclass

_STEPS = 20  # of a ratio, to each doubling


@dataclass(frozen=True, slots=True)
class Lengths:
    """Of a number of texts, the mean, median and 95th percentile of a length, and the longest with its line."""

    mean: float
    median: int
    percentile_95: int
    longest: int
    longest_line: int


class LengthCounter:
    """Counts lengths as texts flow by; memory grows with the different lengths only."""

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()
        self._longest = (-1, 0)

    def add(self, length: int, line: int) -> None:
        """Take note of a text of this length at this line."""
        self._counts[length] += 1
        if length > self._longest[0]:
            self._longest = (length, line)

    def update(self, other: "LengthCounter") -> None:
        """Take note of all that another has counted."""
        self._counts.update(other._counts)
        self._longest = max(self._longest, other._longest, key=lambda entry: entry[0])

    def result(self) -> Lengths:
        """The statistics; all 0 where nothing was counted."""
        number = self._counts.total()
        if not number:
            return Lengths(0.0, 0, 0, 0, 0)
        total = sum(length * count for length, count in self._counts.items())
        median, percentile_95 = quantiles(self._counts, 0.5, 0.95)
        return Lengths(total / number, median, percentile_95, *self._longest)


class RatioCounter:
    """Counts by how much a target is longer than its source, in steps of 3.5 %."""

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()

    def add(self, source_length: int, target_length: int) -> None:
        """Take note of two lengths above 0."""
        self._counts[round(_STEPS * math.log2(target_length / source_length))] += 1

    def update(self, other: "RatioCounter") -> None:
        """Take note of all that another has counted."""
        self._counts.update(other._counts)

    def result(self) -> tuple[float, float, float]:
        """The 5th, 50th and 95th percentile of target length / source length; zeros where nothing was counted."""
        if not self._counts:
            return 0.0, 0.0, 0.0
        low, middle, high = quantiles(self._counts, 0.05, 0.5, 0.95)
        return 2.0 ** (low / _STEPS), 2.0 ** (middle / _STEPS), 2.0 ** (high / _STEPS)


def quantiles(counts: Counter[int], *shares: float) -> list[int]:
    """For each share, the smallest value that at least this share of all values does not exceed (nearest rank)."""
    total = counts.total()
    ranks = array("q", (max(1, math.ceil(share * total)) for share in shares))
    found: list[int] = [0] * len(ranks)
    seen = 0
    for value in sorted(counts):
        for place, rank in enumerate(ranks):
            if seen < rank <= seen + counts[value]:
                found[place] = value
        seen += counts[value]
    return found
