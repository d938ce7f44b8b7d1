"""The laws of the model for every combination of its parts, drawn by hypothesis over all fields of ModelConfig.

Shapes: B sentences, S source positions, T target positions, R rows, V vocabulary.
"""

import math

import numpy as np
import pytest
import torch
from few_steps import few_steps
from hypothesis import given, settings
from hypothesis import strategies as st
from model_configs import SWITCHES, VOCABULARY, build_scrambled, example, model_configs
from torch.nn.functional import cross_entropy
from torch.utils.flop_counter import FlopCounterMode

from headway.config.model_config import ModelConfig
from headway.config.residual_scaling import RESIDUAL_SCALINGS
from headway.data.batch import Batch
from headway.folder.weights import read_weights, write_weights
from headway.model.build import build_transformer, export_weights, load_weights
from headway.model.predictor import TransformerPredictor, forced_pass
from headway.model.size import (
    FEED_FORWARD_MATRICES,
    KEPT_INSIDE,
    NORM_VECTORS,
    OVERHEAD,
    cache_bytes_per_token,
    count_multiply_adds,
    count_parameters,
    training_memory,
)
from headway.nn.feed_forward import FEED_FORWARDS
from headway.nn.norm import NORMS
from headway.nn.position import POSITIONS
from headway.nn.residual import SUBLAYERS
from headway.nn.score import ATTENTION_SCORES
from headway.train.objective import Likelihood

EXAMPLES = 20  # of each law; 1,000 were run by hand when this was written
laws = settings(max_examples=EXAMPLES, deadline=None)

SIZES = {
    "vocab_size": VOCABULARY,
    "d_model": 14,
    "d_ff": 11,
    "num_heads": 4,
    "d_k": 6,
    "d_v": 6,
    "num_encoder_layers": 2,
    "num_decoder_layers": 3,
    "max_positions": 31,
}


def log_probs(model, source, target_in):
    with torch.no_grad():
        return model(source, source != 0, target_in).log_softmax(dim=-1)


def close(found, wanted):
    torch.testing.assert_close(found, wanted, atol=1e-4, rtol=1e-4)


@laws
@given(model_configs(), st.lists(st.lists(st.integers(0, 6), min_size=1, max_size=5), min_size=8, max_size=8))
def test_cached_decoding_with_any_selections_equals_the_full_pass(config, rows):
    model = build_scrambled(config)
    source, target_in = example()
    predictor = TransformerPredictor(model)
    state = predictor.start(source, source != 0)
    sentences, prefixes = [0, 1, 2], [[], [], []]
    for step, chosen in enumerate(rows):
        tokens = target_in[[row % 3 for row in range(len(prefixes))], step]
        found, state = predictor.predict(tokens, state)
        prefixes = [[*prefix, token] for prefix, token in zip(prefixes, tokens.tolist(), strict=True)]
        close(found, log_probs(model, source[sentences], torch.tensor(prefixes))[:, -1])
        places = [place % len(prefixes) for place in chosen]
        state = predictor.select(state, torch.tensor(places))
        sentences, prefixes = [sentences[place] for place in places], [prefixes[place] for place in places]


@laws
@given(model_configs())
def test_the_forced_pass_gives_the_log_probabilities_of_cached_decoding(config):
    model = build_scrambled(config)
    source, target_in = example()
    target_out = target_in.roll(-1, dims=1)
    target_out[:, -1] = 3
    forced, attention = forced_pass(model, source, source != 0, target_in_BT=target_in, target_out_BT=target_out)
    predictor = TransformerPredictor(model)
    state = predictor.start(source, source != 0)
    for place in range(target_in.shape[1]):
        found, state = predictor.predict(target_in[:, place], state)
        close(forced[:, place], found.gather(1, target_out[:, place, None])[:, 0])
    torch.testing.assert_close(attention.sum(dim=-1), torch.ones(3, 11))


@laws
@given(model_configs(), st.integers(1, 9))
def test_neither_padding_nor_batch_mates_change_a_sentence(config, padding):
    model = build_scrambled(config)
    source, target_in = example()
    together = log_probs(model, source, target_in)
    padded = torch.nn.functional.pad(source, (0, padding))
    longer = torch.nn.functional.pad(target_in, (0, padding))
    close(log_probs(model, padded, longer)[:, :11], together)
    for row, length in enumerate((7, 4, 1)):
        close(log_probs(model, source[row : row + 1, :length], target_in[row : row + 1])[0], together[row])


