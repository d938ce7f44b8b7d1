"""Treebanks as pairs: what is prepared from trees, and what becomes of trees that are no pairs."""

import numpy as np
import pytest

from headway.config.load import load_text
from headway.config.schema import ParsingConfig
from headway.data.facts import count_facts
from headway.data.prepare import prepare
from headway.data.treebank import read_treebank
from headway.errors import ConfigError, CorpusError, DataError, TextError, TreeError
from toy_treebank import treebank

RECIPE = """
[data]
format = "trees"
train_source = "train.trees"
validation_source = "dev.trees"
[text]
shared_vocabulary = false
[model]
embedding_sharing = "target"
vocab_size = 97
source_vocab_size = 331
"""
TRACES = "( (S (NP-SBJ-1 (NNP Ann)) (VP (VBD was) (VP (VBN seen) (NP (-NONE- *-1)))) (. .)) )"


@pytest.fixture
def folder(tmp_path):
    trees = treebank(5, 67)
    (tmp_path / "train.trees").write_text("".join(f"{tree}\n" for tree in trees[:53]), encoding="utf-8")
    (tmp_path / "dev.trees").write_text("".join(f"{tree}\n" for tree in trees[53:]), encoding="utf-8")
    return tmp_path


def prepared(folder, *overrides):
    return prepare(load_text(RECIPE, overrides=overrides), folder, folder / "data")


def pairs(tmp_path, text, **settings):
    (tmp_path / "x.trees").write_text(text, encoding="utf-8")
    return [(pair.source, pair.target) for pair in read_treebank(tmp_path / "x.trees", ParsingConfig(**settings))]


def test_a_tree_is_its_sentence_with_tags_and_its_symbols(tmp_path):
    assert pairs(tmp_path, TRACES) == [("Ann_NNP was_VBD seen_VBN ._.", "S NP NNP /NP VP VBD VP VBN /VP /VP . /S")]
    assert pairs(tmp_path, TRACES, style="xx")[0][1] == "S NP XX /NP VP XX VP XX /VP /VP XX /S"
    kept = pairs(tmp_path, TRACES, functions="keep", traces="keep")[0]
    assert kept[0] == "Ann_NNP was_VBD seen_VBN *-1_-NONE- ._."
    assert kept[1].startswith("S NP-SBJ-1 NNP /NP-SBJ-1 VP")


def test_round_brackets_are_words_of_a_sentence(tmp_path):
    ((source, target),) = pairs(tmp_path, "(TOP (PRN (-LRB- -LRB-) (CD 1) (-RRB- ))))")
    assert (source, target) == ("(_-LRB- 1_CD )_-RRB-", "PRN -LRB- CD -RRB- /PRN")


def test_a_word_without_a_tag_of_its_own_gets_one_that_says_so(tmp_path):
    assert pairs(tmp_path, "(TOP (S (A B (C c))))") == [("B_XX c_C", "S A XX C /A /S")]


def test_a_tree_of_nothing_but_traces_is_an_empty_pair_and_is_counted(folder):
    with (folder / "train.trees").open("a", encoding="utf-8") as file:
        file.write("(TOP (NP (-NONE- *)))\n")
    report = prepared(folder).report
    assert report.pairs_read == 54
    assert {row.name: row.dropped for row in report.cleaning}["empty side"] == 1


def test_the_ratio_filter_does_not_apply_to_trees(folder):
    deep = "(TOP (S (NP (NP (NP (NP (NP (NP (NP (NP (NN a))))))))))"
    path = folder / "train.trees"
    path.write_text(f"{path.read_text()}{deep})\n", encoding="utf-8")
    report = prepared(folder).report
    (ratio,) = [row for row in report.cleaning if row.name == "ratio"]
    assert not ratio.dropped
    assert report.train.pairs == len(set(path.read_text().split("\n")) - {""})


def test_brackets_that_do_not_match_are_told_with_their_line(tmp_path):
    with pytest.raises(TreeError, match=r"x\.trees line 2"):
        pairs(tmp_path, "(TOP (S (NN a)))\n(TOP (S (NN a)\n")
    with pytest.raises(CorpusError, match="nothing-here"):
        list(read_treebank(tmp_path / "nothing-here.trees", ParsingConfig()))


