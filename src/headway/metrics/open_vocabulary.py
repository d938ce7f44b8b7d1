"""A word n-gram model without unknown words: what it has not seen twice it spells.

A closed vocabulary would make such a model look better than it is: a rare word would cost only what <unk> costs, which
a model of sub-words cannot ask for. Here a word that is not in the vocabulary costs <unk> and then its spelling, by an
n-gram model of the characters of those words that training text has once, which is what <unk> stood for there. A
known word could be spelled too; that probability is lost, so that all texts together have no more than 1.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from headway.errors import MetricError
from headway.metrics.kneser_ney import KneserNey

UNKNOWN = " "  # no word is a space
OTHER = "\0 "  # any character that the spelled words lack; no character has two
CHARACTERS = 0x110000 - 0x800  # of Unicode, surrogates left out: what OTHER may be, each alike


@dataclass(frozen=True, slots=True)
class OpenVocabulary:
    """Words by one model, what is not among them by its characters."""

    words: KneserNey
    spelling: KneserNey

    @classmethod
    def fit(cls, lines: Iterable[Sequence[str]], *, order: int = 5) -> "OpenVocabulary":
        """Learn from lines of words: those that occur twice are the vocabulary. MetricError for no lines."""
        text = [list(line) for line in lines]
        counts = Counter(word for line in text for word in line)
        once = [word for word, count in counts.items() if count == 1]
        if not once:
            raise MetricError(
                f"metrics/open_vocabulary: every one of {len(counts):,} words occurs twice or more, so that nothing "
                "tells how others are spelled. Give more text."
            )
        known = counts.keys() - set(once)
        replaced = ([word if word in known else UNKNOWN for word in line] for line in text)
        return cls(
            KneserNey.fit(replaced, order=order, vocabulary=[*known, UNKNOWN]),
            KneserNey.fit(once, order=order, vocabulary=[*set("".join(once)), OTHER]),
        )

    def log_prob(self, line: Sequence[str]) -> float:
        """The natural log-probability of a line of words and its end, each word spelled out where it is not known."""
        unknown = [word for word in line if word not in self.words.vocabulary]
        replaced = [word if word in self.words.vocabulary else UNKNOWN for word in line]
        return self.words.log_prob(replaced) + sum(map(self._spelled, unknown))

    def _spelled(self, word: str) -> float:
        characters = [character if character in self.spelling.vocabulary else OTHER for character in word]
        return self.spelling.log_prob(characters) - characters.count(OTHER) * math.log(CHARACTERS)
