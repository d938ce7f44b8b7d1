"""``headway demo``: from nothing to a translator that states its quality, in minutes on two cores."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headway.cli.options import overrides_option

if TYPE_CHECKING:
    from headway.demo.run import DemoDone


@click.command("demo")
@click.option(
    "--to", "target", default="de", show_default=True, metavar="de|fr|zh", help="Translate English into this."
)
@click.option(
    "--out", "out_dir", type=click.Path(path_type=Path), default=Path("runs/demo"), show_default=True, metavar="FOLDER"
)
@overrides_option
def command(*, target: str, out_dir: Path, overrides: tuple[str, ...]) -> None:
    """Build a corpus from CLDR data, train on it, evaluate on unseen pairs, translate five sentences."""
    from headway.cli.progress import ProgressPrinter
    from headway.cli.stopping import INTERRUPTED, stop_requests
    from headway.demo.run import DemoDone, demo
    from headway.train.events import Interrupted

    printer = ProgressPrinter()
    with stop_requests() as should_stop:
        for event in demo(target, out_dir=out_dir, overrides=overrides, should_stop=should_stop):
            if isinstance(event, DemoDone):
                click.echo(_summary(event, target))
                continue
            printer.show(event)
            if isinstance(event, Interrupted):
                options = [part for override in overrides for part in ("--set", override)]
                again = shlex.join(["headway", "demo", "--to", target, "--out", str(out_dir), *options])
                click.echo(f"To go on: {again}", err=True)
                raise click.exceptions.Exit(INTERRUPTED)


def _summary(done: "DemoDone", target: str) -> str:
    """What was reached, shown on real sentences, and where to go from here."""
    from headway.cli.reports import columns
    from headway.demo.score import over_all

    rows = [("kind", "exact", "unseen", "share")]
    rows += [
        (score.kind, f"{score.correct:,}", f"{score.total:,}", f"{score.share:.1%}")
        for score in (*done.kinds, over_all(done.kinds))
    ]
    folder = shlex.quote(str(done.folder))
    corpus = shlex.quote(str(done.folder / "corpus"))
    return "\n".join(
        [
            "",
            "Unseen phrases translated exactly:",
            columns(rows, right={1, 2, 3}),
            "",
            *(f"  {source}\n    -> {output}" for source, output in done.examples),
            "",
            f"The model folder: {folder} (its card: {folder}/README.md). What to try next:",
            f"  echo 'Monday, July 5, 2027' | headway translate -m {folder}",
            f"  headway evaluate -m {folder} --source {corpus}/test.en --reference {corpus}/test.{target}",
            f"  headway describe {folder}",
            "  headway train --source a.en --target a.de --source-language en --target-language de --out runs/mine",
        ]
    )
