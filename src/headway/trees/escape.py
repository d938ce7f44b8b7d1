"""Words and labels within brackets: round brackets in them are written -LRB- and -RRB-, as the Penn Treebank does.

Words are read back; a word of which ``-LRB-`` or ``-RRB-`` itself is a part comes back with the bracket.
"""

import re

from headway.errors import TreeError

_BREAKS = re.compile(r"[ \t\n\r\f\v]")  # what separates words in a file of trees; other white space is part of a word


def escape_word(word: str) -> str:
    """A word as it stands in a file of trees. Raises TreeError when it is empty or holds white space."""
    if not word or _BREAKS.search(word):
        raise TreeError(
            f"trees/escape: the word {word!r} cannot be written in brackets: wanted at least one character and no "
            f"white space. Cut the sentence into words first."
        )
    return word.replace("(", "-LRB-").replace(")", "-RRB-")


def unescape_word(word: str) -> str:
    """A word as its reader sees it, from a file of trees."""
    return word.replace("-LRB-", "(").replace("-RRB-", ")") if "RB-" in word else word


def escape_label(label: str) -> str:
    """A label as it stands in a file of trees, and as it is read back. Raises TreeError for white space."""
    if _BREAKS.search(label):
        raise TreeError(
            f"trees/escape: the label {label!r} cannot be written in brackets: wanted no white space. Rename the label."
        )
    return label.replace("(", "-LRB-").replace(")", "-RRB-")
