"""A drawing of lines over two axes, logarithmic or even, as SVG, readable on light and on dark ground."""

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Literal, Protocol

WIDTH, HEIGHT = 760, 440
LEFT, RIGHT, TOP, BOTTOM = 74, 210, 40, 52
LABEL_HEIGHT = 15
COLOURS = (  # for light and for dark ground
    *(("#0969da", "#58a6ff"), ("#cf222e", "#ff7b72"), ("#1a7f37", "#3fb950"), ("#9a6700", "#d29922")),
    *(("#8250df", "#bc8cff"), ("#57606a", "#8b949e"), ("#0f766e", "#2dd4bf"), ("#bf3989", "#f778ba")),
    *(("#4d7c0f", "#a3e635"), ("#7c2d12", "#fdba74")),
)
MOST_STEPS = 6  # of an even axis
ROUND = (1, 2, 5, 10)
SAME = 1e-9  # numbers that differ by such a share of themselves have one place on an even axis
MOST = 1e300  # beyond, and nearer to 0 than 1 / MOST, the ticks around a number overflow
INK, GRID = ("#1f2328", "#e6edf3"), ("#d1d9e0", "#3d444d")

Points = Sequence[tuple[float, float]]
Scale = Literal["even"] | int


class Axis(Protocol):
    """A line of pixels that numbers stand on."""

    def place(self, value: float) -> float:
        """Where a number stands, in pixels."""
        ...

    @property
    def ticks(self) -> list[float]:
        """Numbers to write beside it."""
        ...


class LogAxis:
    """Positive numbers on a line of pixels, by their logarithm, between powers of ``base``."""

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


class EvenAxis:
    """Numbers on a line of pixels, evenly, between multiples of a round step."""

    def __init__(self, values: Sequence[float], *, begin: float, end: float) -> None:
        self.begin, self.end = begin, end
        low, high = min(values), max(values)
        if high - low <= max(abs(low) * SAME, abs(high) * SAME, 1 / MOST):
            half = max(0.5, abs(low) * SAME)
            low, high = low - half, high + half
        rough = (high - low) / MOST_STEPS
        power = 10.0 ** math.floor(math.log10(rough))
        self.step = power * next(times for times in ROUND if times * power >= rough * (1 - 1e-9))
        self.low = math.floor(round(low / self.step, 9))
        self.high = math.ceil(round(high / self.step, 9))

    def place(self, value: float) -> float:
        """Where a number stands, in pixels."""
        share = (value / self.step - self.low) / (self.high - self.low)
        return self.begin + share * (self.end - self.begin)

    @property
    def ticks(self) -> list[float]:
        """The multiples of the step within."""
        return [self.step * times for times in range(self.low, self.high + 1)]


def _axis(values: Sequence[float], scale: Scale, *, begin: float, end: float) -> Axis:
    if scale == "even":
        return EvenAxis(values, begin=begin, end=end)
    return LogAxis(values, begin=begin, end=end, base=scale)


def plot(
    lines: Mapping[str, Points],
    *,
    title: str,
    x_label: str,
    y_label: str,
    x_scale: Scale = 2,
    y_scale: Scale = 10,
    marks: Mapping[str, float] | None = None,
) -> str:
    """An SVG document: a line and a mark a point for each series, its name at its right end.

    ``marks`` are places on the x axis: a broken line from floor to ceiling with its name beside it, where the axis has
    such a place.

    A scale is the base of a logarithmic axis, or ``even``. Points without a place (not finite, or not above 0 on a
    logarithmic axis) are left out, and counted below the title; the name of a series without any other says so.
    """
    placed = {
        name: [(x, y) for x, y in series if _has_place(x, x_scale) and _has_place(y, y_scale)]
        for name, series in lines.items()
    }
    points = [point for series in placed.values() for point in series]
    parts = [*_head(title, len(lines)), *_left_out(sum(map(len, lines.values())) - len(points))]
    ends = [(float(HEIGHT - BOTTOM), number) for number, series in enumerate(placed.values()) if not series]
    if points:
        x_axis = _axis([x for x, _ in points], x_scale, begin=LEFT, end=WIDTH - RIGHT)
        y_axis = _axis([y for _, y in points], y_scale, begin=HEIGHT - BOTTOM, end=TOP)
        parts += [*_grid(x_axis, y_axis), *_marks(marks or {}, x_axis), *_curves(placed, x_axis, y_axis)]
        ends += [(y_axis.place(series[-1][1]), number) for number, series in enumerate(placed.values()) if series]
    parts += _labels(x_label, y_label)
    heights = _apart(ends)
    for number, (name, series) in enumerate(placed.items()):
        shown = name if series else f"{name}: no point"
        parts.append(
            f'<text class="c{number}" x="{WIDTH - RIGHT + 10}" y="{heights[number] + 4:.1f}">{escape(shown)}</text>'
        )
    return "\n".join([*parts, "</svg>", ""])


