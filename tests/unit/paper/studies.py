"""What the tests of studies share: a quick study run to its end, or until it is asked to stop."""

from headway.paper.claims import CLAIMS, make_claims
from headway.paper.events import TableDone
from headway.paper.study import Extent, Workshop
from headway.paper.work import WorkFolder


def workshop(path, *, should_stop=lambda: False, **extent):
    return Workshop(
        Extent(**{"quick": True, "steps": 2} | extent), WorkFolder(path), should_stop, "headway paper claims"
    )


def make_study(name, path, **how):
    """Its events and its table; None where it was stopped."""
    assert name in CLAIMS
    events = list(make_claims([name], workshop(path, **how)))
    done = [event.table for event in events if isinstance(event, TableDone)]
    return events, done[0] if done else None


def parts_of(table):
    return {part.what: part for claim in table.claims for part in claim.parts}
