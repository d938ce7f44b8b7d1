"""``headway prepare``: read, clean and encode parallel text once, and tell what was left out."""

import sys
from pathlib import Path

import click

from headway.cli.options import data_option, overrides_option
from headway.cli.reports import render_report
from headway.config.load import load
from headway.errors import DataError


@click.command("prepare")
@click.argument("recipe")
@data_option
@overrides_option
@click.option(
    "--out", "out_dir", required=True, type=click.Path(path_type=Path), metavar="DIR", help="Where prepared data go."
)
def command(recipe: str, *, data_dir: Path, overrides: tuple[str, ...], out_dir: Path) -> None:
    """Read, clean and encode the text of a recipe: a TOML file, or a packaged recipe's name.

    Equal input and settings are prepared once: called again, it only tells what it did. A recipe with train.init takes
    the vocabulary of that model, as training does.
    """
    config = load(recipe, overrides=overrides)
    if out_dir.exists() and not out_dir.is_dir():
        raise DataError(f"cli/prepare: --out {out_dir} is a file; wanted a folder for the prepared data. Name another.")
    from headway.data.prepare import prepare
    from headway.train.adapt import adapted, open_parent, overruled_sizes, vocabulary_of

    parent = open_parent(config, out_dir)
    vocabulary = None
    if parent is not None:
        if told := overruled_sizes(config, parent):
            click.echo(f"note: {told}", err=True)
        config, vocabulary = adapted(config, parent), vocabulary_of(parent, config.train.extend_vocabulary)
    on_progress = _show if sys.stderr.isatty() else None
    prepared = prepare(config, data_dir, out_dir, vocabulary=vocabulary, on_progress=on_progress)
    if on_progress is not None:
        click.echo("\r\x1b[K", nl=False, err=True)
    click.echo(render_report(prepared.report))
    click.echo(f"\nPrepared data: {out_dir}")


def _show(stage: str, count: int) -> None:
    """Draw one line that the next replaces; only on a terminal."""
    click.echo(f"\r\x1b[K{stage}: {count:,} pairs", nl=False, err=True)