@laws
@given(model_configs(), st.integers(1, 10))
def test_the_future_never_changes_the_past_and_a_token_changes_what_follows(config, place):
    model = build_scrambled(config)
    source, target_in = example()
    other = target_in.clone()
    other[:, place] = 32 - other[:, place]
    first, second = (log_probs(model, source, ids) for ids in (target_in, other))
    torch.testing.assert_close(second[:, :place], first[:, :place], atol=1e-5, rtol=0)
    changed = target_in[:, place] != 16
    assert ((second[:, place] - first[:, place])[changed].abs().amax(dim=-1) > 1e-6).all()


@laws
@given(model_configs(), st.integers(0, 99))
def test_every_parameter_has_a_finite_gradient(config, seed):
    model = build_scrambled(config).train()
    source, target_in = example()
    torch.manual_seed(seed)
    model(source, source != 0, target_in).log_softmax(dim=-1).sin().sum().backward()
    gradients = {name: parameter.grad for name, parameter in model.named_parameters()}
    assert [name for name, gradient in gradients.items() if gradient is None or not gradient.isfinite().all()] == []
    # (a bias of the keys moves all scores of a query alike: softmax does not see it)
    silent = [name for name, gradient in gradients.items() if not gradient.any() and not name.endswith("key.bias")]
    assert silent == []


@laws
@given(model_configs())
def test_the_training_loss_is_that_of_the_models_logits(config):
    model = build_scrambled(config)
    source, target_in = example()
    target_out = target_in.roll(-1, dims=1)
    target_out[1, 5:] = 0
    batch = Batch(source, target_in, target_out)
    sums = Likelihood(0.1).sums(model, batch, precision="float32")
    logits = model(source, source != 0, target_in)[target_out != 0]
    for label_smoothing, found in zip((0.1, 0.0), sums, strict=True):
        wanted = cross_entropy(logits, target_out[target_out != 0], reduction="sum", label_smoothing=label_smoothing)
        torch.testing.assert_close(found, wanted, atol=1e-4, rtol=1e-5)


@laws
@given(model_configs())
def test_bf16_keeps_near_float32_and_finite(config):
    model = build_scrambled(config)
    source, target_in = example()
    source[2] = 0  # of padding only
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = model(source, source != 0, target_in)
    logits.float().log_softmax(dim=-1).sin().sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())
    wanted = model(source, source != 0, target_in)
    assert (logits.float() - wanted).abs().mean() < 0.03 * wanted.std()


@laws
@given(config=model_configs())
def test_exported_weights_load_bit_for_bit_and_tied_matrices_stay_one(config, tmp_path_factory):
    model = build_scrambled(config, seed=2)
    path = tmp_path_factory.mktemp("weights") / "model.safetensors"
    write_weights(path, export_weights(model))
    loaded = build_transformer(config, seed=7).eval()
    load_weights(loaded, read_weights(path))
    for name, array in export_weights(loaded).items():
        assert np.array_equal(array, dict(model.named_parameters())[name].detach().numpy()), name
    source, target_in = example()
    assert torch.equal(log_probs(loaded, source, target_in), log_probs(model, source, target_in))
    three = (loaded.source_stem.embedding.weight, loaded.target_stem.embedding.weight, loaded.output.weight)
    assert len({id(weight) for weight in three}) == {"all": 1, "target": 2, "none": 3}[config.embedding_sharing]


@laws
@given(model_configs())
def test_parameters_are_counted_exactly_by_component(config):
    with torch.device("meta"):  # shapes without numbers
        model = build_transformer(config)
    counts = count_parameters(config)
    sums = dict.fromkeys(("embedding", "positions", "encoder_attention", "encoder_feed_forward", "encoder_norm"), 0)
    for name, parameter in model.named_parameters():
        component = component_of(name)
        sums[component] = sums.get(component, 0) + parameter.numel()
    for component, number in sums.items():
        assert getattr(counts, component) == number, component
    assert sum(sums.values()) == counts.total
    assert counts.non_embedding == counts.total - sum(sums.get(k, 0) for k in ("embedding", "positions", "output_bias"))


