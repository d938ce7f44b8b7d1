"""A run that begins with an earlier model: what it takes over, what it leaves alone, and what it adds."""

import json
import shutil

import numpy as np
import pytest
import torch
from train_letters import final_state, letters_config, of_kind, run, write_corpus

from headway.cli.main import main
from headway.config.load import load_text
from headway.data.loader import collate
from headway.data.prepared import read_prepared
from headway.errors import ConfigError, DataError, FolderError, TextError
from headway.folder.contents import ModelFolder
from headway.model.build import build_transformer, load_weights
from headway.train.adapt import initial_weights, new_token_parts
from headway.train.events import Interrupted, Notice, Started, StepDone
from headway.train.freeze import COMPONENTS
from headway.train.low_rank import add_low_rank, merged_weights
from headway.train.objective import Likelihood

PARENT = ("model.dropout=0.0", "train.validate_every=7", "train.checkpoint_every=7")
CHILD = """
[data]
train_source = "train.en"
train_target = "train.de"
validation_source = "validation.en"
validation_target = "validation.de"
[train]
max_steps = 8
batch_tokens = 100
warmup_steps = 5
learning_rate = 0.01
precision = "float32"
threads = 1
validate_every = 4
checkpoint_every = 3
label_smoothing = 0.0
average = "none"
[search]
beam_size = 2
max_extra_tokens = 3
"""


@pytest.fixture(scope="module")
def old_data(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("old"))


@pytest.fixture(scope="module")
def new_data(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("new"), pairs=43, seed=6)


@pytest.fixture(scope="module")
def parent(old_data, tmp_path_factory):
    out = tmp_path_factory.mktemp("parent") / "model"
    run(letters_config(*PARENT), old_data, out)
    return out


def child(parent, *overrides):
    return load_text(CHILD, overrides=(f"train.init={json.dumps(str(parent))}", *overrides))


def weights_of(out):
    return {name: np.array(array) for name, array in ModelFolder.open(out).weights().items()}


def test_the_first_step_computes_with_the_weights_of_the_model_it_begins_with(parent, new_data, tmp_path):
    events = run(child(parent), new_data, tmp_path / "out", stop_at=1)
    first = of_kind(events, StepDone)[0]
    folder = ModelFolder.open(parent)
    model = build_transformer(folder.config.model)
    load_weights(model, folder.weights())
    prepared = read_prepared(tmp_path / "out" / "training" / "data")
    store = prepared.store("train")
    losses = []
    for row in range(len(store)):
        batch = collate(store, np.array([row]))
        with torch.no_grad():
            losses.append(Likelihood(0.0).sums(model, batch, precision="float32")[0].item())
    # The first step saw some of these pairs: its mean loss lies far below that of a model drawn anew.
    fresh = run(load_text(CHILD, overrides=OWN_MODEL), new_data, tmp_path / "fresh", stop_at=1)
    mean = sum(losses) / sum(int(length) + 1 for length in store.target_lengths)
    assert abs(first.loss - mean) < 0.5 * abs(of_kind(fresh, StepDone)[0].loss - mean)


OWN_MODEL = (
    *("model.vocab_size=23", "model.d_model=16", "model.d_ff=29", "model.num_heads=2", "text.byte_fallback=false"),
    *("model.num_encoder_layers=1", "model.num_decoder_layers=1", "model.dropout=0.0"),
)


def test_a_first_step_without_learning_leaves_exactly_the_weights_it_began_with(parent, new_data, tmp_path):
    config = child(parent, "train.max_steps=1", "train.learning_rate=1e-30")
    run(config, new_data, tmp_path / "out")
    before, after = weights_of(parent), weights_of(tmp_path / "out")
    assert before.keys() == after.keys()
    assert all(np.array_equal(before[name], after[name]) for name in before)


def test_model_text_and_languages_come_from_the_model(parent, new_data, tmp_path):
    run(child(parent), new_data, tmp_path / "out")
    old, new = ModelFolder.open(parent), ModelFolder.open(tmp_path / "out")
    assert new.config.model == old.config.model
    assert (new.config.source_language, new.config.target_language) == ("en", "de")
    assert new.source_tokenizer.to_json() == old.source_tokenizer.to_json()
    assert new.config.training.parent == str(parent)
    assert f"began with the weights of the model in {parent}" in (tmp_path / "out" / "README.md").read_text("utf-8")


