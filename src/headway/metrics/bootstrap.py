"""How sure a mean over sentences is: the paired bootstrap (Koehn 2004).

Shapes: X systems, N sentences, R resamples.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

SEED = 1
RESAMPLES = 1000
_AT_ONCE = 4_000_000  # numbers held in memory at a time, one a sentence and resample


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
    random = np.random.Generator(np.random.PCG64(seed))
    chances_N = np.full(num_sentences, 1.0 / num_sentences)
    resampled: list[np.ndarray] = []
    step = max(1, _AT_ONCE // num_sentences)
    for start in range(0, num_bootstrap, step):
        drawn_RN = random.multinomial(num_sentences, chances_N, min(step, num_bootstrap - start)).astype(np.float64)
        resampled.append((drawn_RN @ sums_XN.T) / (drawn_RN @ counts_N1))
    low_X, high_X = np.quantile(np.concatenate(resampled), (0.025, 0.975), axis=0)
    return [
        Estimate(float(value), float(low), float(high))
        for value, low, high in zip(values_X, low_X, high_X, strict=True)
    ]
