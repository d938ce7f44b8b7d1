"""Runs that train parsers: F1 at validations, the folder and its card, corpora with tags, runs that begin with one."""

import json

import pytest

from headway.config.load import load_text
from headway.config.positions import read_bits
from headway.errors import ConfigError, DataError, TextError
from headway.folder.contents import ModelFolder
from headway.train.events import DataReady, Finished, Notice, Validated, Warned
from headway.train.run import train
from headway.translate.compute import Compute
from headway.translate.parser import Parser
from headway.trees.brackets import read_trees
from headway.trees.linear import rooted
from toy_treebank import treebank

RECIPE = """
[data]
format = "trees"
train_source = "one.trees"
validation_source = "one.trees"
[clean]
drop_duplicates = false
[parsing]
tags = "given"
[text]
shared_vocabulary = false
[model]
vocab_size = 97
source_vocab_size = 331
d_model = 16
d_ff = 23
num_heads = 2
num_encoder_layers = 1
num_decoder_layers = 1
dropout = 0.0
embedding_sharing = "target"
[train]
max_steps = 60
batch_tokens = 257
warmup_steps = 13
learning_rate = 0.02
label_smoothing = 0.0
validate_every = 60
checkpoint_every = 60
precision = "float32"
threads = 1
best_by = "f1"
average = "none"
[search]
beam_size = 2
max_extra_tokens = 53
"""
ONE = "(TOP (S (NP (DT the) (NN dog)) (VP (VBZ sees) (NP (NP (DT a) (NN star)) (PP (IN of) (NP (NNP Bo))))) (. .)))"
NEW = "(TOP (SQ (VBZ Is) (NP (DT a) (NN star)) (. ?)))"


def run(folder, out="run", recipe=RECIPE, overrides=()):
    return list(train(load_text(recipe, overrides=overrides), folder, out_dir=folder / out))


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    """A run over a treebank of one tree: its folder, and its events."""
    folder = tmp_path_factory.mktemp("one")
    (folder / "one.trees").write_text(f"{ONE}\n", encoding="utf-8")
    return folder, run(folder)


def test_a_treebank_of_one_tree_is_learnt(one):
    folder, events = one
    (validated,) = [event for event in events if isinstance(event, Validated)]
    assert validated.f1 == 100.0
    (tree,) = read_trees([ONE])
    (in_8_bits,) = Parser.from_folder(folder / "run").parse([tree.words()], tags=[tree.tags()])
    by_torch = Compute(engine="torch")
    (parse,) = Parser.from_folder(folder / "run", compute=by_torch).parse([tree.words()], tags=[tree.tags()])
    assert in_8_bits.tree == parse.tree == rooted(tree)
    (free,) = Parser.from_folder(folder / "run", compute=by_torch, constrained=False).parse(
        [tree.words()], tags=[tree.tags()]
    )
    assert free.tree == rooted(tree)
    assert free.repairs.total == 0
    assert free.log_prob == pytest.approx(parse.log_prob, abs=1e-4)


@pytest.mark.parametrize("parsing", ['tags = "given"', 'tags = "predicted"', 'tags = "given"\nwords = false'])
def test_a_model_that_counts_words_learns_a_tree_by_torch_and_by_the_engine(tmp_path, parsing):
    (tmp_path / "one.trees").write_text(f"{ONE}\n", encoding="utf-8")
    recipe = RECIPE.replace('tags = "given"', parsing)
    events = run(tmp_path, recipe=recipe, overrides=["model.positions=words", "model.cross_positions=words"])
    assert [event.f1 for event in events if isinstance(event, Validated)] == [100.0]
    (tree,) = read_trees([ONE])
    tags = [tree.tags()] if "given" in parsing else None
    parses = [
        Parser.from_folder(tmp_path / "run", compute=compute).parse([tree.words()], tags=tags)[0]
        for compute in (Compute(engine="torch"), Compute())
    ]
    assert [parse.tree for parse in parses] == [rooted(tree)] * 2
    model = ModelFolder.open(tmp_path / "run").config.model
    assert model.source_word_starts
    assert model.target_word_starts


def test_what_the_run_writes_tells_of_a_parser(one):
    folder, events = one
    assert ModelFolder.open(folder / "run").config.parsing.tags == "given"
    card = (folder / "run" / "README.md").read_text(encoding="utf-8")
    for text in ("constituency trees", "headway parse", "| one.trees | 1 | given | 100.00", "whole, and worse"):
        assert text in card
    assert "BLEU" not in card
    lines = [
        json.loads(line) for line in (folder / "run" / "training" / "metrics.jsonl").read_text().split("\n") if line
    ]
    assert [line["f1"] for line in lines if line["event"] == "validation"] == [100.0]
    assert not [event for event in events if isinstance(event, Warned) and event.kind != "overlap"]
    assert not [event for event in events if isinstance(event, Notice) and "BLEU" in event.text]
    finished = events[-1]
    assert isinstance(finished, Finished)
    assert finished.evaluation.scores.all.every_length.f1 == 100.0
    assert finished.evaluation.tags == "given"


