"""Switching heads off in whole models of any parts: to the bit nothing with ones, and W^O's zeros with zeros."""

from contextlib import ExitStack

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from model_configs import build_scrambled, example, model_configs

from headway.config.model_config import ModelConfig
from headway.model.build import build_transformer
from headway.model.predictor import TransformerPredictor, gated
from headway.nn.attention import MultiHeadAttention
from headway.search.score import score_pairs

laws = settings(max_examples=20, deadline=None)


def attentions(model):
    return [module for module in model.modules() if isinstance(module, MultiHeadAttention)]


@torch.no_grad()
def logits(model):
    source, target_in = example()
    return model(source, source != 0, target_in)


@laws
@given(model_configs())
def test_gates_of_ones_change_no_bit_of_any_model(config):
    model = build_scrambled(config)
    plain = logits(model)
    with ExitStack() as stack:
        for attention in attentions(model):
            stack.enter_context(gated(attention, torch.ones(config.num_heads)))
        assert torch.equal(logits(model), plain)
    assert all(attention.gate_H is None for attention in attentions(model))
    assert torch.equal(logits(model), plain)


@laws
@given(model_configs(), st.integers(0, 99), st.integers(0, 99))
def test_a_head_off_is_its_rows_of_the_output_matrix_at_zero_in_the_full_pass_and_in_decoding(config, place, head):
    model = build_scrambled(config)
    source, target_in = example()
    places = attentions(model)
    attention, head = places[place % len(places)], head % config.num_heads
    targets = [[*row[1:], 3] for row in target_in.tolist()]
    predictor = TransformerPredictor(model)
    with gated(attention, (torch.arange(config.num_heads) != head).float()):
        off, scores_off = logits(model), score_pairs(predictor, source, source != 0, targets)
    size = config.value_size
    with torch.no_grad():
        attention.output.weight[:, head * size : (head + 1) * size] = 0.0
    torch.testing.assert_close(off, logits(model), atol=2e-5, rtol=1e-5)
    for gated_scores, wanted in zip(scores_off, score_pairs(predictor, source, source != 0, targets), strict=True):
        assert gated_scores == pytest.approx(wanted, abs=5e-5)


def test_with_every_head_of_a_sublayer_off_the_residual_alone_goes_on():
    config = ModelConfig(
        vocab_size=29, d_model=14, d_ff=11, num_heads=2, norm_placement="pre", num_encoder_layers=2, dropout=0.0
    )
    model = build_transformer(config).eval()
    layer = next(model.encoder.each_layer())
    x_BSD = torch.randn(3, 5, 14)
    span = model.source_stem.position.span(5, 5, 0)
    with gated(layer.self_attention, torch.zeros(2)):
        after = layer.attention_sublayer(x_BSD, lambda x: layer.self_attention(x, x, span=span))
    assert torch.equal(after, x_BSD)
    assert not torch.equal(layer.attention_sublayer(x_BSD, lambda x: layer.self_attention(x, x, span=span)), x_BSD)


def test_gates_end_with_their_block_when_it_fails_too():
    model = build_transformer(ModelConfig(vocab_size=29, d_model=14, d_ff=11, num_heads=2))
    attention = attentions(model)[0]
    with pytest.raises(ZeroDivisionError), gated(attention, torch.zeros(2)):
        raise ZeroDivisionError
    assert attention.gate_H is None
