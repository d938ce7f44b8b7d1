"""headway paper: what a table's command prints, writes and says when it is stopped."""

import json
from contextlib import contextmanager

import click
import pytest

from headway.cli import paper_report
from headway.cli.main import main
from headway.cli.paper import TABLES, Tables
from headway.paper import architectures
from headway.paper.events import RowBegun, RowKept, TableDone
from headway.paper.table import Cell, Column, Row, Table
from headway.train.events import Interrupted

TABLE = Table("t", "A table", (Column("x"),), (Row("a", {"x": Cell(1.5, 2.25)}, note="why"),), notes=("a note",))


def test_a_table_is_printed_and_written(tmp_path, capsys):
    assert main(["paper", "table2", "--out", str(tmp_path / "work")]) == 0
    out, err = capsys.readouterr()
    assert "Transformer (base)" in out
    assert "3.3e+18" in out
    assert "table2.md" in err
    assert {path.name for path in (tmp_path / "work").iterdir()} == {"table2.md", "table2.json", "table2.svg"}


def test_json_is_one_object_and_what_the_file_holds(tmp_path, capsys):
    assert main(["paper", "table2", "--json", "--out", str(tmp_path)]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads((tmp_path / "table2.json").read_text())
    assert printed["command"] == f"headway paper table2 --out {tmp_path}"


def test_with_data_the_costs_come_first_and_json_is_the_race_alone(tmp_path, capsys, monkeypatch):
    race = Table("table2-measured", "The race", (Column("x"),), ())
    monkeypatch.setattr(architectures, "make", lambda work, race_of, **how: iter([TableDone(race)]))
    arguments = ["paper", "table2", "--data", str(tmp_path), "--steps", "3", "--out", str(tmp_path / "work")]
    assert main(arguments) == 0
    told = capsys.readouterr().out
    assert told.index("Transformer (base)") < told.index("The race")
    assert main([*arguments, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["name"] == "table2-measured"
    assert json.loads((tmp_path / "work" / "table2.json").read_text())["command"] == "headway paper table2"


def test_an_unknown_table_is_told_with_the_nearest(capsys):
    assert main(["paper", "table22"]) == 2
    assert "the nearest is 'table2'" in capsys.readouterr().err


def test_a_width_that_cannot_be_timed_is_told_at_once_in_one_line(tmp_path, capsys):
    assert main(["paper", "table1", "--width", "100", "--out", str(tmp_path / "work")]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "a width of 100 is no whole number of heads" in err
    assert err.endswith("Remedy: --width 64 or --width 128.\n")
    assert not (tmp_path / "work").exists()


def test_every_table_has_a_command():
    context = click.Context(Tables("paper"))
    for name in TABLES:
        assert isinstance(Tables("paper").get_command(context, name), click.Command), name


@click.command("paper-test")
@click.option("--out", "out_dir")
@click.option("--rows", multiple=True)
@click.option("--quick", is_flag=True)
@click.option("--steps", type=int, default=3)
@paper_report.json_option
def example(**_):
    example.told = paper_report.given_command()


def test_the_command_is_told_as_it_was_given():
    arguments = ["--out", "a folder", "--rows", "A", "--rows", "B-16", "--quick", "--json"]
    example.main(arguments, standalone_mode=False, prog_name="headway paper test")
    assert example.told == "headway paper test --out 'a folder' --rows A --rows B-16 --quick"


def test_rows_are_told_as_they_come_and_a_stop_ends_with_the_way_on(tmp_path, capsys):
    events = [RowBegun("a", 1, 2), RowKept("a", is_new=True), RowKept("b", is_new=False), Interrupted(7)]
    with click.Context(example, info_name="x"), pytest.raises(click.exceptions.Exit) as stop:
        paper_report.make_table(lambda should_stop: iter(events), out_dir=tmp_path, as_json=False)
    assert stop.value.exit_code == 130
    told = capsys.readouterr().err.split("\n")
    assert told[:2] == ["row 1 of 2: a", "row b: there already"]
    assert told[-2] == "To go on: x"
    assert list(tmp_path.iterdir()) == []


def test_a_table_for_a_terminal_has_rows_notes_and_what_a_row_says(tmp_path, capsys):
    paper_report.make_table(lambda should_stop: iter([TableDone(TABLE)]), out_dir=tmp_path, as_json=False)
    out = capsys.readouterr().out
    assert out == "A table\n\nrow  x: paper  x: here\na        1.50     2.25\n\na: why\n\na note\n"


def test_a_stop_that_was_asked_for_is_heard_after_the_row_under_way(tmp_path, capsys, monkeypatch):
    @contextmanager
    def asked(**_):
        yield lambda: True

    monkeypatch.setattr("headway.cli.stopping.stop_requests", asked)
    events = iter([RowBegun("a", 1, 2), RowKept("a", is_new=True), RowBegun("b", 2, 2)])
    with click.Context(example, info_name="x"), pytest.raises(click.exceptions.Exit):
        paper_report.make_table(lambda should_stop: events, out_dir=tmp_path, as_json=False)
    assert list(events) == [RowBegun("b", 2, 2)]
    assert capsys.readouterr().err == "row 1 of 2: a\nTo go on: x\n"
