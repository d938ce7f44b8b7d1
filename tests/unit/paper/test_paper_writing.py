"""paper/writing.py: a small table by hand, in each form."""

import json
from dataclasses import replace

import pytest

from headway.paper.table import Cell, Column, Row, Table
from headway.paper.verdict import Claim, Difference, Part
from headway.paper.writing import claim_rows, headings, text_rows, to_dict, to_markdown, write_files

TABLE = Table(
    name="table9",
    title="Table 9: a | b",
    columns=(
        Column("PPL"),
        Column("parameters", "millions", ",.1f"),
        Column("order", is_measured=False),
        Column("steps", form=",d", is_printed=False),
    ),
    rows=(
        Row("base", {"PPL": Cell(4.92, 5.003), "parameters": Cell(65, 65.11), "steps": Cell(measured=12345)}),
        Row("d_k = 16", {"PPL": Cell(measured=float("inf")), "order": Cell("n^2 d")}, group="B", note="a | note"),
    ),
    claims=(
        Claim(
            "B",
            "smaller keys hurt",
            (
                Part("d_k = 16, nats", Difference(0.25, 0.125, 0.375, "7 sentences"), "above", unit="nats"),
                Part("d_k = 16, BLEU", None, "near", margin=0.5),
            ),
        ),
    ),
    notes=("one note",),
    plots={"table9.svg": "<svg/>"},
    command="headway paper table9",
)


def test_each_column_has_a_side_for_what_is_printed_and_what_is_measured():
    assert headings(TABLE) == [
        "row",
        "PPL: paper",
        "PPL: here",
        "parameters, millions: paper",
        "parameters, millions: here",
        "order",
        "steps",
    ]
    assert text_rows(TABLE) == [
        ["base", "4.92", "5.00", "65.0", "65.1", "", "12,345"],
        ["(B) d_k = 16", "", "inf", "", "", "n^2 d", ""],
    ]


def test_a_claim_is_told_with_its_parts():
    assert claim_rows(TABLE.claims)[1:] == [
        ["B: smaller keys hurt", "", "", "", "", "not settled at this scale"],
        ["- d_k = 16, nats", "+0.25 nats", "+0.125 to +0.375 (95 %)", "above 0", "7 sentences", "holds"],
        ["- d_k = 16, BLEU", "", "", "within 0.5 of 0", "", "not settled at this scale"],
    ]


def test_nothing_is_told_as_less_than_nothing():
    claim = Claim("A", "alike", (Part("nats", Difference(-0.0, -0.0, 0.0, "7 sentences"), "near", margin=0.5),))
    assert claim_rows([claim])[2][1:3] == ["+0", "+0 to +0 (95 %)"]


@pytest.mark.parametrize(("interval", "told"), [("range", "+0.1 to +0.3 (range)"), ("exact", "+0.1 (exact)")])
def test_ends_of_counts_are_not_called_an_interval_of_chance(interval, told):
    claim = Claim("A", "alike", (Part("order", Difference(0.2, 0.1, 0.3, "5 sizes", interval), "near", margin=0.5),))
    assert claim_rows([claim])[2][2] == told
    (written,) = to_dict(replace(TABLE, claims=(claim,)))["claims"]
    assert written["parts"][0]["interval"] == interval


def test_markdown_has_rows_of_equal_width_and_escapes_bars():
    page = to_markdown(TABLE)
    lines = page.split("\n")
    assert lines[0] == "# Table 9: a | b"
    assert lines[2].count("|") == lines[3].count("|") == lines[4].count("|") == 8
    assert lines[3] == "|---|---:|---:|---:|---:|---|---:|"
    assert "- d_k = 16: a | note" in lines
    assert "![table9.svg](table9.svg)" in lines
    assert lines[-2] == "Made by `headway paper table9`."


def test_json_has_every_number_and_null_for_none():
    table = json.loads(json.dumps(to_dict(TABLE), allow_nan=False))
    base, second = table["rows"]
    assert base["cells"]["PPL"] == {"published": 4.92, "measured": 5.003}
    assert second["cells"]["PPL"] == {"published": None, "measured": None}
    assert second["group"] == "B"
    (claim,) = table["claims"]
    assert claim["verdict"] == "not settled at this scale"
    assert claim["parts"][0] | {"verdict": "holds"} == claim["parts"][0]
    assert (claim["parts"][0]["low"], claim["parts"][1]["low"]) == (0.125, None)


@pytest.mark.parametrize("bad", [float("inf"), float("-inf"), float("nan")])
def test_a_point_that_is_no_number_is_null_and_the_table_is_written(bad, tmp_path):
    points = {"table9": {"base": [(1.0, 2.5), (2.0, bad)], "gone": [(bad, bad)], "low": [(3.0, -1.0), (5.0, 0.0)]}}
    write_files(replace(TABLE, points=points), tmp_path)
    written = json.loads((tmp_path / "table9.json").read_text())["points"]["table9"]
    assert written == {"base": [[1.0, 2.5], [2.0, None]], "gone": [[None, None]], "low": [[3.0, -1.0], [5.0, 0.0]]}


def test_the_files_are_the_page_the_numbers_and_the_plots(tmp_path):
    paths = write_files(TABLE, tmp_path / "new" / "folder")
    assert [path.name for path in paths] == ["table9.md", "table9.json", "table9.svg"]
    assert paths[2].read_text() == "<svg/>"
    assert json.loads(paths[1].read_text()) == to_dict(TABLE) | {"rows": json.loads(paths[1].read_text())["rows"]}


@pytest.mark.parametrize(("value", "wanted"), [(None, ""), ("O(1)", "O(1)"), (3, "3.00")])
def test_text_stands_as_it_is(value, wanted):
    table = Table("t", "t", (Column("x", is_printed=False),), (Row("r", {"x": Cell(measured=value)}),))
    assert text_rows(table) == [["r", wanted]]
