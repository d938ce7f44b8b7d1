"""bench/plot.py: where a point stands, and that the drawing is well-formed."""

import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest

MODULES = ("plot",)


@pytest.fixture
def plot(scripts):
    return scripts["plot"]


LINES = {"squares": [(2, 4), (4, 16), (8, 64)], "a < b & c": [(2, 3), (8, 48)], "flat": [(2, 50), (8, 50)]}


def drawn(plot):
    return ElementTree.fromstring(plot.log_plot(LINES, title="T", x_label="n", y_label="s"))


def polylines(root):
    found = root.iter("{http://www.w3.org/2000/svg}polyline")
    return [[tuple(map(float, point.split(","))) for point in line.get("points").split()] for line in found]


def test_a_power_law_is_a_straight_line_of_its_exponent(plot):
    first, second, flat = polylines(drawn(plot))
    x_unit = (first[-1][0] - first[0][0]) / 2  # two doublings
    decade = plot.HEIGHT - plot.BOTTOM - plot.TOP  # two decades: 1 to 100
    for line, exponent in ((first, 2.0), (second, 2.0), (flat, 0.0)):
        (x_begin, y_begin), (x_end, y_end) = line[0], line[-1]
        doublings = (x_end - x_begin) / x_unit
        decades = (y_begin - y_end) / (decade / 2)
        assert decades == pytest.approx(exponent * doublings * 0.30103, abs=0.01)
    assert first[1] == pytest.approx([(first[0][i] + first[2][i]) / 2 for i in (0, 1)], abs=0.11)


def test_names_are_escaped_and_never_overlap(plot):
    texts = list(drawn(plot).iter("{http://www.w3.org/2000/svg}text"))
    named = {text.text: float(text.get("y")) for text in texts if text.text in LINES}
    assert set(named) == set(LINES)
    heights = sorted(named.values())
    assert min(b - a for a, b in pairwise(heights)) >= plot.LABEL_HEIGHT - 0.11


def test_every_colour_has_one_for_dark_ground(plot):
    light, dark = plot.log_plot(LINES, title="T", x_label="n", y_label="s").split("@media")
    rules = [
        set(re.findall(r"\.c\d(?=\{)|text(?=\{)|\.g(?=\{)", part.partition("</style>")[0])) for part in (light, dark)
    ]
    assert rules[0] == rules[1]
    assert len(rules[0]) == 2 + len(LINES)
