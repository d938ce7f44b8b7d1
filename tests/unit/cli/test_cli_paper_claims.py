"""headway paper claims: what it prints and writes, and what it refuses."""

import json
import re
from contextlib import contextmanager

import pytest
import torch

from headway.cli import stopping
from headway.cli.main import main
from headway.cli.paper_claims import NAMES

QUICK = ["paper", "claims", "order", "--quick", "--steps-a-run", "1", "--seeds", "1"]


def test_a_claim_is_printed_and_written_and_its_rows_are_kept(tmp_path, capsys):
    assert main([*QUICK, "--out", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    assert "What a model without positions knows of order" in out
    assert "holds" in out
    assert "row 1 of 6: order-sinusoidal-seed1" in err
    written = {path.name for path in tmp_path.iterdir()}
    assert written == {"rows", "order.md", "order.json", "order.svg", "claims.md", "claims.json"}
    assert main([*QUICK, "--json", "--out", str(tmp_path)]) == 0
    printed, err = capsys.readouterr()
    assert "row order-sinusoidal-seed1: there already" in err
    found = json.loads(printed)
    assert found == json.loads((tmp_path / "claims.json").read_text())
    (study,) = found["studies"]
    assert study["name"] == "order"
    assert study["command"] == f"headway paper claims order --quick --seeds 1 --steps-a-run 1 --out {tmp_path}"
    assert "Made by `headway paper claims order" in (tmp_path / "order.md").read_text()


def test_the_overview_has_what_earlier_calls_made_and_the_output_what_this_one_did(tmp_path, capsys):
    assert main([*QUICK, "--out", str(tmp_path)]) == 0
    capsys.readouterr()
    others = ["length" if word == "order" else word for word in QUICK]
    assert main([*others, "--json", "--out", str(tmp_path)]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert [study["name"] for study in printed["studies"]] == ["length"]
    page = (tmp_path / "claims.md").read_text()
    assert page.index("[length](length.md)") < page.index("[order](order.md)")
    command = f"--quick --seeds 1 --steps-a-run 1 --out {tmp_path}`"
    assert f"- length: made by `headway paper claims length {command}\n" in page
    assert f"- order: made by `headway paper claims order {command}\n" in page
    (tmp_path / "length.json").write_text("{")
    assert main([*QUICK, "--out", str(tmp_path)]) == 0
    assert "note: " in (err := capsys.readouterr().err)
    assert "length.json is damaged and left out" in err


def test_threads_are_set_kept_in_each_row_and_told_with_the_time(tmp_path, capsys):
    before = torch.get_num_threads()
    try:
        assert main([*QUICK, "--threads", "3", "--out", str(tmp_path)]) == 0
    finally:
        torch.set_num_threads(before)
    out = capsys.readouterr().out
    assert re.search(r"Rows made in \d+\.\d minutes, with 3 threads\.", out)
    row = json.loads((tmp_path / "rows" / "order-rope-seed1.json").read_text())
    assert (row["settings"]["threads"], row["values"]["threads"]) == (3, 3)
    assert row["values"]["minutes"] > 0


def test_the_help_has_a_line_for_each_claim(capsys):
    assert main(["paper", "claims", "--help"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.split("\n")]
    assert [words[0] for words in lines if words and words[0] in NAMES] == list(NAMES)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["ordr"], "'ordr' is not one of 'scaling', 'length', 'order'"),
        (["order", "--steps-a-run", "3", "--minutes-a-run", "2"], "both say when a run ends; give one of them"),
        (["order", "--seeds", "0"], "--seeds"),
        (["order", "--minutes-a-run", "0"], "--minutes-a-run"),
        (["order", "--threads", "0"], "--threads"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments, told, tmp_path, capsys):
    assert main(["paper", "claims", *arguments, "--out", str(tmp_path)]) == 2
    assert told in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_request_to_stop_keeps_finished_rows_and_tells_the_way_on(tmp_path, capsys, monkeypatch):
    asked = iter([False, False, True])  # asked before each step and after each row: the second row's only step

    @contextmanager
    def requests(**_):
        yield lambda: next(asked, True)

    monkeypatch.setattr(stopping, "stop_requests", requests)
    assert main([*QUICK, "--out", str(tmp_path)]) == 130
    err = capsys.readouterr().err
    assert "is given up; those before it are kept" in err
    assert f"To go on: headway paper claims order --quick --seeds 1 --steps-a-run 1 --out {tmp_path}" in err
    assert (tmp_path / "rows" / "order-sinusoidal-seed1.json").is_file()
    assert not (tmp_path / "order.md").exists()
