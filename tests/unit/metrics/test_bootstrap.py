"""Intervals of means over sentences, against plain resampling and the normal law."""

import math
from random import Random

import numpy as np
import pytest

from headway.metrics.bootstrap import Estimate, ratio_intervals


def test_the_value_is_the_sum_by_the_count():
    (found,) = ratio_intervals(np.array([[1.0, 2.0, 6.0]]), [2, 3, 4])
    assert found.value == pytest.approx(1.0)
    assert found.low <= found.value <= found.high


def test_the_interval_is_the_middle_of_plain_resampling():
    random = np.random.default_rng(3)
    counts = random.integers(3, 30, 41).tolist()
    sums = random.normal(0.1, 1.0, 41) * counts
    (found,) = ratio_intervals(sums[None], counts, num_bootstrap=4000)
    plain, drawn = [], Random(5)
    for _ in range(4000):
        places = drawn.choices(range(41), k=41)
        plain.append(sum(sums[place] for place in places) / sum(counts[place] for place in places))
    plain.sort()
    assert found.low == pytest.approx(plain[100], abs=0.03)
    assert found.high == pytest.approx(plain[3900], abs=0.03)


def test_of_many_sentences_it_is_that_of_the_normal_law():
    sums = np.random.default_rng(7).normal(2.0, 3.0, 2003)
    (found,) = ratio_intervals(sums[None], [1] * 2003, num_bootstrap=4000)
    half = 1.96 * sums.std() / math.sqrt(2003)
    assert (found.low, found.high) == pytest.approx((sums.mean() - half, sums.mean() + half), abs=0.02)


def test_differences_are_paired_and_every_system_has_the_same_draws():
    """Sentences differ by far more than systems do; the same shift everywhere has no spread at all."""
    random = np.random.default_rng(9)
    baseline = random.normal(0.0, 100.0, 61)
    shifted, scaled = baseline - 0.25, baseline * 2.0
    same, double, alone = ratio_intervals(np.stack([shifted - baseline, scaled, baseline]), [1] * 61)
    assert (same.low, same.value, same.high) == pytest.approx((-0.25, -0.25, -0.25))
    assert same.excludes_zero
    assert (double.low, double.high) == pytest.approx((2 * alone.low, 2 * alone.high))
    assert not alone.excludes_zero


def test_the_same_seed_gives_the_same_interval_however_many_are_drawn_at_once(monkeypatch):
    sums = np.random.default_rng(1).normal(size=(2, 13))
    whole = ratio_intervals(sums, [5] * 13, num_bootstrap=250)
    assert ratio_intervals(sums, [5] * 13, num_bootstrap=250, seed=2) != whole
    monkeypatch.setattr("headway.metrics.resample._AT_ONCE", 13 * 7)
    for small, wanted in zip(ratio_intervals(sums, [5] * 13, num_bootstrap=250), whole, strict=True):
        assert (small.low, small.high) == pytest.approx((wanted.low, wanted.high), abs=1e-12)


def test_one_sentence_has_no_interval():
    assert ratio_intervals(np.array([[6.0]]), [3]) == [Estimate(2.0, None, None)]
    assert not Estimate(2.0, None, None).excludes_zero
