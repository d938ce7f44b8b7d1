"""Table 3: every row counted at full size, and trained at a small scale on data of the user's."""

import re
import statistics
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from headway.checkpoint.lock import locked
from headway.config.load import read_draft
from headway.config.schema import RunConfig
from headway.config.train_config import TrainConfig
from headway.data.prepare import prepare
from headway.errors import PaperError, TrainingError
from headway.paper.difference import SEEDS_FOR_SEEDS
from headway.paper.events import PaperEvent, TableDone
from headway.paper.plot import plot
from headway.paper.table import Cell, Column, Row, Table
from headway.paper.table3_claims import FEWEST_EPOCHS, NEAR_BLEU, NEAR_NATS, Rows, conclusions
from headway.paper.trained_row import Budget, Trained, run_settings, single_checkpoint, train_row
from headway.paper.variants import AS_COUNTED, AS_WRITTEN, BY_NAME, VARIANTS, Variant, count_full_size
from headway.paper.verdict import Claim, Difference, Part
from headway.paper.work import WorkFolder
from headway.train.events import Notice, Stage
from headway.train.run import never

MILLION = 1e6
ROWS = re.compile(r" --rows[ =]\S+")  # of a command
COUNT_COLUMNS = (
    Column("parameters", "millions", ",.2f"),
    Column("as counted", "", ",d", is_printed=False),
    Column("as written", "", ",d", is_printed=False),
)
TRAINED_COLUMNS = (
    Column("PPL"),
    Column("BLEU"),
    Column("parameters trained", "", ",d", is_printed=False),
    Column("steps", "", ",.0f", is_printed=False),
    Column("target tokens", "", ",.0f", is_printed=False),
    Column("minutes", "", ",.1f", is_printed=False),
    Column("operations", "FLOP", ".2e", is_printed=False),
)
PRINTED_COLUMNS = (Column("PPL", is_measured=False), Column("BLEU", is_measured=False))
COUNT_NOTES = (
    "parameters, here, and as counted: V = 40,960, one matrix for both embeddings and the softmax, biases in the "
    "attention projections, as in the authors' first code. As written: V = 37,000, no such biases, the paper's text.",
    "(A), (D) and (E) have no count in the paper. (E) has a table of 1,024 positions a stack here.",
)


@dataclass(frozen=True, slots=True)
class Scale:
    """How rows are made small: ``width`` and ``layers`` of base; every other size goes with them."""

    width: int = 128
    layers: int = 3


THREE_MINUTES = Budget(minutes=3.0)


@dataclass(frozen=True, slots=True)
class Training:
    """What rows are trained on, for how long, how often and which."""

    recipe: str
    data_dir: Path
    overrides: Sequence[str] = ()
    scale: Scale = Scale()
    budget: Budget = THREE_MINUTES
    seeds: int = 1
    rows: Sequence[str] = ()  # names of variants; none: all


# What rows differ in: a recipe's own value would be passed over in silence.
OF_THE_ROWS = (
    *("preset", "d_model", "d_ff", "num_heads", "d_k", "d_v", "num_encoder_layers", "num_decoder_layers"),
    *("dropout", "positions"),
)


def make(
    work: WorkFolder,
    training: Training | None = None,
    *,
    command: str = "headway paper table3",
    should_stop: Callable[[], bool] = never,
) -> Iterator[PaperEvent]:
    """Count every row and, with ``training``, train them; the last event is TableDone, unless interrupted.

    Seed after seed, each with all rows, so that the first seed's table is whole first. Raises PaperError for a row
    that there is not, and for a recipe whose data cannot be shared.
    """
    if training is None:
        yield TableDone(_table({}, None, command))
        return
    found: dict[str, dict[int, Trained]] = {name: {} for name in _names(training.rows)}
    with locked(work.path / "runs"):
        for seed in range(1, training.seeds + 1):
            if not (yield from _train_seed(work, training, seed, found, should_stop)):
                return
    yield TableDone(_table(found, training, command))


