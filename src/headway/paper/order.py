"""The claim of Section 3.5: without positions a model knows nothing of the order of its source.

Shapes: B sentences, S source positions, D d_model.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
import torch
from torch import Tensor

from headway.config.model_config import ModelConfig
from headway.config.train_config import TrainConfig
from headway.model.predictor import TransformerPredictor
from headway.model.transformer import Transformer
from headway.nn.position import OF_ANY_TEXT
from headway.paper.difference import over_sentences
from headway.paper.events import TableDone
from headway.paper.plot import plot
from headway.paper.small_run import ShouldStop, SmallRun, first_model, train_and_measure
from headway.paper.study import (
    Planned,
    Rows,
    Study,
    StudyMaking,
    Workshop,
    at_once,
    make_rows,
    numbers,
    paired,
    time_note,
)
from headway.paper.symbols import SymbolTask
from headway.paper.table import Cell, Column, Row, Table
from headway.paper.verdict import Claim, Difference, Part
from headway.paper.work import Values
from headway.search.run import search
from headway.search.settings import SearchSettings

SCHEMES = OF_ANY_TEXT
OTHERS = tuple(scheme for scheme in SCHEMES if scheme != "none")
NUM_TESTED, TESTED_LENGTH = 200, 9
# What sums in another order may differ by in float64: encodings are numbers of size 1 behind some thousand sums, each
# with an error of 1e-16, which were 1e-13 if all lay to one side. A scheme with positions makes 1e-2 and more.
ROUNDING = 1e-9
TASK = SymbolTask("reverse", num_symbols=24, shortest=4, longest=TESTED_LENGTH)
TEXT = (
    "Since the model contains no recurrence and no convolution, positions must be added in order for it to make use "
    "of the order of the sequence."
)
PROTOCOL = (
    "Law: the encoder's output for a shuffled source is the output for the source, shuffled; the largest difference "
    "in float64, before any training. Trained: on reversing 4 to 9 symbols, one layer a side; then each of 200 "
    "sources and a shuffled copy, translated greedily: how many outputs are the same. Loss on sentences held out. EOS "
    "is shuffled too."
)


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large the study is."""

    steps: int
    seeds: range


def sizes(workshop: Workshop) -> Sizes:
    """The usual sizes, or quick ones."""
    extent = workshop.extent
    return Sizes(steps=extent.num_steps(1000, 20), seeds=extent.seeds(3))


def make(workshop: Workshop) -> StudyMaking:
    """Make the study; its last event is TableDone."""
    size = sizes(workshop)
    planned: list[Planned] = []
    for scheme in SCHEMES:
        for seed in size.seeds:
            run, name = small_run(scheme, size.steps, seed), _name(scheme, seed)
            settings = {**run.settings, "tested": NUM_TESTED, "length": TESTED_LENGTH}
            planned.append(at_once(name, settings, lambda run=run: _examine(run, workshop.should_stop)))
    rows = yield from make_rows(workshop, planned)
    if rows is None:
        return None
    table = _table(size, rows, workshop)
    yield TableDone(table)
    return table


def small_run(scheme: str, steps: int, seed: int) -> SmallRun:
    """One training of the study."""
    model = ModelConfig.model_validate(
        {
            "vocab_size": TASK.vocab_size,
            "d_model": 64,
            "d_ff": 128,
            "num_heads": 4,
            "num_encoder_layers": 1,
            "num_decoder_layers": 1,
            "dropout": 0.0,
            "positions": scheme,
            "max_positions": 64,
        }
    )
    train = TrainConfig(max_steps=steps, warmup_steps=50, learning_rate=3e-3, label_smoothing=0.0)
    return SmallRun(TASK, model, train, sentences=32, seed=seed)


def shuffled(source_BS: Tensor, seed: int) -> tuple[Tensor, Tensor]:
    """Each source in an order of its own, and the places (B, S) that its tokens came from."""
    generator = torch.Generator().manual_seed(seed)
    order_BS = torch.rand(source_BS.shape, generator=generator).argsort(dim=1)
    return source_BS.gather(1, order_BS), order_BS


@torch.inference_mode()
def law_gap(model: Transformer, source_BS: Tensor, seed: int) -> float:
    """The largest difference between the encoding of shuffled sources and the shuffled encoding, in float64."""
    model = model.double().eval()
    other_BS, order_BS = shuffled(source_BS, seed)
    encoded_BSD, other_BSD = model.encode(source_BS, None), model.encode(other_BS, None)
    moved_BSD = encoded_BSD.gather(1, order_BS[..., None].expand_as(encoded_BSD))
    return (moved_BSD - other_BSD).abs().max().item()


def same_outputs(model: Transformer, source_BS: Tensor, seed: int) -> list[bool]:
    """Whether the greedy translation of each shuffled source is that of the source, all computed in float64."""
    predictor = TransformerPredictor(model.double().eval())
    settings = SearchSettings(beam_size=1, length_penalty=0.0)
    mask_BS = torch.ones_like(source_BS, dtype=torch.bool)
    limits = [source_BS.shape[1] + 5] * len(source_BS)
    outputs = [
        search(predictor, each_BS, mask_BS, settings=settings, max_output_length_B=limits)
        for each_BS in (source_BS, shuffled(source_BS, seed)[0])
    ]
    return [own[0].token_ids == other[0].token_ids for own, other in zip(*outputs, strict=True)]


