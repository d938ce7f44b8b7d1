"""paper/plot.py: where a point stands, and that the drawing is well-formed."""

import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from headway.paper.plot import BOTTOM, COLOURS, HEIGHT, LABEL_HEIGHT, TOP, EvenAxis, plot

LINES = {"squares": [(2, 4), (4, 16), (8, 64)], "a < b & c": [(2, 3), (8, 48)], "flat": [(2, 50), (8, 50)]}


def drawn(**scales):
    return ElementTree.fromstring(plot(LINES, title="T", x_label="n", y_label="s", **scales))


def polylines(root):
    found = root.iter("{http://www.w3.org/2000/svg}polyline")
    return [[tuple(map(float, point.split(","))) for point in line.get("points").split()] for line in found]


def test_a_power_law_is_a_straight_line_of_its_exponent():
    first, second, flat = polylines(drawn())
    x_unit = (first[-1][0] - first[0][0]) / 2  # two doublings
    decade = HEIGHT - BOTTOM - TOP  # two decades: 1 to 100
    for line, exponent in ((first, 2.0), (second, 2.0), (flat, 0.0)):
        (x_begin, y_begin), (x_end, y_end) = line[0], line[-1]
        doublings = (x_end - x_begin) / x_unit
        decades = (y_begin - y_end) / (decade / 2)
        assert decades == pytest.approx(exponent * doublings * 0.30103, abs=0.01)
    assert first[1] == pytest.approx([(first[0][i] + first[2][i]) / 2 for i in (0, 1)], abs=0.11)


def test_names_are_escaped_and_never_overlap():
    texts = list(drawn().iter("{http://www.w3.org/2000/svg}text"))
    named = {text.text: float(text.get("y")) for text in texts if text.text in LINES}
    assert set(named) == set(LINES)
    heights = sorted(named.values())
    assert min(b - a for a, b in pairwise(heights)) >= LABEL_HEIGHT - 0.11


def test_every_colour_has_one_for_dark_ground():
    light, dark = plot(LINES, title="T", x_label="n", y_label="s").split("@media")
    rules = [
        set(re.findall(r"\.c\d(?=\{)|text(?=\{)|\.g(?=\{)", part.partition("</style>")[0])) for part in (light, dark)
    ]
    assert rules[0] == rules[1]
    assert len(rules[0]) == 2 + len(LINES)


def test_equal_differences_are_equal_lengths_on_an_even_axis():
    first, second, flat = polylines(drawn(x_scale="even", y_scale="even"))
    for line, values in ((first, LINES["squares"]), (second, LINES["a < b & c"]), (flat, LINES["flat"])):
        (x_begin, y_begin), (x_end, y_end) = line[0], line[-1]
        (a, b), (c, d) = values[0], values[-1]
        assert x_end - x_begin == pytest.approx((c - a) * (first[2][0] - first[0][0]) / 6, abs=0.2)
        assert y_begin - y_end == pytest.approx((d - b) * (first[0][1] - first[2][1]) / 60, abs=0.2)


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ([0.0, 30.0], [0, 5, 10, 15, 20, 25, 30]),
        ([3.0, 97.0], [0, 20, 40, 60, 80, 100]),
        ([-0.2, 0.3], [-0.2, -0.1, 0.0, 0.1, 0.2, 0.3]),
        ([7.0, 7.0], [6.4, 6.6, 6.8, 7.0, 7.2, 7.4, 7.6]),
    ],
)
def test_an_even_axis_has_round_ticks_around_its_numbers(values, ticks):
    axis = EvenAxis(values, begin=0.0, end=100.0)
    assert axis.ticks == pytest.approx(ticks)
    assert axis.place(axis.ticks[0]) == pytest.approx(0.0)
    assert axis.place(axis.ticks[-1]) == pytest.approx(100.0)


def test_ten_lines_have_colours_of_their_own_on_either_ground():
    assert len({light for light, _ in COLOURS}) == len({dark for _, dark in COLOURS}) == len(COLOURS) == 10
