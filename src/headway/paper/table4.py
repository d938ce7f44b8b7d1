"""Table 4: parsers of the Wall Street Journal as printed, and parsers trained or measured here beside them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from headway.checkpoint.lock import locked
from headway.config.load import load
from headway.config.schema import RunConfig
from headway.errors import PaperError
from headway.metrics.evalb_parameters import COLLINS
from headway.model.size import count_parameters
from headway.paper.events import PaperEvent, TableDone
from headway.paper.parser_row import ParserRow, Reading, Scored, digest_of, measure_parser, train_parser
from headway.paper.plot import plot
from headway.paper.table import Cell, Column, Row, Table
from headway.paper.trained_row import Budget
from headway.paper.work import Making, Values, WorkFolder
from headway.train.run import never

RECIPE = "parsing-nltk-ptb"
PAPER_RECIPE = "parsing-paper"
ALONE, MORE, TASKS, GENERATIVE = (
    "WSJ only, discriminative",
    "semi-supervised",
    "multi-task",
    "generative",
)
OURS = "Transformer (4 layers)"
SOURCE_TOKENS = {ALONE: 16_000, MORE: 32_000}  # Section 6.3


@dataclass(frozen=True, slots=True)
class Printed:
    """A row of Table 4: F1 on section 23 of the Wall Street Journal."""

    name: str
    training: str
    f1: float


PRINTED = (
    Printed("Vinyals & Kaiser et al. (2014)", ALONE, 88.3),
    Printed("Petrov et al. (2006)", ALONE, 90.4),
    Printed("Zhu et al. (2013)", ALONE, 90.4),
    Printed("Dyer et al. (2016)", ALONE, 91.7),
    Printed(OURS, ALONE, 91.3),
    Printed("Zhu et al. (2013)", MORE, 91.3),
    Printed("Huang & Harper (2009)", MORE, 91.3),
    Printed("McClosky et al. (2006)", MORE, 92.1),
    Printed("Vinyals & Kaiser et al. (2014)", MORE, 92.1),
    Printed(OURS, MORE, 92.7),
    Printed("Luong et al. (2015)", TASKS, 93.0),
    Printed("Dyer et al. (2016)", GENERATIVE, 93.3),
)
COLUMNS = (
    Column("training", is_printed=False),
    Column("F1"),
    Column("95 % interval", is_printed=False),
    Column(f"F1 up to {COLLINS.cutoff_length} words", is_printed=False),
    Column("sentences", "", ",d", is_printed=False),
    Column("tags", is_printed=False),
    Column("parameters", "", ",d", is_printed=False),
    Column("minutes", "", ",.0f", is_printed=False),
)
NOTES = (
    "F1 in the paper is of section 23 of the Wall Street Journal part of the Penn Treebank, which the LDC licenses, "
    "after training on some 40,000 trees of it (semi-supervised: and 17 million sentences parsed by others). What is "
    "measured here is of other text, with other trees to learn from: numbers of different texts do not compare.",
    "F1 here: labelled, EVALB's rules with COLLINS.prm, tags of the treebank put on the trees first, and a sentence "
    "without a parse over its words counts as missed.",
    "tags: given, each word came with the treebank's tag; predicted, the parser read words alone, as the paper's does.",
    f"The paper's parameters are counted: the recipe {PAPER_RECIPE}, with a source vocabulary of 32,000 where it is "
    "semi-supervised.",
)


@dataclass(frozen=True, slots=True)
class Trainings:
    """Parsers to train: recipes, each with its own test text in ``data_dir``, within the budget or as they say."""

    data_dir: Path
    recipes: Sequence[str] = (RECIPE,)
    budget: Budget | None = None
    overrides: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Models:
    """Parsers that are there already, all measured on one treebank."""

    folders: Sequence[Path]
    trees: Path


def make(
    work: WorkFolder,
    *,
    trainings: Trainings | None = None,
    models: Models | None = None,
    reading: Reading = Reading(),  # noqa: B008 - it cannot change
    command: str = "headway paper table4",
    should_stop: Callable[[], bool] = never,
) -> Iterator[PaperEvent]:
    """Give the printed table and a row for each parser; the last event is TableDone, unless interrupted.

    Raises PaperError for a recipe of no parser and for files that cannot be read.
    """
    planned = [
        *(() if trainings is None else _trained_rows(work, trainings, reading, should_stop)),
        *(() if models is None else _model_rows(models, reading, should_stop)),
    ]
    found: list[tuple[Planned, ParserRow]] = []
    if planned:
        with locked(work.path / "runs"):
            for number, row in enumerate(planned, start=1):
                values = yield from work.row(row.name, row.settings, row.make, number=number, total=len(planned))
                if values is None:
                    return
                found.append((row, ParserRow.read(values)))
    yield TableDone(_table(found, reading, command))


@dataclass(frozen=True, slots=True)
class Planned:
    """A parser's row before it is made: what its record depends on, and the text that it is scored on."""

    name: str
    text: str
    settings: Values
    make: Callable[[], Making]


