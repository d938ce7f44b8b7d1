"""Intervals and paired tests of F1: where all resamples are known, by hand and by enumeration."""

from itertools import product

import numpy as np
import pytest

from headway.metrics.tree_bootstrap import Interval, compare_counts, f1_interval, f1_of

GOOD, BAD = (5, 5, 5), (1, 7, 3)


def test_f1_is_the_harmonic_mean_of_recall_and_precision():
    recall, precision = 3 / 7, 3 / 5
    assert f1_of(3, 7, 5) == pytest.approx(100 * 2 * recall * precision / (recall + precision))
    assert (f1_of(0, 7, 5), f1_of(0, 0, 0), f1_of(5, 5, 5)) == (0.0, 0.0, 100.0)


def test_sentences_alike_leave_no_doubt():
    assert f1_interval([BAD] * 13, num_bootstrap=17) == Interval(pytest.approx(20.0), pytest.approx(20.0))


def test_an_interval_is_the_middle_of_all_resamples():
    counts = [GOOD, BAD, (2, 4, 3), (0, 3, 0)]
    every = [f1_of(*map(sum, zip(*drawn, strict=True))) for drawn in product(counts, repeat=len(counts))]
    found = f1_interval(counts, num_bootstrap=20_000)
    low, high = np.percentile(every, [2.5, 97.5])
    assert found is not None
    assert found.low == pytest.approx(low, abs=1.0)
    assert found.high == pytest.approx(high, abs=1.0)


def test_two_sentences_have_three_resamples():
    assert f1_interval([GOOD, BAD], num_bootstrap=101) == Interval(pytest.approx(20.0), pytest.approx(100.0))


def test_there_is_no_interval_without_sentences_or_resamples():
    assert f1_interval([], num_bootstrap=1000) is None
    assert f1_interval([GOOD], num_bootstrap=1) is None


def test_the_same_counts_give_the_same_interval():
    counts = [GOOD, BAD, (2, 4, 3)] * 7
    assert f1_interval(counts, num_bootstrap=101) == f1_interval(counts, num_bootstrap=101)


def test_a_parser_against_itself_has_p_1():
    found = compare_counts([GOOD, BAD], [GOOD, BAD], num_bootstrap=101)
    assert (found.p_value, found.baseline, found.difference) == (1.0, found.system, None)


def test_a_difference_of_every_sentence_is_not_chance():
    found = compare_counts([BAD] * 11, [GOOD] * 11, num_bootstrap=99)
    assert (found.baseline, found.system) == (pytest.approx(20.0), 100.0)
    assert found.p_value == pytest.approx(1 / 100)
    assert found.difference == Interval(pytest.approx(80.0), pytest.approx(80.0))


def test_no_difference_in_the_sum_is_all_chance():
    assert compare_counts([GOOD, BAD], [BAD, GOOD], num_bootstrap=101).p_value == 1.0


def test_both_parsers_are_scored_on_the_same_resamples():
    counts = [GOOD, BAD, (2, 4, 3), (0, 3, 0)] * 5
    better = [(matched + 1, gold, test + 1) for matched, gold, test in counts]
    found = compare_counts(counts, better, num_bootstrap=1000)
    assert found.difference is not None
    assert found.difference.low > 0  # of every resample: unpaired ones would overlap
    assert found.p_value < 0.05
