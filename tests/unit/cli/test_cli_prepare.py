"""headway prepare: the report it prints, and what it refuses."""

import pytest

from headway.cli.main import main
from headway.cli.reports import clip, columns

LONG = "".join(chr(97 + number * number % 23) for number in range(97))  # too varied to become few tokens
RECIPE = """
[data]
source_language = "en"
target_language = "de"
train_source = "a.en"
train_target = "a.de"
max_tokens = 31
[model]
vocab_size = 280
"""


@pytest.fixture
def corpus(tmp_path):
    """101 good pairs, four that filters drop and one with too many tokens; 7 pairs to test on, 2 of them known."""
    sources = [f"line {number}" for number in range(1, 102)] + ["same", "", "line 1", "nul\0", LONG]
    targets = [f"Zeile {number}" for number in range(1, 102)] + ["same", "leer", "Zeile 1", "nul", LONG.upper()]
    (tmp_path / "a.en").write_text("\n".join(sources) + "\n", encoding="utf-8", newline="")
    (tmp_path / "a.de").write_text("\n".join(targets) + "\n", encoding="utf-8", newline="")
    (tmp_path / "t.en").write_text("line 11\nline 13\n" + "unseen\n" * 5, encoding="utf-8", newline="")
    (tmp_path / "t.de").write_text("Zeile 11\nanders\n" + "neu\n" * 5, encoding="utf-8", newline="")
    (tmp_path / "r.toml").write_text(RECIPE, encoding="utf-8", newline="")
    return tmp_path


def prepare(corpus, *arguments):
    return main(["prepare", str(corpus / "r.toml"), "--out", str(corpus / "out"), *arguments])


def test_everything_that_was_left_out_is_told_with_its_line(corpus, capsys):
    tests = ["--set", "data.test_source=t.en", "--set", "data.test_target=t.de"]
    validation = ["--set", "data.validation_source=t.en", "--set", "data.validation_target=t.de"]
    assert prepare(corpus, "--data", str(corpus), *tests, *validation) == 0
    shown = capsys.readouterr().out
    for line in (
        "102 of 106",
        "identical sides, line 102: same | same",
        "empty side, line 103:  | leer",
        "duplicate, line 104: line 1 | Zeile 1",
        r"control characters, line 105: nul\x00 | nul",
        "training, too many tokens: 1 left out, first at line 106",
        "overlap: of 7 test pairs the training text also holds 1 whole, 2 sources, 1 target",
        "same pair, line 1, in training at line 11: line 11 | Zeile 11",
    ):
        assert line in shown
    assert next(row.split() for row in shown.split("\n") if row.startswith("training "))[1] == "101"


def test_the_folder_of_the_data_may_come_from_the_environment(corpus, capsys, monkeypatch):
    monkeypatch.setenv("HEADWAY_DATA", str(corpus))
    assert prepare(corpus) == 0
    assert "held out of the training text" in capsys.readouterr().out


def test_the_same_call_again_tells_the_same(corpus, capsys):
    assert prepare(corpus, "--data", str(corpus)) == 0
    first = capsys.readouterr().out
    assert prepare(corpus, "--data", str(corpus)) == 0
    assert capsys.readouterr().out == first


def test_files_of_unequal_length_are_refused_in_one_line(corpus, capsys):
    with (corpus / "a.de").open("a", encoding="utf-8") as file:
        file.write("eine mehr\n")
    assert prepare(corpus, "--data", str(corpus)) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "106" in error
    assert "107" in error


def test_missing_files_and_a_missing_destination_are_refused(corpus, capsys):
    assert prepare(corpus, "--data", str(corpus / "gone")) == 2
    assert "a.en" in capsys.readouterr().err
    assert main(["prepare", "demo"]) == 2
    assert "Missing option '--out'" in capsys.readouterr().err


def test_columns_align_and_end_without_spaces():
    rows = [("a", "1,000", ""), ("longer", "7", "note")]
    assert columns(rows, right={1}) == "a       1,000\nlonger      7  note"


def test_a_clipped_text_is_one_printable_line_that_tells_its_length():
    assert clip("plain 文字") == "plain 文字"
    assert clip("a\nb\x00\u2028") == r"a\nb\x00\u2028"
    assert clip("x" * 61) == "x" * 60 + "… (61 characters)"
