"""Weights under norms that add another number to the variance: the same function, and the same bits when taken back."""

import json

import numpy as np
import pytest
import torch

from headway.config.model_config import ModelConfig
from headway.errors import InterchangeError
from headway.interchange.exported import _own_scale
from headway.interchange.norm_scale import norm_scale, scale_norms
from headway.model.build import build_transformer, export_weights, load_weights

CONFIG = ModelConfig(
    vocab_size=29,
    d_model=22,
    d_ff=37,
    num_heads=2,
    num_encoder_layers=3,
    num_decoder_layers=2,
    attention_bias=True,
    output_bias=True,
    norm_epsilon=0.16,
)
FIRST = ("encoder.layers.0.attention_sublayer.norm", "decoder.layers.0.self_sublayer.norm")


def drawn_weights(seed=3):
    generator = np.random.default_rng(seed)
    weights = export_weights(build_transformer(CONFIG))
    return {name: (array + generator.normal(0, 0.3, array.shape)).astype(np.float32) for name, array in weights.items()}


def logits_of(weights, epsilon=CONFIG.norm_epsilon, first=CONFIG.norm_epsilon):
    """In float64, by norms that add ``epsilon``, and ``first`` in the first norm of each stack."""
    model = build_transformer(CONFIG)
    load_weights(model, weights)
    for name, part in model.double().named_modules():
        if isinstance(part, torch.nn.LayerNorm):
            part.eps = first if name in FIRST else epsilon
    source = torch.tensor([[5, 6, 7, 3], [11, 13, 3, 0]])
    with torch.no_grad():
        return model.eval()(source, source != 0, torch.tensor([[2, 17, 19], [2, 23, 5]])).numpy()


def test_norms_that_add_more_to_larger_numbers_do_what_norms_do_that_add_less():
    weights = drawn_weights()
    scaled = logits_of(scale_norms(weights, CONFIG, 4.0))
    np.testing.assert_allclose(scaled, logits_of(weights, 0.01), rtol=0, atol=1e-10)
    assert np.abs(scaled - logits_of(weights)).max() > 1e-2


def test_a_scale_is_taken_back_to_the_last_bit():
    weights = drawn_weights()
    scaled = scale_norms(weights, CONFIG, 4.0)
    inner = "decoder.layers.1.feed_forward.inner.weight"
    assert np.array_equal(4.0 * scaled[inner], weights[inner])
    back = scale_norms(scaled, CONFIG, 0.25)
    assert back.keys() == weights.keys()
    for name, array in back.items():
        assert array.dtype == np.float32
        assert np.array_equal(array, weights[name]), name


@pytest.mark.parametrize(("epsilon", "scale"), [(1e-6, 4.0), (1e-5, 1.0), (1e-3, 1 / 8), (2.5e-6, 2.0)])
def test_scales_by_hand(epsilon, scale):
    assert norm_scale(epsilon, there=1e-5) == scale


@pytest.mark.parametrize("found", ["4", 3.0, 0, -4.0, None, float("nan"), 1e300])
def test_a_scale_that_no_export_has_is_named(found, tmp_path):
    assert _own_scale(tmp_path, json.loads('{"headway_norm_scale": 4.0}')) == 4.0
    assert _own_scale(tmp_path, {}) == 1.0
    with pytest.raises(InterchangeError, match=r"headway_norm_scale: found .*; wanted a power of two"):
        _own_scale(tmp_path, {"headway_norm_scale": found})
