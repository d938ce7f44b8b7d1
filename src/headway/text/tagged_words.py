"""Sentences cut into words, with a tag on each: ``the_DT dog_NN``. The last ``_`` of a word parts it from its tag.

In a vocabulary a word's tag is a reserved token, so words that look like tags, and text in general, never yield it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from headway.errors import TextError
from headway.text.reserved import UNK_ID
from headway.text.tokenizer import Tokenizer

MARK = "_"
PREFIX = "pos."  # of the names by which a vocabulary reserves tokens for tags of words

_HIDDEN = re.compile(r"[^A-Za-z0-9]")


def join_tagged(words: Sequence[str], tags: Sequence[str]) -> str:
    """One text of words and their tags, in equal numbers.

    Raises TextError for a tag with ``_`` or a space, and for a word with a space or without a character.
    """
    for word, tag in zip(words, tags, strict=True):
        if not word or " " in word or not tag or MARK in tag or " " in tag:
            raise TextError(
                f"text/tagged_words: found the word {word!r} with the tag {tag!r}; wanted both without a space, with "
                f"one character or more, and a tag without {MARK!r}. Remedy: rename the tag, or mend the word."
            )
    return " ".join(f"{word}{MARK}{tag}" for word, tag in zip(words, tags, strict=True))


def split_tagged(text: str, *, where: str = "a sentence") -> tuple[list[str], list[str]]:
    """The words and the tags of such a text, which has one space or more between words.

    Raises TextError for a word without a tag, and says ``where`` it stands.
    """
    words: list[str] = []
    tags: list[str] = []
    for number, item in enumerate((item for item in text.split(" ") if item), start=1):
        word, _, tag = item.rpartition(MARK)
        if not word or not tag:
            raise TextError(
                f"text/tagged_words: word {number} of {where} is {item!r}, which has no tag; wanted word{MARK}TAG "
                "for every word. Remedy: tag it, or give the tags in a file of their own."
            )
        words.append(word)
        tags.append(tag)
    return words, tags


def token_name(tag: str) -> str:
    """The name by which a vocabulary reserves the token of a word's tag: ``pos.NN``; ``pos.PRP-24.`` for ``PRP$``."""
    return PREFIX + _HIDDEN.sub(lambda match: f"-{ord(match[0]):X}.", tag)


@dataclass(frozen=True)
class TaggedCoder:
    """Encodes tagged sentences by a vocabulary that reserves a token for each tag: of a word its tokens, then its tag.

    ``words`` and ``tags`` say which of the two are encoded. A tag that the vocabulary lacks is UNK.
    """

    tokenizer: Tokenizer
    words: bool
    tags: bool

    @property
    def parts_at_spaces(self) -> bool:
        """Whether a sentence has the ids of its words, one after the other."""
        return self.tokenizer.parts_at_spaces

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of each text. Raises TextError for a word without a tag, and for a lone surrogate."""
        sentences = [split_tagged(text) for text in texts]
        if not self.tags:
            return self.tokenizer.encode_batch([" ".join(words) for words, _ in sentences])
        pieces = iter(self.tokenizer.encode_batch([word for words, _ in sentences for word in words if self.words]))
        reserved = self.tokenizer.tags
        return [
            [
                token_id
                for tag in tags
                for token_id in (*(next(pieces) if self.words else ()), reserved.get(token_name(tag), UNK_ID))
            ]
            for _, tags in sentences
        ]
