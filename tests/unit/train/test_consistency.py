"""The loss of two passes: torch's divergences, numbers by hand, chunked as plain, and never all logits at once."""

import math
from itertools import product

import pytest
import torch
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from headway.train import chunked
from headway.train.consistency import Weights, chunked_consistency_loss, consistency_loss
from headway.train.loss import smoothed_loss

N, D, V = 23, 7, 41
LOSSES = {"plain": consistency_loss, "chunked": chunked_consistency_loss}
R_DROP = Weights(first=0.5, second=0.5, divergence=1.25, reverse=1.25)
SIMCUT = Weights(first=1.0, second=0.0, divergence=3.0, reverse=0.0)
WEIGHTS = {
    "R-Drop": R_DROP,
    "SimCut": SIMCUT,
    "all four": Weights(first=0.3, second=0.7, divergence=0.2, reverse=1.9),
    "reverse alone": Weights(first=0.0, second=1.0, divergence=0.0, reverse=0.6),
}


def random_case(*, biased=True, dtype=torch.float32, num_tokens=N, vocab_size=V):
    """Hidden vectors, matrix and bias as leaves, and the right tokens."""
    generator = torch.Generator().manual_seed(11)
    hidden_2ND = torch.randn(2, num_tokens, D, generator=generator, dtype=dtype)
    weight_VD = torch.randn(vocab_size, D, generator=generator, dtype=dtype)
    bias_V = torch.randn(vocab_size, generator=generator, dtype=dtype)
    target_N = torch.randint(1, vocab_size, (num_tokens,), generator=generator)
    leaves = [hidden_2ND, weight_VD, bias_V] if biased else [hidden_2ND, weight_VD]
    return [leaf.requires_grad_() for leaf in leaves], target_N


def apply(function, leaves, target_N, *, weights=R_DROP, label_smoothing=0.1):
    hidden_2ND, weight_VD, *bias = leaves
    return function(
        hidden_2ND,
        weight_VD,
        target_N=target_N,
        label_smoothing=label_smoothing,
        weights=weights,
        bias_V=bias[0] if bias else None,
    )


def with_gradients(function, *, factor=1.0, biased=True, dtype=torch.float32, **more):
    """Both sums and the gradients of all leaves."""
    leaves, target_N = random_case(biased=biased, dtype=dtype)
    sums = apply(function, leaves, target_N, **more)
    (sums[0] * factor).backward()
    return sums.detach(), *(leaf.grad for leaf in leaves)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("weights", WEIGHTS.values(), ids=WEIGHTS)
@pytest.mark.parametrize("label_smoothing", [0.0, 0.3])
@pytest.mark.parametrize("biased", [False, True])
def test_the_sums_are_torch_s_cross_entropies_and_divergences(name, weights, label_smoothing, biased):
    leaves, target_N = random_case(biased=biased, dtype=torch.float64)
    sums = apply(LOSSES[name], leaves, target_N, weights=weights, label_smoothing=label_smoothing)
    hidden_2ND, weight_VD, *bias = leaves
    first, second = (functional.linear(hidden_ND, weight_VD, bias[0] if bias else None) for hidden_ND in hidden_2ND)

    def entropy(logits, smoothing):
        return functional.cross_entropy(logits, target_N, reduction="sum", label_smoothing=smoothing)

    def divergence(logits, other):  # torch's takes the second distribution first
        return functional.kl_div(other.log_softmax(-1), logits.log_softmax(-1), reduction="sum", log_target=True)

    wanted = weights.first * entropy(first, label_smoothing) + weights.second * entropy(second, label_smoothing)
    wanted += weights.divergence * divergence(first, second) + weights.reverse * divergence(second, first)
    nll = weights.first * entropy(first, 0.0) + weights.second * entropy(second, 0.0)
    torch.testing.assert_close(sums, torch.stack((wanted, nll)))


