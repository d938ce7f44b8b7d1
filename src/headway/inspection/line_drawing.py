"""A head's attention as two rows of words with lines between, as the figures of the paper's appendix have it.

Shapes: T queries, S keys.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headway.inspection.svg import FONT_SIZE, LINE_HEIGHT, Figure, clipped, shown, width_of

LEAST = 0.05  # the weight from which a line is drawn; each query's heaviest always is
MOST_CHARACTERS = 20  # of a word; the whole is in its tooltip
GAP = 170.0  # pixels between the rows
UPRIGHT = 20.0  # pixels from one word to the next where they stand upright
FEW = 12  # words that may lie, side by side, ...
MOST_PIXELS = 84.0  # ... if none is wider than this
MARGIN = 6.0


@dataclass(frozen=True, slots=True)
class _Row:
    """Where words stand: those that are looked at above, those that look below, both over the same width."""

    words: Sequence[str]
    width: float
    lies: bool
    height: float  # of the words themselves

    def place(self, number: int) -> float:
        """The middle of a word, from the left."""
        return (number + 0.5) * self.width / len(self.words)

    def word(self, number: int, y: float, *, is_above: bool) -> str:
        """A word, which ends above y or begins below it."""
        x, text = self.place(number), clipped(self.words[number], MOST_CHARACTERS)
        if self.lies:
            y += -MARGIN if is_above else MARGIN + FONT_SIZE - 3
            where = f'text-anchor="middle" x="{x:.1f}" y="{y:.1f}"'
        else:
            y += -MARGIN if is_above else MARGIN
            anchor = "start" if is_above else "end"
            where = f'text-anchor="{anchor}" transform="translate({x + 4:.1f} {y:.1f}) rotate(-90)"'
        return f"<text {where}>{shown(text)}<title>{shown(self.words[number])}</title></text>"


def line_drawing(weights_TS: np.ndarray, queries: Sequence[str], keys: Sequence[str]) -> Figure:
    """The upper row is looked at, the lower row looks; the wider and darker a line, the more weight it has."""
    above, below = _rows(keys, queries)
    top = above.height + MARGIN
    parts = [above.word(number, top, is_above=True) for number in range(len(keys))]
    for query, weights_S in enumerate(weights_TS.tolist()):
        lines = [
            _line(
                above.place(key), top, below.place(query), top + GAP, weight=weight, words=(queries[query], keys[key])
            )
            for key, weight in enumerate(weights_S)
            if _is_drawn(weights_S, key)
        ]
        word = below.word(query, top + GAP, is_above=False)
        parts.append(f'<g class="query">{"".join(lines)}{word}</g>')
    return Figure(above.width, top + GAP + MARGIN + below.height, "\n".join(parts))


def drawn_share(weights_TS: np.ndarray) -> float:
    """How much of the weight has lines."""
    rows = weights_TS.tolist()
    drawn = sum(weight for weights_S in rows for key, weight in enumerate(weights_S) if _is_drawn(weights_S, key))
    return drawn / len(rows)


def style() -> str:
    """The rules that the drawing's elements need."""
    pointed_at = ".query:hover line{stroke:#b3261e} .query:hover text{fill:#b3261e}"
    return ".query line{stroke:#0e559b;stroke-linecap:round} " + pointed_at


def _is_drawn(weights_S: Sequence[float], key: int) -> bool:
    return weights_S[key] >= LEAST or weights_S[key] == max(weights_S) > 0.0


def _rows(keys: Sequence[str], queries: Sequence[str]) -> tuple[_Row, _Row]:
    """Both rows; words lie where there are few and short ones, and else stand upright."""
    widest = max(width_of(clipped(word, MOST_CHARACTERS)) for word in (*keys, *queries))
    most = max(len(keys), len(queries))
    lies = most <= FEW and widest <= MOST_PIXELS
    width = most * (widest + 2 * MARGIN if lies else UPRIGHT)
    heights = (
        LINE_HEIGHT if lies else max(width_of(clipped(word, MOST_CHARACTERS)) for word in words)
        for words in (keys, queries)
    )
    above, below = heights
    return _Row(keys, width, lies, above), _Row(queries, width, lies, below)


def _line(x1: float, y1: float, x2: float, y2: float, *, weight: float, words: tuple[str, str]) -> str:
    looks, looked_at = words
    title = f"{shown(looks)} looks at {shown(looked_at)}: {weight:.3f}"
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke-width="{0.6 + 3.4 * weight:.2f}" '
        f'stroke-opacity="{max(weight, 0.08):.2f}"><title>{title}</title></line>'
    )
