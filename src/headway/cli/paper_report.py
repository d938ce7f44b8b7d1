"""What the commands of ``headway paper`` share: their options, their progress, and how a table is shown."""

import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click
from click.core import ParameterSource

from headway.cli.reports import columns

if TYPE_CHECKING:
    from headway.paper.events import PaperEvent
    from headway.paper.table import Table

json_option = click.option("--json", "as_json", is_flag=True, help="Print the table as one JSON object.")


def out_option(name: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """``--out``, the work folder of a table."""
    return click.option(
        "--out",
        "out_dir",
        type=click.Path(path_type=Path),
        default=Path(f"runs/paper-{name}"),
        show_default=True,
        metavar="FOLDER",
        help="Where finished rows are kept, and the table is written.",
    )


def make_table(make: "Callable[[Callable[[], bool]], Iterator[PaperEvent]]", *, out_dir: Path, as_json: bool) -> None:
    """Make a table, telling on standard error how it goes, write its files and print it.

    ``make`` takes the function that tells whether the user asked to stop.
    """
    from headway.paper.writing import to_json

    for table in made_tables(make, out_dir=out_dir):
        click.echo(to_json(table) if as_json else table_text(table), nl=not as_json)


def made_tables(make: "Callable[[Callable[[], bool]], Iterator[PaperEvent]]", *, out_dir: Path) -> "Iterator[Table]":
    """Give each table as it is made, its files written, telling on standard error how it goes."""
    from headway.cli.progress import ProgressPrinter
    from headway.cli.stopping import stop_requests
    from headway.paper.events import RowBegun, RowKept, RowStopped, TableDone
    from headway.paper.writing import write_files
    from headway.train.events import Interrupted

    printer = ProgressPrinter(details=False)
    with stop_requests() as should_stop:
        for event in make(should_stop):
            if isinstance(event, TableDone):
                paths = write_files(event.table, out_dir)
                yield event.table
                click.echo(f"written: {', '.join(map(str, paths))}", err=True)
            elif isinstance(event, RowBegun):
                click.echo(f"row {event.number} of {event.total}: {event.name}", err=True)
            elif isinstance(event, RowKept):
                if not event.is_new:
                    click.echo(f"row {event.name}: there already", err=True)
                if should_stop():
                    _stop()
            elif isinstance(event, RowStopped):
                click.echo(f"row {event.name} is given up; those before it are kept", err=True)
                _stop()
            else:
                printer.show(event)
                if isinstance(event, Interrupted):
                    _stop()


def _stop() -> NoReturn:
    """End as interrupted, with the way on; rows that are finished stay."""
    from headway.cli.stopping import INTERRUPTED

    click.echo(f"To go on: {given_command()}", err=True)
    raise click.exceptions.Exit(INTERRUPTED)


def table_text(table: "Table") -> str:
    """A table for a terminal: title, rows, claims, notes."""
    from headway.paper.writing import claim_rows, headings, text_rows

    heading = headings(table)
    parts = [table.title, columns([heading, *text_rows(table)], right=range(1, len(heading)))]
    parts.append("\n".join(f"{row.name}: {row.note}" for row in table.rows if row.note))
    if table.claims:
        parts.append(columns([(row[-1], *row[1:-1], row[0]) for row in claim_rows(table.claims)], right={1}))
    parts.append("\n".join(table.notes))
    return "\n\n".join(part for part in parts if part)


def given_command() -> str:
    """The command under way with the options that it was given, but for ``--json``: what goes on, or makes it again."""
    context = click.get_current_context()
    words = context.command_path.split()
    for parameter in context.command.params:
        name = parameter.name or ""
        is_given = context.get_parameter_source(name) == ParameterSource.COMMANDLINE
        if not is_given or name == "as_json":
            continue
        value, option = context.params[name], max(parameter.opts, key=len)
        if isinstance(parameter, click.Argument):
            words += map(str, value if isinstance(value, tuple) else (value,))
            continue
        if isinstance(value, bool):
            words.append(option)
            continue
        for each in value if isinstance(value, tuple) else (value,):
            words += [option, str(each)]
    return shlex.join(words)