MIXED = "(TOP (S (NP (DT the) (NN dog)) (VP (VBZ sees) (NN (DT a) (NN star))) (. .)))"  # NN is a phrase as well
PENN = "(TOP (S (NP (DT the) (NP dog)) (VP (VBZ sees) (NP (DT a) (NN star))) (. .)))"  # NP is a tag as well
QUICK = ("train.max_steps=15", "train.validate_every=15", "train.checkpoint_every=15")


@pytest.mark.parametrize(
    ("trees", "told"),
    [
        (
            ["(TOP (NP (NNP Bo)))", ONE, MIXED],
            "2 of 3 training trees have words whose tag is the label of phrases too (NN):",
        ),
        ([ONE, PENN], "1 of 2 training trees have words whose tag is the label of phrases too (NP):"),
        ([MIXED, PENN], "2 of 2 training trees have words whose tag is the label of phrases too (NN, NP):"),
    ],
)
def test_tags_that_search_among_trees_cannot_find_are_told_at_the_start(tmp_path, trees, told):
    (tmp_path / "one.trees").write_text("".join(f"{tree}\n" for tree in trees), encoding="utf-8")
    (warning,) = [
        event for event in run(tmp_path, overrides=QUICK) if isinstance(event, Warned) and event.kind == "labels"
    ]
    assert warning.step == 0
    assert told in warning.text
    free = run(tmp_path, "free", overrides=(*QUICK, "parsing.constrained=false"))
    assert not [event for event in free if isinstance(event, Warned) and event.kind == "labels"]


def test_a_run_that_begins_with_a_parser_needs_room_for_new_symbols_and_tags(one):
    folder, _ = one
    (folder / "new.trees").write_text(f"{ONE}\n{NEW}\n", encoding="utf-8")
    overrides = [
        f"train.init={folder / 'run'}",
        "data.train_source=new.trees",
        "train.max_steps=2",
        "train.validate_every=2",
        "train.warmup_steps=1",
    ]
    with pytest.raises(DataError, match=r"lacks 2 symbols of the trees to train on: /SQ, SQ;"):
        run(folder, "again", overrides=overrides)
    with pytest.raises(TextError, match=r"train\.extend_vocabulary to 2"):
        run(folder, "again", overrides=[*overrides, "train.extend_vocabulary=1"])
    events = run(folder, "again", overrides=[*overrides, "train.extend_vocabulary=5"])
    (ready,) = [event for event in events if isinstance(event, DataReady)]
    old = ModelFolder.open(folder / "run")
    assert ready.prepared.target_tokenizer.names == [*old.target_tokenizer.names, " /SQ", " SQ"]
    assert list(ready.prepared.source_tokenizer.names[: old.source_tokenizer.vocab_size]) == list(
        old.source_tokenizer.names
    )
    assert isinstance(events[-1], Finished)


def test_new_words_and_tags_of_a_run_that_begins_with_a_parser_are_counted_too(tmp_path):
    (tmp_path / "one.trees").write_text(f"{ONE}\n", encoding="utf-8")
    (tmp_path / "new.trees").write_text("(TOP (S (NP (UH Ya)) (. .)))\n", encoding="utf-8")
    quick = ["train.max_steps=2", "train.validate_every=2", "train.warmup_steps=1"]
    run(tmp_path, overrides=[*quick, "model.positions=words"])
    overrides = [*quick, f"train.init={tmp_path / 'run'}", "data.train_source=new.trees", "train.extend_vocabulary=9"]
    run(tmp_path, "again", overrides=overrides)
    old, new = (ModelFolder.open(tmp_path / name) for name in ("run", "again"))
    starts = read_bits(new.config.model.target_word_starts)
    assert " UH" in {new.target_tokenizer.names[token_id] for token_id in starts}
    assert " UH" not in old.target_tokenizer.names


def test_a_run_that_begins_with_a_parser_reads_and_writes_as_it_does(one):
    folder, _ = one
    with pytest.raises(ConfigError, match=r"parsing\.style is 'xx', there 'tags'"):
        run(folder, "other", overrides=[f"train.init={folder / 'run'}", "parsing.style=xx"])


def test_corpora_of_trees_may_have_weights_and_tags(tmp_path):
    trees = treebank(7, 23)
    (tmp_path / "news.trees").write_text("".join(f"{tree}\n" for tree in trees[:13]), encoding="utf-8")
    (tmp_path / "bio.trees").write_text("".join(f"{tree}\n" for tree in trees[13:]), encoding="utf-8")
    recipe = RECIPE.replace('train_source = "one.trees"\nvalidation_source = "one.trees"', "held_out_share = 0.2")
    corpora = '[[data.corpora]]\nsource = "news.trees"\ntag = "news"\nweight = 2.0\n'
    corpora += '[[data.corpora]]\nsource = "bio.trees"\ntag = "bio"\n'
    recipe = recipe.replace("[clean]", f"{corpora}[clean]")
    run(tmp_path, recipe=recipe, overrides=["train.max_steps=3", "train.warmup_steps=1", "train.validate_every=3"])
    parser = Parser.from_folder(tmp_path / "run")
    assert parser.tags == ("news", "bio")
    words, tags = ["Bo", "sees", "Ann", "."], ["NNP", "VBZ", "NNP", "."]
    first, second = (
        parser.parse([words], tags=[tags], corpus_tags=corpus_tag, beam_size=1)[0].log_prob
        for corpus_tag in ("news", "bio")
    )
    assert first != second
