"""Accuracy: counts, and the interval of Wilson by an independent computation."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import MetricError
from headway.metrics.accuracy import DEVIATIONS, Accuracy, accuracy


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


def test_what_cannot_be_counted_is_named():
    with pytest.raises(MetricError, match="1 labels against 2"):
        accuracy(["a"], ["a", "b"])
    with pytest.raises(MetricError, match="at least 1"):
        accuracy([], [])
