"""Sentences drawn again with replacement: what every bootstrap here rests on.

Shapes: N sentences, R resamples.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

_AT_ONCE = 4_000_000  # draws held in memory at a time, one a sentence and resample


def resample(num_sentences: int, num_resamples: int, *, seed: int) -> Iterator[NDArray[np.int64]]:
    """Give blocks (R, N) of how often each sentence is drawn: ``num_resamples`` rows in all, each adding up to N.

    The same numbers give the same draws, so that systems can be paired.
    """
    random = np.random.default_rng(seed)
    evenly_N = np.full(num_sentences, 1.0 / num_sentences)
    step = max(1, _AT_ONCE // num_sentences)
    for start in range(0, num_resamples, step):
        yield random.multinomial(num_sentences, evenly_N, size=min(step, num_resamples - start))
