"""Rows of a study: what they are numbered by, which threads they are of, and the time that they took."""

from pathlib import Path

import pytest
import torch
from studies import workshop

from headway.paper import study
from headway.paper.events import RowBegun, RowKept
from headway.paper.study import at_once, make_rows, numbers, time_note
from headway.train.events import Notice


@pytest.fixture(autouse=True)
def _same_threads_after():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def made(path: Path, planned, **counted):
    """The events and the rows."""
    events, making = [], make_rows(workshop(path), planned, **counted)
    while True:
        try:
            events.append(next(making))
        except StopIteration as ended:
            return events, ended.value


def test_rows_of_several_calls_are_counted_as_one(tmp_path):
    events, _ = made(tmp_path, [at_once(name, {}, dict) for name in ("a", "b")], before=3, later=7)
    begun = [(event.number, event.total) for event in events if isinstance(event, RowBegun)]
    assert begun == [(4, 12), (5, 12)]


def test_a_row_keeps_the_time_that_it_took_when_it_was_made(tmp_path, monkeypatch):
    times = iter([100.0, 190.0])
    monkeypatch.setattr(study.time, "monotonic", lambda: next(times))
    for _ in range(2):  # made, and then read
        _, rows = made(tmp_path, [at_once("a", {}, lambda: {"loss": 0.5})])
        assert rows["a"] == {"loss": 0.5, "minutes": 1.5, "threads": torch.get_num_threads()}


def test_rows_of_other_threads_are_made_anew(tmp_path):
    torch.set_num_threads(1)
    made(tmp_path, [at_once("a", {"seed": 1}, dict)])
    torch.set_num_threads(2)
    events, rows = made(tmp_path, [at_once("a", {"seed": 1}, dict)])
    assert any(isinstance(event, Notice) and "threads was 1, is 2" in event.text for event in events)
    assert [event.is_new for event in events if isinstance(event, RowKept)] == [True]
    assert rows["a"]["threads"] == 2


def test_the_note_of_time_is_the_sum_over_rows_and_names_all_threads():
    rows = {"a": {"minutes": 2.25, "threads": 1}, "b": {"minutes": 10.0, "threads": 1}}
    assert time_note(rows) == "Rows made in 12.2 minutes, with 1 thread."
    assert time_note({**rows, "c": {"minutes": 0.5, "threads": 3}}) == "Rows made in 12.8 minutes, with 1 or 3 threads."


def test_a_number_of_several_rows_comes_in_the_order_of_their_names():
    rows = {"a": {"loss": 1}, "b": {"loss": 2.5}, "c": {"loss": 7}}
    assert numbers(rows, ["c", "a", "b"], "loss") == [7.0, 1.0, 2.5]
