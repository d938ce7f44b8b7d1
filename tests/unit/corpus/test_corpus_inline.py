"""Canonical inline tags: nested, numbered by the source, each side's number used once, and quick on any input."""

import re
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.corpus.inline import Tag, plain, render_pair


def opening(pair, *, partner="", code=""):
    return Tag("open", pair, partner, [code])


def closing(pair):
    return Tag("close", pair)


def alone(*, partner="", code=""):
    return Tag("alone", "", partner, [code])


def test_pairs_and_lone_tags_are_numbered_in_the_order_of_the_source():
    source = ["a ", opening("1"), "b ", alone(), "c", closing("1"), alone(), "d"]
    assert render_pair(source, [])[0] == 'a <g id="1">b <x id="2"/>c</g><x id="3"/>d'


def test_the_target_has_the_numbers_of_its_partners_by_x_then_by_code_then_by_i():
    source = [opening("1", partner="p", code="<b>"), "1", closing("1"), alone(code="<br>"), opening("2"), closing("2")]
    target = [opening("2"), closing("2"), alone(code="<br>"), opening("9", partner="p", code="<i>"), "1", closing("9")]
    assert render_pair(source, target) == (
        '<g id="1">1</g><x id="2"/><g id="3"></g>',
        '<g id="3"></g><x id="2"/><g id="1">1</g>',
    )


def test_what_has_no_partner_gets_numbers_of_its_own():
    assert render_pair([alone(code="a")], [alone(code="b"), alone(code="a"), alone(code="a")]) == (
        '<x id="1"/>',
        '<x id="2"/><x id="1"/><x id="3"/>',
    )
    source, target = [alone(partner="p", code="a")], [alone(partner="p", code="b"), alone(code="a")]
    assert render_pair(source, target) == ('<x id="1"/>', '<x id="1"/><x id="2"/>')


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        ([opening("1"), opening("2"), closing("1"), closing("2")], '<g id="1"><x id="2"/></g><x id="3"/>'),
        ([opening("1"), opening("2"), closing("1"), closing("1")], '<g id="1"><x id="2"/></g><x id="3"/>'),
        ([closing("1"), opening("1")], '<x id="1"/><x id="2"/>'),
        ([opening("1"), "a"], '<x id="1"/>a'),
        ([opening("1"), opening("1"), closing("1"), closing("1")], '<g id="1"><g id="2"></g></g>'),
    ],
)
def test_tags_that_do_not_nest_stand_alone(pieces, text):
    assert render_pair(pieces, [])[0] == text


tags = st.builds(
    Tag,
    st.sampled_from(["open", "close", "alone"]),
    st.sampled_from(["", "1", "2"]),
    st.sampled_from(["", "1", "2"]),
    st.lists(st.sampled_from(["<b>", "<i>"]), max_size=1),
)
segments = st.lists(tags | st.sampled_from(["a", " ", "bc"]), max_size=13)


@given(segments, segments)
@settings(deadline=None)
def test_tags_nest_and_nothing_is_lost_whatever_comes(source, target):
    for pieces, text in zip((source, target), render_pair(source, target), strict=True):
        root = ET.fromstring(f"<s>{text}</s>")
        assert "".join(root.itertext()) == "".join(piece for piece in pieces if isinstance(piece, str))
        numbers = [element.get("id") for element in root.iter() if element is not root]
        assert len(set(numbers)) == len(numbers)
        count = sum(2 if element.tag == "g" else 1 for element in root.iter() if element is not root)
        assert count == sum(isinstance(piece, Tag) for piece in pieces)
    numbers = [int(number) for number in re.findall(r'id="(\d+)"', render_pair(source, target)[0])]
    assert numbers == list(range(1, len(numbers) + 1))


@given(segments)
@settings(deadline=None)
def test_equal_sides_get_equal_tags(pieces):
    """With every partner told apart; else a tag may take the number of one that looks the same."""
    for number, piece in enumerate(pieces):
        if isinstance(piece, Tag):
            piece.partner = f"only {number}"
    source, target = render_pair(pieces, list(pieces))
    assert source == target


def test_the_plain_text_leaves_no_double_space_where_a_tag_was():
    assert plain(["a ", alone(), " b"]) == "a b"
    assert plain(["a ", alone(), alone(), " ", alone(), " b"]) == "a b"
    assert plain([alone(), " a ", alone()]) == "a"
    assert plain(["a", alone(), " b"]) == "a b"
    assert plain(["a", alone(), "b"]) == "ab"
    assert plain(["a  ", "  b "]) == "a    b "
    assert plain([]) == ""


def test_a_hundred_thousand_tags_are_soon_done():
    """They would take minutes if each closing tag looked through all that are open."""
    many = 20_011
    pieces = [opening("1") for _ in range(many)] + [closing("2") for _ in range(many)]
    assert render_pair(pieces, pieces)[0].count("<x ") == 2 * many
