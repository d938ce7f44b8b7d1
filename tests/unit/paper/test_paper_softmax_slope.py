"""The slope of the softmax against its Jacobian and the paper's worked numbers; the variance of products."""

import math
import statistics

import pytest
import torch

from headway.paper.softmax_slope import draw_slopes, product_variance, softmax_slope, variance_error


@pytest.mark.parametrize(("scores", "slope"), [((8.0, 0.0), 3.3524e-4), ((1.0, 0.0), 0.1966119)])
def test_of_two_scores_it_is_twice_p_times_1_minus_p(scores, slope):
    found = softmax_slope(torch.tensor([scores]))[0].item()
    assert found / 2 == pytest.approx(slope, rel=1e-4)


def test_it_is_the_norm_of_the_jacobian_that_autograd_finds():
    scores = torch.randn(5, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(1)) * 3
    for row, found in zip(scores, softmax_slope(scores), strict=True):
        jacobian = torch.autograd.functional.jacobian(lambda x: x.softmax(dim=-1), row)
        assert found.item() == pytest.approx(torch.linalg.matrix_norm(jacobian).item(), rel=1e-9)


def test_one_certain_key_leaves_no_slope_and_never_a_number_below_0():
    assert softmax_slope(torch.tensor([[500.0, 0.0, -3.0]])).tolist() == [0.0]


@pytest.mark.parametrize("d_k", [4, 64, 1024])
def test_the_variance_of_products_is_d_k_within_its_own_error(d_k):
    num_pairs = 5003
    share = product_variance(d_k, num_pairs=num_pairs, seed=1, at_once=997) / d_k
    assert share == pytest.approx(1.0, abs=4 * variance_error(d_k, num_pairs=num_pairs))


@pytest.mark.parametrize("d_k", [1, 4, 29])
def test_the_error_is_how_far_repeated_draws_spread(d_k):
    found = [product_variance(d_k, num_pairs=211, seed=seed) / d_k for seed in range(400)]
    assert statistics.stdev(found) == pytest.approx(variance_error(d_k, num_pairs=211), rel=0.2)


def test_only_unscaled_products_lose_their_slope_as_d_k_grows():
    means = {
        kind: [draw_slopes(kind, d_k, num_draws=307, num_keys=11, seed=1).mean().item() for d_k in (4, 256)]
        for kind in ("scaled", "unscaled", "additive")
    }
    assert means["unscaled"][1] < 0.5 * means["unscaled"][0]
    for kind in ("scaled", "additive"):
        assert means[kind][1] == pytest.approx(means[kind][0], rel=0.25)


def test_scores_of_variance_d_k_have_the_slope_of_products():
    """A second way to the same law: a sum of many products is normal, whatever the components."""
    generator = torch.Generator().manual_seed(3)
    normal = softmax_slope(torch.randn(4001, 13, generator=generator) * math.sqrt(256)).mean().item()
    drawn = draw_slopes("unscaled", 256, num_draws=4001, num_keys=13, seed=1).mean().item()
    assert drawn == pytest.approx(normal, rel=0.1)
