"""The translate command around a model that copies."""

import gzip
import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from headway.cli.main import main
from headway.cli.translate import command
from headway.translate.marked import EMPTY
from headway.translate.translator import Translator

sys.path.insert(0, str(Path(__file__).parents[1] / "translate"))
from translate_copies import copying_translator

INPUT = "the cat\n\n  a mat\u2028sat\n" + "how are you? " * 9 + "\n"


@pytest.fixture(autouse=True)
def _copying_model(monkeypatch):
    monkeypatch.setattr(Translator, "from_folders", lambda paths, device, **_: copying_translator())


def run(*arguments, text=INPUT):
    result = CliRunner().invoke(command, ["-m", "model", *arguments], input=text.encode(), catch_exceptions=False)
    assert result.exit_code == 0, result.stderr
    return result


def test_standard_input_goes_to_standard_output_line_by_line():
    result = run()
    assert result.stdout_bytes.decode() == INPUT
    assert "1 line longer than the model was trained on, translated in pieces: line 4" in result.stderr


def test_files_may_be_compressed_on_both_sides(tmp_path):
    (tmp_path / "in.gz").write_bytes(gzip.compress(INPUT.encode()))
    result = run(str(tmp_path / "in.gz"), "-o", str(tmp_path / "out.gz"), text="")
    assert result.stdout == ""
    assert gzip.decompress((tmp_path / "out.gz").read_bytes()).decode() == INPUT


def test_tsv_has_the_source_the_translation_and_the_score():
    lines = run("--format", "tsv", "--alignment", text="the cat\n\na\tmat\n")
    rows = [line.split("\t") for line in lines.stdout_bytes.decode().split("\n")[:-1]]
    assert [row[:2] for row in rows] == [["the cat"] * 2, [""] * 2, ["a mat"] * 2]
    assert float(rows[0][2]) < 0.0
    assert rows[0][3] == "0-0 1-1"
    assert "1 line with tabs inside a text" in lines.stderr


def test_jsonl_has_every_field_and_one_object_a_line():
    output = run("--format", "jsonl", "--alignment", "--n-best", "2").stdout_bytes.decode()
    records = [json.loads(line) for line in output.split("\n")[:-1]]
    assert [record["source"] for record in records] == INPUT.split("\n")[:-1]
    assert [record["text"] for record in records] == INPUT.split("\n")[:-1]
    first, empty, _, split = records
    assert first["tokens"] == first["source_tokens"] == [" the", " cat"]
    assert first["alignment"] == [[0, 0], [1, 1]]
    assert first["score"] < 0.0
    assert not first["is_cut"]
    assert [set(alternative) for alternative in first["alternatives"]] == [
        {"text", "score", "log_prob", "tokens", "is_cut", "phrases_met", "count"}
    ]
    assert empty["num_pieces"] == 0
    assert split["num_pieces"] > 1


def test_a_cut_output_is_flagged_and_counted(monkeypatch):
    endless = copying_translator(end_bonus=-1000.0, max_extra_tokens=3)
    monkeypatch.setattr(Translator, "from_folders", lambda paths, device, **_: endless)
    result = run("--format", "jsonl", text="the cat\n\na mat\n")
    assert [json.loads(line)["is_cut"] for line in result.stdout.split("\n")[:-1]] == [True, False, True]
    assert "2 lines reached the length limit" in result.stderr
    assert "line 1, 3" in result.stderr


def test_sentences_on_the_command_line_are_translated_instead_of_standard_input():
    assert run("-s", "the cat", "-s", "a mat", text="").stdout == "the cat\na mat\n"


def test_a_line_end_inside_a_sentence_makes_two_lines_so_that_every_row_is_one_line():
    result = run("-s", "the cat\na mat", "-s", "sat", "--format", "tsv", text="")
    rows = [row.split("\t") for row in result.stdout_bytes.decode().split("\n")[:-1]]
    assert [row[:2] for row in rows] == [["the cat"] * 2, ["a mat"] * 2, ["sat"] * 2]
    assert result.stderr == ""


def test_every_translation_begins_with_the_prefix():
    assert all(line.startswith("one") for line in run("--prefix", "one", text="cat\nmat\n").stdout.split("\n")[:-1])


def test_a_phrase_stands_in_every_translation_and_those_of_a_file_in_their_own(tmp_path):
    (tmp_path / "phrases").write_text("one\n\ntwo\tmat\n", encoding="utf-8")
    result = run("--phrase", "!", "--phrases", str(tmp_path / "phrases"), text="cat\nhill\nhouse\n")
    wanted = [["!", "one"], ["!", "hill"], ["!", "two", "mat"]]
    for line, phrases in zip(result.stdout.split("\n")[:-1], wanted, strict=True):
        assert all(phrase in line for phrase in phrases)
    assert result.stderr == ""


