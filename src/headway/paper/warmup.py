"""What Section 5.3's warm-up is for: post-norm needs it and pre-norm does not (Xiong et al. 2020)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, linear_regression

import torch

from headway.config.model_config import ModelConfig
from headway.config.train_config import TrainConfig
from headway.paper.events import TableDone
from headway.paper.plot import plot
from headway.paper.small_run import ShouldStop, SmallRun, first_model, plan_run
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
from headway.train.objective import Likelihood

PLACEMENTS = ("post", "pre")
NUM_TESTED = 500
TASK = SymbolTask("reverse", num_symbols=24, shortest=4, longest=10)
SLOPE_MARGIN = 0.25  # of an exponent; Xiong et al. have 0 for post-norm and -1/2 for pre-norm
LOSS_MARGIN = 0.1  # nats a token: "as well"
RATE = 2e-3
WARMED = {"with": True, "without": False}
TEXT = (
    "The paper warms up over 4,000 steps and says not why. Xiong et al. 2020: at the start the gradients of the last "
    "layers of post-norm are large whatever the depth, those of pre-norm shrink with its root; so post-norm needs the "
    "warm-up, and pre-norm trains as well without."
)
PROTOCOL = (
    "Start: the norm of the gradient of the last decoder layer's second feed-forward matrix, encoder and decoder of "
    "the same depth, on 64 sentences; its slope against depth, both in logarithms. Trained: reversing 4 to 10 "
    f"symbols, the peak rate {RATE:g} held after a warm-up, or from the first step on; loss on 500 sentences held out. "
    "A run whose loss is not finite ends there, and is measured as it stands."
)


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large the study is."""

    depths: tuple[int, ...]
    trained_depth: int
    steps: int
    warmup_steps: int
    seeds: range


