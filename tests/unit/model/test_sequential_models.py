"""The recurrent and the convolutional model: what a sentence may depend on, cached decoding, sizes, first weights.

Shapes: B sentences, S source positions, T target positions, R rows, D d_model, V vocabulary.
"""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from model_configs import SEQUENTIAL, build_scrambled, example, sequential_configs

from headway.config.model_config import ModelConfig
from headway.engine.pack import unsupported
from headway.model.build import build_model, export_weights, load_weights
from headway.model.init_sequential import GATED
from headway.model.predictor import forced_pass, predictor_of
from headway.model.size import cache_bytes_per_token, count_multiply_adds, count_parameters, training_memory
from headway.search.ensemble import EnsemblePredictor
from headway.search.run import search
from headway.search.score import score_pairs
from headway.search.settings import SearchSettings
from shape_tracer import ShapeTracer

KINDS = list(SEQUENTIAL)


def config_of(kind, **given):
    sizes = {"vocab_size": 29, "d_model": 14, "num_encoder_layers": 2, "num_decoder_layers": 3, "dropout": 0.0}
    return ModelConfig(**(sizes | SEQUENTIAL[kind] | given))


def build(kind, **given):
    return build_scrambled(config_of(kind, **given))


def stepwise(model, source, target_in):
    """Log-probabilities (B, T, V) by one predict a position."""
    predictor = predictor_of(model)
    state = predictor.start(source, source != 0)
    steps = []
    for place in range(target_in.shape[1]):
        log_probs, state = predictor.predict(target_in[:, place], state)
        steps.append(log_probs)
    return torch.stack(steps, dim=1)


@pytest.mark.parametrize("padding", [1, 17])
@pytest.mark.parametrize("kind", KINDS)
def test_padding_never_changes_a_sentence(kind, padding):
    model = build(kind).double()  # its logits are large: nothing keeps them small
    source, target_in = example()
    alone = model(source, source != 0, target_in)
    wider = torch.nn.functional.pad(source, (0, padding))
    torch.testing.assert_close(model(wider, wider != 0, target_in), alone, atol=1e-9, rtol=0)
    longer = torch.nn.functional.pad(target_in, (0, padding))
    torch.testing.assert_close(model(source, source != 0, longer)[:, :11], alone, atol=1e-9, rtol=0)


@pytest.mark.parametrize("kind", KINDS)
def test_batch_mates_never_change_a_sentence(kind):
    model = build(kind).double()
    source, target_in = example()
    together = model(source, source != 0, target_in)
    for row, length in enumerate((7, 4, 1)):
        ids = source[row : row + 1, :length]
        alone = model(ids, ids != 0, target_in[row : row + 1])
        torch.testing.assert_close(together[row : row + 1], alone, atol=1e-9, rtol=0)


@pytest.mark.parametrize("kind", KINDS)
def test_an_output_reads_the_whole_source_and_no_later_target_token(kind):
    model = build(kind)
    source, target_in = example()
    source = source[:1]
    vectors = {"source": [], "target": []}
    for name, stem in (("source", model.source_stem), ("target", model.target_stem)):
        stem.register_forward_hook(lambda _module, _given, x, kept=vectors[name]: kept.append(x))
    logits = model(source, source != 0, target_in[:1])
    given = vectors["target"][0], vectors["source"][0]
    on_target, on_source = torch.autograd.grad(logits[0, 5].sin().sum(), given)
    assert (on_target[0, 6:] == 0).all()
    assert (on_target[0, :6].abs().amax(dim=-1) > 0).all()
    assert (on_source[0].abs().amax(dim=-1) > 0).all()


@settings(max_examples=30, deadline=None)
@given(config=sequential_configs())
def test_cached_decoding_equals_the_full_pass_for_every_combination_of_parts(config):
    model = build_scrambled(config).double()
    source, target_in = example()
    full = model(source, source != 0, target_in).log_softmax(dim=-1).float()
    torch.testing.assert_close(stepwise(model, source, target_in), full, atol=1e-4, rtol=0)