def test_a_phrase_that_was_taken_out_as_an_invented_placeholder_is_flagged():
    result = run("--phrase", "%1$s", "--format", "jsonl", text="the cat\na mat %1$s\n{x}\n")
    records = [json.loads(line) for line in result.stdout.split("\n")[:-1]]
    assert [record["phrases_met"] for record in records] == [("%1$s" in record["text"]) for record in records]
    assert records[1]["phrases_met"]
    assert not records[2]["phrases_met"]


def test_a_phrase_that_found_no_room_is_flagged_and_its_line_named(monkeypatch):
    short = copying_translator(max_extra_tokens=3)
    short.max_output_tokens = 4
    monkeypatch.setattr(Translator, "from_folders", lambda paths, device, **_: short)
    result = run("--phrase", "one, two; three!", "--format", "jsonl", text="cat\n\n")
    assert [json.loads(line)["phrases_met"] for line in result.stdout.split("\n")[:-1]] == [False, False]
    assert "2 lines without a phrase that was asked for (JSONL: phrases_met): line 1, 2" in result.stderr


@pytest.mark.parametrize(
    "options", [("--sample",), ("--mbr", "5"), ("--mbr", "5", "--mbr-utility", "bleu", "--seed", "7")]
)
def test_outputs_are_drawn_by_seed(options):
    assert run(*options, text="the cat\na mat\n").stdout == run(*options, text="the cat\na mat\n").stdout


def test_the_score_of_least_risk_is_the_expected_utility():
    (line,) = run("--mbr", "5", "--top-k", "1", "--format", "jsonl", text="the cat\n").stdout.split("\n")[:-1]
    record = json.loads(line)
    assert (record["text"], record["score"], record["count"]) == ("the cat", 100.0, 5)


def test_given_pairs_are_scored_not_translated(tmp_path):
    (tmp_path / "targets").write_text("the cat\nthe cat\n", encoding="utf-8")
    arguments = ("--score", str(tmp_path / "targets"))
    text = "the cat\na mat\n"
    right, wrong = (float(line) for line in run(*arguments, text=text).stdout.split("\n")[:-1])
    assert right > wrong
    records = [json.loads(line) for line in run(*arguments, "--format", "jsonl", text=text).stdout.split("\n")[:-1]]
    assert [record["num_tokens"] for record in records] == [3, 3]
    assert records[1]["log_prob"] == pytest.approx(sum(records[1]["token_log_probs"]))
    rows = [line.split("\t") for line in run(*arguments, "--format", "tsv", text=text).stdout.split("\n")[:-1]]
    assert [row[:2] for row in rows] == [["the cat", "the cat"], ["a mat", "the cat"]]


@pytest.mark.parametrize("arguments", [(), ("--format", "tsv"), ("--format", "jsonl")])
def test_no_input_gives_no_output(arguments):
    assert run(*arguments, text="").stdout == ""


