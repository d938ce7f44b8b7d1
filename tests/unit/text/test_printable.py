"""What does not print is shown as an escape, and all else stays as it is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.text.printable import drawable, printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [("plain ä 日本", "plain ä 日本"), ("a\nb\t", r"a\nb\t"), ("\u202eabc", r"\u202eabc"), ("\ud800", r"\ud800")],
)
def test_controls_marks_and_halves_are_escapes(text, shown):
    assert printable(text) == shown


@given(st.text(st.characters()))
def test_everything_shown_prints_and_gives_the_text_back(text):
    shown = printable(text)
    assert shown.isprintable()
    if shown.isascii() and "\\" not in text:
        assert shown.encode("ascii").decode("unicode_escape") == text


def test_what_is_kept_stays():
    assert printable("a\u00a0b\n", kept="\u00a0") == "a\u00a0b\\n"


def test_pictures_keep_spaces_that_do_not_break_and_joined_letters():
    assert drawable("a\u00a0b\u202fc\u200dd\u200ce\u202e\x1b") == "a\u00a0b\u202fc\u200dd\u200ce\\u202e\\x1b"
