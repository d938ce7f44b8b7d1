"""From a treebank to a parser and its F1, through the real commands; words alone decide where phrases attach."""

import json

import pytest
from journey_command import headway, write_lines

from toy_treebank import treebank

RECIPE = """
[data]
format = "trees"
train_source = "train.trees"
validation_source = "dev.trees"
test_source = "test.trees"

[text]
shared_vocabulary = false

[model]
vocab_size = 100
source_vocab_size = 330
d_model = 64
d_ff = 128
num_heads = 4
num_encoder_layers = 1
num_decoder_layers = 1
dropout = 0.0
embedding_sharing = "target"

[train]
max_steps = 700
batch_tokens = 1024
warmup_steps = 60
learning_rate = 0.004
validate_every = 350
validation_sentences = 30
checkpoint_every = 26
precision = "float32"
threads = 1
best_by = "f1"

[search]
beam_size = 2
length_penalty = 0.3
max_extra_tokens = 100
"""


@pytest.fixture(scope="module")
def parser(tmp_path_factory):
    """A run over sentences of a small grammar: (folder, what the command said)."""
    folder = tmp_path_factory.mktemp("treebank")
    trees = treebank(3, 701)
    for name, part in (("train", trees[:600]), ("dev", trees[600:650]), ("test", trees[650:])):
        write_lines(folder / f"{name}.trees", part)
    (folder / "parser.toml").write_text(RECIPE, encoding="utf-8")
    done = headway("train", folder / "parser.toml", "--data", folder, "--out", folder / "run")
    assert done.returncode == 0, done.stderr.decode()
    return folder, done.stderr.decode()


def test_the_run_tells_of_f1_and_of_how_to_parse(parser):
    _, told = parser
    assert "labelled F1 on the test text (51 sentences, tags predicted, " in told
    assert "scored with the tags of the references" in told
    assert "headway parse -m" in told
    assert "BLEU" not in told


def test_unseen_sentences_are_parsed_nearly_without_fault(parser):
    folder, _ = parser
    exact = ("--from-trees", "--precision", "float32")
    done = headway("parse", "-m", folder / "run", folder / "test.trees", *exact, "-o", folder / "found.trees")
    assert done.returncode == 0, done.stderr.decode()
    files = ("--hypothesis", folder / "found.trees", "--reference", folder / "test.trees")
    done = headway("evaluate", "--task", "parsing", *files, "--reference-tags", "--json")
    assert done.returncode == 0, done.stderr.decode()
    figures = json.loads(done.stdout)["all"]["every_length"]
    assert figures["num_scored"] == 51
    assert figures["f1"] >= 90.0
    assert 90.0 <= figures["tagging_accuracy"] < 100.0  # of tags that the parser predicted
    card = (folder / "run" / "README.md").read_text(encoding="utf-8")
    assert f"| predicted, {figures['tagging_accuracy']:.2f} % right | {figures['f1']:.2f} [" in card


def test_words_come_in_as_lines_and_every_line_gives_one(parser):
    folder, _ = parser
    long = "the dog of the house sees a star with Ann and " * 30
    done = headway("parse", "-m", folder / "run", stdin=f"Ann sees Bo .\n\n( Ann ) sees ☃ .\n{long}\n".encode())
    assert done.returncode == 0, done.stderr.decode()
    first, empty, third, fourth, end = done.stdout.decode().split("\n")
    assert first == "(TOP (S (NP (NNP Ann)) (VP (VBZ sees) (NP (NNP Bo))) (. .)))"
    assert empty == end == ""
    assert "-LRB-" in third
    assert "☃" in third
    assert [part.rstrip(")") for part in fourth.split() if part.endswith(")")] == long.split()
    assert "1 sentence longer than any that the model was trained on" in done.stderr.decode()
