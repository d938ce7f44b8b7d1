"""Runs of text that no token crosses, as the `tokenizers` library is told to find them."""

import re
from collections.abc import Iterable

LONGEST_RUN = 64  # characters; learning takes time quadratic in a run's length

# In this order: a run of Han and Kana (with the long vowel mark, which belongs to no script), a run of other letters
# with their marks, one digit, a run of anything else, white space. A space before a run belongs to it.
_IDEOGRAPH = r"[\p{Han}\p{Hiragana}\p{Katakana}\u30FC\uFF70]"
RUNS = "|".join(
    [
        rf" ?{_IDEOGRAPH}{{1,{LONGEST_RUN}}}",
        rf" ?(?!{_IDEOGRAPH})\p{{L}}(?:(?!{_IDEOGRAPH})[\p{{L}}\p{{M}}]){{0,{LONGEST_RUN - 1}}}",
        r" ?\p{N}",
        rf" ?(?:(?!{_IDEOGRAPH})[^\s\p{{L}}\p{{N}}]){{1,{LONGEST_RUN}}}",
        rf"\s{{1,{LONGEST_RUN}}}(?!\S)",
        r"\s",
    ]
)
BYTES_OF_TEXT = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
ANY_CHARACTER = r"[\s\S]"
SYMBOLS = " ?[^ ]+"  # of a closed vocabulary: whatever stands between spaces, with the space before it

_OUTSIDE = re.compile(r"\[\^(?:\\x\{[0-9A-F]{1,6}\})+\]")


def outside(characters: Iterable[str]) -> str:
    """Return the pattern of one character that is none of these."""
    known = "".join(f"\\x{{{ord(character):X}}}" for character in sorted(characters))
    return f"[^{known}]" if known else ANY_CHARACTER


def finds_runs(steps: list[dict[str, object]], *, byte_level: bool) -> bool:
    """Tell whether the steps of a pre-tokenizer, in the library's JSON, are those that Headway puts there."""
    if not steps or steps[0] != _split(RUNS) or len(steps) > 2:
        return False
    if byte_level or len(steps) == 1:
        return byte_level == (steps[1:] == [BYTES_OF_TEXT])
    pattern = steps[1].get("pattern")
    regex = pattern.get("Regex") if isinstance(pattern, dict) else None
    is_known = isinstance(regex, str) and (regex == ANY_CHARACTER or _OUTSIDE.fullmatch(regex) is not None)
    return is_known and steps[1] == _split(str(regex))


def finds_symbols(steps: list[dict[str, object]]) -> bool:
    """Tell whether the steps of a pre-tokenizer are those of a closed vocabulary."""
    return steps == [_split(SYMBOLS)]


def _split(regex: str) -> dict[str, object]:
    return {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False}
