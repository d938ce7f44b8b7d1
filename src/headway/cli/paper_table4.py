"""``headway paper table4``: constituency parsers, the paper's beside those that are trained or measured here."""

from pathlib import Path

import click

from headway.cli.options import overrides_option, tag_option
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
@click.option(
    "--minutes",
    type=click.FloatRange(min=0, min_open=True),
    help="Minutes of training of each.  [default: as its recipe says]",
)
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
@tag_option
@click.option("--beam-size", type=click.IntRange(min=1), help="Hypotheses side by side.  [default: 21, the paper's]")
@click.option("--length-penalty", type=click.FloatRange(min=0.0), help="0 is neutral.  [default: 0.3, the paper's]")
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
    tag: str | None,
    beam_size: int | None,
    length_penalty: float | None,
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
    if data_dir is None and not models and (tag, beam_size, length_penalty) != (None, None, None):
        raise click.UsageError(
            "--tag, --beam-size and --length-penalty are of parsers to measure; add --data DIR or --model FOLDER."
        )
    from headway.paper.parser_row import Reading
    from headway.paper.table4 import RECIPE, Models, Trainings, make
    from headway.paper.trained_row import Budget
    from headway.paper.work import WorkFolder

    again, usual = given_command(), Reading()
    reading = Reading(
        usual.beam_size if beam_size is None else beam_size,
        length_penalty=usual.length_penalty if length_penalty is None else length_penalty,
        corpus_tag=tag or "",
    )
    budget = None if minutes is None and steps is None else Budget(steps=steps, minutes=minutes)
    trainings = None if data_dir is None else Trainings(data_dir, recipes or (RECIPE,), budget, overrides)
    make_table(
        lambda should_stop: make(
            WorkFolder(out_dir),
            trainings=trainings,
            models=None if trees is None else Models(models, trees),
            reading=reading,
            command=again,
            should_stop=should_stop,
        ),
        out_dir=out_dir,
        as_json=as_json,
    )
