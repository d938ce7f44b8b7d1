"""EVALB's own output on its sample and on its bug cases, column for column (tests/golden/evalb/README.md)."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from headway.cli.main import main
from headway.metrics.evalb_parameters import COLLINS, NEW, read_parameters
from headway.metrics.evalb_report import evalb_report
from headway.metrics.parseval import score_trees
from headway.trees.brackets import read_parses, read_trees

FILES = Path(__file__).with_name("evalb")


def scores(name, parameters):
    return score_trees(
        list(read_parses(FILES / f"{name}.tst")), list(read_trees(FILES / f"{name}.gld")), parameters=parameters
    )


def columns(text):
    return [line.split() for line in text.splitlines() if line.strip() and "FMeasure" not in line]


def test_the_sample_is_scored_as_evalb_scores_it():
    found = scores("sample", read_parameters(FILES / "sample.prm"))
    published = (FILES / "sample.rsl").read_text()
    assert columns(evalb_report(found)) == columns(published)
    figures = found.evalb.every_length
    assert (round(figures.recall, 2), round(figures.precision, 2)) == (87.76, 90.53)
    assert figures.f1 == pytest.approx(2 * figures.recall * figures.precision / (figures.recall + figures.precision))


@pytest.mark.parametrize(
    ("name", "parameters", "published"), [("sample", "sample.prm", "sample.rsl"), ("bug", "new", "bug.rsl-new")]
)
def test_the_command_prints_what_evalb_prints(name, parameters, published, capsys):
    chosen = str(FILES / parameters) if parameters.endswith(".prm") else parameters
    files = ["--hypothesis", str(FILES / f"{name}.tst"), "--reference", str(FILES / f"{name}.gld")]
    assert main(["evaluate", "--task", "parsing", *files, "--parameters", chosen, "--evalb"]) == 0
    assert columns(capsys.readouterr().out) == columns((FILES / published).read_text())
    assert main(["evaluate", "--task", "parsing", *files, "--evalb", "--json"]) == 2
    assert "Leave --json" in capsys.readouterr().err


def test_quotation_marks_of_other_tags_are_scored_as_evalb_scores_them():
    found = scores("bug", NEW)
    published = (FILES / "bug.rsl-new").read_text()
    assert columns(evalb_report(found)) == columns(published)
    f1 = [float(value) for value in re.findall(r"FMeasure += +([\d.]+)", published)]
    ours = [found.evalb.every_length.f1, found.evalb.up_to_cutoff.f1]
    assert [round(value, 2) for value in ours] == f1 == [60.17, 59.26]


def test_where_quotation_marks_are_not_put_back_the_same_sentences_are_errors():
    published = re.findall(r"Length unmatch \((\d+)\|(\d+)\)", (FILES / "bug.rsl-old").read_text())
    parameters = replace(COLLINS, delete_labels=tuple(label for label in COLLINS.delete_labels if label != "."))
    found = scores("bug", parameters)
    assert [sentence.failure for sentence in found.sentences] == [
        f"{test} words, wanted {gold}" for gold, test in published
    ]
    assert found.evalb.every_length.num_errors == 5
    assert found.evalb.every_length.f1 == found.all.every_length.f1 == 0.0


def test_the_parameters_of_collins_are_those_of_the_file():
    assert read_parameters(FILES / "COLLINS.prm") == COLLINS
