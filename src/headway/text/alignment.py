"""Alignment from tokens to characters, and from characters to the words between which a tag may stand."""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from headway.text.markup import is_spaceless

Span = tuple[int, int]

_HEX_TOKEN = re.compile(r"⟨[0-9A-F]{2}(?: [0-9A-F]{2})*⟩")  # a token that is part of a character
_FAR = 256  # bytes that are searched for a token that is not where it should be
_MOST_WORDS = 16  # of one token; more say nothing of where it belongs
_LONG_WORD = 4  # characters from which a word that both sides have once is taken for the same


@dataclass(frozen=True, slots=True)
class Link:
    """Characters of a source and of a target that belong together."""

    source: Span
    target: Span


def token_spans(tokens: Sequence[str], text: str) -> list[Span]:
    """Where in a text each of its tokens stands, as ``Tokenizer.tokens`` writes them.

    White space counts for nothing; a token that is part of a character gets the whole; one that the text does not have
    (an unknown one) gets an empty stretch.
    """
    places = [place for place, character in enumerate(text) if not character.isspace()]
    encoded = [text[place].encode("utf-8", "replace") for place in places]
    stream = b"".join(encoded)
    owners = [place for place, character in zip(places, encoded, strict=True) for _ in character]
    spans: list[Span] = []
    position = 0
    for token in tokens:
        piece = _bytes_of(token)
        start = stream.find(piece, position, position + len(piece) + _FAR) if piece else -1
        if start < 0:
            at = owners[position] if position < len(owners) else len(text)
            spans.append((at, at))
            continue
        position = start + len(piece)
        spans.append((owners[start], owners[position - 1] + 1))
    return spans


def links(
    source: str,
    target: str,
    *,
    source_tokens: Sequence[str],
    target_tokens: Sequence[str],
    alignment: Iterable[tuple[int, int]],
) -> list[Link]:
    """An alignment of tokens as one of characters. Places that no token has are left out."""
    source_spans, target_spans = token_spans(source_tokens, source), token_spans(target_tokens, target)
    return [
        Link(source_spans[left], target_spans[right])
        for left, right in alignment
        if 0 <= left < len(source_spans) and 0 <= right < len(target_spans)
    ]


def words(text: str, *, whole: Sequence[Span] = (), cuts: Sequence[int] = ()) -> list[Span]:
    r"""The words of a text: runs of letters and digits, every other character by itself, ``\n`` too; no white space.

    ``whole`` stretches are one word each; no word goes across a place of ``cuts``. Characters of scripts without
    spaces are words by themselves, with the marks on them.
    """
    found: list[Span] = []
    position = 0
    cut_at = set(cuts)
    for start, end in [*whole, (len(text), len(text))]:
        found += _words_between(text, position, start, cut_at)
        if end > start:
            found.append((start, end))
        position = max(position, end)
    return found


