"""A claim's study: rows that are made one by one, each kept, and a table with verdicts of them."""

import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import torch

from headway.paper.difference import over_seeds
from headway.paper.events import PaperEvent, RowStopped
from headway.paper.table import Table
from headway.paper.verdict import Difference
from headway.paper.work import Making, Values, WorkFolder

Size = TypeVar("Size")
QUICK_NOTE = "--quick: sizes that only show what the command does; no verdict of it tells anything of the paper."


@dataclass(frozen=True, slots=True)
class Extent:
    """How much of a study is done: what the user asked for; None is the study's own."""

    quick: bool = False
    num_seeds: int | None = None
    steps: int | None = None  # of each run
    minutes: float | None = None  # of each run on text, in the place of steps
    data_dir: Path | None = None  # of text
    threads: int | None = None  # that compute; as many as torch takes

    def seeds(self, usual: int) -> range:
        """The seeds from 1 on: two in a quick study."""
        return range(1, (self.num_seeds or (min(2, usual) if self.quick else usual)) + 1)

    def choose(self, usual: Size, quick: Size) -> Size:
        """One of two sizes."""
        return quick if self.quick else usual

    @property
    def notes(self) -> tuple[str, ...]:
        """What a table of a quick study has to say first."""
        return (QUICK_NOTE,) if self.quick else ()

    def num_steps(self, usual: int, quick: int) -> int:
        """Steps of a run."""
        return self.steps or self.choose(usual, quick)


@dataclass(frozen=True, slots=True)
class Workshop:
    """What a study works with."""

    extent: Extent
    work: WorkFolder
    should_stop: Callable[[], bool]
    command: str = ""  # that makes the study again


@dataclass(frozen=True, slots=True)
class Planned:
    """A row to be made: its name, all that its values hang on, and how it is made."""

    name: str
    settings: Values
    make: Callable[[], Making]


StudyMaking = Generator[PaperEvent, None, Table | None]  # None: stopped, the same call goes on
Rows = Mapping[str, Values]


@dataclass(frozen=True, slots=True)
class Study:
    """One entry of CLAIMS: what is claimed and where, how it is examined, what the verdict rests on."""

    section: str
    statement: str
    protocol: str
    verdict: str
    make: Callable[[Workshop], StudyMaking]


def make_rows(
    workshop: Workshop, planned: Sequence[Planned], *, before: int = 0, later: int = 0
) -> Generator[PaperEvent, None, Rows | None]:
    """Give the values of every row by name: those on the disk, or new ones; None where the user asked to stop.

    A study whose later rows hang on what is found in the first makes them in several calls; ``before`` and ``later``
    are the rows of the others, so that all are counted as one.
    """
    found: dict[str, Values] = {}
    total = before + len(planned) + later
    for number, row in enumerate(planned, start=before + 1):
        values = yield from workshop.work.row(row.name, row.settings, row.make, number=number, total=total)
        if values is None:
            return None
        found[row.name] = values
    return found


def at_once(name: str, settings: Values, compute: Callable[[], Values | None]) -> Planned:
    """A row that tells nothing while it is made, and begins anew where it was stopped (None).

    The threads are of its settings: sums in another order differ in their last bits, and after some hundred steps
    that is another model, which would be paired with the wrong ones. Its values have the minutes that it took.
    """
    threads = torch.get_num_threads()

    def make() -> Making:
        begin = time.monotonic()
        values = compute()
        if values is None:
            yield RowStopped(name)
            return None
        return {**values, "minutes": (time.monotonic() - begin) / 60, "threads": threads}

    return Planned(name, {**settings, "threads": threads}, make)


def time_note(rows: Rows) -> str:
    """What making all rows took, for the notes of a table."""
    minutes = sum(number(values, "minutes") for values in rows.values())
    threads = sorted({int(number(values, "threads")) for values in rows.values()})
    shown = " or ".join(map(str, threads))
    return f"Rows made in {minutes:.1f} minutes, with {shown} thread{'s' if threads != [1] else ''}."


def number(values: Values, key: str) -> float:
    """A number of a row's record."""
    value = values[key]
    assert isinstance(value, int | float)
    return float(value)


def numbers(rows: Rows, names: Iterable[str], key: str) -> list[float]:
    """The same number of several rows."""
    return [number(rows[name], key) for name in names]


def paired(these: Sequence[float], those: Sequence[float]) -> Difference | None:
    """The difference over seeds; None for one seed, of which there is no interval."""
    return over_seeds(these, those) if len(these) > 1 else None