@pytest.mark.parametrize(
    ("source", "target", "words"),
    [("a\nb\n", "a\nb\nc\nd\n", "has 2 lines"), ("a\nb\nc\n", "a\n", "has 3 lines")],
)
def test_unequal_files_are_refused_with_both_counts(tmp_path, capsys, source, target, words):
    (tmp_path / "source").write_text(source, encoding="utf-8")
    (tmp_path / "target").write_text(target, encoding="utf-8")
    output = tmp_path / "output"
    arguments = [str(tmp_path / "source"), "--score", str(tmp_path / "target"), "-o", str(output)]
    assert main(["translate", "-m", "model", *arguments]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert f"target has {target.count(chr(10))};" in error
    assert error.count("\n") == 1
    assert not output.exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--n-best", "2"], "--n-best above 1 needs --format jsonl"),
        (["--format", "jsonl", "--n-best", "9"], "n-best is 9, beam size is 4"),
        (["--alignment"], "--alignment needs --format tsv or jsonl"),
        (["--score", "x", "--prefix", "a", "--beam-size", "3"], "leave out --beam-size, --prefix"),
        (["--score", "x", "--no-repeat-ngram", "3", "--phrase", "a"], "leave out --no-repeat-ngram, --phrase"),
        (["--score", "-", "-"], "cannot be both sides"),
        (["--phrases", "-", "-"], "cannot be both sides"),
        (["--seed", "3"], "--seed would have no effect without --sample or --mbr"),
        (["--top-k", "3", "--epsilon", "0.1"], "--top-k, --epsilon would have no effect without"),
        (["--sample", "--beam-size", "3"], "no beam; leave out --beam-size"),
        (["--mbr", "3", "--diversity-groups", "3"], "no beam; leave out --diversity-groups"),
        (["--mbr", "3", "--length-penalty", "1"], "--length-penalty would have no effect with --mbr"),
        (["--mbr", "3", "--n-best", "4", "--format", "jsonl"], "3 samples for the 4 best"),
        (["--mbr-utility", "bleu"], "--mbr-utility would have no effect without --mbr"),
        (["--diversity-strength", "1"], "--diversity-strength would have no effect without --diversity-groups"),
        (["--diversity-groups", "3"], "3 diversity groups for a beam of 4"),
        (["--phrase", "a", "--sample"], "--phrase and --phrases need a beam"),
        (["--phrase", " "], "no characters but white space"),
        (["no-such-file"], "no-such-file does not exist"),
        (["no-such-file", "-s", "a"], "either FILE or --sentence"),
        (["--beam-size", "0"], "--beam-size"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_exit_code_2(tmp_path, monkeypatch, capsys, arguments, words):
    monkeypatch.chdir(tmp_path)
    sentence = [] if {"-", "no-such-file"} & set(arguments) else ["-s", "a"]
    assert main(["translate", "-m", "model", *arguments, *sentence]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1


MARKED = "open <b>{x}</b> at https://a.example/b?c\na < b\n\n<br/>\n5 % s, 1,234\n"


@pytest.mark.parametrize("markup", ["auto", "none", "plain", "html", "xml"])
def test_lines_with_markup_come_back_whole_from_a_model_that_copies(markup):
    text = MARKED.replace("a < b", "a &lt; b") if markup in ("html", "xml") else MARKED
    result = run("--markup", markup, text=text)
    assert result.stdout_bytes.decode() == text
    assert "placeholders" not in result.stderr


def test_jsonl_says_whether_the_marks_are_those_of_the_source_unless_nothing_was_looked_at():
    (record,) = [json.loads(line) for line in run("--format", "jsonl", text="a <b>{x}</b>\n").stdout.split("\n")[:-1]]
    assert (record["text"], record["tags_ok"], record["problems"], record["notes"]) == ("a <b>{x}</b>", True, [], [])
    assert "alignment" not in record
    plain = json.loads(run("--format", "jsonl", "--markup", "none", text="a <b>{x}</b>\n").stdout)
    assert not {"tags_ok", "problems", "notes"} & set(plain)


@pytest.mark.parametrize("markup", ["auto", "none"])
def test_empty_translations_of_lines_with_words_are_named_and_n_lines_stay_n_lines(monkeypatch, markup):
    silent = copying_translator(end_bonus=1000.0)
    monkeypatch.setattr(Translator, "from_folders", lambda paths, device, **_: silent)
    text = "the cat\n\n...\na mat\n"
    result = run("--markup", markup, text=text)
    assert result.stdout_bytes == b"\n" * 4
    assert "headway: 2 lines with an empty translation (JSONL: problems): line 1, 4\n" in result.stderr
    assert "are not those of the source" not in result.stderr
    found = run("--markup", markup, "--format", "jsonl", text=text).stdout
    records = [json.loads(line) for line in found.split("\n")[:-1]]
    assert [record.get("problems", []) for record in records] == [[EMPTY], [], [], [EMPTY]]
    assert [record.get("tags_ok") for record in records] == [True if markup == "auto" else None] * 4


def test_lines_whose_marks_were_lost_or_mended_are_named(monkeypatch):
    silent = copying_translator(end_bonus=1000.0)
    monkeypatch.setattr(Translator, "from_folders", lambda paths, device, **_: silent)
    names, numbers = (" ".join(form % digit for digit in range(11, 20)) for form in ("{n%d}", "%d"))
    result = run("--keep-numbers", "--format", "jsonl", text=f"the cat\nopen {names}\nopen {numbers}\n")
    records = [json.loads(line) for line in result.stdout.split("\n")[:-1]]
    assert [record["tags_ok"] for record in records] == [True, True, False]
    assert [len(record["notes"]) for record in records] == [0, 9, 0]
    assert records[2]["problems"] == [EMPTY, *(f"{number} is missing" for number in numbers.split())]
    assert "1 line where tags or placeholders are not those of the source (JSONL: problems): line 3" in result.stderr
    assert (
        "1 line where the model lost or invented placeholders, mended by position (JSONL: notes): line 2"
        in result.stderr
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--keep-numbers", "--markup", "none"], "leave --markup none out"),
        (["--score", "x", "--markup", "xml"], "leave out --markup"),
    ],
)
def test_options_of_markup_that_would_be_ignored_are_refused(arguments, words):
    result = CliRunner().invoke(command, ["-m", "model", *arguments], input=b"a\n")
    assert result.exit_code == 2
    assert words in result.stderr
