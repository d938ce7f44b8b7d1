"""The length penalty, with the worked numbers of the paper's reference code."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.search.length import length_penalty

LENGTHS = st.integers(min_value=1, max_value=2000)
ALPHAS = st.floats(min_value=0.0, max_value=3.0)


@pytest.mark.parametrize(
    ("length", "alpha", "expected"),
    [(1, 0.6, 1.0), (10, 0.6, 1.73286), (25, 0.6, 2.62653), (50, 0.6, 3.77856), (50, 0.3, 1.94385)],
)
def test_the_penalty_has_the_worked_numbers(length, alpha, expected):
    assert length_penalty(length, alpha) == pytest.approx(expected, abs=5e-6)


@pytest.mark.parametrize(("alpha", "expected"), [(0.0, -6.0), (0.6, -6.0 / 1.73286), (1.0, -6.0 / 2.5)])
def test_a_log_probability_of_minus_6_over_10_tokens_scores_as_documented(alpha, expected):
    assert -6.0 / length_penalty(10, alpha) == pytest.approx(expected, abs=1e-5)


@given(LENGTHS)
def test_0_is_neutral(length):
    assert length_penalty(length, 0.0) == 1.0


@given(ALPHAS)
def test_one_token_is_never_penalised(alpha):
    assert length_penalty(1, alpha) == 1.0


@given(LENGTHS, ALPHAS)
def test_a_larger_alpha_and_a_longer_output_never_score_worse(length, alpha):
    assert -1.0 / length_penalty(length, alpha + 0.1) >= -1.0 / length_penalty(length, alpha)
    assert -1.0 / length_penalty(length + 1, alpha) >= -1.0 / length_penalty(length, alpha)