def component_of(name):
    stack, *parts = name.split(".")
    layers = stack in ("encoder", "decoder")
    found = {
        "positions": "position" in parts,
        "output_bias": name == "output.bias",
        "embedding": not layers and "position" not in parts and name != "output.bias",
        f"{stack}_norm": layers and "norm" in parts,
        f"{stack}_feed_forward": layers and "feed_forward" in parts,
        "encoder_attention": stack == "encoder" and "self_attention" in parts,
        "decoder_self_attention": stack == "decoder" and "self_attention" in parts,
        "decoder_cross_attention": stack == "decoder" and "cross_attention" in parts,
    }
    return next(component for component, holds in found.items() if holds)


@laws
@given(model_configs())
def test_multiply_adds_are_those_that_torch_counts(config):
    model = build_transformer(config).eval()
    for module in model.modules():
        if hasattr(module, "recorder"):
            module.recorder = lambda weights: None  # the definition: every product is a matrix product
    source, target_in = torch.randint(4, 23, (1, 5)), torch.randint(4, 29, (1, 13))
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(source, source != 0, target_in)
    counted = count_multiply_adds(config, source_length=5, target_length=13)
    assert counter.get_total_flops() == 2 * (5 * counted.source_token + 13 * counted.target_token)


@laws
@given(model_configs())
def test_cache_bytes_are_those_of_the_cache(config):
    model = build_transformer(config).eval()
    source, target_in = example()
    predictor = TransformerPredictor(model)
    state = predictor.start(source[:1], source[:1] != 0)
    for place in range(11):
        _, state = predictor.predict(target_in[:1, place], state)
    window = math.inf if config.attention_window is None else config.attention_window
    a_token = cache_bytes_per_token(config, value_bytes=4)
    assert sum(held(memory) for memory in state.memory) == 7 * a_token
    assert sum(held(past) for past in state.past) == min(11, window + 1) * a_token


def held(kept):
    """Bytes that a cache keeps alive."""
    return kept.key_BGSK.untyped_storage().nbytes() + kept.value_BGSV.untyped_storage().nbytes()


@pytest.mark.parametrize("switch", SWITCHES)
def test_what_training_keeps_is_estimated_part_by_part(switch):
    sizes = {"vocab_size": 97, "d_model": 64, "d_ff": 256, "num_heads": 8, "num_encoder_layers": 2}
    sizes |= {"num_decoder_layers": 2, "dropout": 0.1}
    plain, changed = ModelConfig(**sizes), ModelConfig(**sizes | SWITCHES[switch])
    more = kept_for_backward(changed, length=27) - kept_for_backward(plain, length=27)
    estimates = [training_memory(c, microbatch_tokens=1_000_000, length=27).activations for c in (changed, plain)]
    estimate = (estimates[0] - estimates[1]) / 1_000_000 / OVERHEAD[4]  # bytes a pair of tokens, as they are counted
    whole = kept_for_backward(plain, length=27)
    assert estimate == pytest.approx(more, abs=0.05 * whole)


def kept_for_backward(config, *, length):
    """Bytes that autograd keeps for a pair of tokens, parameters apart, each storage once."""
    model = build_transformer(config).train()
    own = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    kept = {}

    def keep(tensor):
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = (storage.nbytes(), tensor)
        return tensor

    ids = torch.randint(4, 97, (10, length), generator=torch.Generator().manual_seed(1))
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        model.hidden(ids, ids != 0, ids)
    return sum(size for place, (size, _) in kept.items() if place not in own) / ids.numel()


def test_the_sizes_name_the_choices_of_the_parts():
    choices = {
        name: set(field.annotation.__args__) for name, field in ModelConfig.model_fields.items() if name in KINDS
    }
    assert choices == {name: set(kinds) for name, kinds in KINDS.items()}
    assert set(FEED_FORWARD_MATRICES) == set(KEPT_INSIDE) == set(FEED_FORWARDS)
    assert set(NORM_VECTORS) == set(NORMS)


KINDS = {
    "positions": POSITIONS,
    "norm": NORMS,
    "norm_placement": SUBLAYERS,
    "activation": FEED_FORWARDS,
    "residual_scaling": RESIDUAL_SCALINGS,
    "attention_score": ATTENTION_SCORES,
}


