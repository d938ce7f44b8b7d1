"""Initial weights: the laws that the paper's code draws them by."""

import math

import pytest
import torch

from headway.config.model_config import ModelConfig
from headway.model.build import build_transformer, export_weights

D, FF, HEADS, KEY, VALUE, ROWS = 96, 160, 3, 20, 28, 331


def build(seed=1, **settings):
    sizes = {
        "vocab_size": ROWS,
        "d_model": D,
        "d_ff": FF,
        "num_heads": HEADS,
        "d_k": KEY,
        "d_v": VALUE,
        "num_encoder_layers": 2,
        "num_decoder_layers": 2,
        "attention_bias": True,
    }
    return build_transformer(ModelConfig(**(sizes | settings)), seed=seed)


K, U = HEADS * KEY, HEADS * VALUE
# Which matrices count as one: limit sqrt(6 / (fan in + fan out)).
LIMITS = {
    "encoder.layers.1.self_attention.query": D + 2 * K + U,
    "encoder.layers.1.self_attention.key": D + 2 * K + U,
    "encoder.layers.1.self_attention.value": D + 2 * K + U,
    "encoder.layers.1.self_attention.output": U + D,
    "encoder.layers.0.feed_forward.inner": D + FF,
    "encoder.layers.0.feed_forward.outer": FF + D,
    "decoder.layers.1.self_attention.query": D + 2 * K + U,
    "decoder.layers.1.self_attention.key": D + 2 * K + U,
    "decoder.layers.0.self_attention.value": D + 2 * K + U,
    "decoder.layers.0.self_attention.output": U + D,
    "decoder.layers.1.cross_attention.query": D + K,
    "decoder.layers.1.cross_attention.key": D + K + U,
    "decoder.layers.1.cross_attention.value": D + K + U,
    "decoder.layers.1.cross_attention.output": U + D,
    "decoder.layers.0.feed_forward.inner": D + FF,
}


@pytest.mark.parametrize("name", LIMITS)
def test_matrices_are_uniform_within_glorots_limit(name):
    weight = export_weights(build())[f"{name}.weight"]
    limit = math.sqrt(6.0 / LIMITS[name])
    assert abs(weight).max() <= limit
    assert abs(weight).max() > 0.995 * limit  # thousands of draws come close
    assert weight.std() == pytest.approx(limit / math.sqrt(3.0), rel=0.03)
    assert weight.mean() == pytest.approx(0.0, abs=0.03 * limit)


def test_square_projections_have_the_limits_of_one_wide_matrix():
    model = build(num_heads=1, d_k=D, d_v=D)
    layer = next(model.decoder.each_layer())
    for projection, width in (
        (layer.self_attention.query, 4 * D),  # d to 3 d
        (layer.self_attention.value, 4 * D),
        (layer.cross_attention.key, 3 * D),  # d to 2 d
        (layer.cross_attention.query, 2 * D),
        (layer.cross_attention.output, 2 * D),
    ):
        limit = math.sqrt(6.0 / width)
        assert 0.995 * limit < projection.weight.abs().max().item() <= limit


@pytest.mark.parametrize("sharing", ["all", "target", "none"])
def test_embeddings_have_deviation_one_over_root_d_and_a_padding_row_of_zeros(sharing):
    model = build(embedding_sharing=sharing)
    for weight in (model.source_stem.embedding.weight, model.target_stem.embedding.weight, model.output.weight):
        assert (weight[0] == 0).all()
        assert weight[1:].std().item() == pytest.approx(D**-0.5, rel=0.02)
        assert weight[1:].mean().item() == pytest.approx(0.0, abs=0.05 * D**-0.5)


def test_scaled_embeddings_have_deviation_one():
    stem = build().source_stem
    vectors = stem.embedding(torch.arange(1, ROWS)[None])
    assert vectors.std().item() == pytest.approx(1.0, rel=0.02)


def test_learned_positions_are_drawn_and_their_first_row_is_not_zero():
    weight = build(positions="learned", max_positions=211).source_stem.position.weight
    assert weight.std().item() == pytest.approx(D**-0.5, rel=0.03)
    assert (weight[0] != 0).any()


def test_biases_are_zero_and_gains_one():
    for name, array in export_weights(build()).items():
        if name.endswith(".bias"):
            assert (array == 0).all(), name
        elif "norm" in name:
            assert (array == 1).all(), name


def test_the_seed_alone_decides_the_weights():
    torch.manual_seed(5)
    first = export_weights(build(seed=3))
    torch.manual_seed(6)
    torch.rand(7)
    second = export_weights(build(seed=3))
    for name, array in first.items():
        assert (array == second[name]).all(), name
    other = export_weights(build(seed=4))
    for name, array in first.items():
        if array.ndim == 2:
            assert (array != other[name])[1:].mean() > 0.99, name


def test_no_two_matrices_of_a_model_are_drawn_alike():
    arrays = [array.flatten()[D : D + 64] for array in export_weights(build()).values() if array.ndim == 2]
    assert len({array.tobytes() for array in arrays}) == len(arrays)
