"""Which pairs of a corpus are held out from training."""

from array import array
from collections.abc import Iterable
from random import Random

import numpy as np
from numpy.typing import NDArray

from headway.corpus.fingerprint import fingerprint


def num_held_out(num_pairs: int, *, at_most: int, share: float) -> int:
    """How many pairs to hold out: ``at_most``, no more than ``share`` of all, 1 at least, but 0 of a single pair.

    The floor of 1 wins over the share: 3 pairs and a share of 0.05 still give 1.
    """
    return max(1, min(at_most, int(num_pairs * share))) if num_pairs > 1 else 0


def hold_out(num_pairs: int, *, seed: int, at_most: int, share: float) -> frozenset[int]:
    """Choose ``num_held_out`` of the indices 0 .. num_pairs - 1 uniformly at random.

    The same seed gives the same choice on every machine: Floyd's method (Bentley and Floyd, 1987) over
    ``Random.random`` alone, the one method whose stream Python promises to keep.
    """
    uniform = Random(seed).random
    chosen: set[int] = set()
    for last in range(num_pairs - num_held_out(num_pairs, at_most=at_most, share=share), num_pairs):
        index = int(uniform() * (last + 1))
        chosen.add(last if index in chosen else index)
    return frozenset(chosen)


def hold_out_sources(sources: Iterable[str], *, seed: int, at_most: int, share: float) -> frozenset[int]:
    """Choose indices of ``sources`` so that equal sources (but for white space around them) stay on one side.

    Distinct sources are ordered by a seeded fingerprint and taken whole, each if it still fits into
    ``num_held_out``; so the result does not depend on the order of the corpus. Where none fits (every source
    repeats more often than pairs may be held out), it falls back to ``hold_out``: sources then stand on both sides,
    which the overlap report counts.
    """
    numbers = array("Q", (fingerprint(source.strip(), seed=seed) for source in sources))
    return hold_out_marks(np.frombuffer(numbers, np.uint64), seed=seed, at_most=at_most, share=share)


def hold_out_marks(marks: NDArray[np.uint64], *, seed: int, at_most: int, share: float) -> frozenset[int]:
    """As ``hold_out_sources``, of the sources' seeded fingerprints: some 30 bytes a source while it chooses."""
    values, counts = np.unique(marks, return_counts=True)
    space = num_held_out(len(marks), at_most=at_most, share=share)
    chosen: list[np.uint64] = []
    for value, count in zip(values, counts, strict=True):  # in order of fingerprints
        if space == 0:
            break
        if count <= space:
            chosen.append(value)
            space -= int(count)
    if not chosen:
        return hold_out(len(marks), seed=seed, at_most=at_most, share=share)
    return frozenset(np.flatnonzero(np.isin(marks, np.array(chosen))).tolist())