def test_two_equal_passes_of_a_model_without_dropout_are_refused(parent, new_data, tmp_path):
    with pytest.raises(ConfigError) as caught:
        run(child(parent, "train.consistency=rdrop"), new_data, tmp_path / "out")
    said = str(caught.value)
    assert f"the recipe with the model in {parent}, which it begins with: train.consistency is rdrop, but its" in said
    assert "set model.dropout (usual: 0.1 to 0.3)" in said
    assert "\n" not in said
    events = run(
        child(parent, "train.consistency=rdrop", "model.dropout=0.1", "train.max_steps=1"), new_data, tmp_path / "out"
    )
    assert [event.step for event in of_kind(events, StepDone)] == [1]


def test_dropout_is_the_recipes_own(parent, new_data, tmp_path):
    run(child(parent, "model.dropout=0.3", "train.max_steps=1"), new_data, tmp_path / "out")
    assert ModelFolder.open(tmp_path / "out").config.model.dropout == 0.3


def test_a_key_that_the_model_has_otherwise_is_refused_by_name(parent, new_data, tmp_path):
    with pytest.raises(ConfigError, match=r"model\.d_ff is 31, there 29; text\.byte_fallback is True, there False"):
        run(child(parent, "model.d_ff=31", "text.byte_fallback=true"), new_data, tmp_path / "out")
    assert not (tmp_path / "out" / "training" / "states").exists()


def test_a_missing_model_and_the_runs_own_folder_are_refused(parent, new_data, tmp_path):
    with pytest.raises(FolderError, match="nowhere does not exist"):
        run(child(tmp_path / "nowhere"), new_data, tmp_path / "out")
    before = weights_of(parent)
    with pytest.raises(ConfigError, match="would replace the one it begins with"):
        run(child(parent), new_data, parent)
    assert all(np.array_equal(before[name], array) for name, array in weights_of(parent).items())


@pytest.mark.parametrize(
    "kind",
    [(), ("train.freeze=['encoder']",), ("train.lora_rank=3",), ("train.extend_vocabulary=5",)],
    ids=["plain", "frozen", "low rank", "extended"],
)
def test_an_adapted_run_stopped_and_resumed_is_never_stopped(parent, new_data, tmp_path, kind):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    run(child(parent, *kind), new_data, whole)
    events = run(child(parent, *kind), new_data, parts, stop_at=5)
    assert isinstance(events[-1], Interrupted)
    run(child(parent, *kind), new_data, parts)
    assert final_state(whole) == final_state(parts)
    assert (whole / "model.safetensors").read_bytes() == (parts / "model.safetensors").read_bytes()


@pytest.mark.parametrize("component", ["encoder", "decoder", "embeddings", "cross_attention", "feed_forward", "norms"])
def test_a_frozen_component_keeps_its_weights_to_the_bit_and_all_else_moves(parent, new_data, tmp_path, component):
    run(child(parent, f"train.freeze=['{component}']"), new_data, tmp_path / "out")
    before, after = weights_of(parent), weights_of(tmp_path / "out")
    same = {name for name in before if np.array_equal(before[name], after[name])}
    assert same == {name for name in before if COMPONENTS[component](name)}
    assert same


def test_frozen_weights_have_no_moments_and_are_counted_aloud(parent, new_data, tmp_path):
    events = run(child(parent, "train.freeze=['encoder', 'output']"), new_data, tmp_path / "out", stop_at=1)
    told = " ".join(event.text for event in of_kind(events, Notice))
    count = of_kind(events, Started)[0].num_parameters
    frozen = sum(
        array.size for name, array in weights_of(parent).items() if COMPONENTS["encoder"](name) or "embedding" in name
    )
    assert f"{count - frozen:,} of {count:,} parameters are trained" in told
    assert "the same matrix: source_stem.embedding.weight, target_stem.embedding.weight" in told
    moments = {name for name in final_state(tmp_path / "out") if name.startswith("first/")}
    assert moments
    assert not any(name.startswith("first/encoder") for name in moments)


def test_freezing_everything_is_refused(parent, new_data, tmp_path):
    with pytest.raises(ConfigError, match="leaves nothing to train of"):
        run(child(parent, "train.freeze=['encoder', 'decoder', 'embeddings']"), new_data, tmp_path / "out")