@pytest.mark.parametrize("name", LOSSES)
def test_one_token_by_hand(name):
    """P = (3/4, 1/4), q = (1/2, 1/2), the first token right."""
    hidden_2ND = torch.tensor([[[math.log(3.0)]], [[0.0]]])
    weight_VD, target_N = torch.tensor([[1.0], [0.0]]), torch.tensor([0])
    forward = 0.75 * math.log(1.5) + 0.25 * math.log(0.5)
    reverse = 0.5 * math.log(2 / 3) + 0.5 * math.log(2.0)
    first, second = -math.log(0.75), -math.log(0.5)
    for weights, loss, nll in (
        (R_DROP, (first + second) / 2 + 5 / 4 * (forward + reverse), (first + second) / 2),
        (SIMCUT, first + 3 * forward, first),
    ):
        sums = apply(LOSSES[name], [hidden_2ND, weight_VD], target_N, weights=weights, label_smoothing=0.0)
        assert sums.tolist() == pytest.approx([loss, nll], rel=1e-6)


@pytest.mark.parametrize("weights", WEIGHTS.values(), ids=WEIGHTS)
@pytest.mark.parametrize(("chunk", "block"), [(1, 1), (2, 1), (7, 3), (22, 23), (23, 5), (1009, 1009)])
@pytest.mark.parametrize("biased", [False, True])
def test_chunks_and_blocks_of_any_size_give_the_plain_value_and_all_gradients(
    monkeypatch, weights, chunk, block, biased
):
    monkeypatch.setattr(chunked, "CHUNK_TOKENS", chunk)
    monkeypatch.setattr(chunked, "BLOCK_BYTES", 2 * 4 * V * block)
    for factor, label_smoothing in product((1.0, 0.37), (0.0, 0.1)):
        settings = {"weights": weights, "factor": factor, "biased": biased, "label_smoothing": label_smoothing}
        plain = with_gradients(consistency_loss, **settings)
        found = with_gradients(chunked_consistency_loss, **settings)
        assert len(plain) == len(found) == 3 + biased
        for one, other in zip(plain, found, strict=True):
            torch.testing.assert_close(other, one, rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize("weights", WEIGHTS.values(), ids=WEIGHTS)
def test_the_chunked_gradients_are_those_of_small_steps_in_float64(monkeypatch, weights):
    monkeypatch.setattr(chunked, "CHUNK_TOKENS", 3)
    monkeypatch.setattr(chunked, "BLOCK_BYTES", 2 * 4 * 11 * 2)
    leaves, target_N = random_case(dtype=torch.float64, num_tokens=5, vocab_size=11)
    assert torch.autograd.gradcheck(
        lambda *given: apply(chunked_consistency_loss, given, target_N, weights=weights)[0], leaves
    )


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("weights", [R_DROP, SIMCUT], ids=["R-Drop", "SimCut"])
def test_passes_that_agree_have_the_plain_smoothed_loss_and_its_gradients(name, weights):
    (hidden_2ND, weight_VD, bias_V), target_N = random_case()
    hidden_ND = hidden_2ND[0].detach().clone().requires_grad_()
    twice = hidden_ND.expand(2, -1, -1)
    sums = apply(LOSSES[name], [twice, weight_VD, bias_V], target_N, weights=weights)
    wanted = smoothed_loss(hidden_ND, weight_VD, target_N=target_N, label_smoothing=0.1, bias_V=bias_V)
    torch.testing.assert_close(sums, wanted, rtol=1e-6, atol=0)
    leaves = (hidden_ND, weight_VD, bias_V)
    found, expected = (torch.autograd.grad(value[0], leaves, retain_graph=True) for value in (sums, wanted))
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


def test_the_clean_pass_learns_from_the_divergence_too():
    """No gradient is stopped: SimCut's clean pass moves otherwise than by its likelihood alone."""
    _, both, *_ = with_gradients(chunked_consistency_loss, weights=SIMCUT)
    _, alone, *_ = with_gradients(
        chunked_consistency_loss, weights=Weights(first=1.0, second=0.0, divergence=0.0, reverse=0.0)
    )
    assert (both[0] - alone[0]).abs().amax() > 0.1
    assert not alone[1].any()
    assert both[1].any()


@pytest.mark.parametrize("weights", [R_DROP, SIMCUT], ids=["R-Drop", "SimCut"])
def test_bf16_gives_the_sums_and_gradients_of_its_own_logits(weights):
    """The definition in float64 on logits rounded to bf16: what is left is the rounding of the gradients."""
    leaves, target_N = random_case(biased=False)
    hidden_2ND = leaves[0].detach().bfloat16().requires_grad_()
    weight_VD = leaves[1].detach().bfloat16().float().requires_grad_()
    sums = apply(chunked_consistency_loss, [hidden_2ND, weight_VD], target_N, weights=weights)
    sums[0].backward()
    assert (hidden_2ND.grad.dtype, weight_VD.grad.dtype, sums.dtype) == (torch.bfloat16, torch.float32, torch.float32)
    exact = [leaf.detach().double().requires_grad_() for leaf in (hidden_2ND, weight_VD)]
    wanted = apply(consistency_loss, exact, target_N, weights=weights)
    wanted[0].backward()
    torch.testing.assert_close(sums.double(), wanted, rtol=5e-3, atol=0)
    for leaf, other in zip((hidden_2ND, weight_VD), exact, strict=True):
        assert (leaf.grad.double() - other.grad).norm() < 0.02 * other.grad.norm()


def test_no_tokens_have_no_loss_and_no_gradient():
    """A process that only fills a gap in a step."""
    leaves = [
        torch.randn(2, 0, D).requires_grad_(),
        torch.randn(V, D).requires_grad_(),
        torch.randn(V).requires_grad_(),
    ]
    sums = apply(chunked_consistency_loss, leaves, torch.zeros(0, dtype=torch.int64))
    sums[0].backward()
    assert sums.tolist() == [0.0, 0.0]
    assert not any(leaf.grad.any() for leaf in leaves)


def test_a_matrix_that_is_not_trained_gets_no_gradient_and_the_rest_the_same():
    leaves, target_N = random_case()
    apply(chunked_consistency_loss, leaves, target_N)[0].backward()
    frozen = [leaf.detach().clone().requires_grad_(number != 1) for number, leaf in enumerate(leaves)]
    apply(chunked_consistency_loss, frozen, target_N)[0].backward()
    assert frozen[1].grad is None
    for number in (0, 2):
        assert torch.equal(frozen[number].grad, leaves[number].grad)


def test_values_are_the_same_where_no_gradient_is_wanted():
    leaves, target_N = random_case()
    with torch.inference_mode():
        sums = apply(chunked_consistency_loss, leaves, target_N)
    torch.testing.assert_close(sums, apply(consistency_loss, leaves, target_N), rtol=1e-6, atol=0)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("weights", [R_DROP, SIMCUT], ids=["R-Drop", "SimCut"])
def test_large_logits_stay_finite_with_their_gradients(name, weights):
    (hidden_2ND, weight_VD, _), target_N = random_case()
    hidden_2ND = (hidden_2ND.detach() * 1e4).requires_grad_()
    sums = apply(LOSSES[name], [hidden_2ND, weight_VD], target_N, weights=weights)
    sums[0].backward()
    for found in (sums, hidden_2ND.grad, weight_VD.grad):
        assert torch.isfinite(found).all()


class Largest(TorchDispatchMode):
    """Hears of every tensor that is computed, and keeps the size of the largest that has the vocabulary's width."""

    def __init__(self):
        super().__init__()
        self.rows = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        given = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(given):
            if isinstance(leaf, torch.Tensor) and leaf.dim() > 1 and leaf.shape[-1] == V:
                self.rows = max(self.rows, leaf.numel() // V)
        return given


def test_logits_never_exist_for_all_tokens(monkeypatch):
    monkeypatch.setattr(chunked, "CHUNK_TOKENS", 6)
    leaves, target_N = random_case()
    with Largest() as heard:
        apply(chunked_consistency_loss, leaves, target_N)[0].backward()
    assert heard.rows == 2 * 6
    with Largest() as heard:
        apply(consistency_loss, leaves, target_N)
    assert heard.rows == 2 * N
