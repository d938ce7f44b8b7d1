"""paper/plot.py: where a point stands, and that the drawing is well-formed."""

import math
import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from headway.paper.plot import BOTTOM, COLOURS, HEIGHT, LABEL_HEIGHT, TOP, EvenAxis, plot

LINES = {"squares": [(2, 4), (4, 16), (8, 64)], "a < b & c": [(2, 3), (8, 48)], "flat": [(2, 50), (8, 50)]}


INF, NAN = math.inf, math.nan


def drawn(lines=LINES, **scales):
    return ElementTree.fromstring(plot(lines, title="T", x_label="n", y_label="s", **scales))


def texts(root):
    return [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]


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
        ([0.0, 5e-324], [-0.6, -0.4, -0.2, 0.0, 0.2, 0.4, 0.6]),
        ([3e17, 3e17], [3e17 + times * 1e8 for times in range(-3, 4)]),
    ],
)
def test_an_even_axis_has_round_ticks_around_its_numbers(values, ticks):
    axis = EvenAxis(values, begin=0.0, end=100.0)
    assert axis.ticks == pytest.approx(ticks)
    assert axis.place(axis.ticks[0]) == pytest.approx(0.0)
    assert axis.place(axis.ticks[-1]) == pytest.approx(100.0)


@pytest.mark.parametrize("bad", [(5, INF), (5, -INF), (5, NAN), (INF, 7), (NAN, 7), (5, 0.0), (0, 7), (5, -3.0)])
def test_a_point_without_a_place_on_logarithmic_axes_is_left_out_and_said_to_be(bad):
    whole, lacking = drawn(), drawn(LINES | {"squares": [(2, 4), bad, (4, 16), (8, 64)]})
    assert polylines(lacking) == polylines(whole)
    left_out = [text for text in texts(lacking) if text not in texts(whole)]
    assert left_out == ["1 point is left out: not finite, or not above 0 on a logarithmic axis"]


@pytest.mark.parametrize("bad", [(5, INF), (5, NAN), (-INF, 7)])
def test_an_even_axis_leaves_out_what_is_no_number_and_keeps_what_is_not_above_0(bad):
    root = drawn({"a": [(0, -3.0), bad, (2, 0.0)], "b": [(1, 5.0)]}, x_scale="even", y_scale="even")
    assert [len(line) for line in polylines(root)] == [2, 1]
    assert "1 point is left out: not finite, or not above 0 on a logarithmic axis" in texts(root)


def test_a_line_that_is_gone_as_a_whole_is_named_with_that_in_its_own_colour():
    root = drawn({"diverged": [(2, NAN), (4, INF)], **LINES})
    assert len(polylines(root)) == len(LINES)
    (name,) = [text for text in root.iter("{http://www.w3.org/2000/svg}text") if text.text == "diverged: no point"]
    assert name.get("class") == "c0"
    assert {line.get("class") for line in root.iter("{http://www.w3.org/2000/svg}polyline")} == {"l c1", "l c2", "l c3"}
    assert "2 points are left out: not finite, or not above 0 on a logarithmic axis" in texts(root)
    assert set(LINES) < set(texts(root))


@pytest.mark.parametrize("lines", [{}, {"a": []}, {"a": [(2, NAN)], "b": [(NAN, 2)]}])
def test_lines_without_any_point_still_make_a_drawing_that_says_so(lines):
    root = drawn(lines)
    assert polylines(root) == []
    assert {f"{name}: no point" for name in lines} <= set(texts(root))


@pytest.mark.parametrize("scale", ["even", 10])
def test_the_largest_and_the_least_numbers_of_a_diverged_run_do_not_stop_a_drawing(scale):
    extremes = [1.7e308, 1e300, 3.0, 1e-300, 5e-324]
    root = drawn({"a": [(place, y) for place, y in enumerate(extremes, start=1)]}, x_scale="even", y_scale=scale)
    (line,) = polylines(root)
    assert [pixel for point in line for pixel in point if not math.isfinite(pixel)] == []
    assert len(line) == (4 if scale == "even" else 3)


def test_ten_lines_have_colours_of_their_own_on_either_ground():
    assert len({light for light, _ in COLOURS}) == len({dark for _, dark in COLOURS}) == len(COLOURS) == 10


def test_a_place_on_the_x_axis_is_marked_with_its_name_where_the_axis_has_it():
    root = drawn(marks={"n = d": 4.0, "far": 1e9})
    (mark,) = [line for line in root.iter("{http://www.w3.org/2000/svg}line") if line.get("class") == "m"]
    assert (float(mark.get("y1")), float(mark.get("y2"))) == (TOP, HEIGHT - BOTTOM)
    at_four = polylines(root)[0][1][0]
    assert float(mark.get("x1")) == float(mark.get("x2")) == at_four
    assert "n = d" in texts(root)
    assert "far" not in texts(root)
