"""Inline tags of a segment in one canonical form, so that a model can learn to carry them.

A pair of tags that nests is ``<g id="1">...</g>``, any other tag ``<x id="1"/>``. The numbers begin at 1 in each unit
and follow the order on the source side; a tag of the target side has the number of its partner on the source side.
Text stays as it is, without escapes.
"""

from collections import deque
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

InlineTags = Literal["drop", "keep"]  # what a corpus is read with
Kind = Literal["open", "close", "alone"]


@dataclass(slots=True, eq=False)
class Tag:
    """One tag as the format has it.

    ``pair`` is what an opening tag and its closing one share within their segment (TMX: ``i``), ``partner`` what a tag
    shares with its partner on the other side (TMX: ``x``); either may be empty. ``code`` is what the tag stands for,
    in pieces.
    """

    kind: Kind
    pair: str = ""
    partner: str = ""
    code: list[str] = field(default_factory=list[str])


Piece = str | Tag


@dataclass(slots=True, eq=False)
class _Element:
    """A nesting pair of tags, or one tag alone (``last`` is ``first``), and the number that it gets."""

    first: Tag
    last: Tag
    number: int = 0

    def keys(self) -> Iterator[Hashable]:
        """What its partner on the other side may share with it, the best first; None where there is nothing."""
        is_pair = self.first is not self.last
        yield (is_pair, self.first.partner) if self.first.partner else None
        code = "".join(self.first.code)
        yield (is_pair, code) if code else None
        yield (is_pair, self.first.pair) if self.first.pair else None


def render_pair(source: Sequence[Piece], target: Sequence[Piece]) -> tuple[str, str]:
    """Write both sides of a unit with their tags in the canonical form.

    Partners are sought by what tags share across the sides, then by equal code, then by equal names of pairs; what
    has none gets the numbers after those of the source side.
    """
    sides = [_elements(source), _elements(target)]
    for number, element in enumerate(sides[0], 1):
        element.number = number
    _number_by_partner(*sides)
    rest = (element for element in sides[1] if not element.number)
    for number, element in enumerate(rest, len(sides[0]) + 1):
        element.number = number
    return _render(source, sides[0]), _render(target, sides[1])


def plain(pieces: Sequence[Piece]) -> str:
    """The text of a segment without its tags.

    White space after a tag goes with it where there is some before it as well, or nothing; at the end, that before.
    """
    if len(pieces) == 1 and isinstance(pieces[0], str):  # nearly every segment
        return pieces[0]
    kept: list[str] = []
    tag_before = False
    for piece in pieces:
        if not isinstance(piece, str):
            tag_before = True
            continue
        text = piece.lstrip() if tag_before and (not kept or kept[-1][-1].isspace()) else piece
        tag_before = tag_before and not text
        if text:
            kept.append(text)
    if tag_before and kept:
        kept[-1] = kept[-1].rstrip()
    return "".join(kept)


def _elements(pieces: Iterable[Piece]) -> list[_Element]:
    """The elements of a side in the order in which they begin; tags that do not nest stand alone."""
    partner_of: dict[Tag, Tag] = {}
    open_tags: list[Tag] = []  # the innermost last
    places: dict[str, list[int]] = {}  # of a pair's open tags among these
    tags = [piece for piece in pieces if isinstance(piece, Tag)]
    for tag in tags:
        if tag.kind == "open":
            places.setdefault(tag.pair, []).append(len(open_tags))
            open_tags.append(tag)
        elif tag.kind == "close" and places.get(tag.pair):
            place = places[tag.pair][-1]
            partner_of[open_tags[place]] = tag
            while len(open_tags) > place:  # what was opened since then and is open still crosses this pair
                places[open_tags.pop().pair].pop()
    closing = set(partner_of.values())
    return [_Element(tag, partner_of.get(tag, tag)) for tag in tags if tag not in closing]


def _number_by_partner(source: Sequence[_Element], target: Sequence[_Element]) -> None:
    """Give elements of the target side the numbers of their partners, each number once."""
    taken: set[int] = set()
    for level in range(3):
        waiting: dict[Hashable, deque[_Element]] = {}
        for element in source:
            if element.number not in taken:
                waiting.setdefault(list(element.keys())[level], deque()).append(element)
        for element in target:
            key = list(element.keys())[level]
            if key is not None and not element.number and waiting.get(key):
                element.number = waiting[key].popleft().number
                taken.add(element.number)


def _render(pieces: Iterable[Piece], elements: Iterable[_Element]) -> str:
    written: dict[Tag, str] = {}
    for element in elements:
        if element.first is element.last:
            written[element.first] = f'<x id="{element.number}"/>'
        else:
            written[element.first] = f'<g id="{element.number}">'
            written[element.last] = "</g>"
    return "".join(piece if isinstance(piece, str) else written[piece] for piece in pieces)