def test_a_tag_that_its_word_could_not_be_parted_from_is_told_with_its_tree(tmp_path):
    with pytest.raises(DataError, match=r"x\.trees, tree 2: .*'N_N'"):
        pairs(tmp_path, "(TOP (S (NN a)))\n(TOP (S (N_N a)))\n")


@pytest.mark.parametrize("tags", ["predicted", "given"])
def test_the_stores_hold_words_tags_and_symbols(folder, tags):
    data = prepared(folder, f"parsing.tags={tags}")
    store = data.store("train")
    sources, _ = data.texts("validation")
    first = [int(token) for token in store.source_ids[: store.source_lengths[0]]]
    words = [part.rstrip(")") for part in treebank(5, 67)[0].split() if part.endswith(")")]
    reserved = set(data.source_tokenizer.tags.values())
    assert data.source_tokenizer.decode(first) == " ".join(words)
    assert sum(token in reserved for token in first) == (len(words) if tags == "given" else 0)
    target = [int(token) for token in store.target_ids[: store.target_lengths[0]]]
    assert data.target_tokenizer.decode(target).startswith("S NP ")
    assert len(target) == len(data.target_tokenizer.decode(target).split())
    assert all("_" in word for source in sources for word in source.split())


def test_every_symbol_and_tag_of_the_training_trees_is_one_token(folder):
    data = prepared(folder, "parsing.tags=given")
    symbols = {name.strip() for name in data.target_tokenizer.names[4:]}
    assert symbols >= {"S", "/S", "NP", "/NP", "DT", "NN", "."}
    assert set(data.source_tokenizer.tags) == {
        f"pos.{tag}" for tag in ("DT", "NN", "JJ", "NNP", "VBZ", "VBD", "IN", "-2E.")
    }


def test_tags_alone_can_be_the_source(folder):
    data = prepared(folder, "parsing.tags=given", "parsing.words=false")
    store = data.store("train")
    assert data.report.source_vocab_size == 4 + 8
    assert int(np.min(store.source_ids)) >= 4


def test_settings_of_the_search_prepare_nothing_anew_and_those_of_the_text_do(folder):
    first = prepared(folder)
    same = prepared(folder, "parsing.constrained=false", "parsing.max_openings=7", "text.word_dropout=0.1")
    assert same.report.digest == first.report.digest
    assert prepared(folder, "parsing.tags=given").report.digest != first.report.digest


def test_a_vocabulary_too_small_for_the_symbols_is_refused(folder):
    with pytest.raises(TextError, match=r"symbols that need \d+ tokens, wanted 7 at most.*model\.vocab_size"):
        prepared(folder, "model.vocab_size=7")


def test_facts_of_a_treebank_can_be_counted(folder):
    assert count_facts(load_text(RECIPE), folder).pairs == 53


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["text.shared_vocabulary=true"], "symbols have a vocabulary of their own"),
        (["parsing.words=false"], "a source would hold nothing"),
        (["search.no_repeat_ngram=3"], "trees repeat their symbols"),
        (["data.format=tsv", "train.best_by=f1"], "whose outputs have no F1"),
        (
            ["model.architecture=decoder_only", "model.source_vocab_size=", "train.best_by=loss"],
            "a model with a source and a target writes, and model.architecture is decoder_only",
        ),
        (["data.format=tsv", "parsing.style=xx"], r"\[parsing\] means nothing"),
    ],
)
def test_settings_that_make_no_parser_are_refused(overrides, message):
    with pytest.raises(ConfigError, match=message):
        load_text(RECIPE, overrides=overrides)


def test_a_treebank_beside_text_is_refused():
    mixed = '[data]\nformat = "trees"\n[[data.corpora]]\nsource = "a.tsv"\nformat = "tsv"\n'
    with pytest.raises(ConfigError, match="trees go with trees alone"):
        load_text(mixed + "[text]\nshared_vocabulary = false\n[model]\nembedding_sharing = 'none'\n")


def test_a_target_file_beside_a_treebank_is_refused(folder):
    with pytest.raises(DataError, match="train text has two files"):
        prepared(folder, "data.train_target=dev.trees")
