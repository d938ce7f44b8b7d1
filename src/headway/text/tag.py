r"""Tags of HTML, XML, XLIFF and TMX in a text, found in linear time, and which of them belong together.

In plain text ``<`` may be a less-than sign, so only what looks like a tag is one. Elements whose content is native
code (bpt, ept, ph, it, ut) and elements marked as not to be translated are one tag with all that they hold.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

Syntax = Literal["plain", "html", "xml"]
Kind = Literal["open", "close", "standalone"]
SYNTAXES: tuple[Syntax, ...] = ("plain", "html", "xml")

_VOID = frozenset(
    ["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr"]
)
_HOLDS_CODE: dict[Syntax, frozenset[str]] = {
    "plain": frozenset({"bpt", "ept", "ph", "it", "ut"}),
    "html": frozenset({"script", "style", "svg", "math"}),
    "xml": frozenset({"bpt", "ept", "ph", "it", "ut"}),
}
# Two tags of one pair that are elements of their own: the kind of tag, what the pair is called, and where its id is.
_HALVES: dict[str, tuple[Kind, str, tuple[str, ...]]] = {
    "bpt": ("open", "bpt", ("rid", "i", "id")),
    "ept": ("close", "bpt", ("rid", "i", "id")),
    "bx": ("open", "bx", ("rid", "id")),
    "ex": ("close", "bx", ("rid", "id")),
    "sc": ("open", "sc", ("id",)),
    "ec": ("close", "sc", ("startRef", "id")),
    "sm": ("open", "sm", ("id",)),
    "em": ("close", "sm", ("startRef", "id")),
}
_ISOLATED: dict[str, Kind] = {"begin": "open", "end": "close"}  # <it pos="begin">
# Elements and empty tags between which words end, even where no space stands.
_BREAKS = frozenset(
    [
        "address",
        "article",
        "aside",
        "blockquote",
        "br",
        "button",
        "dd",
        "div",
        "dl",
        "dt",
        "figure",
        "footer",
        "form",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "header",
        "hr",
        "img",
        "input",
        "li",
        "main",
        "nav",
        "ol",
        "option",
        "p",
        "ph",
        "pre",
        "section",
        "select",
        "table",
        "tbody",
        "td",
        "tfoot",
        "th",
        "thead",
        "title",
        "tr",
        "ul",
        "x",
    ]
)

_NAME = r"(?:[A-Za-z_][\w:.\-]*+|\d{1,3}+)"  # <0>text</0> is how some libraries number tags
_FLAGS = (
    "async|autoplay|checked|controls|defer|disabled|hidden|loop|multiple|muted|nowrap|open|readonly|required|selected"
)
_ATTRIBUTE = (
    rf"(?:[A-Za-z_:@#*\[(][\w:.\-\])]*+\s*+=\s*+(?:\"[^\"<]*+\"|'[^'<]*+'|[^\s\"'<>=`]++)|(?:{_FLAGS})(?![\w:.\-]))"
)
# Not after a percent sign: %<name>s is a placeholder.
_PLAIN_TAG = re.compile(rf"(?<!%)<(?:/{_NAME}\s*+|{_NAME}(?:\s++{_ATTRIBUTE})*\s*+/?)>")
_TAG_START = re.compile(rf"</?(?:{_NAME}|[^\W\d][\w:.\-]*+)")
_BARE = re.compile(r"[^<>\"']*+")
_CLOSERS = (("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", "?>"), ("<!", ">"))
_NOT_TRANSLATED = re.compile(r"\stranslate\s*=\s*[\"']?no\b|\smtype\s*=\s*[\"']protected[\"']")


@dataclass(frozen=True, slots=True)
class Tag:
    """A tag at ``start`` to ``end`` of a text. Tags of one pair have one ``key``; tags without a key stand alone.

    ``is_element``: an opening or closing tag of an element, which must nest; other pairs may cross.
    ``breaks``: words end here, so that ``one<br/>two`` is two words.
    """

    start: int
    end: int
    kind: Kind
    key: str = ""
    is_element: bool = False
    breaks: bool = False


@dataclass(frozen=True, slots=True)
class Pairs:
    """For each tag the place of its partner, -1 for none, and whether the pair nests with all others."""

    partners: list[int]
    nests: list[bool]


def find_tags(text: str, syntax: Syntax) -> list[Tag]:
    """The tags of a text in order."""
    if "<" not in text:
        return []
    find_end = _plain_end if syntax == "plain" else _EndOfTag().__call__
    raw = list(_scan(text, find_end, syntax))
    held = _partners_of_elements(raw)
    tags: list[Tag] = []
    place = 0
    while place < len(raw):
        tag = raw[place]
        opening = text[tag.start : tag.end]
        name = _local_name(opening)
        if tag.kind == "open" and held[place] >= 0 and (name in _HOLDS_CODE[syntax] or _NOT_TRANSLATED.search(opening)):
            place = held[place]
            tags.append(_whole(opening, name, start=tag.start, end=raw[place].end))
        elif tag.kind == "standalone":
            tags.append(_whole(opening, name, start=tag.start, end=tag.end))
        else:
            tags.append(tag)
        place += 1
    return tags


def pair_tags(tags: list[Tag]) -> Pairs:
    """Which tags belong together: elements by nesting, halves of pairs by their id."""
    partners = _partners_of_elements(tags)
    opened: dict[str, list[int]] = {}
    for place, tag in enumerate(tags):
        if tag.is_element or not tag.key:
            continue
        if tag.kind == "open":
            opened.setdefault(tag.key, []).append(place)
        elif opened.get(tag.key):
            partner = opened[tag.key].pop()
            partners[partner], partners[place] = place, partner
    return Pairs(partners, _nesting(tags, partners))


def _nesting(tags: list[Tag], partners: list[int]) -> list[bool]:
    """Which paired tags cross no other pair; of a crossing, the pair that is no element gives way."""
    nests = [partner >= 0 for partner in partners]
    stack: list[int] = []
    for place, tag in enumerate(tags):
        partner = partners[place]
        if partner < 0:
            continue
        if tag.kind == "open":
            stack.append(place)
            continue
        while stack and not nests[stack[-1]]:
            stack.pop()
        if not nests[place]:
            continue
        if not tag.is_element and stack[-1] != partner:
            nests[place] = nests[partner] = False
            continue
        while stack[-1] != partner:
            crossing = stack.pop()
            nests[crossing] = nests[partners[crossing]] = False
        stack.pop()
    return nests


def _partners_of_elements(tags: list[Tag]) -> list[int]:
    """For each tag of an element its partner's place: a closing tag takes the nearest open one of its name."""
    partners = [-1] * len(tags)
    stack: list[int] = []
    num_open: dict[str, int] = {}
    for place, tag in enumerate(tags):
        if not tag.is_element:
            continue
        if tag.kind == "open":
            stack.append(place)
            num_open[tag.key] = num_open.get(tag.key, 0) + 1
        elif num_open.get(tag.key):
            while True:
                partner = stack.pop()
                num_open[tags[partner].key] -= 1
                if tags[partner].key == tag.key:
                    break
            partners[partner], partners[place] = place, partner
    return partners