@laws
@given(model_configs(), st.sampled_from([10, 11, 29]))
def test_a_window_as_wide_as_the_sentence_is_full_attention(config, window):
    source, target_in = example()
    results = [
        log_probs(build_scrambled(config.model_copy(update={"attention_window": width})), source, target_in)
        for width in (None, window)
    ]
    close(results[1], results[0])


def test_a_window_bounds_what_self_attention_reaches_and_not_cross_attention():
    config = ModelConfig(**SIZES | {"attention_window": 2, "num_encoder_layers": 1, "num_decoder_layers": 1})
    model = build_scrambled(config)
    source, target_in = example()
    source, target_in = source[:1], target_in[:1]
    other = target_in.clone()
    other[0, 3] = 32 - other[0, 3]
    moved = (log_probs(model, source, other) - log_probs(model, source, target_in))[0].abs().amax(dim=-1) > 1e-6
    assert moved.tolist() == [3 <= place <= 5 for place in range(11)]
    first, second = source.clone(), source.clone()
    second[0, 2] = 26 - second[0, 2]
    memories = [model.encode(ids, None) for ids in (first, second)]
    moved = (memories[1] - memories[0])[0].abs().amax(dim=-1) > 1e-6
    assert moved.tolist() == [abs(place - 2) <= 2 for place in range(7)]
    moved = (log_probs(model, second, target_in) - log_probs(model, first, target_in))[0].abs().amax(dim=-1) > 1e-6
    assert moved.all()


def test_memory_of_a_long_decoding_stays_flat_with_a_window():
    predictor = TransformerPredictor(build_transformer(ModelConfig(**SIZES | {"attention_window": 5})).eval())
    source, _ = example()
    state = predictor.start(source, source != 0)
    sizes = []
    for _ in range(60):
        _, state = predictor.predict(torch.tensor([7, 8, 9]), state)
        state = predictor.select(state, torch.tensor([2, 0, 1]))
        sizes.append(sum(held(past) for past in state.past))
    assert sizes[6:] == [sizes[5]] * 54
    assert sizes[4] < sizes[5]


# First weights


def glorot_limit(model, name, *widths):
    weight = dict(model.named_parameters())[f"{name}.weight"]
    return weight.abs().max().item() / math.sqrt(6.0 / sum(widths))


def test_deepnorm_begins_with_smaller_feed_forward_value_and_output_matrices():
    sizes = {"vocab_size": 31, "d_model": 96, "d_ff": 160, "num_heads": 3, "d_k": 20, "d_v": 28}
    config = ModelConfig(**sizes, num_encoder_layers=2, num_decoder_layers=3, residual_scaling="deepnorm")
    model = build_transformer(config)
    beta = {"encoder": 0.87 * (2**4 * 3) ** (-1 / 16), "decoder": 36 ** (-1 / 4)}
    for stack, attentions in (("encoder", ["self"]), ("decoder", ["self", "cross"])):
        layer = f"{stack}.layers.1"
        for attention in attentions:
            together = 96 + 2 * 60 + 84 if attention == "self" else 96 + 60 + 84
            name = f"{layer}.{attention}_attention"
            assert glorot_limit(model, f"{name}.value", together) == pytest.approx(beta[stack], rel=0.01)
            assert glorot_limit(model, f"{name}.key", together) == pytest.approx(1.0, rel=0.01)
            assert glorot_limit(model, f"{name}.output", 84, 96) == pytest.approx(beta[stack], rel=0.01)
        for matrix in ("inner", "outer"):
            found = glorot_limit(model, f"{layer}.feed_forward.{matrix}", 96, 160)
            assert found == pytest.approx(beta[stack], rel=0.01)
    alphas = {module.alpha for module in model.modules() if hasattr(module, "alpha")}
    assert sorted(alphas) == pytest.approx([0.81 * 48 ** (1 / 16), 9 ** (1 / 4)])


