"""What stands around attention: masks, feed-forward, normalisation, residual connection, embeddings, kept keys."""

import math

import pytest
import torch
from torch import nn

from headway.nn.cache import KeyValue
from headway.nn.embedding import OutputProjection, TokenEmbedding
from headway.nn.feed_forward import FeedForward
from headway.nn.masks import causal_mask, key_mask
from headway.nn.norm import layer_norm
from headway.nn.residual import PostNorm


def test_the_causal_mask_is_true_on_and_below_the_diagonal():
    assert causal_mask(3).tolist() == [[True, False, False], [True, True, False], [True, True, True]]


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
