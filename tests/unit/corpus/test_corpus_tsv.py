"""Promises of headway.corpus.tsv."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.corpus.pair import SentencePair
from headway.corpus.tsv import read_tsv
from headway.errors import CorpusError

LANGUAGES = ("en", "de")


def read_text(folder: Path, text: str, fields: tuple[str, str] = ("", "")) -> list[SentencePair]:
    path = folder / "t.tsv"
    path.write_bytes(text.encode())
    return list(read_tsv(path, languages=LANGUAGES, fields=fields))


def test_a_field_that_begins_with_a_double_quote_swallows_nothing(tmp_path: Path):
    pairs = read_text(tmp_path, 'a\tA\n"b\tB\nc\tC\nd "x" e\tD\n')
    assert [(pair.source, pair.target) for pair in pairs] == [("a", "A"), ('"b', "B"), ("c", "C"), ('d "x" e', "D")]


def test_columns_are_counted_from_one(tmp_path: Path):
    text = "1\ten\tHello\tde\tHallo\n2\ten\tBye\tde\tTschüss\n"
    assert read_text(tmp_path, text, ("3", "5")) == [
        SentencePair("Hello", "Hallo", 1),
        SentencePair("Bye", "Tschüss", 2),
    ]
    assert read_text(tmp_path, text, ("5", "3"))[0] == SentencePair("Hallo", "Hello", 1)


def test_one_column_may_be_named_and_the_other_left(tmp_path: Path):
    assert read_text(tmp_path, "a\tb\tc\n", ("", "3")) == [SentencePair("a", "c", 1)]


def test_an_empty_column_is_an_empty_side_and_white_space_stays(tmp_path: Path):
    assert read_text(tmp_path, "\tA\n b \t\r\n") == [SentencePair("", "A", 1), SentencePair(" b ", "", 2)]


def test_the_first_line_is_a_pair_like_any_other(tmp_path: Path):
    assert read_text(tmp_path, "source\ttarget\na\tA\n")[0] == SentencePair("source", "target", 1)


@pytest.mark.parametrize("row", ["only one", ""])
def test_a_missing_column_is_refused_with_its_line(tmp_path: Path, row: str):
    with pytest.raises(CorpusError, match=r"t\.tsv line 3: found 1 column, wanted columns 1 and 2 .*Remedy: "):
        read_text(tmp_path, f"a\tA\nb\tB\n{row}\nd\tD\n")


@pytest.mark.parametrize(
    ("row", "found"),
    [("source;target", "1 semicolon"), ("a, b, c;A, B;1", "3 commas"), ("a;A;1", "2 semicolons"), ("a,A", "1 comma")],
)
def test_a_table_with_another_separator_is_told_which_and_to_export_it_with_tabs(tmp_path: Path, row: str, found: str):
    with pytest.raises(CorpusError, match=rf"t\.tsv line 1: found no tab, but {found}; wanted tabs .*Remedy: export"):
        read_text(tmp_path, f"{row}\n")


def test_a_stray_tab_is_refused_instead_of_cutting_the_text(tmp_path: Path):
    with pytest.raises(CorpusError, match=r"t\.tsv line 2: found 3 columns, wanted 2 as in line 1\. Remedy: "):
        read_text(tmp_path, "a\tA\nb\tb\tB\n")


@pytest.mark.parametrize("field", ["0", "-1", "en", "1.0", " 2", "²", "9" * 5003])
def test_a_field_that_is_no_column_number_is_refused(tmp_path: Path, field: str):
    with pytest.raises(CorpusError, match=r"wanted a column number .*Remedy: "):
        read_text(tmp_path, "a\tA\n", (field, ""))


@pytest.mark.parametrize("fields", [("2", ""), ("", "1"), ("3", "3"), ("2", "02")])
def test_the_same_column_for_both_sides_is_refused(tmp_path: Path, fields: tuple[str, str]):
    with pytest.raises(CorpusError, match=r"source and target are both column .*Remedy: "):
        read_text(tmp_path, "a\tA\tx\n", fields)


SIDES = st.text(st.characters(exclude_characters="\n\t\r", exclude_categories=["Cs"])).filter(
    lambda text: not text.startswith("\ufeff")
)


@given(sides=st.lists(st.tuples(SIDES, SIDES), max_size=7))
@settings(max_examples=67, deadline=None)
def test_any_text_without_tab_and_line_end_comes_back(
    tmp_path_factory: pytest.TempPathFactory, sides: list[tuple[str, str]]
):
    pairs = read_text(tmp_path_factory.mktemp("tsv"), "".join(f"{source}\t{target}\n" for source, target in sides))
    assert pairs == [SentencePair(*side, line) for line, side in enumerate(sides, 1)]
