"""Text that shows what it holds: controls, marks of direction and halves of characters are written as escapes."""

_DRAWN = "\u00a0\u202f\u200c\u200d"


def printable(text: str, *, kept: str = "") -> str:
    r"""The text on one line, with what does not print as ``\n``, ``\u202e`` ...; the characters of ``kept`` stay."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or char in kept else char.encode("unicode_escape").decode() for char in text
    )


def drawable(text: str) -> str:
    """``printable`` for pictures: spaces that do not break, and what joins and parts letters, stay as they are."""
    return printable(text, kept=_DRAWN)