def _train_seed(
    work: WorkFolder,
    training: Training,
    seed: int,
    found: Mapping[str, dict[int, Trained]],
    should_stop: Callable[[], bool],
) -> Generator[PaperEvent, None, bool]:
    """Train every row with one seed, on data that are prepared once, and note them down; False when interrupted.

    A row whose training fails (its loss is no number any more, say) is left out aloud, and the others go on.
    """
    configs = {name: _config(training, BY_NAME[name], seed) for name in found}
    yield Stage(f"preparing the data of all rows, seed {seed}")
    shared = prepare(next(iter(configs.values())), training.data_dir, work.path / "data" / f"seed-{seed}")
    total, before = len(found) * training.seeds, len(found) * (seed - 1)
    for number, (name, config) in enumerate(configs.items(), start=before + 1):
        run = f"{name}-seed-{seed}"
        given = {"out_dir": work.run_folder(run), "shared": shared, "should_stop": should_stop}
        making = partial(train_row, config, training.data_dir, **given)
        try:
            values = yield from work.row(run, run_settings(config, shared), making, number=number, total=total)
        except TrainingError as error:
            yield Notice(f"row {run} is left out: {error}")
            continue
        if values is None:
            return False
        found[name][seed] = Trained.read(values)
    return True


def _names(rows: Sequence[str]) -> list[str]:
    """The rows that were asked for, in the table's order; a letter stands for all of its group."""
    groups = {variant.group for variant in VARIANTS if variant.group}
    for row in rows:
        if row not in BY_NAME and row not in groups:
            raise PaperError(
                f"paper/table3: there is no row {row!r}; wanted one of {', '.join(BY_NAME)}, or a letter of "
                f"{', '.join(sorted(groups))} for all of its rows."
            )
    return [variant.name for variant in VARIANTS if not rows or variant.name in rows or (variant.group or None) in rows]


def _config(training: Training, variant: Variant, seed: int) -> RunConfig:
    """The run of one row and seed."""
    draft = read_draft(training.recipe, overrides=training.overrides)
    config = draft.config()
    given = [key for key in OF_THE_ROWS if f"model.{key}" in draft.given()]
    if given or "train.label_smoothing" in draft.given():
        named = ", ".join([f"model.{key}" for key in given] or ["train.label_smoothing"])
        raise PaperError(
            f"paper/table3: {training.recipe} sets {named}, which is what the rows differ in, scaled from the paper's "
            "base. Remedy: take it out; --width and --layers make base larger or smaller."
        )
    if not config.data.validation_source:
        raise PaperError(
            f"paper/table3: {training.recipe} names no validation text; rows are compared on the same sentences, and "
            "held-out pairs change with the seed. Set data.validation_source and data.validation_target."
        )
    scale = training.scale
    model = variant.scaled(config.model, width=scale.width, layers=scale.layers)
    train = TrainConfig.model_validate(
        {**config.train.model_dump(), "label_smoothing": variant.label_smoothing, "seed": seed}
    )
    return single_checkpoint(training.budget.applied(config.model_copy(update={"model": model, "train": train})))


def _table(found: Rows, training: Training | None, command: str) -> Table:
    is_trained = training is not None
    columns = (*(TRAINED_COLUMNS if is_trained else PRINTED_COLUMNS), *COUNT_COLUMNS)
    counted = {variant.name: count_full_size(variant, AS_COUNTED) for variant in VARIANTS}
    points, counts = _points(found), _count_points(counted)
    svg = {
        "table3-parameters.svg": plot(
            counts,
            title="Parameters of each row, in millions: as printed, and counted",
            x_label="printed",
            y_label="counted",
            x_scale="even",
            y_scale="even",
        )
    }
    is_drawn = sum(map(len, points.values())) > 1
    if is_drawn:
        svg["table3.svg"] = plot(
            points,
            title="Perplexity of each row: the paper's, and at this scale",
            x_label="perplexity in the paper",
            y_label="perplexity here",
            x_scale="even",
            y_scale="even",
        )
    return Table(
        name="table3",
        title="Table 3: variations on the Transformer, English to German",
        columns=columns,
        rows=tuple(
            _row(variant, counted[variant.name], list(found.get(variant.name, {}).values()), command)
            for variant in VARIANTS
        ),
        claims=(
            *(conclusions(found, by_steps=training.budget.steps is not None) if training is not None else ()),
            _count_claim(counted),
        ),
        notes=(*(_training_notes(training) if training is not None else ()), *COUNT_NOTES),
        plots=svg,
        points={"table3-parameters": counts, **({"table3": points} if is_drawn else {})},
        command=command,
    )


