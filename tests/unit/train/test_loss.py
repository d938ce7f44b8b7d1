"""The smoothed loss: equal to torch's, chunked equal to plain, and the floors that paper.md worked out."""

import math

import pytest
import torch
from torch.nn import functional

from headway.train import chunked
from headway.train.loss import chunked_smoothed_loss, smoothed_loss

N, D, V = 23, 7, 41
LOSSES = {"plain": smoothed_loss, "chunked": chunked_smoothed_loss}


def random_case(seed=11):
    generator = torch.Generator().manual_seed(seed)
    hidden_ND = torch.randn(N, D, generator=generator)
    weight_VD = torch.randn(V, D, generator=generator)
    target_N = torch.randint(1, V, (N,), generator=generator)
    return hidden_ND, weight_VD, target_N


def random_bias():
    return torch.randn(V, generator=torch.Generator().manual_seed(12))


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("label_smoothing", [0.0, 0.1, 0.3])
@pytest.mark.parametrize("bias_V", [None, random_bias()], ids=["no bias", "bias"])
def test_the_sums_are_torch_s_cross_entropy(name, label_smoothing, bias_V):
    hidden_ND, weight_VD, target_N = random_case()
    sums = LOSSES[name](hidden_ND, weight_VD, target_N=target_N, label_smoothing=label_smoothing, bias_V=bias_V)
    logits_NV = (hidden_ND @ weight_VD.T).double()
    if bias_V is not None:
        logits_NV += bias_V
    smoothed = functional.cross_entropy(logits_NV, target_N, reduction="sum", label_smoothing=label_smoothing)
    nll = functional.cross_entropy(logits_NV, target_N, reduction="sum")
    torch.testing.assert_close(sums.double(), torch.stack((smoothed, nll)), rtol=1e-6, atol=0)


def gradients(function, *, label_smoothing, factor, biased=False):
    hidden_ND, weight_VD, target_N = random_case()
    bias_V = random_bias() if biased else None
    leaves = [leaf.requires_grad_() for leaf in (hidden_ND, weight_VD, bias_V) if leaf is not None]
    sums = function(hidden_ND, weight_VD, target_N=target_N, label_smoothing=label_smoothing, bias_V=bias_V)
    (sums[0] * factor).backward()
    return sums.detach(), *(leaf.grad for leaf in leaves)


@pytest.mark.parametrize("rows", [1, 2, 5, 22, 23, 1009])
@pytest.mark.parametrize("block", [1, 3, 1009])
@pytest.mark.parametrize("label_smoothing", [0.0, 0.1])
@pytest.mark.parametrize("factor", [1.0, 0.37])
@pytest.mark.parametrize("biased", [False, True])
def test_chunks_of_any_size_give_the_plain_value_and_all_gradients(
    monkeypatch, rows, block, label_smoothing, factor, biased
):
    monkeypatch.setattr(chunked, "CHUNK_BYTES", 4 * V * rows)
    monkeypatch.setattr(chunked, "BLOCK_BYTES", 4 * V * block)
    plain = gradients(smoothed_loss, label_smoothing=label_smoothing, factor=factor, biased=biased)
    found = gradients(chunked_smoothed_loss, label_smoothing=label_smoothing, factor=factor, biased=biased)
    assert len(plain) == len(found) == 3 + biased
    for one, other in zip(plain, found, strict=True):
        torch.testing.assert_close(other, one, rtol=1e-5, atol=1e-5)


def test_a_chunk_smaller_than_one_row_still_takes_a_row(monkeypatch):
    monkeypatch.setattr(chunked, "CHUNK_BYTES", 1)
    plain = gradients(smoothed_loss, label_smoothing=0.1, factor=1.0)
    found = gradients(chunked_smoothed_loss, label_smoothing=0.1, factor=1.0)
    for one, other in zip(plain, found, strict=True):
        torch.testing.assert_close(other, one, rtol=1e-5, atol=1e-5)


def test_values_are_the_same_where_no_gradient_is_wanted():
    hidden_ND, weight_VD, target_N = random_case()
    with torch.inference_mode():
        sums = chunked_smoothed_loss(hidden_ND, weight_VD, target_N=target_N, label_smoothing=0.1)
    expected = smoothed_loss(hidden_ND, weight_VD, target_N=target_N, label_smoothing=0.1)
    torch.testing.assert_close(sums, expected, rtol=1e-6, atol=0)


@pytest.mark.parametrize("name", LOSSES)
def test_large_logits_stay_finite(name):
    hidden_ND, weight_VD, target_N = random_case()
    sums = LOSSES[name](hidden_ND * 1e4, weight_VD, target_N=target_N, label_smoothing=0.1)
    assert torch.isfinite(sums).all()


def best_possible(label_smoothing, vocab_size):
    """The smoothed loss of one token whose predicted distribution is the smoothed target itself.

    By the chunked form, which training uses: the plain one adds 37,000 small numbers to a large one in float32, one
    after the other, and is off by 1e-4 here.
    """
    right = 5
    weight_VD = torch.tensor([[0.0, 1.0]]).repeat(vocab_size, 1)
    weight_VD[right] = torch.tensor([1.0, 0.0])
    other = label_smoothing / vocab_size
    hidden_ND = torch.tensor([[math.log(1.0 - label_smoothing + other), math.log(other)]])
    target_N = torch.tensor([right])
    return chunked_smoothed_loss(hidden_ND, weight_VD, target_N=target_N, label_smoothing=label_smoothing)[0].item()


def test_no_model_gets_below_the_floor_of_smoothing():
    assert best_possible(0.1, 37_000) == pytest.approx(1.376913, abs=3e-6)


@pytest.mark.parametrize(
    ("label_smoothing", "vocab_size", "floor"),
    [(0.1, 37_000, 1.376948), (0.1, 40_960, 1.387116), (0.1, 32_768, 1.364801), (0.2, 37_000, 2.604132)],
)
def test_the_form_that_spares_the_right_token_is_this_one_with_a_larger_epsilon(label_smoothing, vocab_size, floor):
    converted = label_smoothing * vocab_size / (vocab_size - 1)
    assert best_possible(converted, vocab_size) == pytest.approx(floor, abs=3e-6)


@pytest.mark.parametrize("name", LOSSES)
def test_perplexity_does_not_see_smoothing(name):
    hidden_ND, weight_VD, target_N = random_case()
    unsmoothed, smoothed = (
        LOSSES[name](hidden_ND, weight_VD, target_N=target_N, label_smoothing=epsilon) for epsilon in (0.0, 0.1)
    )
    assert unsmoothed[1] == smoothed[1]
    assert unsmoothed[0] == pytest.approx(unsmoothed[1].item(), rel=1e-6)
    assert abs(smoothed[0] - smoothed[1]) > 0.1
