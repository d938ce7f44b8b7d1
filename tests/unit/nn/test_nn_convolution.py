"""Convolutions against sums by hand and torch's layer with the same weights.

Shapes: B sentences, T positions, D numbers of an input, E of an output.
"""

import pytest
import torch

from headway.nn.convolution import Convolution, SeparableConvolution, convolution, depthwise

B, T, D, E = 2, 13, 5, 7


def by_hand(x, weight, bias, *, offsets):
    """One number in, one out: the sum over the kernel at each position, zero beyond the ends."""
    at = dict(enumerate(x))
    return [bias + sum(w * at.get(t + o, 0.0) for w, o in zip(weight, offsets, strict=True)) for t in range(len(x))]


@pytest.mark.parametrize(
    ("width", "dilation", "causal", "offsets"),
    [
        (3, 1, False, (-1, 0, 1)),
        (3, 1, True, (-2, -1, 0)),
        (3, 2, False, (-2, 0, 2)),
        (3, 4, True, (-8, -4, 0)),
        (2, 1, False, (-1, 0)),
        (4, 3, False, (-6, -3, 0, 3)),
        (1, 1, True, (0,)),
    ],
)
def test_a_convolution_is_its_sum_by_hand(width, dilation, causal, offsets):
    x = torch.randn(T, generator=torch.Generator().manual_seed(1)).tolist()
    weight = torch.randn(width, generator=torch.Generator().manual_seed(2)).tolist()
    x_BTD = torch.tensor(x)[None, :, None]
    wanted = by_hand(x, weight, 0.25, offsets=offsets)
    full = convolution(x_BTD, torch.tensor([[weight]]), torch.tensor([0.25]), dilation=dilation, causal=causal)
    assert full[0, :, 0].tolist() == pytest.approx(wanted, abs=1e-5)
    single = depthwise(x_BTD, torch.tensor([weight]), dilation=dilation, causal=causal)
    assert single[0, :, 0].tolist() == pytest.approx([value - 0.25 for value in wanted], abs=1e-5)
    layer = Convolution(1, width, causal=causal, dilation=dilation)
    layer.load_state_dict({"kernel.weight": torch.tensor([[weight]]), "kernel.bias": torch.tensor([0.25])})
    assert layer(x_BTD)[0, :, 0].tolist() == pytest.approx(wanted, abs=1e-5)


@pytest.mark.parametrize("dilation", [1, 2])
def test_a_convolution_equals_torch_s_with_the_same_weights(dilation):
    layer = Convolution(D, 3, causal=False, dilation=dilation, d_output=E)
    original = torch.nn.Conv1d(D, E, 3, dilation=dilation, padding="same")
    original.load_state_dict(layer.kernel.state_dict())
    x_BTD = torch.randn(B, T, D)
    assert layer(x_BTD).shape == (B, T, E)
    torch.testing.assert_close(layer(x_BTD), original(x_BTD.mT).mT, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(layer.plain(x_BTD), original(x_BTD.mT).mT, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("causal", [False, True])
def test_a_separable_convolution_is_a_full_one_whose_kernel_is_a_product(causal):
    separable = SeparableConvolution(D, 3, causal=causal)
    full = Convolution(D, 3, causal=causal)
    kernel_DW, mixing_ED = separable.kernel.weight[:, 0], separable.pointwise.weight
    full.load_state_dict(
        {"kernel.weight": mixing_ED[:, :, None] * kernel_DW[None], "kernel.bias": separable.pointwise.bias}
    )
    x_BTD = torch.randn(B, T, D)
    torch.testing.assert_close(separable(x_BTD), full(x_BTD), atol=1e-5, rtol=1e-5)


def test_no_more_inputs_are_kept_than_the_kernel_sees():
    layer = Convolution(D, 3, causal=True, dilation=4)
    past = None
    for _ in range(11):
        _, past = layer.step(torch.randn(B, 1, D), past)
    assert past.x_BPD.shape == (B, 8, D)
