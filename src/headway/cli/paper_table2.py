"""``headway paper table2``: BLEU and training cost, computed again; with data, three architectures trained."""

from pathlib import Path

import click

from headway.cli.options import overrides_option
from headway.cli.paper_report import given_command, json_option, made_tables, make_table, out_option, table_text

MINUTES = 30.0
COSTS = "headway paper table2"  # what makes the first part alone


@click.command("table2")
@click.option(
    "--data",
    "data_dir",
    type=click.Path(path_type=Path),
    help="Train the three architectures; the folder of the recipes' files.",
)
@click.option("--minutes", type=click.FloatRange(min=0, min_open=True), help="Training of each.  [default: 30]")
@click.option("--steps", type=click.IntRange(min=1), help="The same in steps, whatever the time.")
@overrides_option
@out_option("table2")
@json_option
def command(
    *,
    data_dir: Path | None,
    minutes: float | None,
    steps: int | None,
    overrides: tuple[str, ...],
    out_dir: Path,
    as_json: bool,
) -> None:
    """Set the costs of Table 2 beside those of the paper's rule and of counted operations.

    With --data, train a recurrent, a convolutional and a Transformer model of equally many parameters (recipes
    table2-recurrent, table2-convolutional, table2-transformer) for equal time, and draw BLEU against minutes and
    against operations; --json then prints the table of these (the costs are in table2.json). A stopped command goes on
    in the row under way.
    """
    if minutes is not None and steps is not None:
        raise click.UsageError("--minutes and --steps both end a training; give one of them.")
    if data_dir is None and (minutes is not None or steps is not None or overrides):
        raise click.UsageError("--minutes, --steps and --set are about training, which --data DIR asks for; add it.")
    again = given_command()
    from headway.paper.table2 import make

    if data_dir is None:
        make_table(lambda should_stop: make(again), out_dir=out_dir, as_json=as_json)
        return
    for table in made_tables(lambda should_stop: make(COSTS), out_dir=out_dir):
        if not as_json:
            click.echo(f"{table_text(table)}\n")
    from headway.paper import architectures
    from headway.paper.trained_row import Budget
    from headway.paper.work import WorkFolder

    budget = Budget(steps=steps, minutes=MINUTES if minutes is None and steps is None else minutes)
    race = architectures.Race(data_dir, budget, overrides=overrides)
    make_table(
        lambda should_stop: architectures.make(WorkFolder(out_dir), race, command=again, should_stop=should_stop),
        out_dir=out_dir,
        as_json=as_json,
    )
