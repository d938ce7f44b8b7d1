"""Traces and function tags taken off: the treebank's own cases by hand, and that words other than traces stay."""

import sys

import pytest
from hypothesis import given

from headway.trees.brackets import read_trees
from headway.trees.strip import strip, without_function
from random_trees import chain, trees

RAISED = "(S (NP-SBJ-1 (PRP it)) (VP (VBZ seems) (SBAR (-NONE- 0) (S (NP-SBJ (-NONE- *-1)) (VP=2 (TO to) (VB be))))))"


def stripped(text, **switches):
    (tree,) = read_trees([text])
    result = strip(tree, **switches)
    return result if result is None else str(result)


def test_traces_and_what_they_leave_empty_go_and_labels_lose_their_functions():
    assert stripped(RAISED) == "(S (NP (PRP it)) (VP (VBZ seems) (SBAR (S (VP (TO to) (VB be))))))"


def test_each_is_taken_off_alone():
    assert stripped(RAISED, traces=False) == (
        "(S (NP (PRP it)) (VP (VBZ seems) (SBAR (-NONE- 0) (S (NP (-NONE- *-1)) (VP (TO to) (VB be))))))"
    )
    assert stripped(RAISED, functions=False) == (
        "(S (NP-SBJ-1 (PRP it)) (VP (VBZ seems) (SBAR (S (VP=2 (TO to) (VB be))))))"
    )
    assert stripped(RAISED, traces=False, functions=False) == RAISED


def test_a_tree_of_traces_is_none():
    assert stripped("(TOP (NP-SBJ (-NONE- *T*-1) (NP (-NONE- 0))))") is None


def test_repeated_nodes_that_traces_leave_become_one_when_asked():
    chained = "(S (NP-SBJ (NP=1 (NP (NN work)) (-NONE- *))))"
    assert stripped(chained) == "(S (NP (NP (NP (NN work)))))"
    assert stripped(chained, repeated=True) == "(S (NP (NN work)))"
    assert stripped("(NN (NN work))", repeated=True) == "(NN (NN work))"


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("NP-SBJ-1", "NP"),
        ("NP=2", "NP"),
        ("NP-LGS=3", "NP"),
        ("NP", "NP"),
        ("-LRB-", "-LRB-"),
        ("-NONE-", "-NONE-"),
        ("=", "="),
        ("-", "-"),
        ("PRP$", "PRP$"),
        ("ADVP|PRT-1", "ADVP|PRT"),
    ],
)
def test_a_label_ends_at_its_first_hyphen_or_equals_sign(label, expected):
    assert without_function(label) == expected


@given(trees())
def test_a_tree_without_traces_keeps_its_words(tree):
    result = strip(tree, repeated=True)
    assert result is not None
    assert result.words() == tree.words()
    assert strip(result, repeated=True) == result


def test_a_deep_tree_meets_no_limit():
    deep = chain(20 * sys.getrecursionlimit(), "NP-SBJ")
    assert str(strip(deep, repeated=True)) == "(NP (NN deep))"
    assert strip(deep, functions=False) == deep