@settings(max_examples=10, deadline=None)
@given(
    kind=st.sampled_from(KINDS),
    rows=st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=5), min_size=1, max_size=4),
)
def test_any_chain_of_selections_follows_the_chosen_prefixes(kind, rows):
    model = build(kind).double()
    source, _ = example()
    predictor = predictor_of(model)
    generator = torch.Generator().manual_seed(5)
    state = predictor.start(source, source != 0)
    sentences, prefixes = [0, 1, 2], [[], [], []]
    for chosen in rows:
        tokens = torch.randint(4, 29, (len(prefixes),), generator=generator)
        log_probs, state = predictor.predict(tokens, state)
        prefixes = [[*prefix, token] for prefix, token in zip(prefixes, tokens.tolist(), strict=True)]
        ids = source[sentences]
        full = model(ids, ids != 0, torch.tensor(prefixes))[:, -1].log_softmax(dim=-1).float()
        torch.testing.assert_close(log_probs, full, atol=1e-4, rtol=0)
        places = [place % len(prefixes) for place in chosen]
        state = predictor.select(state, torch.tensor(places))
        sentences, prefixes = [sentences[p] for p in places], [prefixes[p] for p in places]


@pytest.mark.parametrize("kind", KINDS)
def test_the_printed_score_is_that_of_forced_decoding_and_a_state_can_be_continued_twice(kind):
    predictor = predictor_of(build(kind).double())
    source, _ = example()
    found = search(predictor, source, source != 0, settings=SearchSettings(3), max_output_length_B=[9, 7, 5])
    best = [hypotheses[0] for hypotheses in found]
    forced = score_pairs(predictor, source, source != 0, [hypothesis.token_ids for hypothesis in best])
    for hypothesis, log_probs in zip(best, forced, strict=True):
        assert hypothesis.log_prob == pytest.approx(sum(log_probs), abs=1e-4)
    _, state = predictor.predict(torch.tensor([2, 2, 2]), predictor.start(source, source != 0))
    first, _ = predictor.predict(torch.tensor([5, 6, 7]), state)
    predictor.predict(torch.tensor([8, 9, 10]), state)
    assert torch.equal(predictor.predict(torch.tensor([5, 6, 7]), state)[0], first)


def test_models_of_different_architectures_translate_together():
    transformer = build_scrambled(ModelConfig(vocab_size=29, d_model=14, d_ff=11, num_heads=2, num_encoder_layers=1))
    models = [transformer, build("gru"), build("convolutional")]
    source, target_in = example()
    together = EnsemblePredictor([predictor_of(model) for model in models])
    log_probs, _ = together.predict(torch.tensor([2, 2, 2]), together.start(source, source != 0))
    alone = [model(source, source != 0, target_in[:, :1])[:, 0].softmax(dim=-1) for model in models]
    torch.testing.assert_close(log_probs.exp(), torch.stack(alone).mean(dim=0), atol=1e-4, rtol=0)
    found = search(together, source, source != 0, settings=SearchSettings(3), max_output_length_B=[9, 7, 5])
    assert all(hypotheses[0].token_ids[-1] == 3 for hypotheses in found)


@pytest.mark.parametrize("precision", ["float64", "bf16"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_source_of_padding_only_gives_finite_outputs_and_gradients(kind, precision):
    model = build(kind).double() if precision == "float64" else build(kind)
    source, target_in = example()
    source[1] = 0
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=precision == "bf16"):
        logits = model(source, source != 0, target_in).float()
        alone = model(source[:1], source[:1] != 0, target_in[:1]).float()
    assert logits.isfinite().all()
    tolerance = 1e-5 if precision == "float64" else 0.2
    torch.testing.assert_close(logits[:1], alone, atol=tolerance, rtol=tolerance)
    logits.log_softmax(dim=-1).sin().sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())


@pytest.mark.parametrize("kind", KINDS)
def test_the_forced_pass_gives_log_probabilities_and_the_attention_over_the_source(kind):
    model = build(kind)
    source, target_in = example()
    target_out = torch.cat([target_in[:, 1:], torch.tensor([[3], [3], [0]])], dim=1)
    log_probs, weights = forced_pass(model, source, source != 0, target_in_BT=target_in, target_out_BT=target_out)
    wanted = model(source, source != 0, target_in).log_softmax(dim=-1).gather(-1, target_out[:, :, None])[:, :, 0]
    torch.testing.assert_close(log_probs[:2], wanted[:2].detach(), atol=1e-4, rtol=0)
    assert log_probs[2, -1] == 0.0  # padding
    assert weights.shape == (3, 11, 7)
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(3, 11))
    assert (weights[1, :, 4:] == 0).all()
    assert all(attention.recorder is None for attention in model.looking())  # recording ends with the pass