def test_new_parts_are_drawn_as_documented():
    sizes = {"vocab_size": 331, "d_model": 96, "d_ff": 160, "num_heads": 24, "num_kv_heads": 3, "d_k": 20, "d_v": 28}
    config = ModelConfig(
        **sizes, positions="t5", activation="swiglu", norm="rms", norm_placement="pre", output_bias=True
    )
    model = build_transformer(config)
    for stem in (model.source_stem, model.target_stem):
        assert stem.position.weight.std().item() == pytest.approx(96**-0.5, rel=0.05)
        assert (stem.position.weight[0] != 0).all()
    for matrix in ("gate", "inner", "outer"):
        assert glorot_limit(model, f"encoder.layers.0.feed_forward.{matrix}", 96, 160) == pytest.approx(1, rel=0.01)
    together = 96 + 24 * 20 + 3 * 20 + 3 * 28
    for projection in ("query", "key", "value"):
        name = f"decoder.layers.2.self_attention.{projection}"
        assert glorot_limit(model, name, together) == pytest.approx(1.0, rel=0.02)
    assert (model.output.bias == 0).all()
    assert (model.encoder.norm.weight == 1).all()
    assert (model.decoder.norm.weight == 1).all()


def test_pre_norm_begins_with_the_weights_of_post_norm():
    post, pre = (export_weights(build_transformer(ModelConfig(**SIZES, norm_placement=p))) for p in ("post", "pre"))
    assert set(pre) - set(post) == {
        f"{stack}.norm.{kind}" for stack in ("encoder", "decoder") for kind in ("weight", "bias")
    }
    for name, array in post.items():
        assert np.array_equal(pre[name], array), name


@pytest.mark.parametrize(("scaled", "factor"), [(True, math.sqrt(14)), (False, 1.0)])
def test_both_embeddings_are_scaled_as_the_switch_says(scaled, factor):
    model = build_transformer(ModelConfig(**SIZES, embedding_scale=scaled, positions="none", dropout=0.0)).eval()
    for stem in (model.source_stem, model.target_stem):
        torch.testing.assert_close(stem(torch.tensor([[5, 7]]))[0], factor * stem.embedding.weight[[5, 7]])


def test_t5_has_one_table_a_stack_that_all_its_layers_share():
    names = [name for name, _ in build_transformer(ModelConfig(**SIZES, positions="t5")).named_parameters()]
    assert [name for name in names if "position" in name] == [
        "source_stem.position.weight",
        "target_stem.position.weight",
    ]


def test_t5s_encoder_tells_past_from_future_and_its_decoder_has_all_buckets_for_the_past():
    model = build_scrambled(ModelConfig(**SIZES, positions="t5"))
    source, target = (stem.position for stem in (model.source_stem, model.target_stem))
    assert torch.equal(source.bias(16, 16, 0)[:, 15, 0], source.weight[9])  # 15 back: 8 + floor(8 log(15/8) / log(16))
    assert torch.equal(source.bias(16, 16, 0)[:, 0, 3], source.weight[16 + 3])
    assert torch.equal(target.bias(16, 16, 0)[:, 15, 0], target.weight[15])


# Each part learns


def copy_batch(generator, num_sentences):
    words = torch.randint(4, 12, (num_sentences, 5), generator=generator)
    bos, eos = torch.full((num_sentences, 1), 2), torch.full((num_sentences, 1), 3)
    return Batch(torch.cat([words, eos], dim=1), torch.cat([bos, words], dim=1), torch.cat([words, eos], dim=1))


def train(switch, batches):
    """Negative log-likelihoods (nats a token) of one step a batch."""
    sizes = {"vocab_size": 12, "d_model": 24, "d_ff": 48, "num_heads": 4, "num_encoder_layers": 1, "dropout": 0.0}
    return few_steps(build_transformer(ModelConfig(**sizes | {"num_decoder_layers": 1} | SWITCHES[switch])), batches)


GUESSING = 5 * math.log(8) / 6  # of one who knows no more than where the end is


@pytest.mark.parametrize("switch", SWITCHES)
def test_a_model_with_the_part_learns_eight_sentences(switch):
    losses = train(switch, [copy_batch(torch.Generator().manual_seed(1), 8)] * 50)
    assert losses[0] > GUESSING
    assert sum(losses[-3:]) / 3 < 0.7 * GUESSING, losses[::10]


@pytest.mark.slow
@pytest.mark.parametrize("switch", SWITCHES)
def test_a_model_with_the_part_learns_to_copy_sentences_that_it_has_never_seen(switch):
    generator = torch.Generator().manual_seed(1)
    losses = train(switch, (copy_batch(generator, 32) for _ in range(600)))
    assert sum(losses[-20:]) / 20 < 0.1 * GUESSING, losses[::60]
