"""Binary branches: two at most, and every tree comes back."""

import pytest
from hypothesis import given

from headway.trees.binary import binarise, unbinarise
from headway.trees.brackets import read_trees
from random_trees import trees


def test_a_node_of_four_is_a_chain_to_the_right():
    (tree,) = read_trees(["(NP (DT a) b (JJ old) (NN dog))"])
    assert str(binarise(tree)) == "(NP (DT a) (@NP b (@NP (JJ old) (NN dog))))"


@given(trees())
def test_trees_come_back_from_two_branches_a_node(tree):
    binary = binarise(tree)
    assert all(isinstance(part, str) or len(part.children) <= 2 for part in binary.parts())
    assert binary.words() == tree.words()
    assert unbinarise(binary) == tree


@pytest.mark.parametrize(
    ("mistaken", "expected"),
    [
        ("(@S (@NP a) (@NP (NN b) c))", "(S (NP a) (NN b) c)"),
        ("(S (@ a) (@ (@ b) c))", "(S (X a) (X b) c)"),
        ("(S (\\ a))", "(S (X a))"),
    ],
)
def test_marks_in_the_wrong_place_leave_no_trace(mistaken, expected):
    (tree,) = read_trees([mistaken])
    assert str(unbinarise(tree)) == expected
