"""Test text that must not stand in training text, compared exactly and loosely while the training text flows by."""

from collections.abc import Iterable

from headway.corpus.finding import KINDS, NUM_EXAMPLES, Finding, Severity, example_of
from headway.corpus.fingerprint import fingerprint
from headway.corpus.overlap import OverlapCounter
from headway.corpus.pair import SentencePair
from headway.corpus.repetition import loose

_NOTHING = -1  # no fingerprint


class HeldText:
    """A test set by its name; memory holds its text, not the training text."""

    def __init__(self, name: str, pairs: Iterable[SentencePair]) -> None:
        self.name = name
        self._pairs = list(pairs)
        self._exact = OverlapCounter(self._pairs)
        # The place in training of each test pair as it is compared loosely, None while it has not been seen.
        self._loose: dict[int, tuple[int, str] | None] = {
            _mark(loose(pair.source), loose(pair.target)): None for pair in self._pairs
        }

    def __len__(self) -> int:
        return len(self._pairs)

    def see(self, pair: SentencePair, loose_sides: tuple[str, str], *, file: str) -> None:
        """Take note of a training pair."""
        self._exact.see(pair.source, pair.target, line=pair.line, corpus=file)
        mark = _mark(*loose_sides)
        if mark != _NOTHING and mark in self._loose and self._loose[mark] is None:
            self._loose[mark] = (pair.line, file)

    def findings(self) -> list[Finding]:
        """What of the test set has been seen: the same source or the whole pair, and what is like a pair of it."""
        overlap = self._exact.result()
        found: list[Finding] = []
        if overlap.sources:
            detail = (
                f"{self.name}: {overlap.pairs:,} whole pairs, {overlap.sources:,} sources, {overlap.targets:,} targets"
            )
            examples = tuple(
                example_of(
                    example.pair,
                    self.name,
                    f"same {example.kind} in {example.corpus} at line {example.training_line:,}",
                )
                for example in overlap.examples
            )
            share = overlap.sources / len(self)
            severity: Severity = "fatal" if overlap.pairs else KINDS["test-overlap"].severity(share)
            found.append(
                Finding("test-overlap", severity, overlap.sources, len(self), examples, detail, unit="test pairs")
            )
        near = self._near()
        if near:
            severity = KINDS["test-near-overlap"].severity(len(near) / len(self))
            examples = tuple(
                example_of(pair, self.name, f"like {place[1]} line {place[0]:,}") for pair, place in near[:NUM_EXAMPLES]
            )
            found.append(
                Finding("test-near-overlap", severity, len(near), len(self), examples, self.name, unit="test pairs")
            )
        return found

    def _near(self) -> list[tuple[SentencePair, tuple[int, str]]]:
        """Test pairs that training has loosely, but whose source it has not exactly."""
        known = self._exact.seen_sources()
        near: list[tuple[SentencePair, tuple[int, str]]] = []
        for pair in self._pairs:
            place = self._loose[_mark(loose(pair.source), loose(pair.target))]
            if place is not None and pair.source.strip() not in known:
                near.append((pair, place))
        return near


def _mark(source: str, target: str) -> int:
    """A fingerprint of a pair as it is compared loosely; a pair that has nothing to compare has none."""
    return fingerprint(source, target) if source and target else _NOTHING
