"""paper/work.py: a finished row is made once; another setting makes it anew; a stop loses nothing that was finished."""

import json

import pytest

from headway.errors import PaperError
from headway.paper.events import RowBegun, RowKept
from headway.paper.work import WorkFolder
from headway.train.events import Notice, Stage

SETTINGS = {"width": 32, "sizes": (3, 5)}


def drained(generator):
    events = []
    while True:
        try:
            events.append(next(generator))
        except StopIteration as stop:
            return events, stop.value


def making(calls, values):
    def make():
        calls.append(1)
        yield Stage("inside")
        return values

    return make


def test_a_row_is_made_once_and_then_read(tmp_path):
    calls = []
    made, first = drained(WorkFolder(tmp_path).row("a-1", SETTINGS, making(calls, {"x": (1, 2.5)}), number=1, total=2))
    assert made == [RowBegun("a-1", 1, 2), Stage("inside"), RowKept("a-1", is_new=True)]
    read, second = drained(WorkFolder(tmp_path).row("a-1", SETTINGS, making(calls, {"x": 0}), number=1, total=2))
    assert read == [RowKept("a-1", is_new=False)]
    assert first == second == {"x": [1, 2.5]}
    assert len(calls) == 1


def test_another_setting_makes_the_row_anew_and_is_named(tmp_path):
    work = WorkFolder(tmp_path)
    drained(work.row("a", SETTINGS, making([], {"x": 1}), number=1, total=1))
    calls = []
    changed = {"width": 64, "sizes": (3, 5), "seed": 2}
    events, values = drained(work.row("a", changed, making(calls, {"x": 2}), number=1, total=1))
    assert events[0] == Notice(
        "row a has other settings now, and is worked on again: width was 32, is 64; seed was nothing, is 2"
    )
    assert values == {"x": 2}
    assert len(calls) == 1
    assert work.find("a", changed) == ({"x": 2}, [])


def test_an_interrupted_row_leaves_no_record(tmp_path):
    work = WorkFolder(tmp_path)
    events, values = drained(work.row("a", SETTINGS, making([], None), number=1, total=1))
    assert values is None
    assert RowKept("a", is_new=True) not in events
    assert work.find("a", SETTINGS) == (None, [])


def test_a_row_that_fails_keeps_the_earlier_record(tmp_path):
    work = WorkFolder(tmp_path)
    work.keep("a", SETTINGS, {"x": 1})

    def make():
        yield Stage("inside")
        raise PaperError("no")

    with pytest.raises(PaperError):
        drained(work.row("a", {"width": 7}, make, number=1, total=1))
    assert work.find("a", SETTINGS) == ({"x": 1}, [])


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"format": "other"}', '{"format": "headway-paper-row-1"}'])
def test_a_damaged_record_is_told_and_made_anew(tmp_path, damage):
    work = WorkFolder(tmp_path)
    work.keep("a", SETTINGS, {"x": 1})
    path = tmp_path / "rows" / "a.json"
    assert json.loads(path.read_text())["values"] == {"x": 1}
    path.write_text(damage)
    values, (notice,) = work.find("a", SETTINGS)
    assert values is None
    assert "rows/a.json is damaged; row a is made anew" in notice


@pytest.mark.parametrize("name", ["", "../up", "a/b", ".hidden", "a b"])
def test_a_row_s_name_cannot_leave_the_folder(tmp_path, name):
    with pytest.raises(PaperError, match="cannot be the name of a row"):
        WorkFolder(tmp_path).run_folder(name)


def test_a_training_run_has_one_place(tmp_path):
    assert WorkFolder(tmp_path).run_folder("b-16") == tmp_path / "runs" / "b-16"
