"""Files of trees: every layout gives the same trees, what is written comes back, and faults name their line."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import CorpusError, TreeError
from headway.trees.brackets import pretty_print, read_parses, read_trees, write_trees
from headway.trees.tree import Tree
from random_trees import chain, trees

DOG = "(TOP (S (NP (DT a) (NN dog)) (VP (VBZ waits)) (. .)))"


def one(*lines):
    (tree,) = read_trees(lines)
    return tree


@pytest.mark.parametrize(
    "lines",
    [
        ["( (S (NP (DT a) (NN dog)) (VP (VBZ waits)) (. .)))"],
        ["((S (NP (DT a)(NN dog))(VP(VBZ waits)) (. .)) )"],
        ["(", "  (S (NP (DT", "a) (NN dog))", "", "\t(VP ( VBZ waits ))", "(. .) )", ")"],
        ["", DOG, "", ""],
        ["(TOP (S", "(NP(DT a)(NN dog))", "(VP (VBZ waits)) (.", ".)))"],
    ],
)
def test_every_layout_gives_the_same_tree(lines):
    assert str(one(*lines)) == DOG


def test_a_root_of_any_name_stays():
    assert str(one("(ROOT (S (X a)))")) == "(ROOT (S (X a)))"
    assert str(one("((NP (NN a)) (. .))")) == "(TOP (NP (NN a)) (. .))"


def test_words_stand_beside_nodes():
    tree = one("(A B (C c) d)")
    assert tree == Tree("A", ("B", Tree("C", ("c",)), "d"))


def test_round_brackets_are_read_as_words():
    tree = one("(S (-LRB- -LRB-) (NN a-LRB-b) (-RRB- -RRB-) (-LRB- () (NP (NN c)) (-RRB- )) -LRB-)")
    assert tree.words() == ("(", "a(b", ")", "(", "c", ")", "(")
    assert tree.tags() == ("-LRB-", "NN", "-RRB-", "-LRB-", "NN", "-RRB-", "")


@pytest.mark.parametrize(
    ("text", "tag", "word"),
    [
        ("(S ( -LRB-  ( ) (NN a))", "-LRB-", "("),
        ("(S (-RRB- ) ) (NN a))", "-RRB-", ")"),
        ("(S (: () (NN a))", ":", "("),
        ("(S ('' ( ) (NN a))", "''", "("),
    ],
)
def test_a_bare_bracket_may_have_spaces_and_a_sign_as_its_tag(text, tag, word):
    assert one(text) == Tree("S", (Tree(tag, (word,)), Tree("NN", ("a",))))


def test_only_the_white_space_of_ascii_separates():
    assert one("(S (NN a\u00a0b)\u2028)").children == (Tree("NN", ("a\u00a0b",)), "\u2028")


@given(st.lists(trees(), max_size=3))
def test_what_is_written_comes_back(sentences):
    assert list(read_trees(map(str, sentences))) == sentences
    for width in (1, 17, 100):
        pretty = "\n".join(pretty_print(tree, width=width) for tree in sentences)
        assert list(read_trees(pretty.split("\n"))) == sentences


@given(trees())
def test_a_line_holds_the_tree_that_a_parser_wrote(tree):
    assert list(read_parses([str(tree)] * 2)) == [tree] * 2


def test_pretty_printing_keeps_short_nodes_on_a_line():
    assert pretty_print(one(DOG), width=31) == (
        "(TOP\n  (S\n    (NP (DT a) (NN dog))\n    (VP (VBZ waits))\n    (. .)))"
    )
    assert pretty_print(one(DOG), width=len(DOG)) == DOG
    assert pretty_print(one("(A b (C c))"), width=5) == "(A\n  b\n  (C c))"


@pytest.mark.parametrize("pretty", [False, True])
@pytest.mark.parametrize("name", ["trees", "trees.gz"])
def test_files_come_back(tmp_path, pretty, name):
    sentences = [one(DOG), one("(A B (C ä))"), chain(59)]
    write_trees(tmp_path / name, sentences, pretty=pretty)
    assert list(read_trees(tmp_path / name)) == sentences


def test_a_file_is_named_in_messages(tmp_path):
    (tmp_path / "x").write_text(f"{DOG}\n(S (NN a)\n\n")
    with pytest.raises(TreeError, match=rf"^trees/brackets: {tmp_path}/x line 2: the tree that begins here is not clo"):
        list(read_trees(tmp_path / "x"))
    with pytest.raises(CorpusError, match="does not exist"):
        list(read_trees(tmp_path / "y"))


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            [DOG, "(S (NP (NN a))", "(VP (VB b))"],
            r"line 2: .* not closed where the text ends \(line 3\); 1 more '\)' is",
        ),
        (["(S (NP (NN a"], r"line 1: .* 3 more '\)' are wanted"),
        ([DOG, "", f"{DOG})"], r"line 3: found '\)' with no bracket open"),
        (["()"], r"line 1: found an empty node \(\), begun on line 1"),
        (["(S (NN a)", "(NP ", "))"], r"line 3: found an empty node \(NP\), begun on line 2"),
        (["(S (-NONE- ) (NN a))"], r"line 1: found an empty node \(-NONE-\)"),
        (["(S (NN a) (. ))"], r"line 1: found an empty node \(\.\)"),
        ([f"{DOG} {DOG}"], r"line 1: found a second tree on the line on which one has ended"),
        ([f"{DOG} (NN a)"], r"line 1: found a second tree on the line on which one has ended"),
        (["(S", "((NN a) (NN b)))"], r"line 2: found a bracket without a label inside of a tree"),
        ([DOG, "and text"], r"line 2: found 'and' outside of brackets"),
        ([f"{DOG} text"], r"line 1: found 'text' outside of brackets"),
    ],
)
def test_a_fault_is_named_with_its_line(lines, message):
    with pytest.raises(TreeError, match=f"^trees/brackets: gold {message}"):
        list(read_trees(lines, name="gold"))


@pytest.mark.parametrize("line", ["", " \t", "()", "(())", "( ( ) )", "(TOP)", "(TOP )", "(S1 ())"])
def test_a_line_without_words_is_a_failed_parse(line):
    assert list(read_parses([DOG, line, DOG])) == [one(DOG), None, one(DOG)]


def test_several_trees_of_one_parse_come_under_one_root():
    assert [str(tree) for tree in read_parses(["(NP (NN a)) (. .)", "( (S (NN a)) )"])] == [
        "(TOP (NP (NN a)) (. .))",
        "(TOP (S (NN a)))",
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("(S (NN a)", "line 2: the tree is not closed at the end of its line; .*without --pretty"),
        ("(S (NN a)))", r"line 2: found '\)' with no bracket open"),
        ("a", "line 2: found 'a' outside"),
        ("(S (NN a) (NP ))", r"line 2: found an empty node \(NP\)"),
    ],
)
def test_a_parse_that_is_no_tree_is_named_with_its_line(line, message):
    with pytest.raises(TreeError, match=f"^trees/brackets: parses {message}"):
        list(read_parses([DOG, line, DOG], name="parses"))


def test_a_deep_tree_meets_no_limit():
    deep = chain(20 * sys.getrecursionlimit())
    assert one(str(deep)) == deep
    pretty = pretty_print(chain(3 * sys.getrecursionlimit()), width=41).split("\n")
    assert one(*pretty) == chain(3 * sys.getrecursionlimit())
