"""The language model: the future changes nothing, cached = full, and every part does what it does in the decoder.

Shapes: B texts, T positions, V vocabulary.
"""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from model_configs import SWITCHES, VOCABULARY, build_scrambled, language_model_configs

from headway.config.model_config import ModelConfig
from headway.errors import ModelError
from headway.model.build import build_language_model, build_model, export_weights, load_weights
from headway.model.language_model import LanguageModel
from headway.model.language_predictor import LanguagePredictor
from headway.model.size import count_multiply_adds, count_parameters
from headway.nn.position import OF_ANY_TEXT
from headway.search.run import search
from headway.search.score import score_pairs
from headway.search.settings import Sampling, SearchSettings

SIZES = {
    "architecture": "decoder_only",
    "vocab_size": VOCABULARY,
    "d_model": 14,
    "d_ff": 22,
    "num_heads": 4,
    "d_k": 6,
    "d_v": 3,
    "num_decoder_layers": 3,
    "max_positions": 19,
}
NO_SOURCE = torch.zeros(3, 0, dtype=torch.int64)


def build(*, seed=1, **given):
    return build_scrambled(ModelConfig(**(SIZES | given)), seed=seed)


def texts(seed=3, *, length=11):
    generator = torch.Generator().manual_seed(seed)
    token = torch.randint(4, VOCABULARY, (3, length), generator=generator)
    token[:, 0] = 2
    return token


def stepwise(model, token):
    """Log-probabilities (B, T, V) by one predict a position."""
    predictor = LanguagePredictor(model)
    source = torch.zeros(len(token), 0, dtype=torch.int64)
    state = predictor.start(source, source != 0)
    steps = []
    for place in range(token.shape[1]):
        log_probs, state = predictor.predict(token[:, place], state)
        steps.append(log_probs)
    return torch.stack(steps, dim=1)


@settings(max_examples=25, deadline=None)
@given(language_model_configs(max_positions=11), st.integers(0, 99))
def test_the_future_never_changes_the_past_for_any_combination_of_parts(config, seed):
    model, token = build_scrambled(config), texts(seed)
    changed = token.clone()
    changed[:, 6:] = 32 - changed[:, 6:]
    with torch.no_grad():
        before, after = model(token), model(changed)
    torch.testing.assert_close(before[:, :6], after[:, :6], atol=1e-6, rtol=1e-6)
    assert not torch.allclose(before[:, 6:], after[:, 6:])


@settings(max_examples=25, deadline=None)
@given(language_model_configs(max_positions=11), st.integers(0, 99))
def test_cached_generation_equals_the_full_pass_for_any_combination_of_parts(config, seed):
    model, token = build_scrambled(config), texts(seed)
    with torch.no_grad():
        full = model(token).log_softmax(dim=-1)
    torch.testing.assert_close(stepwise(model, token), full, atol=2e-4, rtol=2e-4)


