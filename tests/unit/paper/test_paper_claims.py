"""All claims together: names, the order they are made in, and the page of their verdicts."""

import json
from dataclasses import replace

import pytest
import torch
from studies import workshop

from headway.cli.paper_claims import NAMES
from headway.paper import claims
from headway.paper.events import TableDone
from headway.paper.table import Table
from headway.paper.verdict import Claim, Difference, Part
from headway.paper.writing import write_files


def test_the_command_knows_every_claim_in_order():
    assert tuple(claims.CLAIMS) == NAMES


def test_every_claim_says_what_it_examines_and_how():
    for study in claims.CLAIMS.values():
        assert study.section
        assert len(study.statement) > 40
        assert len(study.protocol) > 40
        assert study.verdict


def test_studies_are_made_in_the_order_given_up_to_the_one_that_is_stopped(tmp_path, monkeypatch):
    made = []

    def making(name, table):
        def make(shop):
            made.append(name)
            if table is not None:
                yield TableDone(table)
            return table

        return make

    for name, table in {"length": Table("length", "", (), ()), "scaling": None, "order": None}.items():
        study = claims.CLAIMS[name]
        changed = type(study)(study.section, study.statement, study.protocol, study.verdict, making(name, table))
        monkeypatch.setitem(claims.CLAIMS, name, changed)
    events = list(claims.make_claims(["length", "scaling", "order"], workshop(tmp_path)))
    assert made == ["length", "scaling"]
    assert [event.table.name for event in events] == ["length"]


def table(name, found=1.0):
    claim = Claim("law", f"{name} is so", (Part("x", Difference(found, found - 0.5, found + 0.5), "above"),))
    return Table(name, name, (), (), (claim,), command=f"headway paper claims {name} --seeds 3")


def test_the_page_and_the_json_tell_each_verdict(tmp_path):
    write_files(table("order"), tmp_path)
    (page, numbers), told = claims.write_overview(tmp_path)
    assert not told
    assert (page.name, numbers.name) == ("claims.md", "claims.json")
    assert "| [order](order.md) | 3.5 | order is so | holds |" in page.read_text()
    assert "- order: made by `headway paper claims order --seeds 3`" in page.read_text()
    (study,) = json.loads(numbers.read_text())["studies"]
    assert study["section"] == "3.5"
    assert study["claims"][0]["verdict"] == "holds"
    assert study["protocol"] == claims.CLAIMS["order"].protocol
    assert numbers.read_text() == claims.tables_json([table("order")])


def test_studies_made_one_by_one_are_all_in_the_overview_whatever_their_order(tmp_path):
    pages = []
    for place, names in ((tmp_path / "a", ("warmup", "scaling", "length")), (tmp_path / "b", sorted(claims.CLAIMS))):
        for name in names:
            write_files(table(name), place)
            (page, numbers), _ = claims.write_overview(place)
        pages.append([line.split("]")[0] for line in page.read_text().split("\n") if line.startswith("| [")])
        studies = json.loads(numbers.read_text())["studies"]
        assert [study["command"] for study in studies] == [
            f"headway paper claims {name} --seeds 3" for name in claims.CLAIMS if name in names
        ]
    assert pages[0] == ["| [scaling", "| [length", "| [warmup"]
    assert pages[1] == [f"| [{name}" for name in claims.CLAIMS]


def test_a_study_that_is_made_again_takes_the_place_of_the_one_before(tmp_path):
    for found in (1.0, -1.0):
        write_files(table("order", found), tmp_path)
        (page, _), _ = claims.write_overview(tmp_path)
    assert page.read_text().count("[order]") == 1
    assert "| does not hold |" in page.read_text()


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"name": "length", "command": "", "claims": [{}]}'])
def test_a_damaged_table_is_left_out_and_told_of(tmp_path, text):
    write_files(table("order"), tmp_path)
    (tmp_path / "length.json").write_text(text)
    (page, _), (told,) = claims.write_overview(tmp_path)
    assert "length.json is damaged" in told
    assert "headway paper claims length --out" in told
    assert "[order]" in page.read_text()
    assert "length" not in page.read_text()


def test_every_study_has_the_threads_that_were_asked_for_though_one_before_it_took_others(tmp_path, monkeypatch):
    before, seen = torch.get_num_threads(), []

    def make(shop):
        seen.append(torch.get_num_threads())
        torch.set_num_threads(1)  # as a run on text does on a busy machine
        found = table("order")
        yield TableDone(found)
        return found

    monkeypatch.setitem(claims.CLAIMS, "order", replace(claims.CLAIMS["order"], make=make))
    settled = []
    monkeypatch.setattr(claims, "settle_memory", lambda: settled.append(len(seen)))
    try:
        list(claims.make_claims(["order", "order"], workshop(tmp_path, threads=3)))
        torch.set_num_threads(2)
        list(claims.make_claims(["order", "order"], workshop(tmp_path)))
    finally:
        torch.set_num_threads(before)
    assert seen == [3, 3, 2, 2]
    assert settled == [0, 2]  # before the first study of a call
