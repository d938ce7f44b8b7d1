"""How many texts were given their right label, and how sure that figure is."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from headway.errors import MetricError

DEVIATIONS = 1.959963984540054  # of a normal law, between which 95 % lie


@dataclass(frozen=True, slots=True)
class Accuracy:
    """``right`` of ``total`` texts; ``most_frequent``: how many would be right of one who always says the same."""

    right: int
    total: int
    most_frequent: int

    @property
    def share(self) -> float:
        """From 0 to 1."""
        return self.right / self.total

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of the share, by Wilson 1927: it stays within 0 and 1, near them too."""
        n, z = self.total, DEVIATIONS
        middle = (self.share + z * z / (2 * n)) / (1 + z * z / n)
        half = z / (1 + z * z / n) * math.sqrt(self.share * (1 - self.share) / n + z * z / (4 * n * n))
        return max(0.0, min(middle - half, self.share)), min(1.0, max(middle + half, self.share))

    def to_dict(self) -> dict[str, object]:
        """Return plain values, ready for JSON."""
        low, high = self.interval
        same = self.most_frequent / self.total
        return {
            "accuracy": self.share,
            "low": low,
            "high": high,
            "most_frequent_label": same,
            "right": self.right,
            "total": self.total,
        }


@dataclass(frozen=True, slots=True)
class AccuracyComparison:
    """Two classifiers on the same texts: how many only one of them labels right.

    What both have right, or neither, says nothing of the difference.
    """

    only_baseline: int
    only_this: int
    total: int

    @property
    def difference(self) -> float:
        """The share of this one minus the baseline's, from -1 to 1."""
        return (self.only_this - self.only_baseline) / self.total

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of the difference: Wald's, with half a text more of each of four kinds (Agresti, Min 2005)."""
        one, other, n = self.only_this + 0.5, self.only_baseline + 0.5, self.total + 2
        middle = (one - other) / n
        half = DEVIATIONS * math.sqrt(one + other - (one - other) ** 2 / n) / n
        return max(-1.0, middle - half), min(1.0, middle + half)

    @property
    def p_value(self) -> float:
        """How often a fair coin parts these texts as unevenly: McNemar's test, exact."""
        unlike = self.only_baseline + self.only_this
        tail = ways = 1  # of no heads, then of one more at a time
        for heads in range(min(self.only_baseline, self.only_this)):
            ways = ways * (unlike - heads) // (heads + 1)
            tail += ways
        return min(1.0, 2 * tail / 2**unlike)

    def to_dict(self) -> dict[str, object]:
        """Return plain values, ready for JSON."""
        low, high = self.interval
        counts = {"only_baseline": self.only_baseline, "only_this": self.only_this, "total": self.total}
        return {"difference": self.difference, "low": low, "high": high, "p_value": self.p_value, **counts}


def compare_labels(baseline: Sequence[str], found: Sequence[str], wanted: Sequence[str]) -> AccuracyComparison:
    """Count the texts that one of two classifiers labels right; errors as ``accuracy``."""
    for labels in (baseline, found):
        accuracy(labels, wanted)  # refuses unequal counts
    rights = [
        (one.strip() == label.strip(), other.strip() == label.strip())
        for one, other, label in zip(baseline, found, wanted, strict=True)
    ]
    return AccuracyComparison(rights.count((True, False)), rights.count((False, True)), len(rights))


def accuracy(found: Sequence[str], wanted: Sequence[str]) -> Accuracy:
    """Count equal labels, white space around them left out. MetricError for unequal counts or none."""
    if len(found) != len(wanted) or not wanted:
        raise MetricError(
            f"metrics/accuracy: {len(found):,} labels against {len(wanted):,}; equal counts of at least 1 are wanted. "
            "Restore the files as they were."
        )
    right = sum(one.strip() == other.strip() for one, other in zip(found, wanted, strict=True))
    return Accuracy(right, len(wanted), max(Counter(label.strip() for label in wanted).values()))
