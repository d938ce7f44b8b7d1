"""Tags put back into translations whose alignment is known."""

import re
from xml.parsers import expat

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.text.alignment import Edits, Link, links, move_links, token_spans, words
from headway.text.comparison import Difference, difference
from headway.text.markup import parse
from headway.text.placement import Atom, place_marks


def place(source, target, pairs, *, syntax="plain", absent=()):
    """The source's tags in the target; ``pairs`` are places of words between white space, without tags."""
    marked = parse(source, syntax=syntax)
    left = [match.span() for match in re.finditer(r"\S+", marked.text)]
    right = [match.span() for match in re.finditer(r"\S+", target)]
    atoms = [
        Atom(number, (target.index(mark.shown), target.index(mark.shown) + len(mark.shown)))
        for number, mark in enumerate(marked.marks)
        if mark.kind == "inline" and number not in absent
    ]
    aligned = None if pairs is None else [Link(left[one], right[two]) for one, two in pairs]
    return place_marks(
        marked, target, atoms=sorted(atoms, key=lambda atom: atom.span), absent=absent, pairs=aligned
    ).text


@pytest.mark.parametrize(
    ("source", "target", "pairs", "expected"),
    [
        ("Click <b>here</b> now", "Jetzt hier klicken", [(0, 2), (1, 1), (2, 0)], "Jetzt <b>hier</b> klicken"),
        ("<b>green</b> <i>car</i>", "voiture verte", [(0, 1), (1, 0)], "<i>voiture</i> <b>verte</b>"),
        ("<p>a <b>b <i>c</i></b></p>", "C B A", [(0, 2), (1, 1), (2, 0)], "<p><b><i>C</i> B</b> A</p>"),
        # a pair over everything stays over everything, whatever the alignment says
        ("<b>a b</b>", "x y", [(0, 1)], "<b>x y</b>"),
        # the words of a pair that were torn apart: the longer stretch has it
        ("<b>a b c</b> d", "A D B C", [(0, 0), (3, 1), (1, 2), (2, 3)], "A D <b>B C</b>"),
        # a pair is not drawn over the word of another one
        ("<b>a b</b> <i>c</i>", "A C B", [(0, 0), (2, 1), (1, 2)], "<b>A</b> <i>C</i> B"),
        # nothing aligned with it: the word of a neighbour, rather than an empty pair
        ("a <b>b</b> c", "A C", [(0, 0), (2, 1)], "<b>A</b> C"),
        ("a <b>b</b>", "", [], "<b></b>"),
        # alone: before the word of the following word; leaning on the word before; closing; at the ends
        ("a <x/> b c", "C B A", [(0, 2), (1, 1), (2, 0)], "C <x/> B A"),
        ("a<x/> b c", "C B A", [(0, 2), (1, 1), (2, 0)], "C B A<x/>"),
        ("a b</b> c", "C B A", [(0, 2), (1, 1), (2, 0)], "C B</b> A"),
        ("<x/>a b<y/>", "B A", [(0, 1), (1, 0)], "<x/>B A<y/>"),
        ("<x/> a b <y/>", " B A ", [(0, 1), (1, 0)], "<x/> B A <y/>"),
        # never inside of the pair beside it
        ("<b>a b</b> <x/>c", "B C A", [(0, 0), (1, 2), (2, 1)], "<b>B</b> <x/>C A"),
        # white space as in the source
        ("one<br/>two", "eins zwei", [(0, 0), (1, 1)], "eins<br/>zwei"),
        ("a <br/> b", "A B", [(0, 0), (1, 1)], "A <br/> B"),
        ("a<b> b </b>c", "A B C", [(0, 0), (1, 1), (2, 2)], "A<b> B </b>C"),
        ("a <b>b</b>, c", "A B, C", [(0, 0), (1, 1), (2, 2)], "A <b>B</b>, C"),
        ("<b></b>a", "A", [(0, 0)], "<b></b>A"),
        ("a <b><x/></b> b", "A B", [(0, 0), (1, 1)], "A <b><x/></b> B"),
        # lines stay apart
        ("<p>a\nb</p>\n<i>c</i>", "A\nB\nC", [(0, 0), (1, 1), (2, 2)], "<p>A\nB</p>\n<i>C</i>"),
        # scripts without spaces
        ("a <b>b</b> c", "甲乙丙", None, "甲<b>乙</b>丙"),
        # a word that both have is itself, whatever the alignment says
        ("the <b>Headway</b> train", "Zug Headway", [(2, 1), (1, 0)], "Zug <b>Headway</b>"),
        # a mark of the text anchors
        ("a <b>{x}</b> b", "{x} A B", [(0, 0), (1, 1), (2, 2)], "<b>{x}</b> A B"),
    ],
)
def test_tags_stand_at_the_words_that_belong_to_theirs(source, target, pairs, expected):
    assert place(source, target, pairs) == expected


