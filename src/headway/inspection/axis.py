"""What stands along one side of attention: tokens, and the words that they are parts of.

Shapes: H heads, T queries, S keys; the same letters for tokens and for words.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headway.text.alignment import Span, token_spans, words
from headway.text.tokenizer import Tokenizer

Weights = np.ndarray


@dataclass(frozen=True, slots=True)
class Word:
    """A word, or a control token or tag by itself: its tokens are those from ``first`` to before ``end``."""

    text: str
    first: int
    end: int
    is_control: bool = False


@dataclass(frozen=True, slots=True)
class Axis:
    """Tokens as the model reads or writes them, and the words that they make up, each token in exactly one."""

    tokens: tuple[str, ...]
    token_ids: tuple[int, ...]
    words: tuple[Word, ...]

    @property
    def control_tokens(self) -> tuple[bool, ...]:
        """Of each token, whether it is a control token or a tag, which stand for no text."""
        return tuple(word.is_control for word in self.words for _ in range(word.first, word.end))


def axis_of(
    tokenizer: Tokenizer, token_ids: Sequence[int], text: str, *, before: Sequence[int] = (), after: Sequence[int] = ()
) -> Axis:
    """The axis of a text: its own tokens, after the control tokens (and tags) ``before`` it and before those ``after``.

    A word is a run of letters and digits, every other character is one by itself (``headway.text.alignment.words``).
    What a token has parts of is one word.
    """
    ids = (*before, *token_ids, *after)
    tokens = tuple(tokenizer.tokens(ids))
    start, end = len(before), len(before) + len(token_ids)
    grouped = _group(tokens[start:end], text)
    return Axis(
        tokens,
        ids,
        (
            *(Word(tokens[place], place, place + 1, is_control=True) for place in range(start)),
            *(Word(word.text, start + word.first, start + word.end) for word in grouped),
            *(Word(tokens[place], place, place + 1, is_control=True) for place in range(end, len(ids))),
        ),
    )


def merge(weights_HTS: Weights, queries: Axis, keys: Axis) -> Weights:
    """Weights of tokens as weights of words, (H, T, S) to fewer: into a word they are summed, out of it averaged.

    So each row goes on to sum to 1: the share of a word's attention that another word gets in all.
    """
    summed = np.add.reduceat(weights_HTS, [word.first for word in keys.words], axis=2)
    sizes = np.array([word.end - word.first for word in queries.words], dtype=np.float64)
    return np.add.reduceat(summed, [word.first for word in queries.words], axis=1) / sizes[:, None]


def _group(tokens: Sequence[str], text: str) -> list[Word]:
    """The words that the tokens of a text make up; a word that no token has goes to the one before it."""
    if not tokens:
        return []
    found = words(text)
    touched = [_touched(span, found) for span in token_spans(tokens, text)]
    starts: list[int] = []  # of each group: its first token
    last = -1  # the last word of the group under way
    for place, (first, final) in enumerate(touched):
        if not starts or first > last:
            starts.append(place)
        last = max(last, final)
    ends = [*starts[1:], len(tokens)]
    begins = [touched[start][0] for start in starts]
    return [
        Word(_text_between(text, found, begin, stop) or "".join(tokens[start:end]).strip(), start, end)
        for start, end, begin, stop in zip(starts, ends, [0, *begins[1:]], [*begins[1:], len(found)], strict=True)
    ]


def _touched(span: Span, found: Sequence[Span]) -> tuple[int, int]:
    """The first and the last word that a token has parts of; an empty stretch belongs to the word that it stands in."""
    start, end = span
    first = bisect_right(found, start, key=lambda word: word[1])
    last = bisect_left(found, max(end, start + 1), key=lambda word: word[0]) - 1
    return first, max(first, last)


def _text_between(text: str, found: Sequence[Span], first: int, stop: int) -> str:
    """The text from one word to before another."""
    return text[found[first][0] : found[stop - 1][1]] if first < stop else ""