def sizes(workshop: Workshop) -> Sizes:
    """The usual sizes, or quick ones."""
    extent = workshop.extent
    steps = extent.num_steps(1000, 20)
    return Sizes(
        depths=extent.choose((2, 4, 6, 8, 12, 16), (2, 4)),
        trained_depth=extent.choose(6, 2),
        steps=steps,
        warmup_steps=max(2, steps // 5),
        seeds=extent.seeds(5),
    )


def make(workshop: Workshop) -> StudyMaking:
    """Make the study; its last event is TableDone."""
    size = sizes(workshop)
    rows = yield from make_rows(workshop, [*_started(size), *_trained(size, workshop.should_stop)])
    if rows is None:
        return None
    table = _table(size, rows, workshop)
    yield TableDone(table)
    return table


def small_run(placement: str, depth: int, *, steps: int, warmup_steps: int, seed: int) -> SmallRun:
    """One training of the study; ``warmup_steps`` 1 is none: the first step has the peak rate already."""
    model = ModelConfig.model_validate(
        {
            "vocab_size": TASK.vocab_size,
            "d_model": 64,
            "d_ff": 128,
            "num_heads": 4,
            "num_encoder_layers": depth,
            "num_decoder_layers": depth,
            "dropout": 0.0,
            "norm_placement": placement,
        }
    )
    train = TrainConfig(
        max_steps=steps, warmup_steps=warmup_steps, learning_rate=RATE, schedule="constant", label_smoothing=0.0
    )
    return SmallRun(TASK, model, train, sentences=32, seed=seed)


def last_gradient(run: SmallRun, *, num_sentences: int = 64) -> float:
    """The norm of the gradient, before any step, of the matrix that the last decoder layer ends in."""
    model = first_model(run).train()
    batch = run.held_out(num_sentences)
    loss, _ = Likelihood(0.0).sums(model, batch, precision="float32")
    (loss / batch.num_target_tokens).backward()
    *_, last = model.decoder.each_layer()
    gradient = last.feed_forward.outer.weight.grad
    assert gradient is not None
    return torch.linalg.vector_norm(gradient).item()


def exponent(depths: Sequence[int], norms: Sequence[float]) -> float:
    """The slope of log norm against log depth."""
    return linear_regression([math.log(depth) for depth in depths], [math.log(norm) for norm in norms]).slope


def _started(size: Sizes) -> list[Planned]:
    planned: list[Planned] = []
    for placement in PLACEMENTS:
        for depth in size.depths:
            runs = [small_run(placement, depth, steps=1, warmup_steps=1, seed=seed) for seed in size.seeds]
            name = _start_name(placement, depth)
            settings = {**runs[0].settings, "seeds": len(runs)}
            planned.append(at_once(name, settings, lambda runs=runs: {"norms": [last_gradient(run) for run in runs]}))
    return planned


def _trained(size: Sizes, should_stop: ShouldStop) -> list[Planned]:
    planned: list[Planned] = []
    for placement in PLACEMENTS:
        for warmed, is_warmed in WARMED.items():
            for seed in size.seeds:
                warmup_steps = size.warmup_steps if is_warmed else 1
                run = small_run(placement, size.trained_depth, steps=size.steps, warmup_steps=warmup_steps, seed=seed)
                name = _run_name(placement, warmed, seed)
                planned.append(plan_run(name, run, should_stop, num_tested=NUM_TESTED))
    return planned


def _start_name(placement: str, depth: int) -> str:
    return f"warmup-start-{placement}-{depth}"


def _run_name(placement: str, warmed: str, seed: int) -> str:
    return f"warmup-{placement}-{warmed}-seed{seed}"


def _norms(rows: Rows, placement: str, depth: int) -> list[float]:
    norms = rows[_start_name(placement, depth)]["norms"]
    assert isinstance(norms, list)
    return norms


def _exponents(rows: Rows, placement: str, size: Sizes) -> list[float]:
    """By seed."""
    by_seed = zip(*(_norms(rows, placement, depth) for depth in size.depths), strict=True)
    return [exponent(size.depths, norms) for norms in by_seed]


def _losses(rows: Rows, placement: str, warmed: str, seeds: range) -> list[float]:
    return numbers(rows, (_run_name(placement, warmed, seed) for seed in seeds), "loss")


def _claims(size: Sizes, rows: Rows) -> tuple[Claim, ...]:
    deepest = size.depths[-1]
    post, pre = (_exponents(rows, placement, size) for placement in PLACEMENTS)
    zeros = [0.0] * len(post)
    norms = [_norms(rows, placement, deepest) for placement in PLACEMENTS]
    return (
        Claim(
            "gradients",
            "at the start gradients of the last layer do not shrink with depth in post-norm, and do in pre-norm",
            (
                Part("post-norm, exponent of depth", paired(post, zeros), "near", SLOPE_MARGIN),
                Part("exponent, pre-norm against post-norm", paired(pre, post), "below"),
                Part(f"depth {deepest}, norm, post-norm against pre-norm", paired(*norms), "above"),
            ),
        ),
        Claim(
            "need",
            "post-norm needs the warm-up; pre-norm trains as well without",
            (
                Part("post-norm, loss without against with", _without(size, rows, "post"), "above", 0.0, "nats"),
                Part("pre-norm, loss without against with", _without(size, rows, "pre"), "near", LOSS_MARGIN, "nats"),
            ),
        ),
    )


def _without(size: Sizes, rows: Rows, placement: str) -> Difference | None:
    without, with_it = (_losses(rows, placement, warmed, size.seeds) for warmed in ("without", "with"))
    return paired(without, with_it)


def _table(size: Sizes, rows: Rows, workshop: Workshop) -> Table:
    columns = (
        *(Column(f"gradient, depth {depth}", "", ".4f", is_printed=False) for depth in size.depths),
        Column("exponent", form=".2f", is_printed=False),
        *(Column(f"loss {warmed} warm-up", "nats", ".3f", is_printed=False) for warmed in WARMED),
    )
    made: list[Row] = []
    lines: dict[str, list[tuple[float, float]]] = {}
    for placement in PLACEMENTS:
        means = [fmean(_norms(rows, placement, depth)) for depth in size.depths]
        cells = {
            f"gradient, depth {depth}": Cell(measured=mean) for depth, mean in zip(size.depths, means, strict=True)
        }
        cells["exponent"] = Cell(measured=fmean(_exponents(rows, placement, size)))
        for warmed in WARMED:
            cells[f"loss {warmed} warm-up"] = Cell(measured=fmean(_losses(rows, placement, warmed, size.seeds)))
        made.append(Row(f"{placement}-norm", cells))
        lines[f"{placement}-norm"] = list(zip(map(float, size.depths), means, strict=True))
    drawing = plot(lines, title="Gradient of the last layer before training", x_label="layers a side",
                   y_label="norm", x_scale=2, y_scale=10)  # fmt: skip
    notes = (
        PROTOCOL,
        f"Seeds: {len(size.seeds)}; steps: {size.steps:,}; trained with {size.trained_depth} layers a side, a warm-up "
        f"of {size.warmup_steps:,} steps. Guessing among the symbols costs {math.log(TASK.num_symbols):.2f} nats.",
        time_note(rows),
    )
    title = "Post-norm and pre-norm, with and without warm-up (Section 5.3; Xiong et al. 2020)"
    return Table(
        "warmup",
        title,
        columns,
        tuple(made),
        _claims(size, rows),
        (*workshop.extent.notes, *notes),
        {"warmup.svg": drawing},
        points={"warmup.svg": lines},
        command=workshop.command,
    )


STUDY = Study(
    section="5.3",
    statement=TEXT,
    protocol=PROTOCOL,
    verdict="exponents of depth and losses in pairs by seed",
    make=make,
)
