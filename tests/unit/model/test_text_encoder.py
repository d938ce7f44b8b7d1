"""The encoder alone: padding and batch-mates change nothing, and its sizes are counted exactly.

Shapes: B texts, T positions, C classes.
"""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from model_configs import VOCABULARY, build_scrambled, text_encoder_configs

from headway.config.model_config import ModelConfig
from headway.model.build import build_model, export_weights, load_weights
from headway.model.size import count_multiply_adds, count_parameters
from headway.model.text_encoder import TextEncoder

SIZES = {
    "architecture": "encoder_only",
    "vocab_size": VOCABULARY,
    "d_model": 14,
    "d_ff": 22,
    "num_heads": 2,
    "d_k": 6,
    "d_v": 3,
    "num_encoder_layers": 3,
    "max_positions": 19,
    "num_classes": 5,
}


def build(**given):
    return build_scrambled(ModelConfig(**(SIZES | given)))


def texts(seed=3, *, lengths=(11, 7, 4)):
    """BOS, tokens, EOS, padding."""
    generator = torch.Generator().manual_seed(seed)
    token = torch.randint(4, VOCABULARY, (len(lengths), max(lengths)), generator=generator)
    token[:, 0] = 2
    for row, length in enumerate(lengths):
        token[row, length - 1] = 3
        token[row, length:] = 0
    return token


@settings(max_examples=25, deadline=None)
@given(text_encoder_configs(max_positions=13), st.integers(0, 99))
def test_padding_and_batch_mates_never_change_a_text_for_any_combination_of_parts(config, seed):
    model, token = build_scrambled(config), texts(seed)
    with torch.no_grad():
        together = model(token)
        wider = model(torch.nn.functional.pad(token, (0, 2)))
        for row, length in enumerate((11, 7, 4)):
            alone = model(token[row : row + 1, :length])[0]
            torch.testing.assert_close(together[row, :length], alone, atol=1e-4, rtol=1e-4)
            torch.testing.assert_close(wider[row, :length], alone, atol=1e-4, rtol=1e-4)


def test_every_token_is_seen_from_both_sides():
    model, token = build(), texts(lengths=(9,))
    for place in (1, 4, 7):
        other = token.clone()
        other[0, place] = 32 - other[0, place]
        with torch.no_grad():
            differs = (model(token) != model(other)).any(dim=-1)[0]
        assert differs.all() or other.equal(token)


@settings(max_examples=40, deadline=None)
@given(text_encoder_configs())
def test_parameters_are_counted_exactly_for_any_combination_of_parts(config):
    model, counts = build_model(config), count_parameters(config)
    assert counts.total == sum(parameter.numel() for parameter in model.parameters())
    classifier = sum(p.numel() for name, p in model.named_parameters() if name.startswith("classifier."))
    assert counts.classifier == classifier
    assert counts.decoder_self_attention == counts.decoder_norm == counts.decoder_feed_forward == 0


def test_multiply_adds_are_those_of_an_encoder_alone():
    cost = count_multiply_adds(ModelConfig(**SIZES), source_length=7, target_length=11)
    layer = 14 * (12 + 12 + 6 + 6) + 2 * 14 * 22 + 7 * (12 + 6)
    assert (cost.encoder, cost.decoder, cost.cross_projection) == (3 * layer, 0, 0)


def test_the_classes_are_told_from_the_first_vector_by_a_layer_with_tanh():
    model, token = build(), texts()
    with torch.no_grad():
        hidden = model(token)
        found = model.classes(hidden)
        weights = dict(model.classifier.named_parameters())
        inner = torch.tanh(hidden[:, 0] @ weights["dense.weight"].T + weights["dense.bias"])
        wanted = inner @ weights["output.weight"].T + weights["output.bias"]
    torch.testing.assert_close(found, wanted)
    assert found.shape == (3, 5)


def test_weights_come_back_and_what_is_shared_stays_shared():
    model, other = build(), build_model(ModelConfig(**SIZES), seed=7)
    load_weights(other, export_weights(model))
    assert isinstance(other, TextEncoder)
    assert other.output.weight.data_ptr() == other.source_stem.embedding.weight.data_ptr()
    with torch.no_grad():
        assert torch.equal(other.eval()(texts()), model(texts()))


def test_classes_are_refused_of_what_tells_none_apart():
    with pytest.raises(ValueError, match="num_classes is 5 and architecture transformer tells no classes apart"):
        ModelConfig(**(SIZES | {"architecture": "transformer"}))
