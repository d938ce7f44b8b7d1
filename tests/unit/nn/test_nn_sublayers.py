"""What stands around attention: masks, feed-forward, normalisation, residual connection, embeddings, kept keys."""

import math

import pytest
import torch
from torch import nn

from headway.config.residual_scaling import RESIDUAL_SCALINGS, deepnorm
from headway.nn.cache import KeyValue
from headway.nn.embedding import OutputProjection, TokenEmbedding
from headway.nn.feed_forward import FEED_FORWARDS, FeedForward, GatedFeedForward
from headway.nn.masks import causal_mask, key_mask, local_mask, windowed
from headway.nn.norm import NORMS, RMSNorm, layer_norm
from headway.nn.residual import SUBLAYERS, DeepNorm, PostNorm


def test_the_causal_mask_is_true_on_and_below_the_diagonal():
    assert causal_mask(3).tolist() == [[True, False, False], [True, True, False], [True, True, True]]


def test_a_causal_window_shows_a_token_itself_and_so_many_before_it():
    assert causal_mask(4, window=1).int().tolist() == [[1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]]
    assert torch.equal(causal_mask(5, window=4), causal_mask(5))
    assert not torch.equal(causal_mask(5, window=3), causal_mask(5))


def test_a_local_mask_is_a_band_to_both_sides():
    mask = local_mask(7, window=2)
    assert all(mask[i, j].item() == (abs(i - j) <= 2) for i in range(7) for j in range(7))


def test_a_window_hides_no_more_than_it_must_and_padding_stays_hidden():
    cpu = torch.device("cpu")
    padding = key_mask(torch.tensor([[True] * 5, [True, True, True, False, False]]))
    assert windowed(None, 5, window=None, device=cpu) is None
    assert windowed(None, 5, window=4, device=cpu) is None  # wide enough
    assert windowed(padding, 5, window=9, device=cpu) is padding
    assert torch.equal(windowed(None, 5, window=3, device=cpu), local_mask(5, window=3))
    assert torch.equal(windowed(padding, 5, window=1, device=cpu), padding & local_mask(5, window=1))


def test_the_key_mask_shows_every_query_of_a_sentence_its_real_keys():
    mask_BS = torch.tensor([[True, True, False], [True, False, False]])
    mask = key_mask(mask_BS)
    assert mask.shape == (2, 1, 1, 3)
    assert torch.equal(mask.expand(2, 5, 7, 3)[:, 4, 6], mask_BS)


def test_the_feed_forward_network_is_two_layers_with_a_ramp_between():
    layer = FeedForward(2, 3)
    with torch.no_grad():
        layer.inner.weight.copy_(torch.tensor([[1.0, -1.0], [2.0, 0.0], [0.0, -3.0]]))
        layer.inner.bias.copy_(torch.tensor([0.5, -1.0, 0.0]))
        layer.outer.weight.copy_(torch.tensor([[1.0, 10.0, 100.0], [0.0, 1.0, 0.0]]))
        layer.outer.bias.copy_(torch.tensor([7.0, -7.0]))
    # inner of (1, 2): 1 - 2 + 0.5 = -0.5 -> 0; 2 - 1 = 1; -6 -> 0
    assert layer(torch.tensor([[[1.0, 2.0]]]))[0, 0].tolist() == [17.0, -6.0]


def test_the_feed_forward_network_treats_every_position_alike():
    layer = FeedForward(5, 11)
    x_BTD = torch.randn(2, 3, 5)
    turned = layer(x_BTD.flip(1)).flip(1)
    torch.testing.assert_close(turned, layer(x_BTD))


def test_layer_norm_has_the_biased_variance_and_epsilon_1e6():
    norm = layer_norm(3)
    with torch.no_grad():
        norm.weight.copy_(torch.tensor([1.0, 2.0, 3.0]))
        norm.bias.copy_(torch.tensor([0.0, 10.0, 20.0]))
    values = [0.001, 0.002, 0.006]  # small, so that epsilon shows
    mean = sum(values) / 3
    variance = sum((value - mean) ** 2 for value in values) / 3
    normed = [(value - mean) / math.sqrt(variance + 1e-6) for value in values]
    wanted = [normed[0], 2 * normed[1] + 10, 3 * normed[2] + 20]
    assert norm(torch.tensor([values]))[0].tolist() == pytest.approx(wanted, rel=1e-5)


