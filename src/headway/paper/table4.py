"""Table 4: parsers of the Wall Street Journal as printed, and parsers trained or measured here beside them."""

from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

from headway.checkpoint.lock import locked
from headway.config.load import load
from headway.config.schema import RunConfig
from headway.data.prepare import prepare
from headway.errors import PaperError, TrainingError
from headway.folder.contents import TRAINING_FOLDER
from headway.metrics.evalb_parameters import COLLINS
from headway.model.size import count_parameters
from headway.paper.events import PaperEvent, TableDone
from headway.paper.parser_row import (
    ParserRow,
    Reading,
    Scored,
    Treebank,
    digest_of_model,
    measure_parser,
    parsing_of,
    train_parser,
)
from headway.paper.plot import plot
from headway.paper.table import Cell, Column, Row, Table
from headway.paper.trained_row import Budget, run_settings, without_test
from headway.paper.work import Values, WorkFolder
from headway.train.events import Notice, Stage
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
SHORT = f"F1 up to {COLLINS.cutoff_length} words"
COLUMNS = (
    Column("training", is_printed=False),
    Column("F1"),
    Column("95 % interval", is_printed=False),
    Column(SHORT, is_printed=False),
    Column("sentences", "", ",d", is_printed=False),
    Column("tags", is_printed=False),
    Column("parameters", "", ",d", is_printed=False),
    Column("minutes", "", ",.0f", is_printed=False),
)
NOTES = (
    "F1 in the paper is of section 23 of the Wall Street Journal part of the Penn Treebank, which the LDC licenses, "
    "after training on some 40,000 trees of it (semi-supervised, the Transformer: and on 17 million sentences with "
    "trees of other parsers). What is measured here is of other text, with other trees to learn from: not comparable.",
    "F1 here: labelled, EVALB's rules with COLLINS.prm, tags of the treebank put on the trees first, and a sentence "
    "without a parse over its words counts as missed.",
    "tags: given, each word came with the treebank's tag; predicted, the parser read words alone, as the paper's does.",
    f"The parameters of the paper's rows are counted: the recipe {PAPER_RECIPE}, with a source vocabulary of 32,000 "
    "where the training is semi-supervised; 512 symbols are the recipe's, the paper does not say.",
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

    A row whose training fails is left out aloud, and the others go on. Raises PaperError for a recipe of no parser, for
    treebanks without words and for rows that would have one name; what is parsed is read before anything is trained.
    """
    trained = [] if trainings is None else [_run(trainings, recipe) for recipe in trainings.recipes]
    measured = [] if models is None else [_model(models, folder) for folder in models.folders]
    _check_names([*(run.name for run in trained), *(model.name for model in measured)])
    if not trained and not measured:
        yield TableDone(_table([], reading, command))
        return
    found: list[Made] = []
    planned = [*trained, *measured]
    with locked(work.path / "runs"):
        for number, row in enumerate(planned, start=1):
            try:
                values = yield from row.made(work, reading, should_stop, number=number, total=len(planned))
            except TrainingError as error:
                yield Notice(f"row {row.name} is left out: {error}")
                continue
            if values is None:
                return
            found.append(Made(row.name, row.treebank.name, ParserRow.read(values)))
    yield TableDone(_table(found, reading, command))


@dataclass(frozen=True, slots=True)
class Made:
    """A finished row: the text that it is scored on, and what was measured."""

    name: str
    text: str
    row: ParserRow


@dataclass(frozen=True, slots=True)
class _Run:
    """A parser to train: what its row is called, and the text that it is scored on, which the run does not see."""

    name: str
    config: RunConfig
    data_dir: Path
    treebank: Treebank
    tag: str

    def made(
        self, work: WorkFolder, reading: Reading, should_stop: Callable[[], bool], *, number: int, total: int
    ) -> Generator[PaperEvent, None, Values | None]:
        """Prepare the run's data, and train and measure it where its row is not there."""
        out_dir = work.run_folder(self.name)
        reading = replace(reading, corpus_tag=reading.corpus_tag or self.tag)
        yield Stage(f"preparing the data of {self.name}")
        prepared = prepare(self.config, self.data_dir, out_dir / TRAINING_FOLDER / "data")
        settings = {**run_settings(self.config, prepared), "trees": self.treebank.digest, **asdict(reading)}
        given = {"out_dir": out_dir, "prepared": prepared, "treebank": self.treebank, "reading": reading}
        making = partial(train_parser, self.name, self.config, self.data_dir, **given, should_stop=should_stop)
        return (yield from work.row(self.name, settings, making, number=number, total=total))


@dataclass(frozen=True, slots=True)
class _Model:
    """A parser that is there already."""

    name: str
    folder: Path
    digest: str
    treebank: Treebank

    def made(
        self, work: WorkFolder, reading: Reading, should_stop: Callable[[], bool], *, number: int, total: int
    ) -> Generator[PaperEvent, None, Values | None]:
        """Measure it where its row is not there."""
        settings = {"model": self.digest, "trees": self.treebank.digest, **asdict(reading)}
        given = {"treebank": self.treebank, "reading": reading, "should_stop": should_stop}
        making = partial(measure_parser, self.name, self.folder, **given)
        return (yield from work.row(self.name, settings, making, number=number, total=total))


def _run(trainings: Trainings, recipe: str) -> _Run:
    config = load(recipe, overrides=trainings.overrides)
    if not config.is_parser:
        raise PaperError(
            f"paper/table4: the recipe {recipe} trains no parser; wanted one with data.format = trees. "
            "Remedy: name another after --recipe."
        )
    assert config.parsing is not None
    if trainings.budget is not None:
        config = trainings.budget.applied(config)
    data = config.data
    file, tag = (data.test_source, data.test_tag) if data.test_source else (data.validation_source, data.validation_tag)
    if not file:
        raise PaperError(
            f"paper/table4: the recipe {recipe} names no text to score on; wanted data.test_source or "
            "data.validation_source. Remedy: --set data.test_source=FILE."
        )
    treebank = Treebank.read(trainings.data_dir / file, config.parsing)
    return _Run(Path(recipe).stem, without_test(config), trainings.data_dir, treebank, tag)


def _model(models: Models, folder: Path) -> _Model:
    treebank = Treebank.read(models.trees, parsing_of(folder))
    return _Model(folder.resolve().name, folder, digest_of_model(folder), treebank)


def _check_names(names: Sequence[str]) -> None:
    for name, times in Counter(names).items():
        if times > 1:
            raise PaperError(
                f"paper/table4: {times} rows would be called {name}; rows have the names of recipes' files and of "
                "model folders, and each needs its own. Remedy: rename all but one, or make two tables."
            )


def _table(found: Sequence[Made], reading: Reading, command: str) -> Table:
    curves = {made.name: made.row.curve for made in found if made.row.curve}
    notes = [*NOTES]
    if found:
        notes.append(
            f"Searched here with beam {reading.beam_size} and length penalty {reading.length_penalty:g}, and as many "
            "tokens beyond the input as each recipe allows (search.max_extra_tokens; the paper's 300)."
        )
    return Table(
        name="table4",
        title="Table 4: English constituency parsing",
        columns=COLUMNS,
        rows=(*map(_printed_row, PRINTED), *map(_row, found)),
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


def _row(made: Made) -> Row:
    row = made.row
    trees = f"{row.trees:,} tree{'s' if row.trees != 1 else ''}"
    cells = {
        "training": Cell(measured=trees if row.trees else None),
        "F1": Cell(measured=row.every_length.f1),
        "95 % interval": Cell(measured=_interval(row.every_length)),
        SHORT: Cell(measured=row.up_to_cutoff.f1),
        "sentences": Cell(measured=row.every_length.sentences),
        "tags": Cell(measured=row.tags),
        "parameters": Cell(measured=row.parameters),
        "minutes": Cell(measured=row.minutes or None),
    }
    facts = (
        (True, f"scored on {made.text}"),
        (row.steps, f"{row.steps:,} steps, seed {row.seed}"),
        (row.repaired, f"outputs mended: {row.repaired:,}"),
        (row.empty, f"trees without words, not scored: {row.empty:,}"),
    )
    return Row(made.name, cells, note="; ".join(text for is_known, text in facts if is_known))


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
