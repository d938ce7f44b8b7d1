"""The tokens that no text can yield: four control tokens, and tags, which a program puts before a sentence.

Their names mix letters with punctuation, which no learnt token does, and they are not registered with the library as
tokens to look for in text.
"""

import re
from collections.abc import Sequence

from headway.errors import TextError

PAD_ID, UNK_ID, BOS_ID, EOS_ID = 0, 1, 2, 3
CONTROL_TOKENS = ("⟨pad⟩", "⟨unk⟩", "⟨bos⟩", "⟨eos⟩")

# In a vocabulary of another toolkit any run of characters may be found in text, but never one with a space: its
# spaces have become word marks by then.
IMPORTED_CONTROL_TOKENS = ("⟨ pad ⟩", "⟨ unk ⟩", "⟨ bos ⟩", "⟨ eos ⟩")
# What stands before it is the vocabulary; behind it are pieces that only the segmenter knows. A token of the vocabulary
# that the segmenter does not know has a space before its name.
IMPORTED_END = "⟨ end ⟩"

_TAG = re.compile(r"⟨( ?)tag:([A-Za-z0-9][A-Za-z0-9._-]*)\1⟩")


def tag_tokens(names: Sequence[str], *, imported: bool = False) -> tuple[str, ...]:
    """Return the reserved tokens of tags; raises TextError for a name that is no tag or comes twice.

    A name has ASCII letters, digits, ``.``, ``_`` and ``-``, and starts with a letter or a digit.
    """
    space = " " if imported else ""
    tokens = tuple(f"⟨{space}tag:{name}{space}⟩" for name in names)
    for name, token in zip(names, tokens, strict=True):
        if not _TAG.fullmatch(token):
            raise TextError(
                f"text/reserved: {name!r} cannot be a tag; a tag has letters a to z, digits, '.', '_' and '-', and "
                "starts with a letter or a digit. Remedy: choose another name."
            )
        if tokens.count(token) > 1:
            raise TextError(f"text/reserved: tag {name!r} is named twice. Remedy: name each tag once.")
    return tokens


def tag_name(token: str, *, imported: bool = False) -> str | None:
    """Return the name of the tag that a token is; None for any other token."""
    match = _TAG.fullmatch(token) if token.startswith("⟨") else None
    return match[2] if match and bool(match[1]) == imported else None
