"""Drawings: the layout of text by hand; in SVG every word and label is there, in order, and none covers another."""

import re
import sys
import unicodedata
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.text.printable import drawable
from headway.trees.brackets import read_trees
from headway.trees.draw import LONGEST_ACROSS, draw_svg, draw_text
from headway.trees.tree import Tree
from random_trees import chain, trees

JOHN = "(TOP (S (NP (NNP John)) (VP (VBZ has) (NP (DT a) (NN dog))) (. .)))"
SVG = "{http://www.w3.org/2000/svg}"
SEEN = st.text("aWé中 ｗ<&>\"'\u202f", min_size=1, max_size=9).map(lambda word: word.replace(" ", "_"))
LONG = "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft"


def tree(text):
    (only,) = read_trees([text])
    return only


def texts(svg, kind):
    """Texts of a class with their boxes, at the letter's size that the drawing reckons with."""
    found = []
    for text in ElementTree.fromstring(svg).iter(f"{SVG}text"):
        if text.get("class") == kind:
            width = 8.5 * sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text.text)
            x, y = float(text.get("x")), float(text.get("y"))
            begin = x - width / 2 if text.get("text-anchor") == "middle" else x
            found.append((text.text, (begin, y - 11, begin + width, y + 4)))
    return found


def overlaps(boxes):
    return [
        (one, other)
        for number, one in enumerate(boxes)
        for other in boxes[:number]
        if one[0] < other[2] - 0.2 and other[0] < one[2] - 0.2 and one[1] < other[3] and other[1] < one[3]
    ]


def strokes(svg):
    """The straight pieces of all lines, as boxes without width."""
    found = []
    for path in ElementTree.fromstring(svg).iter(f"{SVG}path"):
        x, y = map(float, re.match(r"M([-\d.]+) ([-\d.]+)", path.get("d")).groups())
        for kind, number in re.findall(r"([vHV])([-\d.]+)", path.get("d")):
            to_x = float(number) if kind == "H" else x
            to_y = {"H": y, "V": float(number), "v": y + float(number)}[kind]
            found.append((min(x, to_x), min(y, to_y), max(x, to_x), max(y, to_y)))
            x, y = to_x, to_y
    return found


def sentence(num_words, word="word"):
    """A tree that branches to the right and to the left by turns."""
    node = Tree("NN", (word,))
    for number in range(num_words - 1):
        leaf = Tree("JJ", (f"{word}{number}",))
        node = Tree("NP", (leaf, node) if number % 3 else (node, leaf))
    return Tree("TOP", (node,))


def test_a_tree_is_drawn_in_lines_as_by_hand():
    assert draw_text(tree(JOHN)).split("\n") == [
        "TOP ─ S",
        "├─ NP ─ NNP John",
        "├─ VP",
        "│  ├─ VBZ has",
        "│  └─ NP",
        "│     ├─ DT a",
        "│     └─ NN dog",
        "└─ . .",
    ]
    assert draw_text(tree("(A b (C c))")) == "A\n├─ b\n└─ C c"
    assert draw_text(tree("(NN dog)")) == "NN dog"


@given(trees())
def test_every_word_ends_a_line_of_text(found):
    lines = iter(draw_text(found).split("\n"))
    for word in found.words():
        assert any(line.endswith(drawable(word)) for line in lines)


def test_what_a_terminal_would_obey_is_not_drawn():
    hostile = Tree("N\x9bN", ("\x1b[2Jdog\u202e",))
    assert draw_text(hostile) == r"N\x9bN \x1b[2Jdog\u202e"
    assert r"\x1b[2Jdog\u202e" in draw_svg(hostile)
    assert draw_text(Tree("NN", ("\u0645\u06cc\u200c\u0631\u0648\u0645",))) == "NN \u0645\u06cc\u200c\u0631\u0648\u0645"


@pytest.mark.parametrize("from_left", [False, True])
@given(found=trees(words=SEEN))
def test_every_word_and_label_is_in_the_drawing_and_nothing_covers_another(found, from_left):
    svg = draw_svg(found, from_left=from_left)
    words, tags, phrases = (texts(svg, kind) for kind in ("word", "tag", "phrase"))
    along = 1 if from_left else 0
    assert [word for word, _ in sorted(words, key=lambda item: item[1][along])] == list(found.words())
    assert sorted(tag for tag, _ in tags) == sorted(filter(None, found.tags()))
    num_parts = sum(1 for _ in found.parts())
    assert len(words) + len(words) + len(phrases) == num_parts + found.tags().count("")
    boxes = [box for _, box in words + tags + phrases]
    assert not overlaps(boxes)
    for left, upper, right, lower in strokes(svg):
        assert not any(left < x2 and x1 < right + 1 and upper < y2 and y1 < lower for x1, y1, x2, y2 in boxes)


@pytest.mark.parametrize("from_left", [False, True])
@given(found=trees(words=SEEN))
def test_all_that_is_drawn_lies_within_the_picture(found, from_left):
    svg = draw_svg(found, from_left=from_left)
    left, top, width, height = map(float, ElementTree.fromstring(svg).get("viewBox").split())
    for kind in ("word", "tag", "phrase"):
        for _, box in texts(svg, kind):
            assert left <= box[0] <= box[2] <= left + width
            assert top <= box[1] <= box[3] <= top + height


def test_every_node_but_the_root_hangs_on_a_line():
    for from_left in (False, True):
        svg = draw_svg(tree(JOHN), from_left=from_left)
        assert len(list(ElementTree.fromstring(svg).iter(f"{SVG}path"))) == 9


@pytest.mark.parametrize("found", [sentence(101), sentence(23, LONG)], ids=["101 words", "long words"])
def test_a_wide_tree_is_drawn_from_the_left_a_word_a_row(found):
    svg = draw_svg(found)
    boxes = [box for _, box in texts(svg, "word")]
    assert [box[1] for box in boxes] == sorted({box[1] for box in boxes})
    assert len({box[0] for box in boxes}) == 1
    assert not overlaps([box for kind in ("word", "tag", "phrase") for _, box in texts(svg, kind)])
    assert svg == draw_svg(found, from_left=True)


def test_a_short_sentence_is_drawn_from_the_top():
    svg = draw_svg(tree(JOHN))
    assert svg == draw_svg(tree(JOHN), from_left=False)
    assert float(ElementTree.fromstring(svg).get("width")) < LONGEST_ACROSS
    assert len({box[1] for _, box in texts(svg, "word")}) == 1


def test_the_sentence_is_the_title_for_those_who_cannot_see():
    assert ElementTree.fromstring(draw_svg(tree("(S (NN <b>) (CC &))"))).find(f"{SVG}title").text == "<b> &"


def test_a_deep_tree_meets_no_limit():
    deep = chain(3 * sys.getrecursionlimit())
    assert draw_text(deep).endswith("X ─ NN deep")
    assert draw_svg(deep).count("<path") == 3 * sys.getrecursionlimit()