def test_every_convolutional_decoder_layer_looks_at_the_source_and_of_the_recurrent_ones_the_first():
    assert {kind: len(build(kind).looking()) for kind in KINDS[:3]} == {"lstm": 1, "gru": 1, "convolutional": 3}


@pytest.mark.parametrize("kind", KINDS)
def test_a_token_that_is_not_kept_is_a_zero_vector_in_its_place(kind):
    model = build(kind)
    source, target_in = example()
    with torch.no_grad():
        for stem in (model.source_stem, model.target_stem):
            stem.embedding.weight[1] = 0.0  # no token of the example
    kept_BS, kept_BT = source != source[0, 2], target_in != target_in[0, 3]
    hidden = model.hidden(source, source != 0, target_in, source_kept_BS=kept_BS, target_kept_BT=kept_BT)
    wanted = model.hidden(source.masked_fill(~kept_BS, 1), source != 0, target_in.masked_fill(~kept_BT, 1))
    torch.testing.assert_close(hidden, wanted)
    assert not torch.allclose(hidden, model.hidden(source, source != 0, target_in), atol=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_dropout_acts_in_training_alone(kind):
    model = build(kind, dropout=0.5)
    source, target_in = example()
    first, second = (model(source, source != 0, target_in) for _ in range(2))
    assert torch.equal(first, second)
    model.train()
    assert not torch.allclose(model(source, source != 0, target_in), first, atol=1e-2)


@settings(max_examples=30, deadline=None)
@given(config=sequential_configs())
def test_the_count_of_parameters_is_that_of_the_model_and_tied_matrices_stay_tied(config):
    model = build_model(config)
    weights = export_weights(model)
    assert count_parameters(config).total == sum(array.size for array in weights.values())
    load_weights(model, {name: array + 1.0 for name, array in weights.items()})
    tied = model.output.weight is model.target_stem.embedding.weight
    assert tied == (config.embedding_sharing != "none")
    source_tied = model.source_stem.embedding.weight is model.target_stem.embedding.weight
    assert source_tied == (config.embedding_sharing == "all")


def products(model, source, target_in):
    """Multiply-adds of a pass, counted in every layer that multiplies by a matrix."""
    counted = []
    sizes = {
        torch.nn.Linear: lambda layer, x, y: y.numel() * layer.in_features,
        torch.nn.Conv1d: lambda layer, x, y: y.numel() * layer.in_channels * layer.kernel_size[0],
        torch.nn.LSTM: lambda layer, x, _: x[..., 0].numel() * 4 * layer.hidden_size * (x.shape[2] + layer.hidden_size),
        torch.nn.GRU: lambda layer, x, _: x[..., 0].numel() * 3 * layer.hidden_size * (x.shape[2] + layer.hidden_size),
    }
    for module in model.modules():
        if type(module) in sizes:
            size = sizes[type(module)]
            module.register_forward_hook(lambda layer, given, y, size=size: counted.append(size(layer, given[0], y)))
    model(source, source != 0, target_in)
    return sum(counted) + target_in.numel() * model.output.weight.numel()


@pytest.mark.parametrize("kind", KINDS)
def test_multiply_adds_are_those_of_the_products_that_a_pass_makes(kind):
    config = config_of(kind)
    source, target_in = torch.randint(4, 29, (2, 7)), torch.randint(4, 29, (2, 11))
    model = build_model(config)
    cost = count_multiply_adds(config, source_length=7, target_length=11)
    # no layer multiplies weights by values, nor (in the convolutional model) queries by keys
    inside = 2 * 11 * 7 * 14 * (1 if config.architecture == "recurrent" else 2 * 3)
    found = products(model, source, target_in) + inside
    assert found == 2 * (7 * cost.source_token + 11 * cost.target_token)
    assert cache_bytes_per_token(config, value_bytes=4) == 2 * 14 * 4


@pytest.mark.parametrize("kind", KINDS)
def test_training_memory_grows_with_layers_tokens_and_passes(kind):
    first = training_memory(config_of(kind), microbatch_tokens=100)
    deeper = training_memory(config_of(kind, num_decoder_layers=5), microbatch_tokens=100)
    assert deeper.activations > first.activations
    assert training_memory(config_of(kind), microbatch_tokens=100, passes=2).activations == 2 * first.activations
    assert first.weights == 4 * count_parameters(config_of(kind)).total


def deviation(weight):
    return weight.double().std().item()


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_each_gate_is_drawn_by_itself_and_an_lstm_forgets_little_at_first(cell):
    model = build_model(ModelConfig(architecture="recurrent", recurrent_cell=cell, vocab_size=29, d_model=128))
    first = model.encoder.layers[0].forwards
    for name, fan_in in (("weight_ih_l0", 128), ("weight_hh_l0", 64)):
        limit = math.sqrt(6.0 / (fan_in + 64))
        for gate in getattr(first, name).split(64):
            assert gate.abs().max().item() <= limit
            assert deviation(gate) == pytest.approx(limit / math.sqrt(3.0), rel=0.05)
    biases = first.bias_ih_l0.unflatten(0, (-1, 64))
    assert biases.unique(dim=1).flatten().tolist() == ([0.0, 1.0, 0.0, 0.0] if cell == "lstm" else [0.0] * 3)
    assert (first.bias_hh_l0 == 0).all()
    assert deviation(model.output.weight) == pytest.approx(128**-0.5, rel=0.1)
    assert (model.output.weight[0] == 0).all()


def test_convolutions_keep_the_variance_of_what_goes_through_them():
    config = ModelConfig(architecture="convolutional", vocab_size=997, d_model=128, dropout=0.25)
    model = build_model(config).eval()
    layer = model.decoder.layers[2]
    assert deviation(layer.convolution.kernel.weight) == pytest.approx(math.sqrt(3 * 0.75 / (3 * 128)), rel=0.02)
    assert deviation(layer.cross_attention.query.weight) == pytest.approx(128**-0.5, rel=0.02)
    assert (layer.convolution.kernel.bias == 0).all()
    source, target_in = torch.randint(4, 997, (7, 53)), torch.randint(4, 997, (7, 47))
    for mode in (True, False):
        model.train(mode)
        z = model.remember(source, source != 0).memory.key_BGSK
        assert 0.5 < deviation(z) < 2.0  # after six layers
        assert 0.5 < deviation(model.hidden(source, source != 0, target_in)) < 2.5


def test_the_gain_of_gated_convolutions_keeps_the_variance_of_normal_numbers():
    generator = torch.Generator().manual_seed(1)
    values, gates = torch.randn(2, 1_000_003, generator=generator).double() * math.sqrt(GATED)
    assert deviation(values * gates.sigmoid()) == pytest.approx(1.0, rel=0.01)


@pytest.mark.parametrize("kind", KINDS)
def test_one_seed_gives_one_model_and_another_another(kind):
    first, again, other = (export_weights(build_model(config_of(kind), seed=seed)) for seed in (1, 1, 2))
    assert all((first[name] == again[name]).all() for name in first)
    matrices = [name for name in first if name.endswith("weight")]
    assert all((first[name] != other[name]).any() for name in matrices)


@pytest.mark.parametrize("kind", KINDS)
def test_shape_letters_hold_in_training_search_and_the_forced_pass(kind):
    source, target_in = example()
    with ShapeTracer() as tracer:
        model = build(kind, dropout=0.2).train()
        model(source, source != 0, target_in).sum().backward()
        model.eval()
        forced_pass(model, source, source != 0, target_in_BT=target_in, target_out_BT=target_in)
        search(predictor_of(model), source, source != 0, settings=SearchSettings(3), max_output_length_B=[3, 9, 6])
    tracer.check()
    assert {"x_R1D", "hidden_RD", "x_BSD", "x_BTD", "attention_weights_B1TS"} <= tracer.measured


@pytest.mark.parametrize("kind", KINDS)
def test_the_compiled_engine_leaves_it_to_torch_and_says_why(kind):
    config = config_of(kind)
    assert unsupported(config)[0] == f"architecture {config.architecture}"
