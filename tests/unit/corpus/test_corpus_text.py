"""One text: a line is both sides of its pair, or a line and the next are one."""

import pytest

from headway.corpus.pair import SentencePair
from headway.corpus.read import read
from headway.errors import CorpusError


def pairs(path, format_name):
    return list(read(path, source_language="", target_language="", format=format_name))


def test_a_line_is_both_sides_of_its_pair(tmp_path):
    (tmp_path / "a").write_text("one\n\ntwo words", encoding="utf-8")
    assert pairs(tmp_path / "a", "text") == [
        SentencePair("one", "one", 1),
        SentencePair("", "", 2),
        SentencePair("two words", "two words", 3),
    ]


def test_a_line_goes_with_the_next_unless_a_blank_one_ends_the_document(tmp_path):
    (tmp_path / "a").write_text("one\ntwo\nthree\n \nfour\n\n\nfive\nsix\n", encoding="utf-8")
    assert pairs(tmp_path / "a", "consecutive") == [
        SentencePair("one", "two", 1),
        SentencePair("two", "three", 2),
        SentencePair("five", "six", 8),
    ]


@pytest.mark.parametrize("format_name", ["text", "consecutive"])
def test_two_files_are_refused(tmp_path, format_name):
    with pytest.raises(CorpusError, match=f"wanted one for the format {format_name}"):
        read("a", "b", source_language="", target_language="", format=format_name)