def align_words(
    source: str,
    target: str,
    *,
    source_words: Sequence[Span],
    target_words: Sequence[Span],
    pairs: Sequence[Link] | None,
    anchors: Iterable[tuple[int, int]],
) -> list[int]:
    r"""For each target word the source word it belongs to, -1 for none.

    The most links decide; before them ``anchors`` (places of words), the k-th ``\n`` where both texts have as many, and
    words that each text has once; nothing else belongs to a source word that these have. Without links (None) words are
    taken to stand in the same order.
    """
    aligned = [-1] * len(target_words)
    if pairs is None and source_words:
        aligned = [place * len(source_words) // len(target_words) for place in range(len(target_words))]
    votes: dict[int, Counter[int]] = {}
    source_ends, target_ends = [end for _, end in source_words], [end for _, end in target_words]
    source_starts, target_starts = [start for start, _ in source_words], [start for start, _ in target_words]
    for link in pairs or ():
        left = _touched(link.source, source_starts, source_ends)
        for place in _touched(link.target, target_starts, target_ends):
            votes.setdefault(place, Counter()).update(left)
    left, right = _strings(source, source_words), _strings(target, target_words)
    for place, counts in votes.items():
        if counts:
            likeness = {word: _likeness(left[word], right[place]) for word in counts}
            aligned[place] = min(counts, key=lambda word: (-counts[word], -likeness[word], word))
    sure = {other: word for word, other in [*_same_words(left, right), *anchors]}
    claimed = set(sure.values())
    return [sure.get(place, -1 if word in claimed else word) for place, word in enumerate(aligned)]


def _strings(text: str, spans: Sequence[Span]) -> list[str]:
    """What the words are."""
    return [text[start:end] for start, end in spans]


def _likeness(left: str, right: str) -> int:
    """How alike two words are: the same, of the same kind, or neither."""
    return 2 if left == right else int(left[:1].isalnum() == right[:1].isalnum())


def _bytes_of(token: str) -> bytes:
    """The bytes of a readable token without its white space."""
    if _HEX_TOKEN.fullmatch(token):
        return bytes.fromhex(token[1:-1])
    return "".join(token.split()).encode("utf-8", "replace")


def _touched(span: Span, starts: Sequence[int], ends: Sequence[int]) -> range:
    """The words that a stretch overlaps, not too many."""
    first, last = bisect_right(ends, span[0]), bisect_left(starts, span[1])
    return range(first, last) if last - first <= _MOST_WORDS else range(0)


def _words_between(text: str, start: int, end: int, cuts: set[int]) -> list[Span]:
    """The words of a part of a text."""
    found: list[Span] = []
    began, before = -1, "space"  # the start of the word that goes on, and the kind of its last letter
    for place in range(start, end):
        kind = _kind(text[place])
        goes_on = began >= 0 and place not in cuts and (kind == "mark" or kind == before == "letter")
        if began >= 0 and not goes_on:
            found.append((began, place))
        if not goes_on:
            began = -1 if kind == "space" else place
        before = before if goes_on else kind
    return [*found, (began, end)] if began >= 0 else found


def _kind(character: str) -> str:
    """How a character takes part in words."""
    if character == "\n":
        return "alone"
    if character.isspace():
        return "space"
    if character.isalnum() or character == "_":
        return "spaceless" if is_spaceless(character) else "letter"
    if unicodedata.category(character)[0] == "M" or character in "\u200c\u200d\u00ad":
        return "mark"
    return "alone"


def _same_words(source: Sequence[str], target: Sequence[str]) -> list[tuple[int, int]]:
    """Pairs of words that are the same on both sides without doubt: once on each, and no short word."""
    left, right = _places(source), _places(target)
    pairs = [
        (left[word][0], right[word][0])
        for word in left.keys() & right.keys()
        if len(left[word]) == len(right[word]) == 1 and (len(word) >= _LONG_WORD or not word.isalpha())
    ]
    lines = left.get("\n", []), right.get("\n", [])
    if len(lines[0]) == len(lines[1]):
        pairs += zip(*lines, strict=True)
    return pairs


def _places(words_of_text: Sequence[str]) -> dict[str, list[int]]:
    """The places of each word."""
    found: dict[str, list[int]] = {}
    for place, word in enumerate(words_of_text):
        found.setdefault(word, []).append(place)
    return found


@dataclass(frozen=True, slots=True)
class Edits:
    """Stretches of a text, rising and apart, each with what replaces it."""

    edits: tuple[tuple[int, int, str], ...]

    def apply(self, text: str) -> str:
        """The text with all of them made."""
        parts: list[str] = []
        position = 0
        for start, end, new in self.edits:
            parts += [text[position:start], new]
            position = end
        return "".join([*parts, text[position:]])

    def move(self, spans: Sequence[Span]) -> list[Span]:
        """Where stretches are in the new text; a stretch that touches a replaced one has all of what replaces it."""
        starts, ends = [edit[0] for edit in self.edits], [edit[1] for edit in self.edits]
        shifts = [0]
        for start, end, new in self.edits:
            shifts.append(shifts[-1] + len(new) - (end - start))
        moved: list[Span] = []
        for start, end in spans:
            before, begun = bisect_right(ends, start), bisect_left(starts, end)
            first = min(start, starts[before]) if before < len(starts) and starts[before] < end else start
            last = max(end, ends[begun - 1]) if begun > before else end
            moved.append((first + shifts[before], last + shifts[max(begun, before)]))
        return moved


def move_links(pairs: Sequence[Link], *, source: Edits | None = None, target: Edits | None = None) -> list[Link]:
    """The links after edits of either text."""
    left, right = [link.source for link in pairs], [link.target for link in pairs]
    left = source.move(left) if source else left
    right = target.move(right) if target else right
    return [Link(*both) for both in zip(left, right, strict=True)]