def _count_points(counted: Mapping[str, int]) -> dict[str, list[tuple[float, float]]]:
    """Printed and counted millions of parameters of each group."""
    points: dict[str, list[tuple[float, float]]] = {}
    for variant in VARIANTS:
        if variant.millions is not None:
            points.setdefault(variant.group or variant.name, []).append(
                (variant.millions, counted[variant.name] / MILLION)
            )
    return {name: sorted(group) for name, group in points.items()}


def _count_claim(counted: Mapping[str, int]) -> Claim:
    """That the printed numbers of parameters are those of the models that the rows describe, to a million."""
    parts: list[Part] = []
    for variant in VARIANTS:
        if variant.millions is not None:
            difference = Difference.exact(counted[variant.name] / MILLION - variant.millions, "the printed digits")
            parts.append(Part(f"{variant.label}: counted less printed", difference, "near", 0.5, unit="million"))
    return Claim("parameters", "the printed counts are those of the models described, rounded", tuple(parts))


def _row(variant: Variant, counted: int, runs: Sequence[Trained], command: str) -> Row:
    cells = {
        "PPL": Cell(variant.perplexity),
        "BLEU": Cell(variant.bleu),
        "parameters": Cell(variant.millions, counted / MILLION),
        "as counted": Cell(measured=counted),
        "as written": Cell(measured=count_full_size(variant, AS_WRITTEN)),
    }
    if runs:
        cells["PPL"] = Cell(variant.perplexity, statistics.geometric_mean(run.perplexity for run in runs))
        cells["BLEU"] = Cell(variant.bleu, statistics.fmean(run.bleu for run in runs))
        cells["parameters trained"] = Cell(measured=runs[0].parameters)
        cells["steps"] = Cell(measured=statistics.fmean(run.steps for run in runs))
        cells["target tokens"] = Cell(measured=statistics.fmean(run.target_tokens for run in runs))
        cells["minutes"] = Cell(measured=statistics.fmean(run.minutes for run in runs))
        cells["operations"] = Cell(measured=statistics.fmean(run.flop for run in runs))
    alone = f"{ROWS.sub('', command)} --rows {variant.name}" if runs else command
    return Row(variant.label, cells, group=variant.group, note=variant.note, command=alone)


def _points(found: Rows) -> dict[str, list[tuple[float, float]]]:
    """The trained rows of each group, by the paper's perplexity and ours."""
    points: dict[str, list[tuple[float, float]]] = {}
    for variant in VARIANTS:
        runs = found.get(variant.name)
        if runs:
            measured = statistics.geometric_mean(run.perplexity for run in runs.values())
            points.setdefault(variant.group or variant.name, []).append((variant.perplexity, measured))
    return {name: sorted(group) for name, group in points.items()}


def _training_notes(training: Training) -> tuple[str, ...]:
    scale, budget = training.scale, training.budget
    return (
        f"PPL and BLEU here: recipe {training.recipe}, {budget.text} a row, {training.seeds} seed(s), its validation "
        "text, beam search as the recipe has it, the last step's weights alone. In the paper: newstest2013, 100,000 "
        "steps (big: 300,000). The two are of other data and sizes: their order is to be compared, not their values.",
        f"scale: base has d_model {scale.width} and {scale.layers} layers a stack in the place of 512 and 6; d_ff, d_k "
        "and d_v are smaller by the same factor as d_model, the layers of each row by the same factor as base's. "
        "Numbers of heads, dropout and label smoothing are the paper's.",
        "perplexity is of a target piece of this vocabulary, EOS counted, without label smoothing.",
        "intervals are of paired bootstrap over the same sentences, and tell of these trained models; from 3 seeds on "
        "they are over seeds, and tell of other trainings too. C is of equal steps (--steps-a-row), as in the paper, "
        "where N = 8 has a better perplexity than base and a worse BLEU, of which nothing is claimed so. D: dropout is "
        f'against overfitting, which takes {FEWEST_EPOCHS} epochs at least. E: "nearly identical" is taken as within '
        f"{NEAR_NATS} nats and {NEAR_BLEU} BLEU, from {SEEDS_FOR_SEEDS} seeds on.",
    )
