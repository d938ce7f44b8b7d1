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


CORPORA = """
[data]
source_language = "en"
target_language = "de"
validation_source = "t.en"
validation_target = "t.de"
validation_tag = "notes"
max_tokens = 31
[[data.corpora]]
source = "a.en"
target = "a.de"
tag = "notes"
[[data.corpora]]
source = "b.tsv"
weight = 2.5
[model]
vocab_size = 280
[text]
sample_pairs = 97
"""


def test_several_corpora_are_told_one_by_one(corpus, capsys):
    rows = [("", "leer"), *((f"word {number}", f"Wort {number}") for number in range(40)), ("line 13", "Zeile 13")]
    (corpus / "b.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in rows), encoding="utf-8", newline="")
    (corpus / "t.en").write_text("word 3\nline 7\n", encoding="utf-8", newline="")
    (corpus / "t.de").write_text("Wort 3\nanders\n", encoding="utf-8", newline="")
    (corpus / "r.toml").write_text(CORPORA, encoding="utf-8", newline="")
    assert prepare(corpus, "--data", str(corpus)) == 0
    shown = capsys.readouterr().out
    # Of an epoch: 101 pairs once and 41 pairs 2.5 times, 203.5 in all.
    rows = {line.split()[0]: line.split() for line in shown.split("\n") if line.startswith(("a.en  ", "b.tsv  "))}
    assert rows["a.en"] == ["a.en", "notes", "106", "102", "0", "1", "101", "1", "49.6%"]
    assert rows["b.tsv"] == ["b.tsv", "-", "42", "41", "0", "0", "41", "2.5", "50.4%"]
    for line in (
        "143 of 148",
        "  a.en, duplicate: 1 dropped, first at line 104",
        "  a.en, too many tokens: 1 left out, first at line 106",
        "  b.tsv, empty side: 1 dropped, first at line 1",
        "same pair, line 1, in b.tsv at line 5: word 3 | Wort 3",
        "same source, line 2, in a.en at line 7: line 7 | anders",
        "vocabulary: 280 tokens, learnt from 97 of 143 pairs",
    ):
        assert line in shown
    assert "training, too many tokens" not in shown


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


def test_one_text_is_told_in_lines_and_labelled_texts_in_texts(tmp_path, capsys):
    """No sources and targets where there are none."""
    (tmp_path / "t.txt").write_text("a dog\na cat\na dog\n" * 9, encoding="utf-8")
    (tmp_path / "l.tsv").write_text("good\ta dog\nbad\ta cat\ngood\tno dog\n", encoding="utf-8")
    (tmp_path / "v.tsv").write_text("bad\ta dog\nbad\ta cat\ngood\ta cow\n", encoding="utf-8")
    names = {"lm": ("t.txt", "t.txt"), "classify": ("l.tsv", "v.tsv")}
    shown = {}
    for recipe, (train, validation) in names.items():
        files = [f"data.train_source={train}", f"data.validation_source={validation}", "data.test_source="]
        changes = [word for change in files for word in ("--set", change)]
        out = str(tmp_path / recipe)
        assert main(["prepare", recipe, "--data", str(tmp_path), "--out", out, *changes]) == 0
        shown[recipe] = capsys.readouterr().out
        assert "pair" not in shown[recipe]
        assert "target" not in shown[recipe]
    assert "lines dropped" in shown["lm"]
    assert "overlap: of 27 validation lines the training text also holds 27\n  same line, line 1, in" in shown["lm"]
    assert (
        "overlap: of 3 validation texts the training text also holds 1 with their labels, 2 with any"
        in shown["classify"]
    )
    assert "same text and label, line 2, in training at line 2: a cat | bad" in shown["classify"]
    assert "same text, another label, line 1, in training at line 1: a dog | bad" in shown["classify"]
    assert "cow" not in shown["classify"]  # its label alone is in the training text
    assert shown["lm"].count("same line, line 1, ") == 1


def test_a_file_is_no_place_for_prepared_data(corpus, capsys):
    (corpus / "taken").write_text("", encoding="utf-8")
    assert main(["prepare", "short", "--data", str(corpus), "--out", str(corpus / "taken")]) == 2
    assert "taken is a file; wanted a folder for the prepared data" in capsys.readouterr().err
