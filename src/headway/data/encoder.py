"""Many texts to token ids: each different word is encoded once, for no token crosses a space.

Ragged arrays: the ids of all texts one after the other, and how many each text has.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

MOST_WORDS = 1 << 19  # remembered; then all are forgotten, which bounds memory by some 150 MB
MOST_CHARACTERS = 1 << 24  # of all words remembered


class Coder(Protocol):
    """What turns texts into ids: a Tokenizer, or one for texts of another form."""

    @property
    def parts_at_spaces(self) -> bool:
        """Whether a text with single spaces between its words has the ids of its words, one after the other."""
        ...

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text."""
        ...


@dataclass(frozen=True, slots=True)
class Ragged:
    """Token ids of several texts, without BOS and EOS."""

    ids: NDArray[np.uint32]
    lengths: NDArray[np.int64]

    def some(self, rows: NDArray[np.bool_]) -> "Ragged":
        """The texts where ``rows`` is true."""
        return self if rows.all() else Ragged(self.ids[np.repeat(rows, self.lengths)], self.lengths[rows])

    def after(self, token_id: int) -> "Ragged":
        """The same texts, each after one more token."""
        begins = np.cumsum(self.lengths) - self.lengths
        return Ragged(np.insert(self.ids, begins, token_id), self.lengths + 1)


def no_texts(count: int) -> Ragged:
    """So many texts without a token: the sources of a model that reads none."""
    return Ragged(np.empty(0, np.uint32), np.zeros(count, np.int64))


class _Numbers(dict[str, int]):
    """A number for every word that was ever asked for; ``new`` has those that were not known before, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.new: list[str] = []

    def __missing__(self, word: str) -> int:
        number = self[word] = len(self)
        self.new.append(word)
        return number


class Encoder:
    """Encodes as its coder does, faster where words come again.

    One that looks across spaces is asked for whole texts.
    """

    def __init__(self, coder: Coder) -> None:
        self._coder = coder
        self._forget()

    def encode(self, texts: Sequence[str]) -> Ragged:
        """``coder.encode_batch(texts)`` as one array. Raises TextError for a lone surrogate."""
        if len(self._numbers) > MOST_WORDS or self._num_characters > MOST_CHARACTERS:
            self._forget()
        words: list[str] = []
        counts: list[int] = []
        for text in texts:
            parts = self._words(text)
            words += parts
            counts.append(len(parts))
        numbers = np.fromiter(map(self._numbers.__getitem__, words), np.int64, len(words))
        self._learn()
        sizes = self._sizes[numbers]
        return Ragged(self._ids[_ranges(self._begins[numbers], sizes)], _sums(sizes, counts))

    def _words(self, text: str) -> list[str]:
        """The words of a text with one space between any two and no other white space; another text is one word."""
        words = text.split() if self._coder.parts_at_spaces else []
        return words if " ".join(words) == text and words else [text]

    def _forget(self) -> None:
        self._numbers = _Numbers()
        self._num_characters = 0
        self._ids = np.empty(0, np.uint32)  # of all words, one after the other
        self._begins = np.empty(0, np.int64)
        self._sizes = np.empty(0, np.int64)

    def _learn(self) -> None:
        """Encode the words that are new."""
        new = self._numbers.new
        if not new:
            return
        encoded = self._coder.encode_batch(new)
        sizes = np.fromiter(map(len, encoded), np.int64, len(new))
        ids = np.fromiter((token_id for ids in encoded for token_id in ids), np.uint32, int(sizes.sum()))
        self._begins = np.concatenate([self._begins, len(self._ids) + np.cumsum(sizes) - sizes])
        self._sizes = np.concatenate([self._sizes, sizes])
        self._ids = np.concatenate([self._ids, ids])
        self._num_characters += sum(map(len, new))
        self._numbers.new = []


def _ranges(begins: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """begin, begin + 1, ... for each of several ranges, one after the other."""
    ends = np.cumsum(sizes)
    return np.repeat(begins - (ends - sizes), sizes) + np.arange(int(ends[-1]) if len(ends) else 0)


def _sums(values: NDArray[np.int64], counts: Sequence[int]) -> NDArray[np.int64]:
    """Sums of so many successive values each; every count is 1 or more."""
    begins = np.cumsum([0, *counts[:-1]]) if counts else np.empty(0, np.int64)
    return np.add.reduceat(values, begins) if counts else np.empty(0, np.int64)
