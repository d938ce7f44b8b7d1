"""Which pairs of a corpus are held out from training."""

from array import array
from collections import Counter
from collections.abc import Iterable
from random import Random

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
    marks = array("Q", (fingerprint(source.strip(), seed=seed) for source in sources))
    counts = Counter(marks)
    chosen: set[int] = set()
    space = num_held_out(len(marks), at_most=at_most, share=share)
    for mark in sorted(counts):
        if space == 0:
            break
        if counts[mark] <= space:
            chosen.add(mark)
            space -= counts[mark]
    if not chosen:
        return hold_out(len(marks), seed=seed, at_most=at_most, share=share)
    return frozenset(index for index, mark in enumerate(marks) if mark in chosen)