@pytest.mark.parametrize("positions", OF_ANY_TEXT)
def test_padding_and_batch_mates_never_change_a_text(positions):
    model, token = build(positions=positions), texts()
    with torch.no_grad():
        together = model(token)
        token[1, 5:] = 0
        token[2] = texts(seed=8)[2]
        padded = model(token)
        alone = model(token[1:2, :5])
    torch.testing.assert_close(padded[1, :5], together[1, :5], atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(alone[0], together[1, :5], atol=1e-5, rtol=1e-5)


def test_a_source_is_not_looked_at():
    model, token = build(), texts()
    some = torch.randint(4, VOCABULARY, (3, 5))
    with torch.no_grad():
        hidden = model.hidden(some, some != 0, token)
        assert torch.equal(model.output(hidden), model(token))
        assert torch.equal(model.hidden(NO_SOURCE, NO_SOURCE != 0, token), hidden)


def test_a_token_that_is_not_kept_is_read_as_a_zero_vector():
    model, token = build(positions="none"), texts()
    kept = torch.ones_like(token, dtype=torch.bool)
    kept[:, 4] = False
    other = token.clone()
    other[:, 4] = 32 - other[:, 4]
    with torch.no_grad():
        first, second = (model.hidden(NO_SOURCE, NO_SOURCE != 0, ids, target_kept_BT=kept) for ids in (token, other))
    assert torch.equal(first, second)


@settings(max_examples=25, deadline=None)
@given(language_model_configs())
def test_parameters_are_counted_exactly_for_any_combination_of_parts(config):
    model = build_model(config)
    counts = count_parameters(config)
    assert counts.total == sum(parameter.numel() for parameter in model.parameters())
    attention = [p.numel() for name, p in model.named_parameters() if ".self_attention." in name]
    assert counts.decoder_self_attention == sum(attention)
    assert counts.encoder_attention == counts.encoder_norm == counts.decoder_cross_attention == 0


def test_multiply_adds_are_those_of_a_stack_without_a_source():
    config = ModelConfig(**SIZES)
    cost = count_multiply_adds(config, source_length=7, target_length=11)
    projections = 14 * (24 + 24 + 12 + 12)  # d (K + L + W + U)
    layer = projections + 2 * 14 * 22 + 11 * (24 + 12)
    assert (cost.encoder, cost.cross_projection, cost.source_token) == (0, 0, 0)
    assert (cost.decoder, cost.softmax) == (3 * layer, 14 * VOCABULARY)


@pytest.mark.parametrize("sharing", ["all", "target", "none"])
def test_a_shared_matrix_is_one_storage_also_after_loading(sharing):
    model, other = build(embedding_sharing=sharing, seed=1), build(embedding_sharing=sharing, seed=5)
    load_weights(other, export_weights(model))
    is_one = other.output.weight.data_ptr() == other.target_stem.embedding.weight.data_ptr()
    assert is_one == (sharing != "none")
    token = texts()
    with torch.no_grad():
        assert torch.equal(model(token), other(token))


def test_weights_of_a_translator_are_refused():
    translator = build_model(ModelConfig(**(SIZES | {"architecture": "transformer", "num_encoder_layers": 1})))
    with pytest.raises(ModelError, match="the weights are not this model's"):
        load_weights(build(), export_weights(translator))


@pytest.mark.parametrize("switch", SWITCHES)
def test_every_switch_changes_what_a_language_model_computes_or_learns_from(switch):
    """Each part by itself reaches the language model: other weights, or other logits, or dropout in another place."""
    given = SWITCHES[switch]
    if not given or switch in ("words", "cross by words"):  # the paper; and what counts words
        return
    plain, changed = (build_language_model(ModelConfig(**(SIZES | each))) for each in ({}, given))
    token = texts()
    for model in (plain, changed):
        torch.manual_seed(7)
        model.train()
    differs = [name for name, _ in changed.named_parameters()] != [name for name, _ in plain.named_parameters()]
    logits = []
    for model in (plain, changed):
        torch.manual_seed(7)
        with torch.no_grad():
            logits.append(model(token))
    assert differs or not torch.equal(*logits)


def test_deepnorm_has_the_constants_of_a_decoder_alone():
    model = build_language_model(ModelConfig(**(SIZES | {"residual_scaling": "deepnorm"})))
    layer = next(model.decoder.each_layer())
    assert layer.attention_sublayer.alpha == pytest.approx((2 * 3) ** 0.25)
    limit = (8 * 3) ** -0.25 * math.sqrt(6 / (14 + 22))
    widest = max(p.abs().max().item() for name, p in layer.feed_forward.named_parameters() if p.ndim == 2)
    assert 0.9 * limit < widest <= limit


@pytest.mark.parametrize("beam_size", [1, 3])
def test_a_prefix_is_kept_and_the_score_is_that_of_the_full_pass(beam_size):
    model = build(norm_placement="pre")
    prefix = [[5, 6, 7], [], [9]]
    found = search(
        LanguagePredictor(model),
        NO_SOURCE,
        NO_SOURCE != 0,
        settings=SearchSettings(beam_size=beam_size, length_penalty=0.0),
        max_output_length_B=[9, 7, 8],
        prefix_B=prefix,
    )
    for given_ids, (best, *_) in zip(prefix, found, strict=True):
        ids = list(best.token_ids)
        assert ids[: len(given_ids)] == given_ids
        assert ids[-1] == 3
        with torch.no_grad():
            log_probs = model(torch.tensor([[2, *ids[:-1]]])).log_softmax(dim=-1)[0]
        wanted = sum(log_probs[place, token].item() for place, token in enumerate(ids))
        assert best.log_prob == pytest.approx(wanted, abs=1e-3)
        (scored,) = score_pairs(LanguagePredictor(model), NO_SOURCE[:1], NO_SOURCE[:1] != 0, [ids])
        assert sum(scored) == pytest.approx(wanted, abs=1e-3)


def test_samples_are_drawn_from_the_model_s_own_distribution():
    model = build(num_decoder_layers=1)
    drawn = search(
        LanguagePredictor(model),
        NO_SOURCE[:1],
        NO_SOURCE[:1] != 0,
        settings=SearchSettings(n_best=3001, sampling=Sampling(seed=5)),
        max_output_length_B=[2],
    )[0]
    with torch.no_grad():
        probability = model(torch.tensor([[2]])).softmax(dim=-1)[0, 0]
    probability[[0, 2]] = 0.0  # PAD and BOS are never drawn
    probability /= probability.sum()
    counts = np.zeros(VOCABULARY)
    for hypothesis in drawn:
        counts[hypothesis.token_ids[0]] += hypothesis.count
    expected = 3001 * probability.numpy().astype(np.float64)
    seen = expected >= 5
    statistic = (((counts - expected) ** 2)[seen] / expected[seen]).sum()
    assert statistic < seen.sum() + 5 * math.sqrt(2 * seen.sum())  # five deviations of the chi-square law


def test_a_language_model_is_built_by_the_name_of_its_architecture():
    assert isinstance(build_model(ModelConfig(**SIZES)), LanguageModel)


def test_a_vocabulary_of_sources_is_refused():
    with pytest.raises(ValueError, match="reads one text and source_vocab_size is 23"):
        ModelConfig(**(SIZES | {"source_vocab_size": 23, "embedding_sharing": "none"}))
