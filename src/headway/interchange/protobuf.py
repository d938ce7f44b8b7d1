"""The wire format of protocol buffers, as far as reading and writing a SentencePiece model needs it.

A message is a run of fields; each has a number and one of four kinds of value.
"""

import struct
from collections.abc import Iterator

Value = int | float | bytes

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_LONGEST_VARINT = 10  # bytes of 64 bits, seven a byte


def read_fields(data: bytes) -> Iterator[tuple[int, Value]]:
    """Each field's number and value, in order: whole numbers (unsigned), float32 and float64, bytes.

    Raises ValueError, naming the byte, for what is no message or ends too early.
    """
    place = 0
    while place < len(data):
        key, after = _read_varint(data, place)
        number, kind = key >> 3, key & 7
        if number == 0:
            raise ValueError(f"byte {place:,}: field number 0")
        if kind == _VARINT:
            value, after = _read_varint(data, after)
            yield number, value
        elif kind == _BYTES:
            length, after = _read_varint(data, after)
            yield number, _take(data, after, length)
            after += length
        elif kind in (_FIXED32, _FIXED64):
            form, length = ("<f", 4) if kind == _FIXED32 else ("<d", 8)
            yield number, struct.unpack(form, _take(data, after, length))[0]
            after += length
        else:
            raise ValueError(f"byte {place:,}: field {number} is of kind {kind}")
        place = after


def write_field(number: int, value: Value) -> bytes:
    """One field: a whole number from 0 up, a float32, or bytes."""
    if isinstance(value, bytes):
        return _write_varint(number << 3 | _BYTES) + _write_varint(len(value)) + value
    if isinstance(value, float):
        return _write_varint(number << 3 | _FIXED32) + struct.pack("<f", value)
    return _write_varint(number << 3 | _VARINT) + _write_varint(value)


def _read_varint(data: bytes, start: int) -> tuple[int, int]:
    """The number that begins at ``start``, and where it ends."""
    number = 0
    for place in range(start, min(start + _LONGEST_VARINT, len(data))):
        number |= (data[place] & 0x7F) << 7 * (place - start)
        if data[place] < 0x80:
            return number, place + 1
    raise ValueError(f"byte {start:,}: a number without an end")


def _take(data: bytes, start: int, length: int) -> bytes:
    if length > len(data) - start:
        raise ValueError(f"byte {start:,}: a field of {length:,} bytes where {len(data) - start:,} are left")
    return data[start : start + length]


def _write_varint(number: int) -> bytes:
    digits: list[int] = []
    while number >= 0x80:
        digits.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*digits, number])
