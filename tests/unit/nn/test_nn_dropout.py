"""Dropout: rate, scale, repeatability, and the rounding of the probability that its docstring states."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.nn.dropout import LEVELS, Dropout


def masks(probability, *shape, seed=7, dtype=torch.float32):
    torch.manual_seed(seed)
    return Dropout(probability).train()(torch.ones(shape, dtype=dtype))


@pytest.mark.parametrize("probability", [0.1, 0.3, 0.5, 0.9])
def test_the_share_of_zeros_is_the_probability(probability):
    count = 1_000_003
    dropped = (masks(probability, count) == 0).sum().item()
    deviation = math.sqrt(count * probability * (1 - probability))
    assert abs(dropped - probability * count) < 5 * deviation


@pytest.mark.parametrize("probability", [0.1, 0.3, 0.5])
def test_what_is_kept_is_scaled_so_that_the_mean_stays(probability):
    kept = masks(probability, 10_007).unique()
    rounded = round(probability * 65_536) / 65_536
    assert kept.tolist() == [0.0, pytest.approx(1 / (1 - rounded), rel=1e-6)]
    assert abs(rounded - probability) <= 0.5 / 65_536
    assert masks(probability, 1_000_003).mean().item() == pytest.approx(1.0, abs=0.01)


def test_the_probability_is_rounded_to_the_stated_steps():
    assert LEVELS == 65_536
    assert Dropout(0.1).num_dropped_levels == 6_554
    assert (masks(1 / 200_000, 1_000_003) == 1).all()  # less than half a step: nothing is dropped
    one_step = (masks(1 / 65_536, 2_000_003) == 0).sum().item()
    assert 5 <= one_step <= 65  # 30.5 wanted, deviation 5.5


def test_the_four_values_of_one_draw_are_independent():
    dropped = (masks(0.5, 250_007, 4) == 0).double() - 0.5
    correlation = 4 * dropped.T @ dropped / len(dropped)
    torch.testing.assert_close(correlation, torch.eye(4, dtype=torch.float64), atol=5 / math.sqrt(len(dropped)), rtol=0)


@pytest.mark.parametrize("probability", [0.0, 0.4])
def test_outside_training_the_input_itself_comes_back_and_no_number_is_drawn(probability):
    x = torch.randn(3, 5)
    before = torch.get_rng_state()
    assert Dropout(probability).eval()(x) is x
    assert Dropout(0.0).train()(x) is x
    assert torch.equal(torch.get_rng_state(), before)


@settings(max_examples=30, deadline=None)
@given(shape=st.lists(st.integers(0, 7), max_size=3), seed=st.integers(0, 2**63 - 1))
def test_the_same_seed_gives_the_same_mask_for_every_shape(shape, seed):
    first = masks(0.3, *shape, seed=seed)
    assert first.shape == tuple(shape)
    assert torch.equal(first, masks(0.3, *shape, seed=seed))


def test_two_calls_and_two_seeds_give_different_masks():
    torch.manual_seed(1)
    dropout = Dropout(0.3).train()
    x = torch.ones(101)
    first, second = dropout(x), dropout(x)
    assert not torch.equal(first, second)
    assert not torch.equal(first, masks(0.3, 101, seed=2))


def test_the_gradient_passes_where_the_value_did():
    x = torch.ones(7, 11, requires_grad=True)
    torch.manual_seed(3)
    y = Dropout(0.3).train()(x)
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())


def test_a_transposed_input_is_dropped_value_by_value():
    x = torch.arange(1.0, 36.0).view(5, 7).T
    torch.manual_seed(3)
    y = Dropout(0.5).train()(x)
    assert set((y / x).unique().tolist()) == {0.0, 2.0}


def test_bf16_stays_bf16():
    mask = masks(0.5, 1_009, dtype=torch.bfloat16)
    assert mask.dtype == torch.bfloat16
    assert mask.unique().tolist() == [0.0, 2.0]


@pytest.mark.parametrize("probability", [0.99999, 0.999_999_9])
def test_a_probability_next_to_one_still_gives_finite_numbers(probability):
    assert masks(probability, 100_003).isfinite().all()