@pytest.mark.parametrize("key", ["freeze=['encoder']", "extend_vocabulary=7", "lora_rank=2"])
def test_what_needs_a_model_to_begin_with_says_so(key, new_data, tmp_path):
    config = letters_config(*PARENT, f"train.{key}")
    with pytest.raises(ConfigError, match=rf"train\.{key.partition('=')[0]} needs a model to begin with"):
        run(config, new_data, tmp_path / "out")
    assert not (tmp_path / "out" / "training" / "data").exists()


@pytest.mark.parametrize("key", ["freeze=['encoder']", "extend_vocabulary=7", "sharding=fsdp"])
def test_low_rank_training_is_not_combined_with_what_it_excludes(key):
    with pytest.raises(ConfigError, match="lora_rank freezes all weights but its own"):
        load_text(CHILD, overrides=("train.lora_rank=3", f"train.{key}"))


def test_low_rank_additions_add_nothing_before_the_first_step_and_then_merge(parent):
    folder = ModelFolder.open(parent)
    model = build_transformer(folder.config.model)
    load_weights(model, folder.weights())
    source, target = torch.tensor([[7, 5, 9, 3]]), torch.tensor([[2, 8, 6]])
    mask = source != 0
    plain = model(source, mask, target)
    add_low_rank(model, 3, alpha=5.0, seed=11)
    torch.testing.assert_close(model(source, mask, target), plain, rtol=0, atol=0)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith(".up"):
                parameter.normal_(generator=torch.Generator().manual_seed(13))
    changed = model(source, mask, target)
    assert (changed - plain).abs().max() > 0.1
    merged = build_transformer(folder.config.model)
    load_weights(merged, merged_weights(model))
    torch.testing.assert_close(merged(source, mask, target), changed, rtol=1e-5, atol=1e-5)


def test_low_rank_training_moves_queries_and_values_alone(parent, new_data, tmp_path):
    run(child(parent, "train.lora_rank=3"), new_data, tmp_path / "out")
    before, after = weights_of(parent), weights_of(tmp_path / "out")
    assert before.keys() == after.keys()
    moved = {name for name in before if not np.array_equal(before[name], after[name])}
    assert moved == {name for name in before if name.endswith(("query.weight", "value.weight"))}
    for name in moved:
        assert np.linalg.matrix_rank(after[name] - before[name], tol=1e-5) <= 3


def test_an_extended_vocabulary_keeps_old_rows_and_new_ones_are_means_of_their_parts(parent, new_data, tmp_path):
    config = child(parent, "train.extend_vocabulary=5", "train.max_steps=1", "train.learning_rate=1e-30")
    run(config, new_data, tmp_path / "out")
    old, new = ModelFolder.open(parent), ModelFolder.open(tmp_path / "out")
    assert new.config.model.vocab_size == old.config.model.vocab_size + 5
    rows_before = weights_of(parent)["source_stem.embedding.weight"]
    rows_after = weights_of(tmp_path / "out")["source_stem.embedding.weight"]
    assert np.array_equal(rows_after[: len(rows_before)], rows_before)
    for place in range(old.config.model.vocab_size, new.config.model.vocab_size):
        written = old.source_tokenizer.encode(new.source_tokenizer.decode([place]))
        assert written
        np.testing.assert_allclose(rows_after[place], rows_before[written].mean(axis=0), rtol=0, atol=1e-7)


def test_tags_and_characters_that_were_unknown_begin_with_the_mean_of_all_rows(parent):
    from headway.text.extend import extend_tokenizer

    folder = ModelFolder.open(parent)
    old = folder.source_tokenizer
    new = extend_tokenizer(old, ["zz zz", "abc"], new_tokens=4, tags=["home"])
    parts = new_token_parts(old, new)
    assert new.names[old.vocab_size] == "⟨tag:home⟩"
    assert parts[0] == []
    assert parts[new.names.index("z") - old.vocab_size] == []
    rows = initial_weights(folder, new, new)["source_stem.embedding.weight"]
    np.testing.assert_allclose(rows[old.vocab_size], rows[: old.vocab_size].mean(axis=0), rtol=0, atol=1e-7)


