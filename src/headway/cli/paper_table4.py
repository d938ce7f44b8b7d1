"""``headway paper table4``: constituency parsers, the paper's beside those that are trained or measured here."""

from pathlib import Path

import click

from headway.cli.options import overrides_option
from headway.cli.paper_report import given_command, json_option, make_table, out_option


@click.command("table4")
@click.option(
    "--data",
    "data_dir",
    type=click.Path(path_type=Path),
    help="Train parsers; the folder of the recipes' treebanks.",
)
@click.option(
    "--recipe", "recipes", multiple=True, help="A parser's recipe; may be repeated.  [default: parsing-nltk-ptb]"
)
@click.option("--minutes", type=click.FloatRange(min=0, min_open=True), help="Training of each.  [the recipe's]")
@click.option("--steps", type=click.IntRange(min=1), help="The same in steps, whatever the time.")
@overrides_option
@click.option(
    "-m",
    "--model",
    "models",
    multiple=True,
    type=click.Path(path_type=Path),
    help="A parser that is trained already: one more row. May be repeated.",
)
@click.option("--trees", type=click.Path(path_type=Path), help="The treebank that --model parses.")
@click.option("--beam-size", type=click.IntRange(min=1), default=21, show_default=True)
@click.option("--length-penalty", type=click.FloatRange(min=0.0), default=0.3, show_default=True)
@out_option("table4")
@json_option
def command(  # noqa: PLR0913 - one parameter an option
    *,
    data_dir: Path | None,
    recipes: tuple[str, ...],
    minutes: float | None,
    steps: int | None,
    overrides: tuple[str, ...],
    models: tuple[Path, ...],
    trees: Path | None,
    beam_size: int,
    length_penalty: float,
    out_dir: Path,
    as_json: bool,
) -> None:
    """Set parsers beside those of Table 4: with --data they are trained, with --model and --trees they are measured.

    The paper's are of the Wall Street Journal, which the LDC licenses; what is measured here is of your treebank, and
    the table says what differs. A stopped command goes on in the row under way.
    """
    if minutes is not None and steps is not None:
        raise click.UsageError("--minutes and --steps both end a training; give one of them.")
    if data_dir is None and (recipes or minutes is not None or steps is not None or overrides):
        raise click.UsageError(
            "--recipe, --minutes, --steps and --set are about training, which --data DIR asks for; add it."
        )
    if bool(models) != (trees is not None):
        raise click.UsageError("--model FOLDER parses the sentences of --trees FILE; give both.")
    from headway.paper.parser_row import Reading
    from headway.paper.table4 import RECIPE, Models, Trainings, make
    from headway.paper.trained_row import Budget
    from headway.paper.work import WorkFolder

    again = given_command()
    budget = None if minutes is None and steps is None else Budget(steps=steps, minutes=minutes)
    trainings = None if data_dir is None else Trainings(data_dir, recipes or (RECIPE,), budget, overrides)
    make_table(
        lambda should_stop: make(
            WorkFolder(out_dir),
            trainings=trainings,
            models=None if trees is None else Models(models, trees),
            reading=Reading(beam_size, length_penalty),
            command=again,
            should_stop=should_stop,
        ),
        out_dir=out_dir,
        as_json=as_json,
    )
