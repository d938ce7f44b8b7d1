"""Paired differences with 95 % intervals: by bootstrap over the same sentences, or over seeds.

Letters: N sentences, C numbers of a sentence that add up to those of a corpus (log-probability and tokens, say).
"""

import math
import statistics
from collections.abc import Callable, Sequence

import numpy as np

from headway.errors import PaperError
from headway.metrics.resample import resample
from headway.paper.verdict import Difference

RESAMPLES, SEED = 1000, 12345  # as sacreBLEU
SEEDS_FOR_SEEDS = 3  # from so many on an interval is over seeds: it then tells of another training too
ENDS = (2.5, 97.5)  # percentiles
# of Student's t, 97.5 %, by degrees of freedom from 1; from 30 on the last but for the normal's 1.96 at infinity
T_QUANTILES = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)

Counts = np.ndarray  # (N, C): a row a sentence
Value = Callable[[np.ndarray], float]  # of the sums (C) of a corpus


def over_runs(these: Sequence[Counts], those: Sequence[Counts], value: Value) -> Difference:
    """``value`` of these runs minus that of those, one (N, C) a seed: over sentences; over seeds from three on."""
    if len(these) < SEEDS_FOR_SEEDS:
        return over_sentences(these, those, value)
    return over_seeds(*([value(counts_NC.sum(axis=0)) for counts_NC in side] for side in (these, those)))


def over_sentences(
    these: Sequence[Counts], those: Sequence[Counts], value: Value, *, resamples: int = RESAMPLES
) -> Difference:
    """``value`` of these minus that of those, both drawn from the same sentences in every resample (Koehn 2004).

    One (N, C) a seed, equally many on both sides; of several seeds the mean of the differences is what is resampled.
    The interval tells of these trained models on other sentences, not of another training: see ``over_seeds``.
    One sentence tells nothing of others: its interval is all numbers. Raises PaperError for sides that have not the
    same sentences, or none.
    """
    _check_pairs(these, those)
    outputs, half = [*these, *those], len(these)
    num_sentences = len(outputs[0])
    found = [
        _mean_difference([value(drawn_N @ counts_NC) for counts_NC in outputs], half)
        for drawn_RN in resample(num_sentences, resamples, seed=SEED)
        for drawn_N in drawn_RN
    ]
    whole = _mean_difference([value(counts_NC.sum(axis=0)) for counts_NC in outputs], half)
    low, high = np.percentile(found, ENDS) if num_sentences > 1 else (-math.inf, math.inf)
    seeds = f", {half} seeds" if half > 1 else ""
    return Difference(whole, float(low), float(high), f"{num_sentences:,} sentences{seeds}")


def _mean_difference(values: Sequence[float], half: int) -> float:
    """The mean of the first half minus the mean of the rest."""
    return statistics.fmean(values[:half]) - statistics.fmean(values[half:])


def _check_pairs(these: Sequence[Counts], those: Sequence[Counts]) -> None:
    shapes = {counts.shape for counts in (*these, *those)}
    if len(these) == len(those) and len(shapes) == 1 and next(iter(shapes))[0] > 0:
        return
    raise PaperError(
        f"paper/difference: {len(these)} outputs against {len(those)}, of "
        f"sizes {', '.join(map(str, sorted(shapes))) or 'none'}; a paired difference needs as many on both sides, of "
        "the same sentences. Remedy: make both rows anew with the same data."
    )


def over_seeds(these: Sequence[float], those: Sequence[float], *, of: str = "seeds") -> Difference:
    """The mean difference of runs paired by seed, with Student's interval; from two seeds on, and fit from three on.

    ``of`` names what pairs the runs where it is no seed. A run that diverged to no finite number tells nothing: the
    interval is all numbers. Raises PaperError for fewer, or unequal numbers.
    """
    if len(these) != len(those) or len(these) < 2:
        raise PaperError(
            f"paper/difference: {len(these)} runs against {len(those)}; an interval over seeds needs two or more, as "
            "many on both sides. Remedy: raise --seeds, or compare by sentences."
        )
    differences = [this - that for this, that in zip(these, those, strict=True)]
    if not all(map(math.isfinite, differences)):
        return Difference(math.nan, -math.inf, math.inf, f"{len(differences)} {of}")
    mean = statistics.fmean(differences)
    freedom = len(differences) - 1
    half = T_QUANTILES[min(freedom, len(T_QUANTILES)) - 1] * statistics.stdev(differences) / math.sqrt(freedom + 1)
    return Difference(mean, mean - half, mean + half, f"{freedom + 1} {of}")
