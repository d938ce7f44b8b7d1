r"""A text becomes pieces that the model can take; what lies between them is kept.

Every ``\n`` separates, so a text of n lines gives n lines. White space around a line never reaches the model. A line of
more tokens than the model was trained on is split into sentences, or shorter if need be; on request, so is every line.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from headway.text.segment import split_long, split_sentences
from headway.text.tokenizer import EOS_ID, Tokenizer

# Languages written without spaces between words.
SPACELESS = ("zh", "yue", "ja", "th", "lo", "my", "km", "bo", "dz")
# The longest character is four bytes, with the space before a text five tokens: pieces below that could not be made.
FEWEST_TOKENS = 8


@dataclass(frozen=True, slots=True)
class Piece:
    """White space, words and white space. ``source_ids`` end in EOS; they are empty when there are no words.

    ``is_of_long``: it is a part of what is too long for the model.
    """

    leading: str
    source_ids: tuple[int, ...]
    trailing: str
    is_of_long: bool = False


@dataclass(frozen=True, slots=True)
class Cutter:
    """Cuts texts for one model. ``max_tokens`` counts EOS."""

    tokenizer: Tokenizer
    source_language: str
    target_language: str
    max_tokens: int

    def cut(self, texts: Sequence[str], *, by_sentence: bool = False) -> list[list[Piece]]:
        """The pieces of each text, in order; ``by_sentence``: one a sentence. Raises TextError for a lone surrogate."""
        lines = [(place, line) for place, text in enumerate(texts) for line in _lines(text)]
        encoded = self.tokenizer.encode_batch([line.strip() for _, line in lines])
        pieces: list[list[Piece]] = [[] for _ in texts]
        for (place, line), ids in zip(lines, encoded, strict=True):
            if not line.strip():
                pieces[place].append(Piece(line, (), ""))
            elif by_sentence or len(ids) >= self._limit():
                pieces[place].extend(self._split(line, by_sentence=by_sentence))
            else:
                pieces[place].append(Piece(_before(line), (*ids, EOS_ID), _after(line)))
        return pieces

    def _limit(self) -> int:
        """The most tokens of a piece, EOS counted."""
        return max(self.max_tokens, FEWEST_TOKENS)

    def _split(self, line: str, *, by_sentence: bool) -> list[Piece]:
        """The pieces of a line that is too long, or is to be cut into its sentences."""
        text = line.strip()
        whole = split_sentences(text, self.source_language) if by_sentence else [text]
        divided = [
            split_long(
                part,
                self.source_language,
                max_length=self._limit() - 1,
                length_of=lambda part: len(self.tokenizer.encode(part.strip())),
            )
            for part in whole
        ]
        parts = [part for found in divided for part in found]
        are_of_long = [len(found) > 1 for found in divided for _ in found]
        encoded = self.tokenizer.encode_batch([part.strip() for part in parts])
        pieces: list[Piece] = []
        for number, (part, ids) in enumerate(zip(parts, encoded, strict=True), start=1):
            leading = _before(line) if number == 1 else ""
            trailing = _after(line) if number == len(parts) else self._gap(_after(part))
            if part.strip():
                is_of_long = are_of_long[number - 1]
                pieces.append(Piece(leading + _before(part), (*ids, EOS_ID), trailing, is_of_long=is_of_long))
            else:
                pieces.append(Piece(leading + part, (), ""))
        return pieces

    def _gap(self, space: str) -> str:
        """What separates two translated pieces whose sources ``space`` separated.

        Spaces go where the target language writes none, and come where only the source language writes none; all
        other white space stays.
        """
        if space.strip(" "):
            return space
        if _is_spaceless(self.target_language):
            return ""
        return space or (" " if _is_spaceless(self.source_language) else "")


def _lines(text: str) -> list[str]:
    r"""The lines of a text, each but the last with its ``\n``."""
    *ended, last = text.split("\n")
    return [*(line + "\n" for line in ended), last]


def _before(text: str) -> str:
    """The white space before the words."""
    return text[: len(text) - len(text.lstrip())]


def _after(text: str) -> str:
    """The white space after the words."""
    return text[len(text.rstrip()) :]


def _is_spaceless(language: str) -> bool:
    """Whether the language, by its code, is written without spaces between words."""
    return language.replace("_", "-").split("-", 1)[0].lower() in SPACELESS