def _trained_rows(
    work: WorkFolder, trainings: Trainings, reading: Reading, should_stop: Callable[[], bool]
) -> Iterator[Planned]:
    for recipe in trainings.recipes:
        config = load(recipe, overrides=trainings.overrides)
        if trainings.budget is not None:
            config = trainings.budget.applied(config)
        trees = trainings.data_dir / _scored_file(config, recipe)
        name = Path(recipe).stem
        settings = {
            "recipe": config.model_dump(mode="json", exclude_defaults=True, exclude={"title", "note"}),
            "train": digest_of(trainings.data_dir / config.data.train_source),
            "trees": digest_of(trees),
            **asdict(reading),
        }
        given = {"out_dir": work.run_folder(name), "trees": trees, "reading": reading, "should_stop": should_stop}
        yield Planned(name, trees.name, settings, partial(train_parser, config, trainings.data_dir, **given))


def _scored_file(config: RunConfig, recipe: str) -> str:
    """The test text, or the validation text of a recipe without one."""
    if not config.is_parser:
        raise PaperError(f"paper/table4: the recipe {recipe} trains no parser; wanted one with data.format = trees.")
    file = config.data.test_source or config.data.validation_source
    if not file:
        raise PaperError(
            f"paper/table4: the recipe {recipe} names no text to score on; set data.test_source or "
            "data.validation_source."
        )
    return file


def _model_rows(models: Models, reading: Reading, should_stop: Callable[[], bool]) -> Iterator[Planned]:
    trees = digest_of(models.trees)
    for number, folder in enumerate(models.folders, start=1):
        settings = {"model": digest_of(folder), "trees": trees, **asdict(reading)}
        given = {"trees": models.trees, "reading": reading, "should_stop": should_stop}
        yield Planned(f"model-{number}", models.trees.name, settings, partial(measure_parser, folder, **given))


def _table(found: Sequence[tuple[Planned, ParserRow]], reading: Reading, command: str) -> Table:
    curves = {planned.name: row.curve for planned, row in found if row.curve}
    notes = [*NOTES]
    if found:
        notes.append(f"Searched here with beam {reading.beam_size} and length penalty {reading.length_penalty:g}.")
    return Table(
        name="table4",
        title="Table 4: English constituency parsing",
        columns=COLUMNS,
        rows=(*(_printed_row(printed) for printed in PRINTED), *(_row(planned, row) for planned, row in found)),
        notes=tuple(notes),
        plots={"table4-curve.svg": _plot(curves)} if curves else {},
        points={"table4-curve": curves} if curves else {},
        command=command,
    )


def _printed_row(printed: Printed) -> Row:
    cells = {"training": Cell(measured=printed.training), "F1": Cell(printed.f1)}
    if printed.name == OURS:
        model = load(PAPER_RECIPE).model.model_copy(update={"source_vocab_size": SOURCE_TOKENS[printed.training]})
        cells["parameters"] = Cell(measured=count_parameters(model).total)
    return Row(printed.name, cells)


def _row(planned: Planned, row: ParserRow) -> Row:
    cells = {
        "training": Cell(measured=f"{row.trees:,} trees"),
        "F1": Cell(measured=row.every_length.f1),
        "95 % interval": Cell(measured=_interval(row.every_length)),
        COLUMNS[3].name: Cell(measured=row.up_to_cutoff.f1),
        "sentences": Cell(measured=row.every_length.sentences),
        "tags": Cell(measured="given" if row.tags_given else "predicted"),
        "parameters": Cell(measured=row.parameters),
        "minutes": Cell(measured=row.minutes),
    }
    repaired = f", {row.repaired:,} outputs mended" if row.repaired else ""
    note = f"scored on {planned.text}; {row.steps:,} steps, seed {row.seed}{repaired}"
    return Row(planned.name, cells, note=note)


def _interval(scored: Scored) -> str:
    return "" if scored.low is None or scored.high is None else f"{scored.low:.2f} to {scored.high:.2f}"


def _plot(curves: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    return plot(
        curves,
        title="labelled F1 of the validation text in training",
        x_label="minutes of training",
        y_label="F1",
        x_scale="even",
        y_scale="even",
    )
