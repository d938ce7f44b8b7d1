"""Texts that outputs must contain: encoded for the search, dealt out to a text's pieces, found again in the output.

A phrase counts where it stands verbatim in the decoded text, inside a longer word too; occurrences may overlap. White
space around it does not count.
"""

from collections import Counter
from collections.abc import Sequence
from functools import cached_property

from headway.errors import TranslationError
from headway.search.phrase import Lexicon, Phrase, occurrences
from headway.text.tokenizer import Tokenizer
from headway.translate.pieces import Piece


class PhraseEncoder:
    """Makes of texts what the search looks for, for one target vocabulary."""

    def __init__(self, source_tokenizer: Tokenizer, target_tokenizer: Tokenizer) -> None:
        self._source_tokenizer = source_tokenizer
        self._tokenizer = target_tokenizer

    @cached_property
    def lexicon(self) -> Lexicon:
        """The target vocabulary; made when the first phrase comes."""
        return Lexicon(self._tokenizer.pieces)

    def encode(self, text: str) -> Phrase:
        """The phrase with its spellings after a space and without one."""
        content = text.encode("utf-8")
        after_break = self._tokenizer.encode(f"\n{text}")
        suffixes = [after_break[start:] for start in range(len(after_break))]
        ends = [ids for ids in suffixes if self._written(ids) == content]
        spellings = [
            tuple(ids) for ids in [self._tokenizer.encode(text), *ends[:1]] if self._written(ids).endswith(content)
        ]
        return Phrase(content, tuple(dict.fromkeys(spellings)))

    def deal(self, phrases: Sequence[str], pieces: Sequence[Piece]) -> list[tuple[Phrase, ...]]:
        """The phrases of a text for each of its pieces with words.

        A phrase goes to the first piece whose source has it and has not answered for an equal one yet; to the first
        piece where there is none.
        """
        with_words = [piece for piece in pieces if piece.source_ids]
        dealt: list[list[Phrase]] = [[] for _ in with_words]
        if not with_words or not phrases:
            return [tuple(own) for own in dealt]
        room = [Counter[str]() for _ in with_words]
        if len(with_words) > 1:
            sources = [self._source_tokenizer.decode(piece.source_ids) for piece in with_words]
            room = [Counter({text: source.count(text) for text in set(phrases)}) for source in sources]
        for text in phrases:
            place = next((place for place, left in enumerate(room) if left[text]), 0)
            room[place][text] -= room[place][text] > 0
            dealt[place].append(self.encode(text))
        return [tuple(own) for own in dealt]

    def _written(self, ids: Sequence[int]) -> bytes:
        """The bytes that the tokens add to an output."""
        return b"".join(self._tokenizer.pieces[token_id] for token_id in ids)


def check_phrases(phrases: Sequence[Sequence[str]] | None, num_texts: int) -> list[tuple[str, ...]]:
    """The phrases of each text without white space around them. Raises TranslationError for what no output can have."""
    if phrases is None:
        return [()] * num_texts
    if len(phrases) != num_texts:
        raise TranslationError(
            f"translate/phrases: phrases for {len(phrases):,} texts, and {num_texts:,} texts; wanted a list for each. "
            "Give [] where the output is free."
        )
    checked: list[tuple[str, ...]] = []
    for number, own in enumerate(phrases, start=1):
        if isinstance(own, str):
            raise TranslationError(
                f"translate/phrases: text {number:,}: found one string; wanted a list of phrases: [phrase]."
            )
        checked.append(tuple(_checked(phrase, number) for phrase in own))
    return checked


def has_phrases(text: str, phrases: Sequence[str]) -> bool:
    """Whether the text has every phrase, as often as it is given."""
    content = text.encode("utf-8")
    return all(occurrences(content, phrase.encode("utf-8")) >= count for phrase, count in Counter(phrases).items())


def _checked(phrase: str, number: int) -> str:
    """The phrase without white space around it."""
    stripped = phrase.strip()
    if not stripped or "\n" in stripped or "\r" in stripped:
        found = "a line end" if stripped else "no characters but white space"
        raise TranslationError(
            f"translate/phrases: text {number:,}: the phrase {phrase!r} has {found}; wanted a text within one line."
        )
    return stripped
