"""Stretches of parallel text in which source and target are out of step, because a line was added or lost on one side.

Each source is compared with the targets up to three lines before and behind it: by lengths, by words and numbers that
both have (names, cognates), by the mark at their end. Viterbi's algorithm finds the most likely course of the shift
through the file, where a change of the shift costs as much as several pairs that do not fit.
"""

import math
import re
from collections import deque
from typing import NamedTuple

REACH = 3  # lines that a shift may be
SHORTEST = 5  # pairs of a stretch that is told ...
SHORTEST_UNRELATED = 20  # ... and of one in which the texts belong to nothing nearby

# Natural logarithms of odds, chosen on Tatoeba and Home Assistant with lines taken out (tests have other text).
_CHANGE = 10.0
_ONE_SHARED, _MORE_SHARED = 1.5, 2.6
_SAME_END, _OTHER_END = 0.2, -0.8
_LENGTH_WEIGHT, _WORST_LENGTH = 4.0, -2.0  # a factor of 1.4 costs 0.5
_ABSENT = -1.0
_UNRELATED = -0.6  # where no shift fits any better, texts belong to nothing nearby

_NONE = REACH + 1  # stands for a shift where the texts belong to nothing nearby
_SHIFTS = (*range(-REACH, REACH + 1), _NONE)

_PIECE = re.compile(r"\d+|[^\W\d_]{4,}")
_PREFIX = 4  # characters of a word: cognates often differ at their end
_MOST_WORDS = 200  # of a text that are looked at
_SHOWN = 4000  # characters of a text that are looked at
_ENDS = {"。": ".", "！": "!", "？": "?", "：": ":", "…": ".", "؟": "?", "।": "."} | {mark: mark for mark in ".!?:"}
_SLOWLY = 0.01  # how fast the mean of the length ratio follows the text


class Stretch(NamedTuple):
    """Pairs from place ``first`` (from 0) to before ``end``: the source belongs to the target ``shift`` pairs on.

    0: it belongs to none nearby.
    """

    first: int
    end: int
    shift: int


class _Features(NamedTuple):
    """What of a text is compared: the logarithm of its length, prefixes of words and numbers, the mark at its end."""

    length: float
    pieces: frozenset[str]
    end: str


class _Course(NamedTuple):
    """A course of the shift up to here: its odds, and its last change: at which pair, to what, and the one before."""

    score: float
    changes: "_Change"


class _Change(NamedTuple):
    place: int
    shift: int
    before: "_Change | None"


class ShiftFinder:
    """Follows the shift while pairs flow by; memory holds seven pairs and the changes of the likely courses."""

    def __init__(self) -> None:
        self._sources: deque[_Features | None] = deque(maxlen=REACH + 1)
        self._targets: deque[_Features | None] = deque([None] * (REACH + 1), maxlen=2 * REACH + 1)
        self._num_pushed = 0
        self._num_scored = 0
        self._mean = 0.0
        self._weight = 0.0
        self._courses = [_Course(0.0 if shift == 0 else -_CHANGE, _Change(0, shift, None)) for shift in _SHIFTS]

    def add(self, source: str, target: str) -> None:
        """Take note of the next pair."""
        one, other = _features(source), _features(target)
        if one is not None and other is not None:
            self._weight += 1.0
            step = max(_SLOWLY, 1.0 / self._weight)
            self._mean += step * max(-1.0, min(1.0, other.length - one.length - self._mean))
        self._push(one, other)

    def finish(self) -> list[Stretch]:
        """The stretches in order; nothing may be added after."""
        for _ in range(REACH):
            self._push(None, None)
        stretches: list[Stretch] = []
        end, change = self._num_scored, max(self._courses, key=lambda course: course.score).changes
        while True:
            if change.shift == _NONE and end - change.place >= SHORTEST_UNRELATED:
                stretches.append(Stretch(change.place, end, 0))
            elif change.shift not in (0, _NONE) and end - change.place >= SHORTEST:
                stretches.append(Stretch(change.place, end, change.shift))
            if change.before is None:
                return stretches[::-1]
            end, change = change.place, change.before

    def _push(self, source: _Features | None, target: _Features | None) -> None:
        """Take a pair into the window; once the window holds all targets of the oldest source, compare them."""
        self._sources.append(source)
        self._targets.append(target)
        self._num_pushed += 1
        if self._num_pushed > REACH:
            self._score(self._sources[0])

    def _score(self, source: _Features | None) -> None:
        """Lengthen every course by the pair whose source is the oldest of those that wait."""
        best = max(self._courses, key=lambda course: course.score)
        floor = best.score - _CHANGE
        unrelated = 0.0 if source is None else _UNRELATED
        courses: list[_Course] = []
        targets: list[_Features | None] = [*self._targets, None]
        for shift, target, course in zip(_SHIFTS, targets, self._courses, strict=True):
            odds = self._odds(source, target) if shift != _NONE else unrelated
            if course.score >= floor:
                courses.append(_Course(course.score + odds, course.changes))
            else:
                courses.append(_Course(floor + odds, _Change(self._num_scored, shift, best.changes)))
        self._courses = courses
        self._num_scored += 1

    def _odds(self, source: _Features | None, target: _Features | None) -> float:
        """How well two texts fit, as the logarithm of odds but for a constant."""
        if source is None:
            return 0.0
        if target is None:
            return _ABSENT
        far = target.length - source.length - self._mean
        odds = max(_WORST_LENGTH, -_LENGTH_WEIGHT * far * far)
        odds += _SAME_END if source.end == target.end else _OTHER_END
        if not source.pieces.isdisjoint(target.pieces):
            odds += _ONE_SHARED if len(source.pieces & target.pieces) == 1 else _MORE_SHARED
        return odds


def _features(text: str) -> _Features | None:
    """None for an empty text."""
    if not text:
        return None
    pieces = _PIECE.findall(text[:_SHOWN].casefold())[:_MOST_WORDS]
    return _Features(math.log(len(text) + 4), frozenset([piece[:_PREFIX] for piece in pieces]), _ENDS.get(text[-1], ""))
