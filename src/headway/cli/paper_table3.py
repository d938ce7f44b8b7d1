"""``headway paper table3``: every row counted at full size and trained at a small one."""

from pathlib import Path

import click
from click.core import ParameterSource

from headway.cli.options import overrides_option
from headway.cli.paper_report import given_command, json_option, make_table, out_option

MINUTES = 3.0


@click.command("table3")
@click.option(
    "--data", "data_dir", type=click.Path(path_type=Path), help="Train the rows; the folder of the recipe's files."
)
@click.option(
    "--recipe", default="table3", show_default=True, help="Data and training of every row: a name, or a file."
)
@click.option("--rows", multiple=True, metavar="ROW", help="Train these alone: base, A-1, C ...; may be repeated.")
@click.option("--minutes-a-row", type=click.FloatRange(min=0, min_open=True), help="Training of a row.  [default: 3]")
@click.option("--steps-a-row", type=click.IntRange(min=1), help="The same in steps, whatever the time.")
@click.option("--seeds", type=click.IntRange(min=1), default=1, show_default=True, help="Train each row so often.")
@click.option("--width", type=click.IntRange(min=1), default=128, show_default=True, help="d_model of the small base.")
@click.option("--layers", type=click.IntRange(min=1), default=3, show_default=True, help="Its layers a stack.")
@overrides_option
@out_option("table3")
@json_option
def command(  # noqa: PLR0913 - click gives one argument an option
    *,
    data_dir: Path | None,
    recipe: str,
    rows: tuple[str, ...],
    minutes_a_row: float | None,
    steps_a_row: int | None,
    seeds: int,
    width: int,
    layers: int,
    overrides: tuple[str, ...],
    out_dir: Path,
    as_json: bool,
) -> None:
    """Count the parameters of all 20 rows of Table 3 at full size; with --data, train each, scaled.

    Perplexity and BLEU stand beside the paper's, and the five conclusions of Section 6.2 get verdicts. A stopped
    command goes on in the row under way; more --seeds are added to those there.
    """
    if minutes_a_row is not None and steps_a_row is not None:
        raise click.UsageError("--minutes-a-row and --steps-a-row both end a row; give one of them.")
    context = click.get_current_context()
    only_trained = ("recipe", "rows", "minutes_a_row", "steps_a_row", "seeds", "width", "layers", "overrides")
    given = [name for name in only_trained if context.get_parameter_source(name) != ParameterSource.DEFAULT]
    if data_dir is None and given:
        raise click.UsageError(f"--{given[0].replace('_', '-')} is about training, which --data DIR asks for; add it.")
    from headway.paper.table3 import Scale, Training, make
    from headway.paper.trained_row import Budget
    from headway.paper.work import WorkFolder

    training = None
    if data_dir is not None:
        is_open = minutes_a_row is None and steps_a_row is None
        training = Training(
            recipe,
            data_dir,
            overrides=overrides,
            scale=Scale(width=width, layers=layers),
            budget=Budget(steps=steps_a_row, minutes=MINUTES if is_open else minutes_a_row),
            seeds=seeds,
            rows=rows,
        )
    again = given_command()
    make_table(
        lambda should_stop: make(WorkFolder(out_dir), training, command=again, should_stop=should_stop),
        out_dir=out_dir,
        as_json=as_json,
    )
