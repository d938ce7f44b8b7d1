"""The value of a tree: what it says of itself, that equal shapes are equal, and that depth is no limit."""

import copy
import pickle
import sys
from itertools import pairwise

import pytest
from hypothesis import given

from headway.errors import TreeError
from headway.trees.tree import Tree, fold, with_tags
from random_trees import chain, trees

JOHN = Tree(
    "S",
    (
        Tree("NP", (Tree("NNP", ("John",)),)),
        Tree("VP", (Tree("VBZ", ("has",)), Tree("NP", (Tree("DT", ("a",)), Tree("NN", ("dog",)))))),
        Tree(".", (".",)),
    ),
)
DEPTH = 20 * sys.getrecursionlimit()


def test_words_and_tags_are_those_of_the_sentence():
    assert JOHN.words() == ("John", "has", "a", "dog", ".")
    assert JOHN.tags() == ("NNP", "VBZ", "DT", "NN", ".")
    assert [str(leaf) for leaf in JOHN.preterminals()] == ["(NNP John)", "(VBZ has)", "(DT a)", "(NN dog)", "(. .)"]


def test_a_tree_is_written_in_brackets_on_one_line():
    assert str(JOHN) == "(S (NP (NNP John)) (VP (VBZ has) (NP (DT a) (NN dog))) (. .))"
    assert repr(JOHN) == f"<Tree {JOHN}>"


def test_a_word_that_shares_its_node_has_no_tag():
    tree = Tree("A", ("b", Tree("C", ("c",)), "d"))
    assert (tree.words(), tree.tags()) == (("b", "c", "d"), ("", "C", ""))
    assert str(tree) == "(A b (C c) d)"


def test_parts_come_before_what_they_govern():
    assert [part if isinstance(part, str) else part.label for part in JOHN.parts()] == (
        ["S", "NP", "NNP", "John", "VP", "VBZ", "has", "NP", "DT", "a", "NN", "dog", ".", "."]
    )


def test_trees_are_equal_when_labels_words_and_shape_are():
    different = [
        JOHN,
        Tree("S", JOHN.children[:2]),
        Tree("X", JOHN.children),
        Tree("S", (Tree("NP", JOHN.children[:2]), JOHN.children[2])),
        Tree("S", ("NP",)),
        Tree("S", ("NP", "NP")),
    ]
    for one, other in pairwise(different):
        assert one != other
    assert len({*different, *map(copy.deepcopy, different)}) == len(different)
    assert JOHN != "S"


@pytest.mark.parametrize(("label", "children"), [("", ("a",)), ("S", ())])
def test_a_node_without_label_or_children_is_refused(label, children):
    with pytest.raises(TreeError, match=rf"^trees/tree: a node has label '{label}' and {len(children)} children; want"):
        Tree(label, children)


@pytest.mark.parametrize("word", ["", "two words", "tab\t", "line\n"])
def test_a_word_that_no_file_of_trees_can_hold_is_refused_when_it_is_written(word):
    with pytest.raises(TreeError, match=r"^trees/escape: the word .* cannot be written"):
        str(Tree("NN", (word,)))
    with pytest.raises(TreeError, match=r"^trees/escape: the label 'a b' cannot be written"):
        str(Tree("a b", ("word",)))


def test_round_brackets_are_written_as_the_treebank_does():
    assert str(Tree("(", ("a(b)",))) == "(-LRB- a-LRB-b-RRB-)"


@given(trees())
def test_a_copy_is_the_same_tree(tree):
    assert pickle.loads(pickle.dumps(tree)) == copy.deepcopy(tree) == tree
    assert hash(copy.copy(tree)) == hash(tree)


@given(trees())
def test_fold_sees_words_in_order_and_nodes_after_what_they_govern(tree):
    words = []
    rebuilt = fold(
        tree,
        of_word=lambda word: (words.append(word), word)[1],
        of_node=lambda node, children: Tree(node.label, tuple(children)),
    )
    assert rebuilt == tree
    assert tuple(words) == tree.words()


@given(trees())
def test_its_own_tags_change_nothing(tree):
    assert with_tags(tree, tree.tags()) == tree


@given(trees())
def test_tags_are_put_on_words_from_left_to_right(tree):
    tags = [f"T{number}" for number in range(len(tree.words()))]
    tagged = with_tags(tree, tags)
    assert tagged.tags() == tuple(tags)
    assert tagged.words() == tree.words()


def test_tags_replace_those_of_preterminals_and_give_other_words_one():
    tree = Tree("A", ("b", Tree("C", ("c",))))
    assert str(with_tags(tree, ("B", "D"))) == "(A (B b) (D c))"


def test_tags_of_another_count_are_refused():
    with pytest.raises(TreeError, match=r"^trees/tree: 4 tags for 5 words \(\(S .*; equal counts are wanted"):
        with_tags(JOHN, JOHN.tags()[:4])


def test_a_deep_tree_meets_no_limit():
    deep = chain(DEPTH)
    assert deep == chain(DEPTH)
    assert deep != chain(DEPTH + 1)
    assert deep.words() == ("deep",)
    assert deep.tags() == ("NN",)
    assert str(deep).count("(") == DEPTH + 1
    assert hash(deep) == hash(copy.deepcopy(deep))
    assert with_tags(deep, ["JJ"]).tags() == ("JJ",)
