"""How sure an F1 of brackets is: sentences drawn again with replacement, many times, with a fixed seed.

Counts are, of each sentence, (brackets that match, brackets of the reference, brackets of the parse).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from headway.metrics.resample import resample

SEED = 12345  # sacreBLEU's
FEWEST = 2  # resamples from which there is an interval

Counts: TypeAlias = Sequence[tuple[int, int, int]]


@dataclass(frozen=True, slots=True)
class Interval:
    """The middle 95 % of the resamples."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class PairedF1:
    """F1 of two parsers on the same sentences, and of the difference system - baseline its interval.

    ``p_value``: how often a difference as large as this comes of chance alone: the share of resamples whose difference
    is as far from the mean difference (Koehn 2004; 1 is added to both counts).
    """

    baseline: float
    system: float
    difference: Interval | None
    p_value: float
    num_sentences: int


def f1_of(matched: int, gold: int, test: int) -> float:
    """Return F1 in per cent, the harmonic mean of matched / gold and matched / test; 0 where nothing matches."""
    return 200.0 * matched / (gold + test) if matched else 0.0


def f1_interval(counts: Counts, *, num_bootstrap: int) -> Interval | None:
    """Return the 95 % interval of F1; None without sentences or below 2 resamples."""
    if not counts or num_bootstrap < FEWEST:
        return None
    return _middle(_f1_samples(counts, num_bootstrap=num_bootstrap))


def compare_counts(baseline: Counts, system: Counts, *, num_bootstrap: int) -> PairedF1:
    """Test two parsers on the same sentences; where all counts are equal p is 1."""
    ours, theirs = (f1_of(*_sums(counts)) for counts in (baseline, system))
    if not baseline or num_bootstrap < FEWEST or list(baseline) == list(system):
        return PairedF1(ours, theirs, None, 1.0, len(baseline))
    drawn = [_f1_samples(counts, num_bootstrap=num_bootstrap) for counts in (baseline, system)]
    differences = drawn[1] - drawn[0]
    far = int(np.sum(np.abs(differences - differences.mean()) >= abs(theirs - ours)))
    return PairedF1(ours, theirs, _middle(differences), (far + 1) / (num_bootstrap + 1), len(baseline))


def _f1_samples(counts: Counts, *, num_bootstrap: int) -> NDArray[np.float64]:
    """F1 of each resample; equally many sentences are drawn alike at every call, so that parsers can be paired."""
    table = np.asarray(counts, dtype=np.int64)
    samples: list[NDArray[np.float64]] = []
    for times in resample(len(table), num_bootstrap, seed=SEED):
        matched, gold, test = (times @ table).T
        samples.append(np.where(matched > 0, 200.0 * matched / np.maximum(gold + test, 1), 0.0))
    return np.concatenate(samples)


def _middle(samples: NDArray[np.float64]) -> Interval:
    low, high = np.percentile(samples, [2.5, 97.5])
    return Interval(float(low), float(high))


def _sums(counts: Counts) -> tuple[int, int, int]:
    matched, gold, test = zip(*counts, strict=True) if counts else ((), (), ())
    return sum(matched), sum(gold), sum(test)
