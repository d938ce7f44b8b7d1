"""Pairs that repeat or contradict earlier ones, over any number of files, from 32 bytes a pair."""

import re
from array import array
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headway.corpus.fingerprint import fingerprint

# Left out where texts are compared loosely: spaces, digits and punctuation (ASCII, general, CJK and full-width).
_NOISE = re.compile(r"[\s\d!-/:-@\[-`{-~\u00a0-\u00bf\u2000-\u206f\u3000-\u303f\uff00-\uff0f\uff1a-\uff20]+")
_SPREAD = 0x9E3779B97F4A7C15  # an odd number; multiplied by it, a source's number differs from a target's

Numbers = NDArray[np.uint64]
Places = NDArray[np.int64]


def loose(text: str) -> str:
    """A text without case, digits, punctuation and spaces."""
    return _NOISE.sub("", text.casefold())


@dataclass(frozen=True, slots=True)
class Repeated:
    """Places of pairs, from 0 in the order in which they were seen, and for each that of the earlier pair."""

    places: Places
    earlier: Places


class Repetition:
    """Takes note of pairs, and finds at the end which repeat or contradict an earlier one.

    Texts are compared without the white space around them, by fingerprints of 64 bits. Pairs with an empty side repeat
    nothing. Memory: 32 bytes a pair, and three times that while ``find`` sorts.
    """

    def __init__(self) -> None:
        self._sources = array("Q")
        self._targets = array("Q")
        self._loose = array("Q")
        self._lines = array("Q")
        self._starts: list[int] = []  # of the files

    def __len__(self) -> int:
        return len(self._lines)

    def start_file(self) -> None:
        """Take the pairs that follow as those of the next file."""
        self._starts.append(len(self))

    def add(self, source: str, target: str, *, line: int, loose_sides: tuple[str, str]) -> int:
        """Take note of a pair (stripped texts, and what ``loose`` makes of them); returns the source's fingerprint."""
        mark = 0
        if source and target:
            mark = fingerprint(source)
            self._sources.append(mark or 1)
            self._targets.append(fingerprint(target) or 1)
            self._loose.append((fingerprint(*loose_sides) or 1) if all(loose_sides) else 0)
        else:
            self._sources.append(0)
            self._targets.append(0)
            self._loose.append(0)
        self._lines.append(line)
        return mark

    def where(self, place: int) -> tuple[int, int]:
        """The file, from 0, and the line of the pair at a place."""
        file = int(np.searchsorted(np.array(self._starts), place, side="right")) - 1
        return file, self._lines[place]

    def by_file(self, places: Places) -> list[int]:
        """How many of the places are in each file."""
        edges = np.searchsorted(places, np.array([*self._starts, len(self)]))
        return np.diff(edges).tolist()

    def find(self) -> dict[str, Repeated]:
        """What repeats or contradicts an earlier pair, by its name in ``finding.KINDS``; places in order."""
        sources, targets = _numbers(self._sources), _numbers(self._targets)
        known = np.flatnonzero(sources)
        sources, targets, loosely = sources[known], targets[known], _numbers(self._loose)[known]
        pairs = sources * np.uint64(_SPREAD) + targets  # wraps at 2^64
        same = _earlier(pairs)
        is_new = same < 0
        like = _earlier(loosely)
        like[~is_new | (loosely == 0)] = -1
        found = {"duplicate": _repeated(known, same), "near-duplicate": _repeated(known, like)}
        distinct = np.flatnonzero(is_new)
        for kind, side in (("many-targets", sources), ("many-sources", targets)):
            earlier = _earlier(side[distinct])
            chosen = np.flatnonzero(earlier >= 0)
            found[kind] = Repeated(known[distinct[chosen]], known[distinct[earlier[chosen]]])
        return found


def _numbers(marks: "array[int]") -> Numbers:
    return np.frombuffer(marks, np.uint64) if marks else np.zeros(0, np.uint64)


def _earlier(values: Numbers) -> Places:
    """For each value, the place of the first that equals it, where that is another; -1 otherwise."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    starts = np.ones(len(values), np.bool_)
    starts[1:] = ordered[1:] != ordered[:-1]
    first = order[np.flatnonzero(starts)][np.cumsum(starts) - 1] if len(values) else order
    earlier = np.full(len(values), -1, np.int64)
    earlier[order] = np.where(first == order, -1, first)
    return earlier


def _repeated(known: Places, earlier: Places) -> Repeated:
    chosen = np.flatnonzero(earlier >= 0)
    return Repeated(known[chosen], known[earlier[chosen]])


def first_places(repeated: Repeated, start: int, stop: int, number: int) -> Sequence[tuple[int, int]]:
    """The first so many of the places from ``start`` on before ``stop``, each with the earlier one."""
    first, last = np.searchsorted(repeated.places, [start, stop])
    chosen = slice(int(first), min(int(last), int(first) + number))
    return list(zip(repeated.places[chosen].tolist(), repeated.earlier[chosen].tolist(), strict=True))
