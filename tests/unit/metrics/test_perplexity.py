"""Perplexity is the exponential of the mean negative log-probability."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import MetricError
from headway.metrics.perplexity import WordPerplexity, count_words, perplexity


@given(st.integers(1, 40_000), st.integers(1, 10_000))
def test_a_model_that_guesses_among_n_tokens_has_perplexity_n(choices, num_tokens):
    assert perplexity(-num_tokens * math.log(choices), num_tokens) == pytest.approx(choices, rel=1e-9)


def test_it_is_a_mean_over_tokens_not_over_sentences():
    # Two sentences: 1 token at probability 1/8, 3 tokens at 1/2 each: 2^-(3 + 3) over 4 tokens.
    assert perplexity(-6 * math.log(2), 4) == pytest.approx(2**1.5)


def test_probability_zero_is_infinite():
    assert perplexity(-math.inf, 7) == math.inf
    assert perplexity(-1e6, 1) == math.inf


@pytest.mark.parametrize("log_prob", [math.nan, 0.5])
def test_what_is_no_log_probability_is_refused(log_prob):
    with pytest.raises(MetricError, match="sum to"):
        perplexity(log_prob, 3)


def test_no_tokens_are_refused():
    with pytest.raises(MetricError, match="0 target tokens"):
        perplexity(0.0, 0)


def test_perplexity_a_word_counts_the_end_of_a_line_and_does_not_depend_on_tokens():
    assert count_words(["a dog", "", " x\ty  z "]) == 3 + 1 + 4
    few, many = (WordPerplexity(12.0, num_words=8, num_tokens=tokens, num_lines=3) for tokens in (8, 24))
    assert few.per_word == many.per_word == pytest.approx(math.exp(1.5))
    assert (few.per_token, many.per_token) == (pytest.approx(math.exp(1.5)), pytest.approx(math.exp(0.5)))
    assert many.to_dict() == {
        "perplexity_per_word": many.per_word,
        "perplexity_per_token": many.per_token,
        "nats": 12.0,
        "num_words": 8,
        "num_tokens": 24,
        "num_lines": 3,
        "num_unknown": 0,
    }


def test_a_text_of_probability_zero_is_written_without_infinity():
    found = WordPerplexity(math.inf, num_words=2, num_tokens=3, num_lines=1).to_dict()
    assert (found["nats"], found["perplexity_per_word"], found["perplexity_per_token"]) == (None, None, None)
