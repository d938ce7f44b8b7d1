"""Statistics of lengths, against sorting them."""

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.corpus.length import LengthCounter, RatioCounter, quantiles


@given(st.lists(st.integers(0, 50), min_size=1), st.lists(st.integers(0, 50)))
def test_mean_median_percentile_and_longest_are_those_of_the_sorted_lengths(first, second):
    counters = []
    for lengths in (first, second):
        counter = LengthCounter()
        for line, length in enumerate(lengths, 1):
            counter.add(length, line)
        counters.append(counter)
    counters[0].update(counters[1])
    result = counters[0].result()
    together = sorted(first + second)
    assert result.mean == pytest.approx(sum(together) / len(together))
    assert result.median == together[math.ceil(len(together) / 2) - 1]
    assert result.percentile_95 == together[math.ceil(len(together) * 0.95) - 1]
    assert result.longest == together[-1]
    longest_of = first if max(first) >= max(second, default=0) else second
    assert result.longest_line == longest_of.index(together[-1]) + 1


def test_no_texts_have_no_lengths():
    assert LengthCounter().result().longest == 0
    assert RatioCounter().result() == (0.0, 0.0, 0.0)


@given(st.integers(1, 10**6), st.integers(1, 10**6))
def test_a_ratio_is_told_to_within_two_percent(source, target):
    counter = RatioCounter()
    counter.add(source, target)
    assert counter.result() == pytest.approx([target / source] * 3, rel=0.02)


def test_quantiles_are_the_nearest_ranks():
    assert quantiles(Counter({1: 94, 2: 1, 7: 5}), 0.5, 0.95, 0.96, 1.0) == [1, 2, 7, 7]
