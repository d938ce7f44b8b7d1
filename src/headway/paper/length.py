"""The claim of Section 3.5: sinusoids may let a model extrapolate to sequences longer than those of its training."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from headway.config.model_config import ModelConfig
from headway.config.train_config import TrainConfig
from headway.nn.position import OF_ANY_TEXT
from headway.paper.events import TableDone
from headway.paper.plot import plot
from headway.paper.small_run import ShouldStop, SmallRun, first_model, measure, train_small
from headway.paper.study import (
    Planned,
    Rows,
    Study,
    StudyMaking,
    Workshop,
    at_once,
    make_rows,
    number,
    paired,
    time_note,
)
from headway.paper.symbols import SymbolTask
from headway.paper.table import Cell, Column, Row, Table
from headway.paper.verdict import Claim, Part
from headway.paper.work import Values

SCHEMES = OF_ANY_TEXT
NUM_TESTED = 200  # sentences of each length
MARGIN = 0.05  # of accuracy that may be lost a quarter beyond
TEXT = (
    "Sinusoids were chosen over learned positions because they may allow the model to extrapolate to sequence lengths "
    "longer than the ones encountered during training."
)
PROTOCOL = (
    "Copying symbols, no symbol twice in a sentence. Sentences up to the longest trained length in training, longer "
    "ones in the test. Two layers a side, four heads; learned positions have rows for the longest test. Accuracy: "
    "tokens that are the most probable, given the right ones before."
)
HANDICAP = (
    "Rows of other schemes than sinusoidal and learned stand beside, and no claim rests on them: this task is against "
    "them. RoPE, ALiBi and T5's buckets enter self-attention alone, so nothing tells the decoder's cross-attention a "
    "position. ALiBi in an encoder counts |i - j|, alike to both sides, so it does not tell the next symbol from the "
    "one before; Press et al. 2021 measured it in a causal language model, where there is neither "
    "cross-attention nor another side."
)


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large the study is."""

    longest: int  # in training
    lengths: tuple[int, ...]  # in the test: the longest trained, a quarter more, and more
    steps: int
    seeds: range


def sizes(workshop: Workshop) -> Sizes:
    """The usual sizes, or quick ones."""
    extent = workshop.extent
    longest = extent.choose(20, 8)
    beyond = tuple(round(longest * times) for times in (1.25, 1.5, 2.0, 3.0))
    return Sizes(longest, (longest // 2, longest, *beyond), steps=extent.num_steps(3000, 20), seeds=extent.seeds(5))


def make(workshop: Workshop) -> StudyMaking:
    """Make the study; its last event is TableDone."""
    size = sizes(workshop)
    planned: list[Planned] = []
    for scheme in SCHEMES:
        for seed in size.seeds:
            run, name = small_run(scheme, size, seed), _name(scheme, seed)
            settings = {**run.settings, "lengths": size.lengths, "tested": NUM_TESTED}
            planned.append(at_once(name, settings, lambda run=run: _train(run, size.lengths, workshop.should_stop)))
    rows = yield from make_rows(workshop, planned)
    if rows is None:
        return None
    table = _table(size, rows, workshop)
    yield TableDone(table)
    return table


def small_run(scheme: str, size: Sizes, seed: int) -> SmallRun:
    """One training of the study."""
    longest_test = max(size.lengths)
    task = SymbolTask("copy", num_symbols=longest_test + 20, shortest=1, longest=size.longest, distinct=True)
    model = ModelConfig.model_validate(
        {
            "vocab_size": task.vocab_size,
            "d_model": 64,
            "d_ff": 128,
            "num_heads": 4,
            "num_encoder_layers": 2,
            "num_decoder_layers": 2,
            "dropout": 0.0,
            "positions": scheme,
            "max_positions": longest_test + 1,
        }
    )
    train = TrainConfig(max_steps=size.steps, warmup_steps=100, learning_rate=2e-3, label_smoothing=0.0)
    return SmallRun(task, model, train, sentences=64, seed=seed)


def _name(scheme: str, seed: int) -> str:
    return f"length-{scheme}-seed{seed}"


def _train(run: SmallRun, lengths: Sequence[int], should_stop: ShouldStop) -> Values | None:
    model = first_model(run)
    if train_small(model, run, should_stop) is None:
        return None
    found = {length: measure(model, run.held_out(NUM_TESTED, length=length)) for length in lengths}
    return {f"accuracy-{length}": measured.accuracy for length, measured in found.items()} | {
        f"exact-{length}": measured.exact for length, measured in found.items()
    }


def _accuracies(rows: Rows, scheme: str, seeds: range, lengths: Sequence[int]) -> list[float]:
    """By seed, the mean over some lengths."""
    return [fmean(number(rows[_name(scheme, seed)], f"accuracy-{length}") for length in lengths) for seed in seeds]


def _claims(size: Sizes, rows: Rows) -> tuple[Claim, ...]:
    beyond = [length for length in size.lengths if length > size.longest]
    nearest = beyond[0]

    def of(scheme: str, *lengths: int) -> list[float]:
        return _accuracies(rows, scheme, size.seeds, lengths or beyond)

    within = of("sinusoidal", size.longest)
    return (
        Claim(
            "extrapolation",
            "sinusoids extrapolate to longer sequences, better than learned positions",
            (
                Part("beyond, sinusoidal against learned", paired(of("sinusoidal"), of("learned")), "above"),
                Part(
                    f"sinusoidal, length {nearest} against {size.longest}",
                    paired(of("sinusoidal", nearest), within),
                    "near",
                    MARGIN,
                ),
            ),
        ),
    )


def _table(size: Sizes, rows: Rows, workshop: Workshop) -> Table:
    columns = tuple(Column(f"length {length}", "", ".1%", is_printed=False) for length in size.lengths)
    means = {
        scheme: [fmean(_accuracies(rows, scheme, size.seeds, [length])) for length in size.lengths]
        for scheme in SCHEMES
    }
    made = tuple(
        Row(scheme, {column.name: Cell(measured=mean) for column, mean in zip(columns, values, strict=True)})
        for scheme, values in means.items()
    )
    lines = {scheme: list(zip(map(float, size.lengths), values, strict=True)) for scheme, values in means.items()}
    drawing = plot(
        lines,
        title=f"Accuracy by length; trained up to {size.longest}",
        x_label="symbols of a sentence",
        y_label="tokens right",
        x_scale="even",
        y_scale="even",
    )
    notes = (
        PROTOCOL,
        HANDICAP,
        f"Trained on lengths 1 to {size.longest}. Seeds: {len(size.seeds)}; steps: {size.steps:,}.",
        time_note(rows),
    )
    title = "Tokens right by length, by position scheme (Section 3.5)"
    return Table(
        "length",
        title,
        columns,
        made,
        _claims(size, rows),
        (*workshop.extent.notes, *notes),
        {"length.svg": drawing},
        points={"length.svg": lines},
        command=workshop.command,
    )


STUDY = Study(
    section="3.5",
    statement=TEXT,
    protocol=f"{PROTOCOL} {HANDICAP}",
    verdict="in pairs by seed: beyond the trained lengths sinusoidal is above learned; a quarter beyond it loses at "
    "most 5 points",
    make=make,
)
