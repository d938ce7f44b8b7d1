"""Traces that a tokenizer left in text. Scores of such text cannot be compared with scores of plain text."""

import re
from collections.abc import Sequence

MARKER_SHARE = 0.01  # of the lines: a mark that only a tool writes
SPACING_SHARE = 0.1  # of the lines: spacing that people write too, now and then

MARKERS = {
    "escaped characters such as &apos;": re.compile(r"&(?:apos|quot|amp|lt|gt|#39|#91|#93|#124|bar|bra|ket);"),
    "hyphens split off as @-@": re.compile(r"(?:^| )@[-–/]@(?: |$)"),
    "subwords joined by @@": re.compile(r"\S@@(?: |$)"),
    "subwords begun by ▁": re.compile("▁"),
}
SPACINGS = {
    # Not ? ! ; : » - French sets a space before them.
    "spaces before full stops or commas": re.compile(r"\w [.,。，、](?:\s|$)"),
    "n't apart from its verb": re.compile(r"\w n't\b"),
    "spaces between Chinese characters": re.compile("[\u4e00-\u9fff] [\u4e00-\u9fff]"),
}


def looks_tokenised(lines: Sequence[str]) -> str:
    """Return what makes the lines look tokenised, with the count of lines that show it, or "" when nothing does."""
    reasons: list[str] = []
    for traces, share in ((MARKERS, MARKER_SHARE), (SPACINGS, SPACING_SHARE)):
        for name, pattern in traces.items():
            count = sum(pattern.search(line) is not None for line in lines)
            if count and count >= share * len(lines):
                reasons.append(f"{name} ({count:,} of {len(lines):,} lines)")
    return "; ".join(reasons)
