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


def accuracy(found: Sequence[str], wanted: Sequence[str]) -> Accuracy:
    """Count equal labels, white space around them left out. MetricError for unequal counts or none."""
    if len(found) != len(wanted) or not wanted:
        raise MetricError(
            f"metrics/accuracy: {len(found):,} labels against {len(wanted):,}; equal counts of at least 1 are wanted. "
            "Restore the files as they were."
        )
    right = sum(one.strip() == other.strip() for one, other in zip(found, wanted, strict=True))
    return Accuracy(right, len(wanted), max(Counter(label.strip() for label in wanted).values()))
