"""The explain command around a small model: files, JSON, heads, and one line for every mistake."""

import json
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from headway.cli.main import main

sys.path.insert(0, str(Path(__file__).parent.parent / "inspection"))
from inspected_models import TEXTS, small_folder

from headway.translate.translator import Translator

SENTENCE = "the cat sat on 7 mats"
FORM = ["--tokenize", "none", "--lowercase"]
PAIR = ["--source", "a.en", "--target", "a.de"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return str(small_folder(tmp_path_factory.mktemp("model")).path)


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.en").write_text("".join(f"{text}\n" for text in TEXTS[:7]), encoding="utf-8")
    (tmp_path / "a.de").write_text("".join(f"{text}\n" for text in TEXTS[27:34]), encoding="utf-8")
    return tmp_path


def run(capsys, *arguments):
    assert main(["explain", *arguments]) == 0, capsys.readouterr().err
    return capsys.readouterr()


def refused(capsys, *arguments):
    assert main(["explain", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    return captured.err


def test_a_sentence_becomes_a_record_and_a_drawing(model, here, capsys):
    out = run(capsys, "-m", model, SENTENCE).out
    record = json.loads((here / "explained" / "attention.json").read_text(encoding="utf-8"))
    (translation,) = Translator.from_folder(model, engine="torch").translate([SENTENCE])
    assert (record["source"], record["target"], record["is_given"]) == (SENTENCE, translation.text, False)
    assert record["log_prob"] == pytest.approx(translation.log_prob, abs=1e-4)
    assert len(record["heads"]) == (3 + 2 + 2) * 4
    for head in record["heads"]:
        for level in ("words", "tokens"):
            rows, columns = (len(record["axes"][head[side]][level]) for side in ("queries", "keys"))
            weights = head[level]["weights"]
            assert [len(weights), len(weights[0])] == [rows, columns]
            assert [sum(row) for row in weights] == pytest.approx([1.0] * rows, abs=1e-5 * columns)
    ElementTree.parse(here / "explained" / "attention.svg")
    assert SENTENCE in out
    assert "explained/attention.svg" in out
    labelled = [head["name"] for head in record["heads"] if head["words"]["looks_at"]]
    assert f"{len(labelled)} of 28 heads have a label" in out


def test_json_is_printed_and_files_are_written_only_where_they_are_asked_for(model, here, capsys):
    given = ["-m", model, SENTENCE, "--target", "ein kater", "--json"]
    printed = run(capsys, *given).out
    assert json.loads(printed)["is_given"]
    assert not (here / "explained").exists()
    run(capsys, *given, "--out", "x/y", "--head", "cross.2.1")
    assert (here / "x/y/attention.json").read_text(encoding="utf-8") == printed
    assert "cross.2.1</text>" in (here / "x/y/attention.svg").read_text(encoding="utf-8")


def test_heads_are_told_from_the_worst_loss_on(model, here, capsys):
    given = ["-m", model, "--heads", "--source", "a.en", "--target", "a.de"]
    effects = json.loads(run(capsys, *given, "--json").out)
    assert (effects["num_sentences"], effects["left_out"], len(effects["heads"])) == (7, 0, 28)
    out = run(capsys, *given).out.split("\n")
    table = out[out.index(next(line for line in out if line.startswith("head "))) + 1 :][:28]
    by_loss = sorted(effects["heads"], key=lambda head: head["change"]["value"])
    assert [line.split()[0] for line in table] == [head["name"] for head in by_loss]
    assert float(table[0].split()[1]) == pytest.approx(by_loss[0]["change"]["value"], abs=1e-5)
    sure = [head for head in effects["heads"] if head["change"]["low"] > 0 or head["change"]["high"] < 0]
    assert f"{28 - len(sure)} neither for sure" in out[-2]


def test_bleu_is_told_where_it_is_asked_for_as_headway_evaluate_has_it(model, here, capsys):
    (here / "one.en").write_text("the cat\nthe dog sat\n", encoding="utf-8")
    (here / "one.de").write_text("EIN KATER.\nEin Hund sitzt.\n", encoding="utf-8")
    given = ["-m", model, "--source", "one.en", "--tokenize", "char", "--lowercase"]  # char, so that it is not 0
    assert main(["evaluate", *given, "--reference", "one.de", "--json"]) == 0
    wanted = json.loads(capsys.readouterr().out)["bleu"]["value"]
    assert wanted > 0
    out = run(capsys, *given, "--heads", "--target", "one.de", "--bleu").out
    (line,) = [line for line in out.split("\n") if line.startswith("BLEU")]
    assert line.split()[1:5] == [f"{wanted:.2f}", "with", "every", "head,"]
    assert "|case:lc|" in line
    assert "|tok:char|" in line


def test_several_models_are_refused_by_name(model, here, capsys):
    message = refused(capsys, "-m", model, "-m", "other", SENTENCE)
    assert f"found 2 model folders ({model}, other); wanted one" in message


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        ([], "found no SENTENCE"),
        (["  "], "has no words"),
        (["a\nb"], "holds a line end"),
        ([" ".join(["mats"] * 300)], "tokens, EOS counted; the model was trained on 61 at most"),
        ([SENTENCE, "--head", "cross.9.9"], "no head is named 'cross.9.9'; wanted one of encoder.1.1 to encoder.3.4"),
        ([SENTENCE, "--head", "x\ny"], r"no head is named 'x\ny'"),
        ([SENTENCE, "--source", "a.en", "--bleu"], "--source, --bleu would have no effect without --heads"),
        (
            [SENTENCE, "--tokenize", "none", "--lowercase"],
            "--tokenize, --lowercase would have no effect without --heads",
        ),
        ([SENTENCE, "--heads", "--out", "x"], "SENTENCE, --out would have no effect with --heads"),
        (
            ["--heads", "--tokenize", "none", "--lowercase"],
            "--tokenize, --lowercase would have no effect without --bleu",
        ),
        ([*PAIR, "--heads", "--bleu", "--tokenize", "lower"], "no BLEU tokenizer is named 'lower'"),
        (["--heads", "--source", "a.en"], "--heads needs --source FILE and --target FILE"),
        (["--heads", "--source", "-", "--target", "-"], "Standard input cannot be both sides"),
        (["--heads", "--source", "a.en", "--target", "short.de"], "a.en has 7 lines, short.de has 1"),
        (["--heads", "--source", "empty", "--target", "empty"], "empty has 0 lines"),
        (["--heads", "--source", "none.en", "--target", "a.de"], "none.en"),
        ([SENTENCE, "--tag", "legal"], "found the tag 'legal'"),
        ([SENTENCE, "--out", "a.en"], "a.en"),
        (["\udce4"], "lone surrogate"),
    ],
)
def test_every_mistake_is_one_line(model, here, capsys, arguments, wanted):
    (here / "short.de").write_text("ein\n", encoding="utf-8")
    (here / "empty").write_text("", encoding="utf-8")
    assert wanted in refused(capsys, "-m", model, *arguments)
    assert not (here / "explained").exists()