def _scan(text: str, find_end: Callable[[str, int], int], syntax: Syntax) -> Iterator[Tag]:
    """Every tag, comment, declaration and instruction by itself."""
    missing: set[str] = set()  # what is not found once is not found further on
    position = text.find("<")
    while position >= 0:
        end, kind = _special_end(text, position, missing), "standalone"
        if end < 0:
            end = find_end(text, position)
            kind = _kind(text, position, end, syntax)
        if end >= 0:
            yield _element(text, position, end, kind, folded=syntax != "xml")
        position = text.find("<", max(end, position + 1))


def _special_end(text: str, start: int, missing: set[str]) -> int:
    """Where a comment, declaration, instruction or CDATA section ends; -1 if none starts here."""
    if text[start + 1 : start + 2] not in ("!", "?"):
        return -1
    opening, close = next(pair for pair in _CLOSERS if text.startswith(pair[0], start))
    if opening == "<!" and not text[start + 2 : start + 3].isalpha():
        return -1
    if close in missing:
        return -1
    end = text.find(close, start + len(opening))
    if end < 0:
        missing.add(close)
        return -1
    return end + len(close)


def _plain_end(text: str, start: int) -> int:
    """Where a tag of plain text ends; -1 if it is none."""
    match = _PLAIN_TAG.match(text, start)
    return match.end() if match else -1


class _EndOfTag:
    """Finds where tags of HTML and XML end; ``<`` and ``>`` may stand in quoted values.

    A quote that was once seen to lead nowhere is not followed again, so that all calls together are linear.
    """

    def __init__(self) -> None:
        self._lost: set[int] = set()

    def __call__(self, text: str, start: int) -> int:
        match = _TAG_START.match(text, start)
        if not match or text[match.end() : match.end() + 1] not in (*" \t\r\n\f/>",):
            return -1
        passed: list[int] = []
        position = match.end()
        while position not in self._lost:
            passed.append(position)
            stop = _BARE.match(text, position)
            position = stop.end() if stop else position
            found = text[position : position + 1]
            if found == ">":
                return position + 1
            if found in ("", "<"):
                break
            close = text.find(found, position + 1)
            if close < 0:
                break
            position = close + 1
        self._lost.update(passed)
        return -1


def _kind(text: str, start: int, end: int, syntax: Syntax) -> Kind:
    """Whether a tag opens, closes or stands alone."""
    if text.startswith("</", start):
        return "close"
    if text[end - 2 : end] == "/>" or (syntax != "xml" and _local_name(text[start : start + 40]).lower() in _VOID):
        return "standalone"
    return "open"


def _element(text: str, start: int, end: int, kind: Kind, *, folded: bool) -> Tag:
    """A tag as it stands, before anything is known of its partner."""
    match = _TAG_START.match(text, start, end)
    name = match[0].lstrip("</") if match else ""
    if folded:
        name = name.lower()
    breaks = name.rpartition(":")[2] in _BREAKS
    if kind == "standalone":
        return Tag(start, end, kind, breaks=breaks)
    return Tag(start, end, kind, f"element {name}", is_element=True, breaks=breaks)


def _whole(opening: str, name: str, *, start: int, end: int) -> Tag:
    """A tag that holds no text: empty, or with native code inside."""
    if name in _HALVES:
        kind, pair, keys = _HALVES[name]
        number = next((value for value in (_attribute(opening, key) for key in keys) if value), "")
        return Tag(start, end, kind, f"{pair} {number}" if number else "")
    if name == "it":
        return Tag(start, end, _ISOLATED.get(_attribute(opening, "pos"), "standalone"))
    return Tag(start, end, "standalone", breaks=name.lower() in _BREAKS)


def _local_name(opening: str) -> str:
    """The name in an opening or closing tag, without a namespace prefix."""
    match = _TAG_START.match(opening)
    return match[0].lstrip("</").rpartition(":")[2] if match else ""


def _attribute(opening: str, name: str) -> str:
    """The value of an attribute, "" if it is absent."""
    match = re.search(rf"\s{name}\s*=\s*(?:\"([^\"]*)\"|'([^']*)')", opening)
    return (match[1] or match[2] or "") if match else ""
