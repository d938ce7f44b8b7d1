"""The second part of Table 2, measured: three architectures with equally many parameters and equal time."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from headway.checkpoint.lock import locked
from headway.config.load import load
from headway.data.prepare import prepare
from headway.errors import TrainingError
from headway.folder.contents import TRAINING_FOLDER
from headway.metrics.sentence_bleu import bleu_of
from headway.paper.difference import over_sentences
from headway.paper.events import PaperEvent, TableDone
from headway.paper.plot import Points, plot
from headway.paper.table import Cell, Column, Row, Table
from headway.paper.trained_row import Budget, Trained, run_settings, train_row
from headway.paper.verdict import Claim, Difference, Part
from headway.paper.work import WorkFolder
from headway.train.events import Notice, Stage
from headway.train.run import never


@dataclass(frozen=True, slots=True)
class Architecture:
    """A recipe, and the row of Table 2 that is of its kind."""

    name: str
    recipe: str
    published: str
    bleu: float  # newstest2014, English to German


TRANSFORMER = "Transformer"
ARCHITECTURES = (
    Architecture(TRANSFORMER, "table2-transformer", "Transformer (base)", 27.3),
    Architecture("convolutional", "table2-convolutional", "ConvS2S", 25.16),
    Architecture("recurrent", "table2-recurrent", "GNMT + RL", 24.6),
)
COLUMNS = (
    Column("BLEU"),
    Column("sacreBLEU", is_printed=False),
    Column("parameters", "", ",d", is_printed=False),
    Column("minutes", "", ",.1f", is_printed=False),
    Column("steps", "", ",d", is_printed=False),
    Column("epochs", "", ",.1f", is_printed=False),
    Column("target tokens", "", ",d", is_printed=False),
    Column("operations", "FLOP", ".2e", is_printed=False),
    Column("PPL", is_printed=False),
)
RECIPES = [each.recipe for each in ARCHITECTURES]


@dataclass(frozen=True, slots=True)
class Race:
    """What the architectures are trained on and for how long; absent, as long as their recipes say."""

    data_dir: Path
    budget: Budget
    overrides: Sequence[str] = ()


def make(
    work: WorkFolder, race: Race, *, command: str = "headway paper table2", should_stop: Callable[[], bool] = never
) -> Iterator[PaperEvent]:
    """Train each architecture within the budget; the last event is TableDone, unless interrupted.

    A row whose training fails (its loss is no number any more, say) is left out aloud, and the others go on.
    """
    found: dict[str, Trained] = {}
    with locked(work.path / "runs"):
        for number, architecture in enumerate(ARCHITECTURES, start=1):
            config = race.budget.applied(load(architecture.recipe, overrides=race.overrides))
            out_dir = work.run_folder(architecture.name)
            yield Stage(f"preparing the data of {architecture.recipe}")
            data = prepare(config, race.data_dir, out_dir / TRAINING_FOLDER / "data")
            making = partial(train_row, config, race.data_dir, out_dir=out_dir, shared=data, should_stop=should_stop)
            name, settings, total = architecture.name, run_settings(config, data), len(ARCHITECTURES)
            try:
                values = yield from work.row(name, settings, making, number=number, total=total)
            except TrainingError as error:
                yield Notice(f"row {name} is left out: {error}")
                continue
            if values is None:
                return
            found[name] = Trained.read(values)
    yield TableDone(_table(found, race, command))


def _table(found: Mapping[str, Trained], race: Race, command: str) -> Table:
    minutes = {name: [(each.minutes, each.bleu) for each in run.curve] for name, run in found.items()}
    operations = {name: [(each.flop, each.bleu) for each in run.curve] for name, run in found.items()}
    return Table(
        name="table2-measured",
        title=f"Table 2, measured: three architectures at equal parameters and {race.budget.equal}",
        columns=COLUMNS,
        rows=tuple(_row(architecture, found.get(architecture.name)) for architecture in ARCHITECTURES),
        claims=(claim(found, race.budget),),
        notes=(
            f"recipes {', '.join(RECIPES)}, {race.budget.text} each, validations counted, scored on the recipe's test "
            "text (or validation text, without one). In the paper: the row of the same kind on newstest2014, single "
            "models.",
            "BLEU, here, is the paper's (multi-bleu of tokenised text, compounds split; `headway evaluate "
            "--paper-bleu`), of the recipe's files as they are: lower-cased ones are easier. sacreBLEU, by the "
            "recipe's tokenizer, is what the claim is judged by.",
            "the interval is of paired bootstrap over the same sentences: it tells of these trained models, not of "
            "other trainings.",
            "operations: matrix products of the tokens that were read, forward and backward, by count.",
            "drawings: sacreBLEU of each validation on the way, against minutes of training and against operations.",
            "learning rates: each architecture's own, of three that were tried for some minutes (docs/log.md); nothing "
            "else was tuned: a claim about these runs, not about the best that an architecture can do.",
            *_computed(found),
        ),
        plots={
            "table2-minutes.svg": _plot(minutes, "minutes of training", "even"),
            "table2-operations.svg": _plot(operations, "operations, FLOP", 10),
        },
        points={"table2-minutes": minutes, "table2-operations": operations},
        command=command,
    )


def _computed(found: Mapping[str, Trained]) -> tuple[str, ...]:
    """How the rows were computed; nothing where none was made."""
    each = [f"{name} {run.precision}, {run.threads} threads" for name, run in found.items()]
    return (f"computed: {'; '.join(each)}.",) if each else ()


def _row(architecture: Architecture, run: Trained | None) -> Row:
    """A row; of one that was left out the published figure alone."""
    cells = {"BLEU": Cell(architecture.bleu)}
    if run is not None:
        cells = {
            "BLEU": Cell(architecture.bleu, run.paper_bleu),
            "sacreBLEU": Cell(measured=run.bleu),
            "parameters": Cell(measured=run.parameters),
            "minutes": Cell(measured=run.minutes),
            "steps": Cell(measured=run.steps),
            "epochs": Cell(measured=run.epochs),
            "target tokens": Cell(measured=run.target_tokens),
            "operations": Cell(measured=run.flop),
            "PPL": Cell(measured=run.perplexity),
        }
    return Row(architecture.name, cells, note=f"paper: {architecture.published}")


def claim(found: Mapping[str, Trained], budget: Budget) -> Claim:
    """Section 6.1: the Transformer's BLEU is higher than that of the architectures before it.

    A comparison with a row that was left out settles nothing.
    """
    others = [architecture.name for architecture in ARCHITECTURES if architecture.name != TRANSFORMER]
    parts = tuple(Part(f"Transformer against {name}, BLEU", _difference(found, name), "above") for name in others)
    text = f"the Transformer is better than recurrent and convolutional models at equal {budget.equal}"
    return Claim("Table 2", text, parts)


def _difference(found: Mapping[str, Trained], name: str) -> Difference | None:
    ours, other = found.get(TRANSFORMER), found.get(name)
    return None if ours is None or other is None else over_sentences([ours.bleu_NC], [other.bleu_NC], bleu_of)


def _plot(lines: Mapping[str, Points], x_label: str, x_scale: int | str) -> str:
    scale = "even" if x_scale == "even" else int(x_scale)
    return plot(lines, title="BLEU in training", x_label=x_label, y_label="BLEU", x_scale=scale, y_scale="even")
