"""A drawing of lines over two logarithmic axes, as SVG, readable on light and on dark ground."""

import math
from collections.abc import Mapping, Sequence
from html import escape

WIDTH, HEIGHT = 760, 440
LEFT, RIGHT, TOP, BOTTOM = 74, 210, 40, 52
LABEL_HEIGHT = 15
COLOURS = (("#0969da", "#58a6ff"), ("#cf222e", "#ff7b72"), ("#1a7f37", "#3fb950"), ("#9a6700", "#d29922"))
COLOURS += (("#8250df", "#bc8cff"), ("#57606a", "#8b949e"))  # for light and for dark ground
INK, GRID = ("#1f2328", "#e6edf3"), ("#d1d9e0", "#3d444d")

Points = Sequence[tuple[float, float]]


class Axis:
    """Positive numbers from ``low`` to ``high`` on a line of pixels, by their logarithm."""

    def __init__(self, values: Sequence[float], *, begin: float, end: float, base: int) -> None:
        self.base, self.begin, self.end = base, begin, end
        self.low = math.floor(round(math.log(min(values), base), 9))
        self.high = max(self.low + 1, math.ceil(round(math.log(max(values), base), 9)))

    def place(self, value: float) -> float:
        """Where a number stands, in pixels."""
        share = (math.log(value, self.base) - self.low) / (self.high - self.low)
        return self.begin + share * (self.end - self.begin)

    @property
    def ticks(self) -> list[float]:
        """The powers of the base within."""
        return [float(self.base) ** power for power in range(self.low, self.high + 1)]


def log_plot(lines: Mapping[str, Points], *, title: str, x_label: str, y_label: str, y_base: int = 10) -> str:
    """An SVG document: a line and a mark a point for each series, its name at its right end; x in powers of 2."""
    points = [point for series in lines.values() for point in series]
    x_axis = Axis([x for x, _ in points], begin=LEFT, end=WIDTH - RIGHT, base=2)
    y_axis = Axis([y for _, y in points], begin=HEIGHT - BOTTOM, end=TOP, base=y_base)
    parts = [*_head(title, len(lines)), *_grid(x_axis, y_axis, x_label, y_label)]
    ends = [(y_axis.place(series[-1][1]), number) for number, series in enumerate(lines.values())]
    heights = _apart(ends)
    for number, (name, series) in enumerate(lines.items()):
        placed = [(x_axis.place(x), y_axis.place(y)) for x, y in series]
        parts.append(f'<polyline class="l c{number}" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in placed)}"/>')
        parts += [f'<circle class="p c{number}" cx="{x:.1f}" cy="{y:.1f}" r="3"/>' for x, y in placed]
        parts.append(
            f'<text class="c{number}" x="{WIDTH - RIGHT + 10}" y="{heights[number] + 4:.1f}">{escape(name)}</text>'
        )
    return "\n".join([*parts, "</svg>", ""])


def _head(title: str, count: int) -> list[str]:
    """The document's begin: sizes, the name for screen readers, and colours for both grounds."""
    light, dark = (_rules(ground, count) for ground in (0, 1))
    common = "svg{font:13px sans-serif} .l{fill:none;stroke-width:2}"
    style = f"{common} {light} @media (prefers-color-scheme: dark){{{dark}}}"
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
        f"<title>{escape(title)}</title>",
        f"<style>{style}</style>",
        f'<text x="{LEFT}" y="{TOP - 18}" font-weight="bold">{escape(title)}</text>',
    ]


def _rules(ground: int, count: int) -> str:
    """The colours on one ground; no variables, which not every viewer knows."""
    rules = [f"text{{fill:{INK[ground]}}}", f".g{{stroke:{GRID[ground]}}}"]
    for number in range(count):
        colour = COLOURS[number % len(COLOURS)][ground]
        rules += [f".l.c{number}{{stroke:{colour}}}", f".p.c{number},text.c{number}{{fill:{colour}}}"]
    return " ".join(rules)


def _grid(x_axis: Axis, y_axis: Axis, x_label: str, y_label: str) -> list[str]:
    """Lines and numbers at the powers, and what the axes are."""
    parts: list[str] = []
    for value in x_axis.ticks:
        x = x_axis.place(value)
        parts.append(f'<line class="g" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>')
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{value:,.0f}</text>')
    for value in y_axis.ticks:
        y = y_axis.place(value)
        parts.append(f'<line class="g" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(f'<text x="{middle:.1f}" y="{HEIGHT - 10}" text-anchor="middle">{escape(x_label)}</text>')
    centre = (TOP + HEIGHT - BOTTOM) / 2
    turned = f'transform="rotate(-90 16 {centre:.1f})"'
    parts.append(f'<text x="16" y="{centre:.1f}" text-anchor="middle" {turned}>{escape(y_label)}</text>')
    return parts


def _apart(ends: list[tuple[float, int]]) -> dict[int, float]:
    """Heights of the names: where their lines end, pushed down where two would overlap, and all up from the floor."""
    heights: dict[int, float] = {}
    lowest = -math.inf
    for height, number in sorted(ends):
        lowest = max(height, lowest + LABEL_HEIGHT)
        heights[number] = lowest
    over = max(0.0, lowest - (HEIGHT - BOTTOM))
    return {number: height - over for number, height in heights.items()}
