"""How much of a validation or test text also stands in the training text."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from headway.corpus.pair import SentencePair

Kind = Literal["pair", "source", "target"]
Place = tuple[int, str]  # a line of training text, from 1, and the corpus that it is of

NUM_EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class OverlapExample:
    """A validation or test pair (its line and texts) and the first line of training that shares ``kind`` with it.

    ``corpus`` names the corpus of that line where there are several.
    """

    kind: Kind
    pair: SentencePair
    training_line: int
    corpus: str = ""


@dataclass(frozen=True, slots=True)
class Overlap:
    """Of ``num_pairs`` validation or test pairs, those whose pair, source or target also occurs in training.

    A pair whose source and target both occur, but not together, counts under sources and targets only. Examples: up
    to three, of whole pairs first, then of sources, then of targets; a pair is one of them by the most it shares.
    """

    num_pairs: int
    pairs: int
    sources: int
    targets: int
    examples: tuple[OverlapExample, ...]


class OverlapCounter:
    """Counts overlap while training pairs flow by; memory holds the validation or test text, not the training text.

    Texts are equal when they are the same characters but for white space around them. An empty text overlaps with
    nothing.
    """

    def __init__(self, pairs: Iterable[SentencePair]) -> None:
        self._pairs = list(pairs)
        # For each key that is looked for: the place in training that had it first, None while none has.
        self._pair: dict[tuple[str, str], Place | None] = {}
        self._source: dict[str, Place | None] = {}
        self._target: dict[str, Place | None] = {}
        for source, target in map(_sides, self._pairs):
            if source and target:
                self._pair[source, target] = None
            if source:
                self._source[source] = None
            if target:
                self._target[target] = None

    def watch(self, training: Iterable[SentencePair]) -> Iterator[SentencePair]:
        """Yield the training pairs as they come, and take note of those that are looked for."""
        for pair in training:
            self.see(pair.source, pair.target, line=pair.line)
            yield pair

    def see(self, source: str, target: str, *, line: int, corpus: str = "") -> None:
        """Take note of one training pair, at a line from 1 of its corpus, if it is looked for."""
        source, target = source.strip(), target.strip()
        if source in self._source:
            self._source[source] = self._source[source] or (line, corpus)
            if (source, target) in self._pair:
                self._pair[source, target] = self._pair[source, target] or (line, corpus)
        if target in self._target:
            self._target[target] = self._target[target] or (line, corpus)

    def seen_sources(self) -> frozenset[str]:
        """The sources looked for that have flowed by so far, without white space around them."""
        return frozenset(source for source, place in self._source.items() if place is not None)

    def result(self) -> Overlap:
        """The counts of what has flowed by so far."""
        found: dict[Kind, int] = {"pair": 0, "source": 0, "target": 0}
        examples: dict[Kind, list[OverlapExample]] = {kind: [] for kind in found}
        for pair in self._pairs:
            source, target = _sides(pair)
            places: dict[Kind, Place | None] = {
                "pair": self._pair.get((source, target)),
                "source": self._source.get(source),
                "target": self._target.get(target),
            }
            shared = [OverlapExample(kind, pair, *place) for kind, place in places.items() if place is not None]
            for example in shared:
                found[example.kind] += 1
            for example in shared[:1]:
                examples[example.kind].append(example)
        best_first = [example for kind in examples for example in examples[kind][:NUM_EXAMPLES]]
        return Overlap(
            num_pairs=len(self._pairs),
            pairs=found["pair"],
            sources=found["source"],
            targets=found["target"],
            examples=tuple(best_first[:NUM_EXAMPLES]),
        )


def _sides(pair: SentencePair) -> tuple[str, str]:
    """Source and target as they are compared."""
    return pair.source.strip(), pair.target.strip()
