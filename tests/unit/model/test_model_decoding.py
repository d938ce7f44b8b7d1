"""Cached, step-by-step decoding equals the whole forward pass.

Shapes: B sentences, S source positions, T target positions, R rows.
"""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from model_configs import positioned

from headway.config.model_config import ModelConfig
from headway.model.build import build_transformer
from headway.model.predictor import TransformerPredictor
from headway.nn.position import POSITIONS
from headway.search.run import search
from headway.search.score import score_pairs
from headway.search.settings import SearchSettings

SHARING = ("all", "target", "none")


def build(*, seed=1, **settings):
    sizes = {
        "vocab_size": 29,
        "d_model": 14,
        "d_ff": 22,
        "num_heads": 2,
        "d_k": 6,
        "d_v": 3,
        "num_encoder_layers": 1,
        "num_decoder_layers": 3,
        "max_positions": 19,
    }
    return build_transformer(ModelConfig(**(sizes | settings)), seed=seed).eval()


def example(seed=3, *, num_sentences=3):
    generator = torch.Generator().manual_seed(seed)
    source = torch.randint(4, 23, (num_sentences, 7), generator=generator)
    for row, length in enumerate((7, 4, 1)):
        source[row, length - 1] = 3
        source[row, length:] = 0
    target_in = torch.randint(4, 29, (num_sentences, 11), generator=generator)
    target_in[:, 0] = 2
    return source, target_in


def stepwise(model, source, target_in):
    """Log-probabilities (B, T, V) by one predict a position."""
    predictor = TransformerPredictor(model)
    state = predictor.start(source, source != 0)
    steps = []
    for place in range(target_in.shape[1]):
        log_probs, state = predictor.predict(target_in[:, place], state)
        steps.append(log_probs)
    return torch.stack(steps, dim=1)


@pytest.mark.parametrize("attention_bias", [False, True])
@pytest.mark.parametrize("sharing", SHARING)
@pytest.mark.parametrize("positions", POSITIONS)
def test_cached_decoding_equals_the_full_pass(positions, sharing, attention_bias):
    source_size = None if sharing == "all" else 23
    model = build(
        **positioned(positions), embedding_sharing=sharing, source_vocab_size=source_size, attention_bias=attention_bias
    )
    source, target_in = example()
    full = model(source, source != 0, target_in).log_softmax(dim=-1)
    torch.testing.assert_close(stepwise(model, source, target_in), full, atol=1e-5, rtol=0)


def test_a_cached_step_reads_no_more_of_the_past_than_its_cache():
    model = build()
    source, target_in = example()
    other = target_in.clone()
    other[:, 6] = 33 - other[:, 6]
    first, second = (stepwise(model, source, ids) for ids in (target_in, other))
    assert torch.equal(first[:, :6], second[:, :6])
    assert not torch.equal(first[:, 6:], second[:, 6:])


@settings(max_examples=20, deadline=None)
@given(
    rows=st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=7), min_size=1, max_size=5),
    seed=st.integers(0, 99),
)
def test_any_chain_of_selections_follows_the_chosen_prefixes(rows, seed):
    model = build(seed=1)
    source, _ = example()
    predictor = TransformerPredictor(model)
    generator = torch.Generator().manual_seed(seed)
    state = predictor.start(source, source != 0)
    sentences, prefixes = [0, 1, 2], [[], [], []]
    for chosen in rows:
        tokens = torch.randint(4, 29, (len(prefixes),), generator=generator)
        tokens = tokens if prefixes[0] else torch.full_like(tokens, 2)
        log_probs, state = predictor.predict(tokens, state)
        prefixes = [[*prefix, token] for prefix, token in zip(prefixes, tokens.tolist(), strict=True)]
        ids = source[sentences]
        full = model(ids, ids != 0, torch.tensor(prefixes))[:, -1].log_softmax(dim=-1)
        torch.testing.assert_close(log_probs, full, atol=1e-5, rtol=0)
        places = [place % len(prefixes) for place in chosen]
        state = predictor.select(state, torch.tensor(places))
        sentences, prefixes = [sentences[p] for p in places], [prefixes[p] for p in places]


def test_a_state_is_a_value_that_can_be_continued_twice():
    predictor = TransformerPredictor(build())
    source, _ = example()
    _, state = predictor.predict(torch.tensor([2, 2, 2]), predictor.start(source, source != 0))
    first, _ = predictor.predict(torch.tensor([5, 6, 7]), state)
    predictor.predict(torch.tensor([8, 9, 10]), state)
    again, _ = predictor.predict(torch.tensor([5, 6, 7]), state)
    assert torch.equal(first, again)


@pytest.mark.parametrize("beam_size", [1, 3])
def test_the_printed_score_is_that_of_forced_decoding_and_of_the_full_pass(beam_size):
    model = build()
    predictor = TransformerPredictor(model)
    source, _ = example()
    settings = SearchSettings(beam_size)
    found = search(predictor, source, source != 0, settings=settings, max_output_length_B=[9, 7, 5])
    found = [hypotheses[0] for hypotheses in found]
    forced = score_pairs(predictor, source, source != 0, [hypothesis.token_ids for hypothesis in found])
    for row, (hypothesis, token_log_probs) in enumerate(zip(found, forced, strict=True)):
        assert hypothesis.log_prob == pytest.approx(sum(token_log_probs), abs=1e-5)
        ids = source[row : row + 1]
        target_in = torch.tensor([[2, *hypothesis.token_ids[:-1]]])
        logits = model(ids, ids != 0, target_in).log_softmax(dim=-1)
        full = logits[0].gather(-1, torch.tensor(hypothesis.token_ids)[:, None]).sum()
        assert hypothesis.log_prob == pytest.approx(full.item(), abs=1e-4)


def test_log_probabilities_are_float32_and_sum_to_one_in_bf16_too():
    source, target_in = example()
    model = build().bfloat16()
    log_probs = stepwise(model, source, target_in)
    assert log_probs.dtype == torch.float32
    torch.testing.assert_close(log_probs.exp().sum(dim=-1), torch.ones(3, 11))


def test_decoding_past_the_sinusoidal_table_leaves_the_model_fit_for_training():
    model = build(max_positions=5)
    source, target_in = example()
    stepwise(model, source, target_in)  # the tables grow within inference mode
    model.train()
    model(source, source != 0, target_in).sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())
    assert not any(buffer.is_inference() for buffer in model.buffers())
