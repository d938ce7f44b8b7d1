"""Signs that a text was decoded, escaped or copied wrongly on its way."""

import re
import unicodedata

# What the bytes 80 to BF of UTF-8 become when they are read as Windows-1252, or as Latin-1.
_REST = re.escape(bytes(range(0x80, 0xC0)).decode("cp1252", "ignore")) + "\x80-\xbf"
# Â and Ã before such a character stand in no language's text, nor does â€ with a third. Other first characters do now
# and then (»groß“«, »passé…»«), so these count only where there are two.
_SURE = re.compile(f"[ÂÃ][{_REST}]|â€[{_REST}]")
_LIKELY = re.compile(f"[Ä-ß](?![“”„«»])[{_REST}]|[à-ï][{_REST}]{{2}}|ð[{_REST}]{{3}}")

_SPECIAL = {
    "control": "\x00-\x08\x0a-\x1f\x7f-\x9f",
    "line-separator": "\x85\u2028\u2029",
    "invisible": "\u200b\u2060\ufeff",
    "replacement": "\ufffd",
    "surrogate": "\ud800-\udfff",
}
_ANY_SPECIAL = re.compile(f"[{''.join(_SPECIAL.values())}]")
_EACH_SPECIAL = {name: re.compile(f"[{characters}]") for name, characters in _SPECIAL.items()}

_ENTITY = re.compile(r"&(?:amp|lt|gt|quot|apos|nbsp|#[0-9]{2,7}|#[xX][0-9A-Fa-f]{2,6});")
_ESCAPED_TWICE = re.compile(r"&amp;(?:amp|lt|gt|quot|apos|nbsp|#[0-9]{2,7}|#[xX][0-9A-Fa-f]{2,6});")


def damage_of(text: str) -> list[str]:
    """The kinds of damage that a text has, by their names in ``finding.KINDS``; most text has none."""
    found: list[str] = []
    if (not text.isprintable() or "\ufffd" in text) and _ANY_SPECIAL.search(text):
        found += [name for name, pattern in _EACH_SPECIAL.items() if pattern.search(text)]
    if "&" in text and _ENTITY.search(text):
        found.append("double-escaped" if _ESCAPED_TWICE.search(text) else "entity")
    if not text.isascii() and is_mojibake(text):
        found.append("mojibake")
    return found


def is_mojibake(text: str) -> bool:
    """Whether a text looks like UTF-8 that was read as Windows-1252 or Latin-1."""
    if _SURE.search(text):
        return True
    matches = _LIKELY.finditer(text)
    return next(matches, None) is not None and next(matches, None) is not None


def is_composed(text: str) -> bool:
    """Whether a text is in Unicode's form NFC."""
    return unicodedata.is_normalized("NFC", text)
