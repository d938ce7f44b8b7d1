"""A table of the paper as a value: each number that the paper prints beside the one measured here.

How a table is made. ``paper/NAME.py`` has ``make(...) -> Iterator[PaperEvent]`` (``events.py``), whose last event is
``TableDone(Table)``, unless it was interrupted. What takes long is a row of a ``WorkFolder`` (``work.py``), so that a
stopped command goes on. Claims are ``Claim``s of ``Part``s (``verdict.py``), each of a ``Difference`` that
``over_sentences`` or ``over_seeds`` gives (``difference.py``). Drawings are ``plot(...)`` (``plot.py``). The command
is ``cli/paper_NAME.py``, which calls ``make_table`` (``cli/paper_report.py``), and one line in ``TABLES``
(``cli/paper.py``). ``writing.py`` turns the value into Markdown, JSON and rows of text.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from headway.paper.plot import Points
from headway.paper.verdict import Claim

Number = float | int | str | None


@dataclass(frozen=True, slots=True)
class Column:
    """A property of all rows; ``form`` is the format of its numbers, ``is_printed`` whether the paper has it."""

    name: str
    unit: str = ""
    form: str = ",.2f"
    is_printed: bool = True
    is_measured: bool = True


@dataclass(frozen=True, slots=True)
class Cell:
    """What the paper prints and what was measured here; None where there is nothing. Text stands as it is."""

    published: Number = None
    measured: Number = None


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table: its cells by the names of the columns, and the command that makes this line alone."""

    name: str
    cells: Mapping[str, Cell]
    group: str = ""  # the letter of Table 3, say
    note: str = ""
    command: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A whole table: what ``writing`` puts into files and the command line prints.

    ``plots`` are SVG documents by file name, ``points`` the lines in them by name, for the JSON. ``command`` makes the
    table again.
    """

    name: str  # as in `headway paper NAME`
    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    claims: tuple[Claim, ...] = ()
    notes: tuple[str, ...] = ()
    plots: Mapping[str, str] = field(default_factory=dict[str, str])
    points: Mapping[str, Mapping[str, Points]] = field(default_factory=dict[str, Mapping[str, Points]])
    command: str = ""
