"""SentencePiece's table of characters to write otherwise, applied as SentencePiece does it.

The `tokenizers` library reads the same table, but takes a letter and its accents as one and may lose the second accent.

A table is a trie over UTF-8 bytes (a double array, as the library Darts-clone lays it out) whose leaves are places in
a block of replacements, each ended by a zero byte.
"""

import base64
import binascii
from array import array
from collections.abc import Iterator

from headway.errors import TextError

_ASCII_TEXT = range(0x20, 0x7F)


class Charsmap:
    """A table, ready to use. Raises TextError for one that is cut short or not in base64."""

    def __init__(self, text: str) -> None:
        try:
            data = base64.b64decode(text, validate=True)
        except (ValueError, binascii.Error) as error:
            raise _damaged(f"not base64: {error}") from error
        size = int.from_bytes(data[:4], "little")
        if len(data) < 4 or size % 4 or not 4 <= size <= len(data) - 4:
            raise _damaged(f"a trie of {size:,} bytes in {len(data):,}")
        units = array("I", data[4 : 4 + size])
        if units.itemsize != 4:  # a C compiler whose int has another size
            units = array("L", data[4 : 4 + size])
        self._units = units
        self._replacements = data[4 + size :]
        self._keeps_ascii = not self._changes_ascii()

    def apply(self, text: str) -> str:
        """The text with the longest entry at each place replaced; raises TextError for a damaged table."""
        if self._keeps_ascii and text.isascii() and text.isprintable():
            return text
        data = text.encode("utf-8")
        parts: list[bytes] = []
        place = 0
        while place < len(data):
            longest, value = 0, 0
            for length, found in self._prefixes(data, place):
                longest, value = length, found
            if longest:
                parts.append(self._replacement(value))
            else:
                longest = _character_length(data[place])
                parts.append(data[place : place + longest])
            place += longest
        try:
            return b"".join(parts).decode("utf-8")
        except UnicodeDecodeError as error:
            raise _damaged("a replacement that is no UTF-8") from error

    def _prefixes(self, data: bytes, start: int) -> Iterator[tuple[int, int]]:
        """Each entry that stands at ``start``, the shortest first: its length and the place of its replacement."""
        units = self._units
        node = _offset(units[0])
        for place in range(start, len(data)):
            node ^= data[place]
            if node >= len(units):
                return
            unit = units[node]
            if unit & 0x800000FF != data[place]:
                return
            node ^= _offset(unit)
            if unit >> 8 & 1 and node < len(units):
                yield place - start + 1, units[node] & 0x7FFFFFFF

    def _replacement(self, place: int) -> bytes:
        end = self._replacements.find(b"\0", place)
        if end < 0:
            raise _damaged(f"a replacement at {place:,} of {len(self._replacements):,} bytes")
        return self._replacements[place:end]

    def _changes_ascii(self) -> bool:
        """Whether an entry has printable ASCII characters alone."""
        units = self._units
        open_nodes, seen = [_offset(units[0])], set[int]()
        while open_nodes:
            base = open_nodes.pop()
            for byte in _ASCII_TEXT:
                node = base ^ byte
                if node >= len(units) or units[node] & 0x800000FF != byte or node in seen:
                    continue
                if units[node] >> 8 & 1:
                    return True
                seen.add(node)
                open_nodes.append(node ^ _offset(units[node]))
        return False


def _offset(unit: int) -> int:
    """Where a unit's children lie, as bits to turn in its own place."""
    return unit >> 10 << ((unit & 1 << 9) >> 6)


def _character_length(first: int) -> int:
    """Bytes of the character that begins with this one."""
    return 1 if first < 0xC0 else 2 if first < 0xE0 else 3 if first < 0xF0 else 4


def _damaged(found: str) -> TextError:
    return TextError(
        f"text/charsmap: the table of characters is damaged: found {found}, wanted SentencePiece's "
        "precompiled_charsmap. Remedy: copy the model folder again."
    )
