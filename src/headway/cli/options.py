"""Options that several commands share."""

from collections.abc import Callable
from pathlib import Path

import click

Command = Callable[..., None]

overrides_option = click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="SECTION.KEY=VALUE",
    help="Change one key of the recipe; may be repeated. An empty value is the default.",
)

tag_option = click.option("--tag", help="The tag before each source, for a model that was trained with tags.")

data_option = click.option(
    "--data",
    "data_dir",
    envvar="HEADWAY_DATA",
    show_envvar=True,
    type=click.Path(path_type=Path),
    default=Path(),
    help="The folder that the recipe's file names are relative to.  [default: here]",
)


def format_option(text: str) -> Callable[[Command], Command]:
    """``--format``, lines or jsonl, as ``output_format``; ``text`` is its help."""
    return click.option("--format", "output_format", type=click.Choice(["lines", "jsonl"]), default="lines", help=text)
