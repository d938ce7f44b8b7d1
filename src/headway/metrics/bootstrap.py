"""How sure a mean over sentences is: the paired bootstrap (Koehn 2004).

Shapes: X systems, N sentences, R resamples.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headway.metrics.resample import resample

SEED = 1
RESAMPLES = 1000


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its 95 % interval; ``low`` and ``high`` are None where there is one sentence only."""

    value: float
    low: float | None
    high: float | None

    @property
    def excludes_zero(self) -> bool:
        """Whether the whole interval lies on one side of 0."""
        return self.low is not None and self.high is not None and not self.low <= 0.0 <= self.high


def ratio_intervals(
    sums_XN: np.ndarray, counts_N: Sequence[int], *, num_bootstrap: int = RESAMPLES, seed: int = SEED
) -> list[Estimate]:
    """Of each system the sum over sentences by the count over sentences, with the middle 95 % of resampled ones.

    With sums of differences, sentence by sentence, the interval is that of the paired difference. Sentences are drawn
    with replacement, the same for every system.
    """
    counts_N1 = np.asarray(counts_N, dtype=np.float64)[:, None]
    num_sentences = len(counts_N1)
    values_X = sums_XN.sum(axis=1) / counts_N1.sum()
    if num_sentences < 2:
        return [Estimate(float(value), None, None) for value in values_X]
    resampled: list[np.ndarray] = []
    for times_RN in resample(num_sentences, num_bootstrap, seed=seed):
        drawn_RN = times_RN.astype(np.float64)
        resampled.append((drawn_RN @ sums_XN.T) / (drawn_RN @ counts_N1))
    low_X, high_X = np.quantile(np.concatenate(resampled), (0.025, 0.975), axis=0)
    return [
        Estimate(float(value), float(low), float(high))
        for value, low, high in zip(values_X, low_X, high_X, strict=True)
    ]
