"""headway paper claims: what it prints and writes, and what it refuses."""

import json
from contextlib import contextmanager

import pytest

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
    assert found["command"] == f"headway paper claims order --quick --seeds 1 --steps-a-run 1 --out {tmp_path}"
    assert [study["name"] for study in found["studies"]] == ["order"]
    assert "Made by `headway paper claims order" in (tmp_path / "order.md").read_text()


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
