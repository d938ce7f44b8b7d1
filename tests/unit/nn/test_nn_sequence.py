"""The laws of every layer that mixes positions, whatever its kind.

Shapes: B sentences, T positions, D d_model, H heads, R rows.
"""

import pytest
import torch

from headway.nn.sequence_kinds import SEQUENCE_LAYERS, Sizes
from shape_tracer import ShapeTracer

B, T, D = 3, 11, 14
KINDS = list(SEQUENCE_LAYERS)
SEES = {"restricted": 5, "convolution": 3, "dilated": 7, "separable": 3}  # positions of a kernel, with k = 3 and r = 5


def build(kind, *, causal, **given):
    torch.manual_seed(7)
    layer = SEQUENCE_LAYERS[kind](Sizes(D, **({"neighbourhood": 5, "num_heads": 2} | given), causal=causal))
    with torch.no_grad():
        for parameter in layer.parameters():  # no bias is zero, so that each one counts
            parameter.add_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)), alpha=0.3)
    return layer.eval()


def vectors(*shape, seed=2):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def mask_of(*lengths, size):
    return torch.arange(size) < torch.tensor(lengths)[:, None]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_padding_and_what_it_holds_never_change_a_sentence(kind, causal):
    layer = build(kind, causal=causal)
    x_BTD = vectors(B, T, D)
    alone = layer(x_BTD)
    for padding, value in ((1, 0.0), (2, 5.0), (17, -3.0)):
        padded = torch.nn.functional.pad(x_BTD, (0, 0, 0, padding), value=value)
        together = layer(padded, mask_of(T, T, T, size=T + padding))
        torch.testing.assert_close(together[:, :T], alone, atol=1e-5, rtol=0)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_batch_mates_never_change_a_sentence_nor_does_one_of_padding_alone(kind, causal):
    layer = build(kind, causal=causal)
    x_BTD = vectors(4, T, D)
    together = layer(x_BTD, mask_of(T, 5, 1, 0, size=T))
    assert together.isfinite().all()
    for row, length in enumerate((T, 5, 1)):
        alone = layer(x_BTD[row : row + 1, :length])
        torch.testing.assert_close(together[row : row + 1, :length], alone, atol=1e-5, rtol=0)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_each_position_reads_exactly_the_positions_of_its_kind(kind, causal):
    layer = build(kind, causal=causal)
    x_1TD = vectors(1, T, D).requires_grad_()
    y_1TD = layer(x_1TD)
    for place in range(T):
        (slope_1TD,) = torch.autograd.grad(y_1TD[0, place].sin().sum(), x_1TD, retain_graph=True)
        read = (slope_1TD[0].abs().amax(dim=-1) > 0).nonzero()[:, 0].tolist()
        step = 3 if kind == "dilated" else 1
        reach = (SEES.get(kind, 99 * T) - 1) // step
        before = reach * step if causal else (reach + 1) // 2 * step
        after = 0 if causal else reach // 2 * step
        wanted = [j for j in range(T) if -before <= j - place <= after and (j - place) % step == 0]
        assert read == wanted, place


@pytest.mark.parametrize("kind", KINDS)
def test_one_step_after_another_equals_all_positions_at_once(kind):
    layer = build(kind, causal=True)
    x_BTD = vectors(B, T, D)
    past, steps = None, []
    with ShapeTracer() as tracer:
        for place in range(T):
            y_B1D, past = layer.step(x_BTD[:, place : place + 1], past)
            steps.append(y_B1D)
    tracer.check()
    torch.testing.assert_close(torch.cat(steps, dim=1), layer(x_BTD), atol=1e-5, rtol=0)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_a_past_may_be_chosen_and_a_past_can_be_continued_twice(kind):
    layer = build(kind, causal=True)
    x_BTD = vectors(B, T, D)
    past = None
    for place in range(T - 1):
        _, past = layer.step(x_BTD[:, place : place + 1], past)
    wanted = layer(x_BTD)[:, -1:]
    rows = torch.tensor([2, 0, 0, 1])
    layer.step(vectors(B, 1, D, seed=3), past)  # leaves the past as it was
    y_R1D, _ = layer.step(x_BTD[rows, -1:], past.select(rows))
    torch.testing.assert_close(y_R1D, wanted[rows], atol=1e-5, rtol=0)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("self-attention", "restricted")])
def test_the_fast_path_equals_the_definition_forward_and_backward(kind, causal):
    layer = build(kind, causal=causal)
    mask_BT = mask_of(T, 7, 2, size=T)
    results = []
    for path in (layer, layer.plain):
        x_BTD = vectors(B, T, D).requires_grad_()
        layer.zero_grad()
        path(x_BTD, mask_BT)[mask_BT].sin().sum().backward()
        results.append([x_BTD.grad, *(parameter.grad.clone() for parameter in layer.parameters())])
        results[-1].append(path(x_BTD)[0])  # and without a mask
    for fast, plain in zip(*results, strict=True):
        torch.testing.assert_close(fast, plain, atol=2e-5, rtol=1e-4)
    assert (results[0][0][~mask_BT] == 0).all()


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_shape_letters_hold_in_both_paths(kind, causal):
    with ShapeTracer() as tracer:
        layer = build(kind, causal=causal)
        layer(vectors(B, T, D), mask_of(T, 5, 1, size=T))
        getattr(layer, "plain", layer)(vectors(B, T, D), mask_of(T, 5, 1, size=T))
    tracer.check()
    assert tracer.measured & {"x_BTD", "x_BTI"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_layer_in_training_with_bf16_around_it_gives_finite_numbers_near_those_of_float32(kind):
    layer = build(kind, causal=False).train()
    x_BTD, mask_BT = vectors(B, T, D), mask_of(T, 5, 1, size=T)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rough = layer(x_BTD.bfloat16(), mask_BT).float()
    assert rough.isfinite().all()
    torch.testing.assert_close(rough[mask_BT], layer(x_BTD, mask_BT)[mask_BT], atol=0.2, rtol=0.1)
    rough[mask_BT].sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in layer.parameters())


@pytest.mark.parametrize(
    ("neighbourhood", "causal", "window"), [(5, False, 2), (5, True, 4), (64, False, 32), (1, True, 0), (1, False, 0)]
)
def test_a_neighbourhood_is_counted_with_the_position_itself(neighbourhood, causal, window):
    assert Sizes(D, neighbourhood=neighbourhood, causal=causal).window == window
