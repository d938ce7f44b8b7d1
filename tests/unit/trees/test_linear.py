"""Trees as symbols: the paper's example by hand, trees come back from every style, and any symbols make a tree."""

import sys
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headway.errors import TreeError
from headway.trees.brackets import read_trees
from headway.trees.linear import (
    PENN_PHRASES,
    STYLES,
    Repairs,
    delinearise,
    linearise,
    phrase_labels,
    rooted,
)
from headway.trees.tree import with_tags
from random_trees import LABELS, WORDS, chain, trees

JOHN = "(TOP (S (NP (NNP John)) (VP (VBZ has) (NP (DT a) (JJ red) (NN dog))) (. .)))"
WRITTEN = {
    "tags": "S NP NNP /NP VP VBZ NP DT JJ NN /NP /VP . /S",
    "xx": "S NP XX /NP VP XX NP XX XX XX /NP /VP XX /S",
    "binary": "S NP NNP /NP @S VP VBZ NP DT @NP JJ NN /@NP /NP /VP . /@S /S",
    "binary-xx": "S NP XX /NP @S VP XX NP XX @NP XX XX /@NP /NP /VP XX /@S /S",
}
ODD = ["NN", "/NN", "/XX", "/", "//", "/\\", "\\", "\\/NP", "@", "/@NP", "", "a b", "(", "/("]
SYMBOLS = st.sampled_from([*WRITTEN["binary-xx"].split(), *ODD])
STYLE_NAMES = st.sampled_from(list(STYLES))


def tree(text):
    (only,) = read_trees([text])
    return only


def mended(symbols, words, **counts):
    """The tree without its root, and that nothing but ``counts`` was mended."""
    result = delinearise(symbols.split(), words.split())
    assert result.repairs == Repairs(**counts)
    return str(result.tree).removeprefix("(TOP ").removesuffix(")")


@pytest.mark.parametrize("style", STYLES)
def test_a_sentence_is_written_as_by_hand(style):
    assert " ".join(linearise(tree(JOHN), style=style)) == WRITTEN[style]


@pytest.mark.parametrize("root", ["TOP", "ROOT", "S1", ""])
def test_the_root_is_not_written_and_comes_back_as_top(root):
    other = JOHN.replace("TOP", root)
    assert linearise(tree(other)) == linearise(tree(JOHN)) == linearise(tree(JOHN[5:-1]))
    assert delinearise(linearise(tree(other)), tree(JOHN).words()).tree == tree(JOHN)


@given(trees(), STYLE_NAMES, st.sampled_from([(), ("NN", "/NP"), PENN_PHRASES]))
@example(tree("(S (X a) (X (X b)))"), "tags", ())
@example(tree("(S (X (X a) (X b)))"), "tags", ())
@example(tree("(S (NP a) (XX (NP b) c))"), "binary-xx", PENN_PHRASES)
def test_every_tree_comes_back_from_every_style(sentence, style, phrases):
    tags = sentence.tags() if STYLES[style].hides_tags else None
    symbols = linearise(sentence, style=style, phrases=phrases)
    result = delinearise(symbols, sentence.words(), tags, style=style, phrases=phrases)
    assert result.tree == rooted(sentence)
    assert result.repairs.total == 0


def test_the_root_over_a_word_without_a_tag_stays_above_the_tag_that_is_given():
    assert str(delinearise(["/"], ["dog"], ["NN"]).tree) == "(TOP (NN dog))"
    assert str(delinearise(["/"], ["dog"], [""]).tree) == "(TOP dog)"


@given(trees(bare=False).filter(lambda sentence: not rooted(sentence).is_preterminal), STYLE_NAMES)
def test_hidden_tags_are_all_the_same(sentence, style):
    result = delinearise(linearise(sentence, style=style), sentence.words(), style=style).tree
    expected = ["XX"] * len(sentence.words()) if STYLES[style].hides_tags else sentence.tags()
    assert result == with_tags(rooted(sentence), expected)


@given(st.lists(SYMBOLS, max_size=19), st.lists(WORDS, min_size=1, max_size=7), STYLE_NAMES)
def test_any_symbols_make_a_tree_over_the_sentence(symbols, words, style):
    result = delinearise(symbols, words, style=style)
    assert result.tree.words() == tuple(words)
    assert result.tree.label == "TOP"
    assert list(read_trees([str(result.tree)])) == [result.tree]
    again = delinearise(linearise(result.tree, style=style), words, result.tree.tags(), style=style)
    assert again.tree == result.tree
    assert again.repairs.total == 0


