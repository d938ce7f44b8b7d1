"""How much of a validation or test text also stands in the training text."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from headway.corpus.pair import SentencePair

Kind = Literal["pair", "source", "target"]

NUM_EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class OverlapExample:
    """A validation or test pair (its line and texts) and the first line of training that shares ``kind`` with it."""

    kind: Kind
    pair: SentencePair
    training_line: int


@dataclass(frozen=True, slots=True)
class Overlap:
    """Of ``num_pairs`` validation or test pairs, those whose pair, source or target also occurs in training.

    A pair whose source and target both occur, but not together, counts under sources and targets only. Examples: up
    to three, of whole pairs first, then of sources, then of targets.
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
        # For each key that is looked for: the training line that had it first, 0 while none has.
        self._line_of: dict[Kind, dict[str | tuple[str, str], int]] = {"pair": {}, "source": {}, "target": {}}
        for pair in self._pairs:
            for kind, key in _keys(pair):
                self._line_of[kind][key] = 0

    def watch(self, training: Iterable[SentencePair]) -> Iterator[SentencePair]:
        """Yield the training pairs as they come, and take note of those that are looked for."""
        for pair in training:
            for kind, key in _keys(pair):
                lines = self._line_of[kind]
                if lines.get(key) == 0:
                    lines[key] = pair.line
            yield pair

    def result(self) -> Overlap:
        """The counts of what has flowed by so far."""
        counts: dict[Kind, int] = {"pair": 0, "source": 0, "target": 0}
        examples: dict[Kind, list[OverlapExample]] = {"pair": [], "source": [], "target": []}
        for pair in self._pairs:
            for kind, key in _keys(pair):
                line = self._line_of[kind][key]
                if line:
                    counts[kind] += 1
                    if len(examples[kind]) < NUM_EXAMPLES:
                        examples[kind].append(OverlapExample(kind, pair, line))
        best_first = [example for kind in examples for example in examples[kind]]
        return Overlap(
            num_pairs=len(self._pairs),
            pairs=counts["pair"],
            sources=counts["source"],
            targets=counts["target"],
            examples=tuple(best_first[:NUM_EXAMPLES]),
        )


def _keys(pair: SentencePair) -> Iterator[tuple[Kind, str | tuple[str, str]]]:
    """What can be found of a pair: both sides together, the source, the target."""
    source, target = pair.source.strip(), pair.target.strip()
    if source and target:
        yield "pair", (source, target)
    if source:
        yield "source", source
    if target:
        yield "target", target