def _has_place(value: float, scale: Scale) -> bool:
    return abs(value) <= MOST if scale == "even" else 1 / MOST <= value <= MOST


def _left_out(count: int) -> list[str]:
    """What the drawing says of points that it does not have."""
    if not count:
        return []
    what = f"{count:,} points are" if count > 1 else "1 point is"
    text = f"{what} left out: not finite, or not above 0 on a logarithmic axis"
    return [f'<text x="{LEFT}" y="{TOP - 4}" font-size="11">{text}</text>']


def _marks(marks: Mapping[str, float], x_axis: Axis) -> list[str]:
    """Broken lines with their names, each name a line lower than the one before."""
    parts: list[str] = []
    within = x_axis.ticks[0], x_axis.ticks[-1]
    for number, (name, value) in enumerate(marks.items()):
        if not within[0] <= value <= within[1]:
            continue
        x, y = x_axis.place(value), TOP + 12 + number * LABEL_HEIGHT
        parts.append(f'<line class="m" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>')
        parts.append(f'<text x="{x - 5:.1f}" y="{y}" font-size="11" text-anchor="end">{escape(name)}</text>')
    return parts


def _curves(placed: Mapping[str, Points], x_axis: Axis, y_axis: Axis) -> list[str]:
    """The lines and their marks; nothing of a series without a point."""
    parts: list[str] = []
    for number, series in enumerate(placed.values()):
        pixels = [(x_axis.place(x), y_axis.place(y)) for x, y in series]
        if pixels:
            parts.append(f'<polyline class="l c{number}" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in pixels)}"/>')
        parts += [f'<circle class="p c{number}" cx="{x:.1f}" cy="{y:.1f}" r="3"/>' for x, y in pixels]
    return parts


def _head(title: str, count: int) -> list[str]:
    """The document's begin: sizes, the name for screen readers, and colours for both grounds."""
    light, dark = (_rules(ground, count) for ground in (0, 1))
    common = "svg{font:13px sans-serif} .l{fill:none;stroke-width:2} .m{stroke-dasharray:4 4}"
    style = f"{common} {light} @media (prefers-color-scheme: dark){{{dark}}}"
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
        f"<title>{escape(title)}</title>",
        f"<style>{style}</style>",
        f'<text x="{LEFT}" y="{TOP - 18}" font-weight="bold">{escape(title)}</text>',
    ]


def _rules(ground: int, count: int) -> str:
    """The colours on one ground; no variables, which not every viewer knows."""
    rules = [f"text{{fill:{INK[ground]}}}", f".g{{stroke:{GRID[ground]}}}", f".m{{stroke:{INK[ground]}}}"]
    for number in range(count):
        colour = COLOURS[number % len(COLOURS)][ground]
        rules += [f".l.c{number}{{stroke:{colour}}}", f".p.c{number},text.c{number}{{fill:{colour}}}"]
    return " ".join(rules)


def _grid(x_axis: Axis, y_axis: Axis) -> list[str]:
    """Lines and numbers at the ticks."""
    parts: list[str] = []
    for value in x_axis.ticks:
        x = x_axis.place(value)
        parts.append(f'<line class="g" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>')
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{_number(value)}</text>')
    for value in y_axis.ticks:
        y = y_axis.place(value)
        parts.append(f'<line class="g" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{_number(value)}</text>')
    return parts


def _labels(x_label: str, y_label: str) -> list[str]:
    """What the axes are."""
    middle, centre = (LEFT + WIDTH - RIGHT) / 2, (TOP + HEIGHT - BOTTOM) / 2
    turned = f'transform="rotate(-90 16 {centre:.1f})"'
    return [
        f'<text x="{middle:.1f}" y="{HEIGHT - 10}" text-anchor="middle">{escape(x_label)}</text>',
        f'<text x="16" y="{centre:.1f}" text-anchor="middle" {turned}>{escape(y_label)}</text>',
    ]


def _number(value: float) -> str:
    """A tick's number, short: 16,384; 0.5; 1e+12."""
    return f"{value:,.0f}" if value == round(value) and abs(value) < 1e6 else f"{value:g}"


def _apart(ends: list[tuple[float, int]]) -> dict[int, float]:
    """Heights of the names: where their lines end, pushed down where two would overlap, and all up from the floor."""
    heights: dict[int, float] = {}
    lowest = -math.inf
    for height, number in sorted(ends):
        lowest = max(height, lowest + LABEL_HEIGHT)
        heights[number] = lowest
    over = max(0.0, lowest - (HEIGHT - BOTTOM))
    return {number: height - over for number, height in heights.items()}
