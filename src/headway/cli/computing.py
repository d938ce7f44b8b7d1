"""The options that say where and with what to compute, and the translator that computes so."""

import functools
import gc
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headway.cli.search_options import is_given, written
from headway.translate.compute import DEVICES, ENGINES, PRECISIONS, Compute

if TYPE_CHECKING:
    from headway.translate.parser import Parser
    from headway.translate.translator import Translator

_OPTIONS = {
    "device": click.option("--device", default="auto", type=click.Choice(DEVICES), help="Where to compute."),
    "engine": click.option(
        "--engine",
        default="auto",
        type=click.Choice(ENGINES),
        help="native: the compiled engine for CPUs. auto: that where it can, else torch.",
    ),
    "precision": click.option(
        "--precision", default="auto", type=click.Choice(PRECISIONS), help="What the engine computes in."
    ),
    "threads": click.option("--threads", type=click.IntRange(min=1), help="CPU threads. [one a core]"),
    "shortlist": click.option(
        "--shortlist",
        metavar="FILE",
        type=click.Path(path_type=Path),
        help="Search among the tokens of this file alone (headway shortlist makes it).",
    ),
}


def computing_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command these options as one argument, ``compute``."""

    @functools.wraps(command)
    def collected(
        *,
        device: str,
        engine: str,
        precision: str,
        threads: int | None,
        shortlist: Path | None,
        **values: object,
    ) -> None:
        command(**values, compute=Compute(device, engine, precision, threads, shortlist))

    decorated: Callable[..., None] = collected
    for option in reversed(_OPTIONS.values()):
        decorated = option(decorated)
    return decorated


def given_computing_options() -> list[str]:
    """The options of this page that the user of the command under way gave, as they are written."""
    return [written(name) for name in _OPTIONS if is_given(name)]


def load_translator(models: Sequence[Path], compute: Compute, *, tag: str | None = None) -> "Translator":
    """The models, ready to translate; what a user should know of how they compute goes to standard error, once."""
    with _kept():
        from headway.translate.translator import Translator

        translator = Translator.from_folders(
            models,
            compute.device,
            engine=compute.engine,
            precision=compute.precision,
            threads=compute.threads,
            shortlist=compute.shortlist,
            on_notice=_tell,
        )
    return translator if tag is None else translator.tagged(tag)


def load_parser(models: Sequence[Path], compute: Compute, *, constrained: bool | None) -> "Parser":
    """The models, ready to parse, as ``load_translator`` does it; ``constrained`` is as in ``Parser.from_folders``."""
    with _kept():
        from headway.translate.parser import Parser

        return Parser.from_folders(models, compute=compute, constrained=constrained, on_notice=_tell)


def _tell(text: str) -> None:
    click.echo(f"headway: {text}", err=True)


@contextmanager
def _kept() -> Generator[None]:
    """Keep Python from looking for garbage among what is loaded here, now and later: a tenth of the time of a start.

    A vocabulary is 100,000 objects that stay to the end of the process.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        if was_on:
            gc.enable()
