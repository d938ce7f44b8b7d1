"""Building, counting, sharing, exporting and loading."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.config.model_config import ModelConfig
from headway.config.presets import BASE, BIG
from headway.config.train_config import TrainConfig
from headway.data.batch import Batch
from headway.errors import ModelError
from headway.model.build import build_transformer, export_weights, load_weights
from headway.model.size import count_parameters
from headway.train.objective import Likelihood
from headway.train.optimizer import build_adam
from headway.train.step import train_step

SMALL = {
    "vocab_size": 29,
    "d_model": 14,
    "d_ff": 22,
    "num_heads": 2,
    "d_k": 5,
    "d_v": 3,
    "num_encoder_layers": 2,
    "num_decoder_layers": 1,
}
SHARING = ("all", "target", "none")
MATRICES = {"all": 1, "target": 2, "none": 3}


def build(seed=1, **settings):
    return build_transformer(ModelConfig(**(SMALL | settings)), seed=seed)


def three_matrices(model):
    return [model.source_stem.embedding.weight, model.target_stem.embedding.weight, model.output.weight]


def storages(model):
    return {weight.data_ptr() for weight in three_matrices(model)}


def example(seed=2):
    generator = torch.Generator().manual_seed(seed)
    source, words = (torch.randint(4, 29, (3, length), generator=generator) for length in (5, 6))
    bos, eos = torch.full((3, 1), 2), torch.full((3, 1), 3)
    return Batch(source, torch.cat([bos, words], dim=1), torch.cat([words, eos], dim=1))


def train(model, optimizer, steps):
    model.train()
    for step in steps:
        train_step(
            model,
            optimizer,
            batches=[example(seed=step)],
            step=step,
            seed=1,
            learning_rate=1e-2,
            objective=Likelihood(0.1),
            precision="float32",
        )
    return model.eval()


def logits(model):
    batch = example()
    with torch.no_grad():
        return model.eval()(batch.source_BS, batch.source_mask_BS, batch.target_in_BT)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_built_model_has_exactly_the_counted_parameters(data):
    sharing = data.draw(st.sampled_from(SHARING))
    settings = {
        "vocab_size": data.draw(st.integers(5, 97)),
        "d_model": data.draw(st.integers(1, 23)),
        "d_ff": data.draw(st.integers(1, 31)),
        "num_heads": data.draw(st.integers(1, 5)),
        "d_k": data.draw(st.integers(1, 7)),
        "d_v": data.draw(st.integers(1, 7)),
        "num_encoder_layers": data.draw(st.integers(1, 3)),
        "num_decoder_layers": data.draw(st.integers(1, 3)),
        "attention_bias": data.draw(st.booleans()),
        "positions": data.draw(st.sampled_from(["sinusoidal", "learned", "none"])),
        "max_positions": data.draw(st.integers(1, 41)),
        "embedding_sharing": sharing,
        "source_vocab_size": None if sharing == "all" else data.draw(st.none() | st.integers(5, 97)),
    }
    config = ModelConfig(**settings)
    parts = {name: sum(p.numel() for p in part.parameters()) for name, part in parts_of(build_transformer(config))}
    counted = count_parameters(config)
    assert parts["model"] == counted.total
    assert parts["encoder"] == counted.encoder_attention + counted.encoder_feed_forward + counted.encoder_norm
    assert parts["decoder"] == counted.total - parts["encoder"] - counted.embedding - counted.positions
    assert sum(weight.numel() for weight in set(three_matrices(build_transformer(config)))) == counted.embedding


def parts_of(model):
    return [("model", model), ("encoder", model.encoder), ("decoder", model.decoder)]


@pytest.mark.parametrize(
    ("config", "count"),
    [
        (BASE, 63_045_632),
        (BIG, 214_171_648),
        (BASE.model_copy(update={"vocab_size": 40_960, "attention_bias": True}), 65_110_016),
        (BIG.model_copy(update={"vocab_size": 40_960, "attention_bias": True}), 218_300_416),
    ],
    ids=["base", "big", "base as counted by the authors", "big as counted by the authors"],
)
def test_base_and_big_are_built_with_the_papers_counts(config, count):
    with torch.device("meta"):  # shapes without numbers
        model = build_transformer(config)
    assert sum(parameter.numel() for parameter in model.parameters()) == count == count_parameters(config).total


@pytest.mark.parametrize("sharing", SHARING)
def test_shared_matrices_are_one_storage_before_and_after_training_and_loading(sharing):
    model = build(embedding_sharing=sharing)
    assert len(storages(model)) == MATRICES[sharing]
    optimizer = build_adam(model, TrainConfig())
    held = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    assert len(held) == len({id(parameter) for parameter in held}) == len(list(model.parameters()))
    assert sum(any(parameter is weight for weight in three_matrices(model)) for parameter in held) == MATRICES[sharing]

    train(model, optimizer, range(1, 6))
    assert len(storages(model)) == MATRICES[sharing]
    weights = export_weights(model)
    assert sum(array.shape == (29, 14) for array in weights.values()) == MATRICES[sharing]

    loaded = build(seed=77, embedding_sharing=sharing)
    own = storages(loaded)
    assert not torch.equal(logits(loaded), logits(model))
    load_weights(loaded, weights)
    assert storages(loaded) == own  # filled in place: what was shared stays so
    assert torch.equal(logits(loaded), logits(model))  # bit for bit

    train(loaded, build_adam(loaded, TrainConfig()), [6])
    assert len(storages(loaded)) == MATRICES[sharing]
    for first, second in zip(three_matrices(loaded)[1:], three_matrices(loaded)[:-1], strict=True):
        assert torch.equal(first, second) == (first is second)


def test_all_three_uses_of_a_shared_matrix_move_it():
    model = build()
    batch = example()
    hidden = model.hidden(batch.source_BS, batch.source_mask_BS, batch.target_in_BT)
    only_embeddings = torch.autograd.grad(hidden.sin().sum(), model.output.weight)[0]
    used = set(batch.source_BS.flatten().tolist()) | set(batch.target_in_BT.flatten().tolist())
    assert {row for row in range(29) if only_embeddings[row].abs().sum() > 0} == used
    model(batch.source_BS, batch.source_mask_BS, batch.target_in_BT).sin().sum().backward()
    assert (model.output.weight.grad.abs().sum(dim=1) > 0).all()


def test_exported_weights_are_float32_and_share_no_memory_with_the_model():
    model = build()
    weights = export_weights(model)
    assert {array.dtype for array in weights.values()} == {np.dtype(np.float32)}
    before = logits(model)
    for array in weights.values():
        array.fill(0.0)
    assert torch.equal(logits(model), before)
    load_weights(model, weights)
    weights["output.weight" if "output.weight" in weights else next(iter(weights))].fill(5.0)
    assert not any((parameter == 5.0).any() for parameter in model.parameters())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda weights: weights.pop(sorted(weights)[0]), r"1 missing \(first: \['decoder"),
        (lambda weights: weights.update(surplus=np.zeros(1, np.float32)), r"1 unknown \(first: \['surplus'\]\)"),
        (
            lambda weights: weights.update({"encoder.layers.0.feed_forward.inner.weight": np.zeros((22, 13))}),
            r"inner.weight has shape \(22, 13\), the configuration wants \(22, 14\)",
        ),
    ],
    ids=["missing", "unknown", "shape"],
)
def test_weights_of_another_model_are_refused_by_name(change, message):
    model = build()
    weights = export_weights(model)
    change(weights)
    with pytest.raises(ModelError, match=message):
        load_weights(model, weights)


@pytest.mark.parametrize("sharing", SHARING)
def test_learned_positions_are_one_table_a_side(sharing):
    model = build(positions="learned", max_positions=17, embedding_sharing=sharing)
    tables = [model.source_stem.position.weight, model.target_stem.position.weight]
    assert [tuple(table.shape) for table in tables] == [(17, 14), (17, 14)]
    assert tables[0].data_ptr() != tables[1].data_ptr()


def test_dropout_stands_where_the_paper_has_it_and_only_there():
    model = build(dropout=0.25)
    dropouts = {name: part for name, part in model.named_modules() if type(part).__name__ == "Dropout"}
    places = {name for name, module in dropouts.items() if module.probability > 0}
    wanted = {f"{side}_stem.dropout" for side in ("source", "target")}
    wanted |= {f"encoder.layers.{i}.{s}_sublayer.dropout" for i in (0, 1) for s in ("attention", "feed_forward")}
    wanted |= {f"decoder.layers.0.{s}_sublayer.dropout" for s in ("self", "cross", "feed_forward")}
    assert places == wanted
    assert {module.probability for module in dropouts.values()} == {0.25, 0.0}


def test_weights_of_a_wrong_shape_leave_the_model_as_it_was():
    config = ModelConfig(vocab_size=17, d_model=14, d_ff=22, num_heads=2, num_encoder_layers=1, num_decoder_layers=1)
    model, other = build_transformer(config, seed=1), build_transformer(config, seed=2)
    before = export_weights(model)
    weights = export_weights(other)
    last = list(weights)[-1]
    weights[last] = weights[last][..., :-1]
    with pytest.raises(ModelError, match=last):
        load_weights(model, weights)
    after = export_weights(model)
    assert all(np.array_equal(before[name], after[name]) for name in before)
