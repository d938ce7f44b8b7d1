"""A head's attention as a small map: a row a query, a column a key, the darker the more weight.

Shapes: T queries, S keys.
"""

import math
from itertools import groupby

import numpy as np

from headway.inspection.svg import Figure

SHADES = ("#dce9f6", "#bcd7eb", "#94c4df", "#66aad4", "#4190c5", "#2473b3", "#0e559b", "#083370")  # light to dark
SMALLEST, LARGEST = 112.0, 240.0  # pixels of a side
CELL = 2.0  # pixels that a cell has at least
MOST_CELLS = int(LARGEST / CELL)  # of a side


def shade(weight: float) -> int:
    """The shade of a weight, 0 (none) to 8: by its square root, for light shades differ more to the eye."""
    return round(len(SHADES) * min(max(weight, 0.0), 1.0) ** 0.5)


def side_of(num_queries: int, num_keys: int) -> float:
    """How many pixels the longer side has."""
    return max(SMALLEST, CELL * max(num_queries, num_keys))


def heat_map(weights_TS: np.ndarray) -> Figure:
    """The map, one path a shade: neighbours of one shade in a row are one stroke.

    Where there are more words than cells, neighbours share one: their weights are merged as those of tokens are.
    """
    weights_TS = _coarser(weights_TS, math.ceil(max(weights_TS.shape) / MOST_CELLS))
    num_queries, num_keys = weights_TS.shape
    scale = side_of(num_queries, num_keys) / max(num_queries, num_keys)
    strokes: dict[int, list[str]] = {}
    for row, weights_S in enumerate(weights_TS.tolist()):
        column = 0
        for level, run in groupby(shade(weight) for weight in weights_S):
            length = len(list(run))
            if level:
                strokes.setdefault(level, []).append(f"M{column} {row}.5h{length}")
            column += length
    paths = [f'<path class="s{level}" d="{"".join(strokes[level])}"/>' for level in sorted(strokes)]
    width, height = num_keys * scale, num_queries * scale
    cells = f'<g transform="scale({scale:.4f})" shape-rendering="crispEdges">{"".join(paths)}</g>'
    return Figure(width, height, f'{cells}<rect class="frame" width="{width:.1f}" height="{height:.1f}"/>')


def _coarser(weights_TS: np.ndarray, block: int) -> np.ndarray:
    """So many neighbours as one: summed as keys, averaged as queries."""
    if block == 1:
        return weights_TS
    starts_T, starts_S = (np.arange(0, size, block) for size in weights_TS.shape)
    summed_TS = np.add.reduceat(np.add.reduceat(weights_TS, starts_S, axis=1), starts_T, axis=0)
    return summed_TS / np.diff([*starts_T, len(weights_TS)])[:, None]


def style() -> str:
    """The rules that the map's elements need."""
    rules = [f".s{level}{{stroke:{colour}}}" for level, colour in enumerate(SHADES, start=1)]
    return ".frame{fill:none;stroke:#9aa5b4} " + " ".join(rules)
