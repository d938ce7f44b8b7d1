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
    return "; ".join(
        f"{name} ({count:,} of {len(lines):,} lines)"
        for name, (count, share) in _counts(lines).items()
        if count and count >= share * len(lines)
    )


def differs(lines: Sequence[str], others: Sequence[str]) -> tuple[str, int, int] | None:
    """The trace that most sets two equally long texts apart, with the lines of each that show it; None without any.

    One text has it in as many lines as make it look tokenised, the other in less than a third of those.
    """
    mine, theirs = _counts(lines), _counts(others)
    apart = [
        (name, count, theirs[name][0])
        for name, (count, share) in mine.items()
        if (most := max(count, theirs[name][0]))
        and most >= share * len(lines)
        and 3 * min(count, theirs[name][0]) < most
    ]
    return max(apart, key=lambda trace: abs(trace[1] - trace[2]), default=None)


def _counts(lines: Sequence[str]) -> dict[str, tuple[int, float]]:
    """For each trace the lines that show it, and the share of lines from which it counts."""
    return {
        name: (sum(pattern.search(line) is not None for line in lines), share)
        for traces, share in ((MARKERS, MARKER_SHARE), (SPACINGS, SPACING_SHARE))
        for name, pattern in traces.items()
    }