@given(trees(), st.integers(0, 99), st.integers(0, 99), st.sampled_from(["tags", "xx"]))
def test_what_was_cut_out_of_a_tree_is_mended_with_a_count(sentence, first, length, style):
    symbols = linearise(sentence, style=style)
    first %= len(symbols)
    rest = symbols[:first] + symbols[first + 1 + length :]
    result = delinearise(rest, sentence.words(), style=style)
    assert result.tree.words() == sentence.words()
    assert result.repairs.total > 0 or _brief(rest) == _brief(linearise(result.tree, style=style))


def _brief(symbols):
    """Symbols without those that close what opened just before: a tag may be written either way."""
    return [symbol for before, symbol in pairwise(["", *symbols]) if symbol != f"/{before}"]


@given(st.lists(SYMBOLS, max_size=19), st.lists(st.tuples(WORDS, LABELS), min_size=1, max_size=7), STYLE_NAMES)
def test_given_tags_stand_over_the_words(symbols, tagged, style):
    words, tags = zip(*tagged, strict=True)
    assert delinearise(symbols, words, tags, style=style).tree.tags() == tags


def test_closings_of_nothing_are_dropped():
    assert mended("/VP S DT /NP NN /S /S", "a dog", dropped_symbols=3) == "(S (DT a) (NN dog))"


def test_a_closing_closes_what_is_inside_of_its_node():
    assert mended("S NP DT VP VB /S", "a run", closed_nodes=2) == "(S (NP (DT a) (VP (VB run))))"


def test_what_is_open_closes_at_the_end():
    assert mended("S NP DT NN /NP VP VB", "a dog runs", closed_nodes=2) == "(S (NP (DT a) (NN dog)) (VP (VB runs)))"


def test_a_label_of_another_treebank_is_a_phrase_when_it_is_said():
    words = ["das", "Haus"]
    for phrases, expected in [({"CNP"}, "(TOP (CNP (ART das) (NN Haus)))"), ((), "(TOP (CNP das) (ART Haus))")]:
        assert str(delinearise(["CNP", "ART", "NN"], words, phrases=phrases).tree) == expected


def test_tags_beyond_the_last_word_are_dropped_and_so_are_nodes_without_words():
    assert mended("S DT NN NP DT NN /NP /S", "a dog", dropped_tags=2, dropped_nodes=1) == "(S (DT a) (NN dog))"


def test_words_that_were_left_out_come_at_the_end_of_the_last_phrase():
    assert mended("S DT /S", "a b c", added_words=2) == "(S (DT a) (XX b) (XX c))"
    assert mended("S DT /S .", "a b c", added_words=1) == "(S (DT a)) (. b) (XX c)"


@pytest.mark.parametrize(("symbols", "dropped"), [("", 0), ("/S /NP", 2)])
def test_no_tags_make_a_flat_tree(symbols, dropped):
    assert mended(symbols, "a b", flat_trees=1, dropped_symbols=dropped) == "(S (XX a) (XX b))"


def test_repairs_add_up():
    one = Repairs(1, 2, 3, 4, 5, 6)
    assert one + replace(one, flat_trees=0) == Repairs(2, 4, 6, 8, 10, 6)
    assert (one.total, Repairs().total) == (21, 0)


def test_labels_of_phrases_are_those_of_a_treebank():
    assert phrase_labels([tree(JOHN), tree("(ROOT (CNP (NN a) (ROOT b c)))")]) == {"S", "NP", "VP", "CNP", "ROOT"}


def test_a_sentence_without_words_an_unknown_style_and_tags_of_another_count_are_refused():
    with pytest.raises(TreeError, match=r"^trees/linear: 0 words to put into a tree"):
        delinearise(["S"], [])
    with pytest.raises(TreeError, match=r"^trees/linear: no style is named 'flat'; wanted one of tags, xx, bin"):
        linearise(tree(JOHN), style="flat")
    with pytest.raises(TreeError, match=r"^trees/tree: 1 tags for 2 words"):
        delinearise(["S"], ["a", "b"], ["NN"])


@pytest.mark.parametrize("style", STYLES)
def test_a_deep_tree_meets_no_limit(style):
    deep = chain(3 * sys.getrecursionlimit())
    assert delinearise(linearise(deep, style=style), ["deep"], ["NN"], style=style).tree == rooted(deep)
