"""The display of a run: a live line that its terminal can hold."""

import pytest

from headway.cli.progress import ProgressPrinter
from headway.cli.reports import count
from headway.train.events import Started, StepDone

STEP = StepDone(
    step=12_345,
    epoch=7,
    loss=3.14159,
    nll=2.0,
    learning_rate=1.5e-3,
    gradient_norm=1.0,
    tokens_per_second=23_456.7,
    padding=0.031,
    seconds=3600.0,
    seconds_left=1200.0,
)


@pytest.mark.parametrize("columns", [41, 80, 97, 139])
def test_the_live_line_is_never_as_wide_as_the_terminal(monkeypatch, capsys, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    ProgressPrinter(live=True).show(STEP)
    drawn = capsys.readouterr().err.removeprefix("\r").removeprefix("\x1b[K")
    assert len(drawn) < columns
    assert "step 12,345  loss 3.142" in drawn


def test_the_bar_is_filled_by_the_share_of_time_gone(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "139")
    ProgressPrinter(live=True).show(STEP)
    assert "[" + "#" * 18 + "." * 6 + "] step" in capsys.readouterr().err


def test_one_of_a_thing_is_told_in_the_singular():
    assert [count(number, "pair") for number in (0, 1, 2, 1009)] == ["0 pairs", "1 pair", "2 pairs", "1,009 pairs"]


@pytest.mark.parametrize(
    ("patience", "told", "left"),
    [
        (None, "1 thread, at most 30,000 steps\n", "1:00:00 gone, 20:00 left"),
        (7, "it ends sooner when 7 validations in a row bring nothing better\n", "1:00:00 gone, at most 20:00 left"),
    ],
)
def test_the_time_left_is_the_most_where_a_run_may_end_early(capsys, patience, told, left):
    printer = ProgressPrinter(live=False)
    printer.show(Started(0, 30_000, 1009, precision="bf16", device="cpu", threads=1, patience=patience))
    printer.show(STEP)
    printed = capsys.readouterr().err
    assert told in printed
    assert left in printed
