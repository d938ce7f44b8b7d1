"""What making a table tells while it goes on, beside the events of the runs within."""

from dataclasses import dataclass

from headway.paper.table import Table
from headway.train.events import Event


@dataclass(frozen=True, slots=True)
class RowBegun:
    """A row is made now: the ``number``-th of ``total``, from 1."""

    name: str
    number: int
    total: int


@dataclass(frozen=True, slots=True)
class RowKept:
    """A row is on the disk; ``is_new`` tells whether it was made now or by an earlier call."""

    name: str
    is_new: bool


@dataclass(frozen=True, slots=True)
class RowStopped:
    """The user asked to stop, and the row under way is given up: the last event. Those before it are kept."""

    name: str


@dataclass(frozen=True, slots=True)
class TableDone:
    """All rows are there: the last event, unless the work was interrupted."""

    table: Table


PaperEvent = Event | RowBegun | RowKept | RowStopped | TableDone
