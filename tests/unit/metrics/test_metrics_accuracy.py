"""Accuracy: counts, and the interval of Wilson by an independent computation."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import MetricError
from headway.metrics.accuracy import DEVIATIONS, Accuracy, AccuracyComparison, accuracy, compare_labels


def test_equal_labels_are_counted_without_white_space():
    found = accuracy(["a", "b ", "a", "c"], ["a", "b", "c", " c"])
    assert (found.right, found.total, found.most_frequent) == (3, 4, 2)
    assert found.share == 0.75


@given(st.integers(1, 5000), st.data())
def test_the_interval_is_where_the_score_test_has_its_bounds(total, data):
    """A share p is inside when |found - p| is at most so many deviations of p's own law: the ends make it equal."""
    right = data.draw(st.integers(0, total))
    found = Accuracy(right, total, 1)
    low, high = found.interval
    assert 0 <= low <= found.share <= high <= 1
    for end in (low, high):
        if 0 < end < 1:
            distance = abs(found.share - end)
            assert distance == pytest.approx(DEVIATIONS * (end * (1 - end) / total) ** 0.5, rel=1e-6, abs=1e-9)


def test_two_classifiers_differ_in_the_texts_that_one_of_them_labels_right():
    wanted = ["a", "a", "b", "b", "c", "c", "a"]
    baseline = ["a", "b", "b", "c", "c ", "a", "b"]  # right, wrong, right, wrong, right, wrong, wrong
    found = ["a", "a", "c", "b", "c", "a", "a"]  # right, right, wrong, right, right, wrong, right
    compared = compare_labels(baseline, found, wanted)
    assert (compared.only_baseline, compared.only_this, compared.total) == (1, 3, 7)
    assert compared.difference == pytest.approx(2 / 7)
    assert compared.p_value == pytest.approx(2 * (1 + 4) / 16)  # four coins, one head at most, on either side
    middle, n = 2 / 9, 9  # 1.5 and 3.5 of 9
    half = DEVIATIONS * (5 / n - (2 / n) ** 2) ** 0.5 / n**0.5
    assert compared.interval == pytest.approx((middle - half, middle + half))
    assert compared.to_dict()["difference"] == compared.difference


def test_a_classifier_does_not_differ_from_itself():
    compared = compare_labels(["a", "b"], ["a", "b"], ["a", "a"])
    assert (compared.difference, compared.p_value) == (0.0, 1.0)
    low, high = compared.interval
    assert low == -high < 0


def test_p_of_many_texts_is_that_of_a_normal_law():
    compared = AccuracyComparison(10_100, 9_900, 50_000)
    deviations = (200 - 1) / 20_000**0.5  # with the correction for continuity
    assert compared.p_value == pytest.approx(math.erfc(deviations / 2**0.5), rel=1e-3)


@given(st.integers(0, 3000), st.integers(0, 3000))
def test_p_is_a_probability_and_small_where_one_side_has_almost_all(ours, theirs):
    compared = AccuracyComparison(theirs, ours, ours + theirs + 1)
    assert 0 <= compared.p_value <= 1
    assert compared.p_value == AccuracyComparison(ours, theirs, ours + theirs + 1).p_value
    if abs(ours - theirs) > 5 * (ours + theirs) ** 0.5:
        assert compared.p_value < 1e-5


def test_what_cannot_be_counted_is_named():
    with pytest.raises(MetricError, match="1 labels against 2"):
        accuracy(["a"], ["a", "b"])
    with pytest.raises(MetricError, match="at least 1"):
        accuracy([], [])
    with pytest.raises(MetricError, match="1 labels against 2"):
        compare_labels(["a"], ["a", "b"], ["a", "b"])
