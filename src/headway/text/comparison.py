"""The marks of two texts compared as multisets: what was kept, what is missing, what is there beyond."""

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from headway.text.markup import Marked, parse
from headway.text.placeholder import Found, What, find_placeholders, number_key
from headway.text.tag import find_tags

Wanted = tuple[str, What]

_MOST_LITERALS = 100  # different strings that are looked for where the scan of a text did not see them


@dataclass(frozen=True, slots=True)
class Match:
    """What of the wanted stands in a text: ``kept`` stretches with the place of what was wanted, the rest, and more."""

    kept: tuple[tuple[Found, int], ...]
    missing: tuple[int, ...]
    extra: tuple[Found, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """What an output lacks of its source's marks, and what it has beyond them: strings, as often as they differ.

    ``crossed``: closing tags that stand before the opening ones of their pair.
    """

    missing: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    crossed: tuple[str, ...] = ()


def find_marks(text: str, *, numbers: bool = False) -> list[Found]:
    """All that counts as a mark in a text without escapes, what looks like a tag too, in order."""
    found: list[Found] = []
    position = 0
    spans = [(tag.start, tag.end) for tag in find_tags(text, "plain")]
    for start, end in [*spans, (len(text), len(text))]:
        found += [
            Found(position + piece.start, position + piece.end, piece.what)
            for piece in find_placeholders(text[position:start], numbers=numbers)
        ]
        if end > start:
            found.append(Found(start, end, "tag"))
        position = end
    return found


def match_marks(wanted: Sequence[Wanted], text: str, found: Sequence[Found]) -> Match:
    """Find each of the wanted strings once in ``text``, whose marks are ``found``.

    What the scan did not take for a mark there (``%s`` straight after a digit) counts too where it stands letter by
    letter; and a URL or address that goes on (``https://a.example/-Link``) holds the wanted one.
    """
    places: dict[str, deque[int]] = {}
    for place, (string, what) in enumerate(wanted):
        places.setdefault(_key(string, what), deque()).append(place)
    kept: list[tuple[Found, int]] = []
    extra: list[Found] = []
    for piece in found:
        same = places.get(_key(text[piece.start : piece.end], piece.what))
        if same:
            kept.append((piece, same.popleft()))
        else:
            extra.append(piece)
    if any(places.values()):
        more, extra = _match_letters(
            {key: same for key, same in places.items() if same and wanted[same[0]][1] != "number"},
            text,
            kept=[piece for piece, _ in kept],
            extra=extra,
        )
        kept = sorted(kept + more, key=lambda pair: pair[0].start)
        kept = [(Found(piece.start, piece.end, wanted[place][1]), place) for piece, place in kept]
    return Match(tuple(kept), tuple(sorted(chain.from_iterable(places.values()))), tuple(extra))


def difference(marked: Marked, output: str) -> Difference:
    """Compare the marks of a finished output with those of its source."""
    again = parse(output, syntax=marked.syntax, numbers=marked.numbers)
    match = match_marks(
        [(mark.raw, mark.what) for mark in marked.marks],
        again.source,
        [Found(mark.start, mark.end, mark.what) for mark in again.marks],
    )
    return Difference(
        missing=tuple(marked.marks[place].raw for place in match.missing),
        extra=tuple(again.source[piece.start : piece.end] for piece in match.extra),
        crossed=_crossed(marked, match),
    )


def _crossed(marked: Marked, match: Match) -> tuple[str, ...]:
    """Closing tags before their opening ones. Tags written alike can stand for each other and are not told apart."""
    starts = {place: piece.start for piece, place in match.kept}
    counts = Counter(mark.raw for mark in marked.marks)
    return tuple(
        mark.raw
        for place, mark in enumerate(marked.marks)
        if mark.kind == "close"
        and mark.partner in starts
        and place in starts
        and starts[mark.partner] > starts[place]
        and counts[mark.raw] == counts[marked.marks[mark.partner].raw] == 1
    )


def _match_letters(
    places: dict[str, deque[int]], text: str, *, kept: list[Found], extra: list[Found]
) -> tuple[list[tuple[Found, int]], list[Found]]:
    """Look for missing strings letter by letter, outside of what is kept and of placeholders that say something else.

    What is found leaves ``places``. Returns it, and the extras that are left.
    """
    more: list[tuple[Found, int]] = []
    if len(places) > _MOST_LITERALS:
        return more, extra
    text = _blank(text, [*kept, *(piece for piece in extra if piece.what not in ("url", "e-mail"))])
    for string in sorted(places, key=len, reverse=True):
        start = text.find(string)
        new: list[Found] = []
        while start >= 0 and places[string]:
            new.append(Found(start, start + len(string), "tag"))
            more.append((new[-1], places[string].popleft()))
            start = text.find(string, new[-1].end)
        text = _blank(text, new)
    held = {piece.start for piece, _ in more}
    return more, [piece for piece in extra if piece.start not in held]


def _blank(text: str, pieces: Sequence[Found]) -> str:
    """The text with these pieces made unreadable, of the same length."""
    parts: list[str] = []
    position = 0
    for piece in sorted(pieces, key=lambda piece: piece.start):
        parts += [text[position : piece.start], "\0" * (piece.end - piece.start)]
        position = piece.end
    return "".join([*parts, text[position:]])


def _key(string: str, what: What) -> str:
    """What marks that are the same have in common."""
    return f"number {number_key(string)}" if what == "number" else string
