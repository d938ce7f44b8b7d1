"""Entities of HTML and XML: decoded for a model, and written again as the source wrote them."""

import html
import re
from collections import Counter
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING

from headway.text.placeholder import ENTITY

if TYPE_CHECKING:
    from headway.text.markup import Marked

# Characters that XML 1.0 has no way to write.
_XML_CANNOT_HOLD = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_OF_XML = {"&lt;": "<", "&gt;": ">", "&amp;": "&", "&quot;": '"', "&apos;": "'"}
_SPECIAL = "&<>"
_LONGEST_ENTITY = 40  # characters


def decode(source: str, start: int, end: int, *, strict: bool) -> tuple[str, Sequence[int]]:
    """The text that a stretch of the source stands for, and where in the source each character, and the end, is.

    Without entities the places are empty: the text stands there as it is. What stands for no single character stays:
    in XML (``strict``) a number is the character itself, in HTML that of a table (``&#150;``).
    """
    if source.find("&", start, end) < 0:
        return source[start:end], ()
    parts: list[str] = []
    starts: list[int] = []
    position = start
    for match in ENTITY.finditer(source, start, end):
        character = _character(match[0], strict=strict)
        if character:
            parts += [source[position : match.start()], character]
            starts += [*range(position, match.start()), match.start()]
            position = match.end()
    parts.append(source[position:end])
    starts += range(position, end + 1)
    return "".join(parts), starts


def without_cdata(text: str) -> str:
    """XML content with its CDATA sections written as escaped text."""
    parts: list[str] = []
    position = 0
    while True:
        start = text.find("<![CDATA[", position)
        end = text.find("]]>", start) if start >= 0 else -1
        if end < 0:
            return "".join(parts) + text[position:]
        parts += [text[position:start], html.escape(text[start + len("<![CDATA[") : end], quote=False)]
        position = end + len("]]>")


class Escaper:
    """Writes text in the syntax of a source, each special character as the source wrote it.

    The k-th ``&`` of an output is written as the k-th of the source, further ones as its last. ``num_replaced`` counts
    characters that XML cannot hold; they become U+FFFD.
    """

    def __init__(self, marked: "Marked") -> None:
        self._syntax = marked.syntax
        self._forms = _forms(marked)
        self._taken: Counter[str] = Counter()
        self.num_replaced = 0

    def write(self, text: str) -> str:
        """The text with its special characters escaped."""
        if self._syntax == "plain":
            return text
        if self._syntax == "xml":
            text, count = _XML_CANNOT_HOLD.subn("\N{REPLACEMENT CHARACTER}", text)
            self.num_replaced += count
        if not any(character in text for character in chain(_SPECIAL, self._forms)):
            return text
        return "".join(self._one(text, place) for place in range(len(text)))

    def _one(self, text: str, place: int) -> str:
        """One character as it is written."""
        character = text[place]
        forms = self._forms.get(character)
        if not forms:
            return html.escape(character, quote=False)
        form = forms[min(self._taken[character], len(forms) - 1)]
        self._taken[character] += 1
        return html.escape(character, quote=False) if form == character and self._misleads(text, place) else form

    def _misleads(self, text: str, place: int) -> bool:
        """Whether a character that the source wrote as itself would mean something else here."""
        character = text[place]
        if character == "&":
            near = text[place + 1 : place + _LONGEST_ENTITY].partition("&")[0]
            return self._syntax == "xml" or html.unescape(f"&{near}") != f"&{near}"
        if character == ">":
            return place == 0 or text[place - 1] in "]-"
        following = text[place + 1 : place + 2]
        return character == "<" and (self._syntax == "xml" or not (following.isspace() or following.isdigit()))


def _character(entity: str, *, strict: bool) -> str:
    """The character that an entity stands for; "" where it stands for none, or for more than one."""
    if entity in _OF_XML:
        return _OF_XML[entity]
    if not entity.startswith("&#"):
        character = html.unescape(entity)
        return character if len(character) == 1 else ""
    digits = entity[2:-1]
    code = int(digits[1:], 16) if digits[0] in "xX" else int(digits)
    if code > 0x10FFFF or _XML_CANNOT_HOLD.match(chr(code)):
        return ""
    return chr(code) if strict else html.unescape(entity)


def _forms(marked: "Marked") -> dict[str, list[str]]:
    """For each special character the ways in which the source writes it outside marks, in order."""
    if marked.syntax == "plain":
        return {}
    raws = {escape.offset: escape.raw for escape in marked.escapes}
    special = {*_SPECIAL, *(marked.text[offset] for offset in raws)}
    forms: dict[str, list[str]] = {}
    position = 0
    for offset, end in [*marked.inline_spans(), (len(marked.text), 0)]:
        for place in range(position, offset):
            character = marked.text[place]
            if character in special:
                forms.setdefault(character, []).append(raws.get(place, character))
        position = end
    return forms