def _name(scheme: str, seed: int) -> str:
    return f"order-{scheme}-seed{seed}"


def _examine(run: SmallRun, should_stop: ShouldStop) -> Values | None:
    source_BS = run.held_out(NUM_TESTED, length=TESTED_LENGTH).source_BS
    gap = law_gap(first_model(run), source_BS, run.seed)
    model = first_model(run)
    measured = train_and_measure(model, run, should_stop, num_tested=NUM_TESTED)
    if measured is None:
        return None
    same = [int(each) for each in same_outputs(model, source_BS, run.seed)]
    return {**measured, "gap": gap, "same": same}


def _same(rows: Rows, scheme: str, seed: int) -> np.ndarray:
    """A row a sentence: whether both outputs are the same, and 1."""
    same = rows[_name(scheme, seed)]["same"]
    assert isinstance(same, list)
    return np.array([(each, 1) for each in same], dtype=np.float64)


def _share(sums: np.ndarray) -> float:
    return float(sums[0] / sums[1])


def _column(rows: Rows, scheme: str, key: str, seeds: range) -> list[float]:
    return numbers(rows, (_name(scheme, seed) for seed in seeds), key)


def _claims(size: Sizes, rows: Rows) -> tuple[Claim, ...]:
    gaps = {scheme: _column(rows, scheme, "gap", size.seeds) for scheme in SCHEMES}
    same = {scheme: [_same(rows, scheme, seed) for seed in size.seeds] for scheme in SCHEMES}
    differing = 1.0 - _share(np.sum([each.sum(axis=0) for each in same["none"]], axis=0))
    law = [Part("none: encodings, largest difference", _exactly(gaps["none"]), "near", ROUNDING)]
    law += [
        Part(
            f"{scheme}: encodings, least of the differences, less {ROUNDING:g} for rounding",
            _exactly([min(gaps[scheme]) - ROUNDING]),
            "above",
        )
        for scheme in OTHERS
    ]
    trained = [Part("none: share of outputs that differ", _exactly([differing], "outputs"), "near", 0.0)]
    trained += [
        Part(f"same outputs, none against {scheme}", over_sentences(same["none"], same[scheme], _share), "above")
        for scheme in OTHERS
    ]
    losses = {scheme: _column(rows, scheme, "loss", size.seeds) for scheme in ("none", "sinusoidal")}
    return (
        Claim("law", "without positions a shuffled source is encoded as the source is, shuffled", tuple(law)),
        Claim("outputs", "and its translation is the same; with positions it is not", tuple(trained)),
        Claim(
            "use",
            "a task of order is learnt worse without positions",
            (
                Part(
                    "loss, none against sinusoidal", paired(losses["none"], losses["sinusoidal"]), "above", 0.0, "nats"
                ),
            ),
        ),
    )


def _exactly(found: Sequence[float], over: str = "sources, float64") -> Difference:
    """A law's numbers, which have no chance in them: the largest, with no interval around it."""
    return Difference.exact(max(found), over)


def _table(size: Sizes, rows: Rows, workshop: Workshop) -> Table:
    columns = (
        Column("encodings differ by", form=".1e", is_printed=False),
        Column("same outputs", form=".1%", is_printed=False),
        Column("tokens right", form=".1%", is_printed=False),
        Column("loss", "nats", ".3f", is_printed=False),
    )
    made: list[Row] = []
    for scheme in SCHEMES:
        same = fmean(_share(_same(rows, scheme, seed).sum(axis=0)) for seed in size.seeds)
        cells = {
            "encodings differ by": Cell(measured=max(_column(rows, scheme, "gap", size.seeds))),
            "same outputs": Cell(measured=same),
            "tokens right": Cell(measured=fmean(_column(rows, scheme, "accuracy", size.seeds))),
            "loss": Cell(measured=fmean(_column(rows, scheme, "loss", size.seeds))),
        }
        made.append(Row(scheme, cells))
    points = {
        scheme: list(zip(map(float, size.seeds), _column(rows, scheme, "loss", size.seeds), strict=True))
        for scheme in SCHEMES
    }
    drawing = plot(
        points,
        title=f"Loss on reversing after {size.steps:,} steps",
        x_label="seed",
        y_label="nats a token",
        x_scale="even",
        y_scale="even",
    )
    notes = (PROTOCOL, f"Seeds: {len(size.seeds)}; steps: {size.steps:,}.", time_note(rows))
    title = "What a model without positions knows of order (Section 3.5)"
    return Table(
        "order",
        title,
        columns,
        tuple(made),
        _claims(size, rows),
        (*workshop.extent.notes, *notes),
        {"order.svg": drawing},
        points={"order.svg": points},
        command=workshop.command,
    )


STUDY = Study(
    section="3.5",
    statement=TEXT,
    protocol=PROTOCOL,
    verdict=f"the law within {ROUNDING:g}, for rounding; outputs in pairs by sentence; loss in pairs by seed",
    make=make,
)
