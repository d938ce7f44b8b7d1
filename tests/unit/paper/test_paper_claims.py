"""All claims together: names, the order they are made in, and the page of their verdicts."""

import json

from studies import workshop

from headway.cli.paper_claims import NAMES
from headway.paper import claims
from headway.paper.events import TableDone
from headway.paper.table import Table
from headway.paper.verdict import Claim, Difference, Part


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


def test_the_page_and_the_json_tell_each_verdict(tmp_path):
    claim = Claim("law", "it is so", (Part("x", Difference(1.0, 0.5, 1.5), "above"),))
    table = Table("order", "Order", (), (), (claim,))
    paths = claims.write_overview([table], tmp_path, "headway paper claims order")
    assert [path.name for path in paths] == ["claims.md", "claims.json"]
    assert "| [order](order.md) | 3.5 | it is so | holds |" in paths[0].read_text()
    (study,) = json.loads(paths[1].read_text())["studies"]
    assert study["section"] == "3.5"
    assert study["claims"][0]["verdict"] == "holds"
    assert study["protocol"] == claims.CLAIMS["order"].protocol