def test_halves_of_crossing_pairs_stay_in_order():
    source = '<bpt i="1"/>a <bpt i="2"/>b<ept i="1"/> c<ept i="2"/>'
    output = place(source, "C B A", [(0, 2), (1, 1), (2, 0)], syntax="xml")
    assert difference(parse(source, syntax="xml"), output) == Difference()
    # where the alignment has a closing half before its opening one, they change places
    output = place(f"x {source} y", "X B C A Y", [(0, 0), (1, 3), (2, 1), (3, 2), (4, 4)], syntax="xml")
    assert output.index('<bpt i="1"/>') < output.index('<ept i="1"/>')
    assert difference(parse(f"x {source} y", syntax="xml"), output) == Difference()


def test_what_the_model_left_out_is_put_in_with_white_space():
    assert place("open {x} now", "öffne jetzt", [(0, 0), (2, 1)], absent=(0,)) == "öffne {x} jetzt"
    assert place("open {x}.", "öffne.", [(0, 0)], absent=(0,)) == "öffne {x}."
    assert place("打开{x}。", "open.", [(0, 0)], absent=(0,)) == "open{x}."


def test_escapes_of_the_source_are_written_again():
    source = '<g id="1">A &amp; B</g> &lt;c&gt; &quot;d&quot;'
    assert place(source, '"D" A & B < <', None, syntax="xml").count("&amp;") == 1
    expat.ParserCreate().Parse(f"<r>{place(source, 'a ]]> & < b', None, syntax='xml')}</r>", True)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.sampled_from(["<b>", "</b>", "<i>", "</i>", "<x/>", " ", "a", "bc ", ". ", "漢", "\n"]), max_size=15),
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=12),
    st.text("ab .漢\n", max_size=15),
)
def test_whatever_the_alignment_every_tag_is_there_once_and_pairs_nest(pieces, pairs, target):
    marked = parse("".join(pieces))
    aligned = [Link((left, left + 2), (right, right + 1)) for left, right in pairs]
    output = place_marks(marked, target, atoms=[], pairs=aligned).text
    assert difference(marked, output) == Difference()
    assert "".join(re.sub(r"<[^>]*>|[^\S\n]", "", output)) == "".join(re.sub(r"[^\S\n]", "", target))
    assert check_nesting(output) >= sum(mark.nests for mark in marked.marks)


def check_nesting(text):
    """How many tags of a text are those of pairs that nest, counted by a plain stack."""
    stack, count = [], 0
    for close, name in re.findall(r"<(/?)([bi])>", text):
        if not close:
            stack.append(name)
        elif name in stack:
            while stack.pop() != name:
                pass
            count += 2
    return count


def test_tokens_are_found_in_their_text_whatever_white_space_and_parts_of_characters():
    text = "  a 漢b\n c"
    assert token_spans([" a", " ", "⟨E6⟩", "⟨BC A2⟩", "b", " c"], text) == [
        (2, 3),
        (3 + 1, 5 - 1),
        (4, 5),
        (4, 5),
        (5, 6),
        (8, 9),
    ]
    assert token_spans(["⟨unk⟩", "b"], "ab") == [(0, 0), (1, 2)]
    assert token_spans(["x", "y"], "") == [(0, 0), (0, 0)]


def test_links_out_of_range_are_left_out():
    found = links(
        "a b", "c", source_tokens=["a", " b"], target_tokens=["c"], alignment=[(1, 0), (2, 0), (0, 1), (-1, 0)]
    )
    assert found == [Link((2, 3), (0, 1))]


def test_words_are_runs_and_every_other_character_alone():
    text = "don't 漢字 a{x}b, e\u0301a"
    spans = words(text, whole=[(10, 13)], cuts=[2])
    assert [text[start:end] for start, end in spans] == [
        "do",
        "n",
        "'",
        "t",
        "漢",
        "字",
        "a",
        "{x}",
        "b",
        ",",
        "e\u0301a",
    ]


def test_links_move_with_edits():
    edits = Edits(((2, 5, "X"), (6, 6, "YY")))
    assert edits.apply("ab{a} c") == "abX YYc"
    assert edits.move([(0, 2), (2, 5), (3, 4), (0, 7), (5, 6), (6, 7)]) == [
        (0, 2),
        (2, 3),
        (2, 3),
        (0, 7),
        (3, 4),
        (6, 7),
    ]
    assert move_links([Link((2, 5), (2, 5))], source=edits) == [Link((2, 3), (2, 5))]
