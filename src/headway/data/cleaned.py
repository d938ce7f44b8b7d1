"""Cleaned training text on disk, read again and again: once to choose what is held out, to learn, and to encode.

A file of blocks. A block has its number of pairs and of bytes, then of each pair its line and how many characters
source and target have, then all the text as UTF-8, source target source target. A text may hold any character, line
breaks too. Numbers are little-endian. The file lives as long as preparing takes.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice
from pathlib import Path
from typing import BinaryIO

import numpy as np

from headway.corpus.pair import SentencePair
from headway.errors import CorpusError

NUMBER = np.dtype("<i8")
BLOCK_PAIRS = 10_000
BLOCK_CHARACTERS = 1 << 22  # a block ends once it has so many


@dataclass(frozen=True, slots=True)
class Block:
    """Some pairs in their order; ``first`` is the place of the first of them in the whole text, from 0."""

    first: int
    lines: Sequence[int]
    sources: Sequence[str]
    targets: Sequence[str]

    @staticmethod
    def of(pairs: Sequence[SentencePair]) -> "Block":
        """One block of all these pairs."""
        return Block(0, *([getattr(pair, name) for pair in pairs] for name in ("line", "source", "target")))

    def __len__(self) -> int:
        return len(self.lines)

    def some(self, rows: Sequence[int]) -> "Block":
        """Only these of the pairs, counted from 0 in the block; ``first`` loses its meaning."""
        if len(rows) == len(self):
            return self
        return Block(
            self.first,
            [self.lines[row] for row in rows],
            [self.sources[row] for row in rows],
            [self.targets[row] for row in rows],
        )

    def pairs(self) -> Iterator[SentencePair]:
        """The same as pairs."""
        return map(SentencePair, self.sources, self.targets, self.lines)


def write_blocks(file: BinaryIO, pairs: Iterable[SentencePair]) -> Iterator[int]:
    """Write pairs, and tell after each block how many have been written. OSError when the disk is full."""
    iterator, written = iter(pairs), 0
    while chunk := list(until_full(islice(iterator, BLOCK_PAIRS), BLOCK_CHARACTERS)):
        texts = [text for pair in chunk for text in (pair.source, pair.target)]
        try:
            content = "".join(texts).encode()
        except UnicodeEncodeError as error:
            raise _half_character(chunk) from error
        for numbers in ((len(chunk), len(content)), [pair.line for pair in chunk], list(map(len, texts))):
            file.write(np.asarray(numbers, NUMBER).tobytes())
        file.write(content)
        written += len(chunk)
        yield written


def _half_character(pairs: Iterable[SentencePair]) -> CorpusError:
    line = next(pair.line for pair in pairs if _is_broken(pair))
    return CorpusError(
        f"data/cleaned: line {line:,} of a training file: found half of a surrogate pair, which UTF-8 cannot hold. "
        "Remedy: mend that text, or write the file again as UTF-8."
    )


def _is_broken(pair: SentencePair) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in pair.source + pair.target)


def until_full(pairs: Iterator[SentencePair], most_characters: int) -> Iterator[SentencePair]:
    """Pairs up to the one with which they have so many characters; those behind it stay in ``pairs``."""
    characters = 0
    for pair in pairs:
        yield pair
        characters += len(pair.source) + len(pair.target)
        if characters >= most_characters:
            return


@dataclass(frozen=True, slots=True)
class Cleaned:
    """The cleaned text of all corpora, one after the other."""

    path: Path

    def blocks(self) -> Iterator[Block]:
        """The text as it was written, a block in memory at a time."""
        first = 0
        with self.path.open("rb") as file:
            while header := file.read(2 * NUMBER.itemsize):
                num_pairs, num_bytes = np.frombuffer(header, NUMBER).tolist()
                lines = _numbers(file, num_pairs)
                ends = list(accumulate(_numbers(file, 2 * num_pairs)))
                text = file.read(num_bytes).decode()
                texts = [text[begin:end] for begin, end in zip([0, *ends[:-1]], ends, strict=True)]
                yield Block(first, lines, texts[::2], texts[1::2])
                first += num_pairs


def _numbers(file: BinaryIO, count: int) -> list[int]:
    return np.frombuffer(file.read(count * NUMBER.itemsize), NUMBER).tolist()
