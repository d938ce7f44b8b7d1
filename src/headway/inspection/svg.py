"""Text and boxes of an SVG document that needs nothing else: no network, no scripts, no fonts of its own."""

import unicodedata
from dataclasses import dataclass
from html import escape

from headway.text.printable import drawable

FONT_SIZE = 13
NARROW, WIDE = 7.3, 13.5  # pixels of a character at that size, on the safe side
LINE_HEIGHT = 18

_ISOLATE, _END_ISOLATE = "\u2068", "\u2069"  # keep a text's own direction within
_RIGHT_TO_LEFT = ("R", "AL", "AN", "RLE", "RLO", "RLI")


@dataclass(frozen=True, slots=True)
class Figure:
    """Elements whose top left corner is at 0, 0, and how large they are in pixels."""

    width: float
    height: float
    body: str

    def at(self, x: float, y: float) -> str:
        """The elements, moved."""
        return f'<g transform="translate({x:.1f} {y:.1f})">\n{self.body}\n</g>'


def shown(text: str) -> str:
    """Text as XML shows it. What does not print (controls, marks of direction, halves of characters) is an escape.

    Text with letters that run from right to left is kept apart from what stands around it.
    """
    plain = drawable(text)
    is_foreign = any(unicodedata.bidirectional(char) in _RIGHT_TO_LEFT for char in plain)
    return escape(f"{_ISOLATE}{plain}{_END_ISOLATE}" if is_foreign else plain)


def clipped(text: str, most: int) -> str:
    """So many characters at most; a cut is seen."""
    return text if len(text) <= most else text[: most - 1] + "…"


def width_of(text: str) -> float:
    """About how many pixels a text takes: a guess, for there is no font to ask."""
    return sum(_width(char) for char in text)


def lines_of(text: str, width: float) -> list[str]:
    """The text in lines that fit a width; a word longer than a line is cut."""
    lines, line = list[str](), ""
    for word in text.split(" "):
        longer = f"{line} {word}" if line else word
        if width_of(longer) <= width:
            line = longer
            continue
        lines += [line] if line else []
        *full, line = _pieces(word, width)
        lines += full
    return [*lines, line]


def text_line(text: str, x: float, y: float, *, kind: str = "") -> str:
    """One line of text, begun at a place."""
    named = f' class="{kind}"' if kind else ""
    return f'<text{named} x="{x:.1f}" y="{y:.1f}">{shown(text)}</text>'


def _width(char: str) -> float:
    if not char.isprintable():
        return NARROW * len(char.encode("unicode_escape"))
    if unicodedata.combining(char):
        return 0.0
    return WIDE if unicodedata.east_asian_width(char) in "WF" else NARROW


def _pieces(word: str, width: float) -> list[str]:
    """A word in pieces that fit."""
    pieces = [""]
    for char in word:
        if pieces[-1] and width_of(pieces[-1]) + _width(char) > width:
            pieces.append("")
        pieces[-1] += char
    return pieces