def test_a_tag_that_the_vocabulary_lacks_needs_room(parent, new_data, tmp_path):
    text = (
        CHILD.replace('train_source = "train.en"\ntrain_target = "train.de"\n', "")
        .replace("[train]", '[[data.corpora]]\nsource = "train.en"\ntarget = "train.de"\ntag = "home"\n[train]')
        .replace("[data]", '[data]\nvalidation_tag = "home"')
    )
    config = load_text(text, overrides=(f"train.init={json.dumps(str(parent))}",))
    with pytest.raises(DataError, match=r"lacks the tags home.*Set train\.extend_vocabulary to 1 or more"):
        run(config, new_data, tmp_path / "out")
    wider = load_text(text, overrides=(f"train.init={json.dumps(str(parent))}", "train.extend_vocabulary=1"))
    run(wider, new_data, tmp_path / "out")
    assert ModelFolder.open(tmp_path / "out").config.tags == ("home",)


def test_a_vocabulary_that_is_no_bpe_cannot_be_extended(old_data, new_data, tmp_path):
    run(letters_config(*PARENT, "text.model=unigram", "train.max_steps=1"), old_data, tmp_path / "unigram")
    config = child(tmp_path / "unigram", "train.extend_vocabulary=3")
    with pytest.raises(TextError, match="only a BPE learnt here can be extended"):
        run(config, new_data, tmp_path / "out")


def test_bpe_dropout_with_a_vocabulary_without_merges_is_refused_before_the_run_begins(old_data, new_data, tmp_path):
    run(letters_config(*PARENT, "text.model=wordpiece", "train.max_steps=1"), old_data, tmp_path / "words")
    with pytest.raises(ConfigError, match=r"bpe_dropout is 0\.1 and model is wordpiece"):
        run(child(tmp_path / "words", "text.bpe_dropout=0.1"), new_data, tmp_path / "out")
    run(child(tmp_path / "words", "train.max_steps=1"), new_data, tmp_path / "out")  # nothing is in the way


@pytest.mark.parametrize("new_tokens", [0, 5])
def test_preparing_alone_takes_the_vocabulary_of_the_model_as_training_does(parent, new_data, tmp_path, new_tokens):
    keys = [f"train.init={json.dumps(str(parent))}", f"train.extend_vocabulary={new_tokens}"]
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(CHILD, encoding="utf-8")
    sets = [part for key in keys for part in ("--set", key)]
    assert main(["prepare", str(recipe), "--data", str(new_data), "--out", str(tmp_path / "alone"), *sets]) == 0
    run(load_text(CHILD, overrides=keys), new_data, tmp_path / "out", stop_at=1)
    alone, trained = read_prepared(tmp_path / "alone"), read_prepared(tmp_path / "out" / "training" / "data")
    assert alone.report == trained.report
    assert alone.source_tokenizer.to_json() == trained.source_tokenizer.to_json()


def test_a_run_goes_on_where_the_model_it_began_with_has_moved_and_says_so(parent, new_data, tmp_path):
    moved = tmp_path / "moved"
    shutil.copytree(parent, moved)
    run(child(parent), new_data, tmp_path / "whole")
    run(child(parent), new_data, tmp_path / "parts", stop_at=3)
    events = run(child(moved), new_data, tmp_path / "parts")
    (told,) = [event.text for event in of_kind(events, Notice) if "train.init" in event.text]
    assert told.startswith(f"train.init was {parent}, is {moved}")
    assert final_state(tmp_path / "whole") == final_state(tmp_path / "parts")


def test_a_run_whose_model_is_gone_names_the_two_ways_on(parent, new_data, tmp_path):
    lost = tmp_path / "lost"
    shutil.copytree(parent, lost)
    run(child(lost), new_data, tmp_path / "out", stop_at=3)
    shutil.rmtree(lost)
    with pytest.raises(FolderError, match=r"lost, the model that the run in .*restore it, or name .* with --init"):
        run(child(lost), new_data, tmp_path / "out")


def test_a_vocabulary_size_that_the_model_overrules_is_told_and_the_same_size_is_not(parent, new_data, tmp_path):
    size = ModelFolder.open(parent).config.model.vocab_size
    events = run(child(parent, f"model.vocab_size={size + 14}"), new_data, tmp_path / "other", stop_at=1)
    told = [event.text for event in of_kind(events, Notice) if "vocab_size" in event.text]
    assert len(told) == 1
    assert f"model.vocab_size is {size + 14} in the recipe, {size} there" in told[0]
    events = run(child(parent, f"model.vocab_size={size}"), new_data, tmp_path / "same", stop_at=1)
    assert not [event.text for event in of_kind(events, Notice) if "vocab_size" in event.text]
