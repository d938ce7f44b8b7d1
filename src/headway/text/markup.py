"""Text with markup: what a model shall see of it, and what must come out of a translation as it went in.

Tags are taken out of the text and put back by alignment (``headway.text.placement``); placeholders, URLs and the like
stay in the text. Every function here is pure and takes time linear in the text, whatever stands in it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from headway.text.escape import decode, without_cdata
from headway.text.placeholder import What, find_placeholders
from headway.text.tag import Kind, Syntax, Tag, find_tags, pair_tags

# Scripts written without spaces between words: Han with Kana and full-width forms, and those of South-East Asia.
SPACELESS = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\uf900-\ufaff\ufe10-\ufe6f\uff00-\uffef\U00020000-\U0003ffff]"
)
_NO_SPACE_AFTER = "([{<«„“‘'\"/-–—¿¡"
_STARTS_A_WORD = "([{<«„“$%&@#"


@dataclass(frozen=True, slots=True)
class Mark:
    """One thing that must be kept. ``raw`` is what stands in the source, from character ``start`` of it on.

    ``kind`` inline: it stands in the text at ``offset`` as ``shown``. A tag shows nothing; ``partner`` is the place of
    the other tag of its pair (-1: isolated), and ``nests`` says that the pair crosses no other.
    ``space`` is white space after a tag that the text leaves out, because there is some before the tag too;
    ``adds_space``: the text has a space after the tag that the source lacks, as in ``one<br/>two``.
    """

    raw: str
    start: int
    offset: int
    kind: Kind | Literal["inline"]
    what: What = "tag"
    shown: str = ""
    partner: int = -1
    nests: bool = False
    space: str = ""
    adds_space: bool = False

    @property
    def end(self) -> int:
        """The character after it, in the source."""
        return self.start + len(self.raw)


@dataclass(frozen=True, slots=True)
class Escape:
    """A character of the text at ``offset`` that the source writes as ``raw``."""

    offset: int
    raw: str


@dataclass(frozen=True, slots=True)
class Marked:
    """A text without its tags, its marks in order, and how the source writes single characters."""

    source: str
    text: str
    syntax: Syntax
    marks: tuple[Mark, ...] = ()
    escapes: tuple[Escape, ...] = ()
    numbers: bool = False

    def inline_spans(self) -> list[tuple[int, int]]:
        """Where in the text its placeholders, URLs and the like stand."""
        return [(mark.offset, mark.offset + len(mark.shown)) for mark in self.marks if mark.kind == "inline"]

    @property
    def has_tags(self) -> bool:
        """Whether anything was taken out of the text."""
        return any(mark.kind != "inline" for mark in self.marks)

    @property
    def is_blank(self) -> bool:
        """Whether nothing is left to translate: white space, and what stays as it is."""
        position = 0
        for start, end in [*self.inline_spans(), (len(self.text), 0)]:
            if self.text[position:start].strip():
                return False
            position = end
        return True


def parse(text: str, *, syntax: Syntax = "plain", numbers: bool = False) -> Marked:
    """Tell words from markup.

    ``plain``: ``<`` may be a less-than sign, and only what looks like a tag is one. ``html`` and ``xml``: the raw
    content of an element; entities are decoded, and tags written by entities count as tags too. CDATA sections of XML
    become escaped text, which XML reads as the same. ``numbers`` protects numbers as well.
    """
    if syntax == "xml":
        text = without_cdata(text)
    builder = _Builder(text, numbers)
    position = 0
    for tag in find_tags(text, syntax):
        _add_between(builder, position, tag.start, syntax)
        builder.add_tag(tag, tag.start, tag.end)
        position = tag.end
    _add_between(builder, position, len(text), syntax)
    return builder.finish(syntax)


def render(marked: Marked) -> str:
    """The source again, from its parts."""
    raws = {escape.offset: escape.raw for escape in marked.escapes}
    parts: list[str] = []
    position = 0

    def copy(end: int) -> None:
        parts.extend(raws.get(place, marked.text[place]) for place in range(position, end))

    for mark in marked.marks:
        copy(mark.offset)
        parts += [mark.raw, mark.space]
        position = max(position, mark.offset + len(mark.shown) + mark.adds_space)
    copy(len(marked.text))
    return "".join(parts)


def is_spaceless(character: str) -> bool:
    """Whether the character belongs to a script written without spaces between words."""
    return SPACELESS.match(character) is not None


@dataclass(frozen=True, slots=True)
class _Chunk:
    """Text between tags. ``starts`` says where in the source each of its characters, and its end, is.

    Without ``starts`` the text stands in the source as it is, from ``start`` on.
    """

    text: str
    start: int
    starts: Sequence[int] = ()

    def at(self, place: int) -> int:
        """Where a character is in the source."""
        return self.starts[place] if self.starts else self.start + place

    def part(self, start: int, end: int) -> "_Chunk":
        """A part of it."""
        return _Chunk(self.text[start:end], self.start + start, self.starts[start : end + 1])


@dataclass
class _Builder:
    """A text as it grows, with its marks."""

    source: str
    numbers: bool
    parts: list[str] = field(default_factory=list[str])
    marks: list[Mark] = field(default_factory=list[Mark])
    tags: list[Tag] = field(default_factory=list[Tag])  # of the marks that are tags, in order
    escapes: list[Escape] = field(default_factory=list[Escape])
    length: int = 0
    last: str = ""  # character of the text
    is_after_tag: bool = False
    breaks: bool = False  # a tag since the last text ends words

    def add_tag(self, tag: Tag, start: int, end: int) -> None:
        """Take a tag, which is at ``start`` to ``end`` of the source, out of the text."""
        self.marks.append(Mark(self.source[start:end], start, self.length, tag.kind))
        self.tags.append(tag)
        self.is_after_tag = True
        self.breaks = self.breaks or tag.breaks

    def add_chunk(self, chunk: _Chunk) -> None:
        """Add text in which tags may still stand."""
        position = 0
        for tag in find_tags(chunk.text, "plain"):
            self.add_text(chunk.part(position, tag.start))
            self.add_tag(tag, chunk.at(tag.start), chunk.at(tag.end))
            position = tag.end
        self.add_text(chunk.part(position, len(chunk.text)))

    def add_text(self, chunk: _Chunk) -> None:
        """Add words, and the placeholders in them."""
        if chunk.text and self.is_after_tag:
            chunk = self._join(chunk)
        if not chunk.text:
            return
        self.is_after_tag = self.breaks = False
        for found in find_placeholders(chunk.text, numbers=self.numbers):
            start, end = chunk.at(found.start), chunk.at(found.end)
            shown = chunk.text[found.start : found.end]
            self.marks.append(
                Mark(self.source[start:end], start, self.length + found.start, "inline", found.what, shown)
            )
        if chunk.starts:
            self._note_escapes(chunk)
        self._append(chunk.text)

    def _join(self, chunk: _Chunk) -> _Chunk:
        """Mend the seam where tags were: white space on both sides is one too many, none at all may be too little."""
        text = chunk.text
        if self.last.isspace() and self.last != "\n":
            cut = len(text) - len(text.lstrip(" \t"))
            if cut and text[cut : cut + 1] != "\n":
                self.marks[-1] = replace(
                    self.marks[-1], space=self.marks[-1].space + self.source[chunk.at(0) : chunk.at(cut)]
                )
                return chunk.part(cut, len(text))
        elif self.breaks and _needs_space(self.last, text[0]):
            self.marks[-1] = replace(self.marks[-1], adds_space=True)
            self._append(" ")
        return chunk

    def _note_escapes(self, chunk: _Chunk) -> None:
        """Keep how the source writes each character that it does not write as itself."""
        for place, character in enumerate(chunk.text):
            raw = self.source[chunk.starts[place] : chunk.starts[place + 1]]
            if raw != character:
                self.escapes.append(Escape(self.length + place, raw))

    def _append(self, text: str) -> None:
        self.parts.append(text)
        self.length += len(text)
        self.last = text[-1]

    def finish(self, syntax: Syntax) -> Marked:
        """The whole, with each tag's partner."""
        pairs = pair_tags(self.tags)
        places = [place for place, mark in enumerate(self.marks) if mark.kind != "inline"]
        marks = list(self.marks)
        for number, place in enumerate(places):
            partner = pairs.partners[number]
            if partner >= 0:
                marks[place] = replace(marks[place], partner=places[partner], nests=pairs.nests[number])
        return Marked(self.source, "".join(self.parts), syntax, tuple(marks), tuple(self.escapes), numbers=self.numbers)


def _add_between(builder: _Builder, start: int, end: int, syntax: Syntax) -> None:
    """Add what stands between two tags of the source."""
    if syntax == "plain":
        builder.add_text(_Chunk(builder.source[start:end], start))
        return
    text, starts = decode(builder.source, start, end, strict=syntax == "xml")
    builder.add_chunk(_Chunk(text, start, starts))


def _needs_space(left: str, right: str) -> bool:
    """Whether two characters that only a tag separated would run together without it."""
    return (
        left != ""
        and not left.isspace()
        and left not in _NO_SPACE_AFTER
        and (right.isalnum() or right in _STARTS_A_WORD)
        and not is_spaceless(left)
        and not is_spaceless(right)
    )
