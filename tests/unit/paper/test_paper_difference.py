"""paper/difference.py: by hand, against laws, and against the integral of Student's density."""

import math
import statistics

import numpy as np
import pytest

from headway.errors import PaperError
from headway.paper.difference import T_QUANTILES, over_seeds, over_sentences
from headway.paper.verdict import Verdict, judge


def nats_a_token(sums_C):
    return sums_C[0] / sums_C[1]


def corpus(seed, num_sentences=101, shift=0.0):
    generator = np.random.default_rng(seed)
    tokens = generator.integers(3, 29, num_sentences)
    return np.stack([tokens * (2.0 + shift) + generator.normal(0, 1.7, num_sentences), tokens], axis=1)


def test_the_difference_is_that_of_the_whole_corpus_by_hand():
    these = np.array([[6.0, 2], [4.0, 3]])
    those = np.array([[5.0, 2], [1.0, 3]])
    found = over_sentences([these], [those], nats_a_token)
    assert found.value == pytest.approx(10 / 5 - 6 / 5)
    assert found.over == "2 sentences"
    # a resample of two of these sentences is (0, 0), (0, 1) or (1, 1)
    assert found.low == pytest.approx(1 / 2)
    assert found.high == pytest.approx(3 / 3)


def test_a_constant_difference_has_an_interval_of_no_width_however_much_the_sentences_differ():
    these = corpus(7)
    those = these - np.stack([0.25 * these[:, 1], np.zeros(len(these))], axis=1)
    found = over_sentences([these], [those], nats_a_token)
    assert (found.low, found.value, found.high) == pytest.approx((0.25, 0.25, 0.25))


def test_one_sentence_settles_nothing():
    found = over_sentences([np.array([[6.0, 2]])], [np.array([[5.0, 2]])], nats_a_token)
    assert (found.low, found.value, found.high) == (-math.inf, 0.5, math.inf)
    assert judge(found, claimed="above") == Verdict.NOT_SETTLED


def test_exchanging_the_sides_mirrors_the_interval():
    one, other = corpus(3), corpus(3, shift=0.1)
    other[:, 1] = one[:, 1]
    there, back = over_sentences([one], [other], nats_a_token), over_sentences([other], [one], nats_a_token)
    assert (there.low, there.value, there.high) == pytest.approx((-back.high, -back.value, -back.low))


def test_the_interval_of_a_mean_is_that_of_the_normal_law():
    generator = np.random.default_rng(11)
    differences = generator.normal(0.3, 2.0, 997)
    ones = np.ones(997)
    found = over_sentences(
        [np.stack([differences, ones], axis=1)], [np.stack([0 * ones, ones], axis=1)], nats_a_token, resamples=3000
    )
    half = 1.96 * differences.std() / math.sqrt(997)
    assert found.low == pytest.approx(differences.mean() - half, abs=0.15 * half)
    assert found.high == pytest.approx(differences.mean() + half, abs=0.15 * half)


def test_several_seeds_of_the_same_sentences_are_resampled_together_and_averaged():
    these, those = [corpus(1), corpus(2)], [corpus(4), corpus(5)]
    found = over_sentences(these, those, nats_a_token)
    wanted = statistics.fmean(map(nats_a_token, (c.sum(axis=0) for c in these))) - statistics.fmean(
        map(nats_a_token, (c.sum(axis=0) for c in those))
    )
    assert found.value == pytest.approx(wanted)
    assert found.low < found.value < found.high
    assert found.over == "101 sentences, 2 seeds"


@pytest.mark.parametrize(
    ("these", "those"),
    [
        ([corpus(1, 101)], [corpus(2, 97)]),
        ([corpus(1), corpus(2)], [corpus(3)]),
        ([], []),
        ([np.empty((0, 2))], [np.empty((0, 2))]),
    ],
)
def test_outputs_of_other_sentences_are_refused(these, those):
    with pytest.raises(PaperError, match="as many on both sides, of the same sentences"):
        over_sentences(these, those, nats_a_token)


def test_seeds_are_paired_and_student_s_interval_is_by_hand():
    found = over_seeds([3.0, 5.0, 7.0], [2.0, 3.0, 4.0])  # differences 1, 2, 3: mean 2, deviation 1
    half = 4.303 / math.sqrt(3)
    assert (found.low, found.value, found.high) == pytest.approx((2 - half, 2.0, 2 + half))
    assert found.over == "3 seeds"


@pytest.mark.parametrize(("these", "those"), [([1.0], [2.0]), ([1.0, 2.0], [1.0]), ([], [])])
def test_one_seed_has_no_interval(these, those):
    with pytest.raises(PaperError, match="needs two or more"):
        over_seeds(these, those)


@pytest.mark.parametrize("freedom", range(1, len(T_QUANTILES) + 1))
def test_each_quantile_leaves_five_percent_outside(freedom):
    quantile = T_QUANTILES[freedom - 1]
    constant = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(freedom * math.pi)
    places = np.linspace(0.0, quantile, 20_001)
    inside = 2 * np.trapezoid(constant * (1 + places**2 / freedom) ** (-(freedom + 1) / 2), places)
    assert inside == pytest.approx(0.95, abs=5e-5)


@pytest.mark.parametrize("lost", [math.inf, math.nan])
def test_a_run_that_diverged_settles_nothing_and_loses_no_table(lost):
    difference = over_seeds([1.0, lost, 3.0], [0.5, 0.25, 0.125])
    assert (difference.low, difference.high, difference.over) == (-math.inf, math.inf, "3 seeds")
    assert {judge(difference, claimed=side) for side in ("above", "below", "near")} == {Verdict.NOT_SETTLED}