@pytest.mark.parametrize("activation", ["relu", "gelu", "silu", "swiglu"])
def test_each_feed_forward_network_equals_its_formula_by_hand(activation):
    layer = FEED_FORWARDS[activation](5, 11, dropout=0.0)
    vector = torch.randn(5, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.normal_(generator=torch.Generator().manual_seed(parameter.numel()))
    weights = {name: parameter.tolist() for name, parameter in layer.named_parameters()}

    def product(name, values):
        rows, biases = weights[f"{name}.weight"], weights.get(f"{name}.bias")
        sums = [sum(w * x for w, x in zip(row, values, strict=True)) for row in rows]
        return sums if biases is None else [s + b for s, b in zip(sums, biases, strict=True)]

    by_hand = {
        "relu": lambda x: max(0.0, x),
        "gelu": lambda x: x * 0.5 * (1.0 + math.erf(x / math.sqrt(2.0))),
        "silu": lambda x: x / (1.0 + math.exp(-x)),
    }
    if activation == "swiglu":
        gates = map(by_hand["silu"], product("gate", vector.tolist()))
        inner = [g * x for g, x in zip(gates, product("inner", vector.tolist()), strict=True)]
        assert sorted(weights) == ["gate.weight", "inner.weight", "outer.weight"]  # no biases
    else:
        inner = [by_hand[activation](x) for x in product("inner", vector.tolist())]
    assert layer(vector[None, None])[0, 0].tolist() == pytest.approx(product("outer", inner), rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("kind", [FeedForward, GatedFeedForward])
def test_inner_dropout_acts_before_the_last_matrix_in_training_alone(kind):
    layer = kind(5, 1_009, activation=torch.sigmoid, dropout=0.25)
    seen = []
    layer.outer.register_forward_pre_hook(lambda _module, given: seen.append(given[0]))
    x_BTD = torch.randn(2, 3, 5)
    layer.train()(x_BTD)
    layer.eval()(x_BTD)
    dropped, whole = seen
    assert (whole != 0).all()
    assert (dropped == 0).double().mean().item() == pytest.approx(0.25, abs=0.03)
    torch.testing.assert_close(dropped[dropped != 0], whole[dropped != 0] / 0.75)


def test_rms_norm_divides_by_the_root_mean_square():
    norm = RMSNorm(3, 1e-6)
    with torch.no_grad():
        norm.weight.copy_(torch.tensor([1.0, 2.0, 3.0]))
    values = [0.001, -0.002, 0.006]  # small, so that epsilon shows
    root = math.sqrt(sum(value * value for value in values) / 3 + 1e-6)
    wanted = [values[0] / root, 2 * values[1] / root, 3 * values[2] / root]
    assert norm(torch.tensor([values]))[0].tolist() == pytest.approx(wanted, rel=1e-5)
    assert [name for name, _ in norm.named_parameters()] == ["weight"]


@pytest.mark.parametrize("autocast", [False, True])
def test_rms_norm_sums_in_float32_whatever_comes(autocast):
    x = 300.0 * torch.randn(3, 4_099, generator=torch.Generator().manual_seed(1))
    norm = RMSNorm(4_099)
    wanted = (x.bfloat16().double() / x.bfloat16().double().square().mean(dim=-1, keepdim=True).sqrt()).float()
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
        found, plain = norm(x.bfloat16()), norm(x)
    assert found.dtype == torch.bfloat16
    assert plain.dtype == torch.float32
    torch.testing.assert_close(found.float(), wanted, rtol=2**-8, atol=0)
    torch.testing.assert_close(plain, x / x.square().mean(dim=-1, keepdim=True).sqrt(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", NORMS)
def test_a_norm_takes_the_epsilon_that_it_is_given(kind):
    small = torch.full((1, 2), 1e-4) * torch.tensor([1.0, -1.0])
    assert NORMS[kind](2, 1e-8)(small)[0, 0].item() == pytest.approx(1e-4 / math.sqrt(2e-8), rel=1e-4)
    assert NORMS[kind](2, 3e-8)(small)[0, 0].item() == pytest.approx(1e-4 / 2e-4, rel=1e-4)


def test_a_sublayer_is_the_norm_of_input_plus_dropped_output():
    double = nn.Linear(1, 1)  # stands for dropout: it may act on the sub-layer's output only
    with torch.no_grad():
        double.weight.fill_(2.0)
        double.bias.fill_(0.0)
    norm = nn.Linear(1, 1)
    with torch.no_grad():
        norm.weight.fill_(10.0)
        norm.bias.fill_(1.0)
    seen = []
    result = PostNorm(norm, double)(torch.tensor([[[3.0]]]), lambda x: seen.append(x.item()) or x + 4.0)
    assert seen == [3.0]  # the input reaches the sub-layer without a norm before it
    assert result.item() == 10.0 * (3.0 + 2.0 * 7.0) + 1.0


def numbers(factor, addend):
    """A linear function of one number, in the place of a norm or of dropout."""
    layer = nn.Linear(1, 1)
    with torch.no_grad():
        layer.weight.fill_(factor)
        layer.bias.fill_(addend)
    return layer


def test_pre_norm_is_the_input_plus_the_dropped_output_of_its_norm():
    seen = []
    sublayer = SUBLAYERS["pre"](numbers(10.0, 1.0), numbers(2.0, 0.0))
    result = sublayer(torch.tensor([[[3.0]]]), lambda x: seen.append(x.item()) or x + 4.0)
    assert seen == [31.0]
    assert result.item() == 3.0 + 2.0 * 35.0
    assert not SUBLAYERS["pre"].ends_in_norm
    assert SUBLAYERS["post"] is PostNorm


def test_deepnorm_weighs_the_input_before_the_sum_and_the_norm():
    result = DeepNorm(numbers(10.0, 1.0), numbers(2.0, 0.0), alpha=5.0)(torch.tensor([[[3.0]]]), lambda x: x + 4.0)
    assert result.item() == 10.0 * (5.0 * 3.0 + 2.0 * 7.0) + 1.0
    assert DeepNorm.ends_in_norm


def test_the_constants_of_deepnorm_by_hand():
    encoder, decoder = deepnorm(6, 6)
    # 6^4 x 6 = 7,776, whose 16th root is 1.7505; 18^(1/4) and 72^(-1/4)
    assert encoder == pytest.approx((1.4179, 0.4970), abs=5e-5)
    assert decoder == pytest.approx((2.0598, 0.3433), abs=5e-5)
    encoder, decoder = deepnorm(18, 2)  # 209,952^(1/16) = 2.1509; 6^(1/4) and 24^(-1/4)
    assert encoder == pytest.approx((0.81 * 2.1509, 0.87 / 2.1509), abs=5e-5)
    assert decoder == pytest.approx((1.5651, 0.4518), abs=5e-5)
    assert RESIDUAL_SCALINGS["none"](6, 18) == ((1.0, 1.0), (1.0, 1.0))


@pytest.mark.parametrize(("d_model", "factor"), [(512, 22.6274), (64, 8.0), (1024, 32.0)])
def test_embeddings_are_scaled_by_the_root_of_the_width_and_the_softmax_matrix_is_not(d_model, factor):
    embedding, output = TokenEmbedding(5, d_model), OutputProjection(5, d_model)
    weight = torch.randn(5, d_model)
    with torch.no_grad():
        embedding.weight.copy_(weight)
        output.weight.copy_(weight)
    torch.testing.assert_close(embedding(torch.tensor([[3, 1]]))[0], factor * weight[[3, 1]], rtol=1e-5, atol=1e-6)
    hidden = torch.randn(2, 3, d_model)
    torch.testing.assert_close(output(hidden), hidden @ weight.T, rtol=1e-4, atol=1e-4)


def test_kept_keys_grow_at_the_end_and_follow_their_rows():
    old = KeyValue(torch.randn(3, 2, 5, 7), torch.randn(3, 2, 5, 11))
    new = KeyValue(torch.randn(3, 2, 1, 7), torch.randn(3, 2, 1, 11))
    both = old.append(new)
    assert torch.equal(both.key_BGSK[:, :, :5], old.key_BGSK)
    assert torch.equal(both.value_BGSV[:, :, 5:], new.value_BGSV)
    assert old.key_BGSK.shape[2] == 5  # a value: the old one is as it was
    rows = torch.tensor([2, 0, 0, 1])
    chosen = both.select(rows)
    assert torch.equal(chosen.key_BGSK, both.key_BGSK[rows])
    assert torch.equal(chosen.value_BGSV, both.value_BGSV[rows])


def test_the_last_keys_are_all_that_is_kept():
    old = KeyValue(torch.randn(3, 2, 5, 7), torch.randn(3, 2, 5, 11))
    assert torch.equal(old.last(2).key_BGSK, old.key_BGSK[:, :, 3:])
    assert torch.equal(old.last(2).value_BGSV, old.value_BGSV[:, :, 3:])
    assert old.last(0).key_BGSK.shape == (3, 2, 0, 7)
    for many in (5, 6, 99):
        assert torch.equal(old.last(many).key_BGSK, old.key_BGSK)


def test_embeddings_can_be_left_unscaled_and_logits_can_have_a_bias():
    embedding, output = TokenEmbedding(5, 7, scaled=False), OutputProjection(5, 7, bias=True)
    with torch.no_grad():
        for parameter in (embedding.weight, output.weight, output.bias):
            parameter.normal_()
    assert torch.equal(embedding(torch.tensor([[3, 1]]))[0], embedding.weight[[3, 1]])
    hidden = torch.randn(2, 3, 7)
    torch.testing.assert_close(output(hidden), hidden @ output.weight.T + output.bias)
    assert OutputProjection(5, 7).bias is None
