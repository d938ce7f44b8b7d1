"""The claim of Section 3.2.1: why scores are divided by the root of d_k, and what additive attention needs not."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import torch

from headway.config.model_config import ModelConfig
from headway.config.train_config import TrainConfig
from headway.model.transformer import Transformer
from headway.nn.attention import MultiHeadAttention
from headway.nn.score import ATTENTION_SCORES
from headway.paper.difference import over_seeds
from headway.paper.events import TableDone
from headway.paper.plot import plot
from headway.paper.small_run import ShouldStop, SmallRun, first_model, plan_run
from headway.paper.softmax_slope import draw_slopes, product_variance, variance_error
from headway.paper.study import (
    Planned,
    Rows,
    Study,
    StudyMaking,
    Workshop,
    at_once,
    make_rows,
    number,
    numbers,
    paired,
    time_note,
)
from headway.paper.symbols import SymbolTask
from headway.paper.table import Cell, Column, Row, Table
from headway.paper.verdict import Claim, Difference, Part, Verdict
from headway.paper.work import Values

KINDS = tuple(ATTENTION_SCORES)
NUM_KEYS = 32
NUM_TESTED = 500  # sentences held out
TRIAL_SEED = 0  # of the runs that rates are chosen by; those that are reported have 1, 2, ...
TASK = SymbolTask("reverse", num_symbols=24, shortest=4, longest=10)
VARIANCE_MARGIN = 0.05  # of d_k
LOSS_MARGIN = 0.1  # nats a token: "similarly"
SIGMAS = 1.96  # to the ends of a 95 % interval of a normal law
GROWTHS = 3  # times that a grid of rates grows, at most
Rates = dict[tuple[str, int], float]  # the peak rate of a kind at a d_k
Grids = dict[tuple[str, int], tuple[float, ...]]  # those that were tried, from the least on
TEXT = (
    "With components of mean 0 and variance 1, q k has variance d_k (footnote 4), which leaves the softmax extremely "
    "small gradients; so unscaled dot products do as well as additive attention for small d_k and worse for large, "
    "and the scale 1 / sqrt(d_k) mends it."
)
PROTOCOL = (
    "Drawn: q and k as in footnote 4, 32 keys; the variance of q k, and the norm of the softmax's Jacobian. Trained: "
    "one layer a side with one head, on reversing 4 to 10 symbols; W^Q and W^K begin with deviation d_model^-0.5, so "
    "that the components of q and k begin with the variance that the footnote takes; loss on 500 sentences held out, "
    "in pairs by seed. Adam moves every component by about the learning rate, so that a step changes q k in proportion "
    "to d_k, and one rate for all would confound scores with steps: each kind at each d_k has the peak rate of a grid "
    "that came to the least loss in a run as long, with a seed and held-out sentences of its own. All grids begin as "
    f"one; where the best rate lies at an end, the next beyond is tried too, {GROWTHS} times at most (--quick: never)."
)


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large the study is."""

    widths: tuple[int, ...]
    rates: tuple[float, ...]
    num_pairs: int
    num_draws: int
    steps: int
    seeds: range
    growths: int = GROWTHS


def sizes(workshop: Workshop) -> Sizes:
    """The usual sizes, or quick ones."""
    extent = workshop.extent
    return Sizes(
        widths=extent.choose((4, 16, 64, 256, 1024), (4, 64)),
        rates=extent.choose((5e-4, 1e-3, 2e-3, 4e-3, 8e-3), (1e-3, 2e-3)),
        num_pairs=extent.choose(100_000, 20_000),
        num_draws=extent.choose(2000, 200),
        steps=extent.num_steps(600, 20),
        seeds=extent.seeds(4),
        growths=extent.choose(GROWTHS, 0),
    )


def make(workshop: Workshop) -> StudyMaking:
    """Make the study; its last event is TableDone."""
    size = sizes(workshop)
    grids: Grids = {(kind, d_k): size.rates for d_k in size.widths for kind in KINDS}
    first = [*_drawn(size), *_tried(size, grids, workshop.should_stop)]
    found = yield from make_rows(workshop, first, later=len(grids) * len(size.seeds))
    if found is None:
        return None
    for _ in range(size.growths):
        beyond = further_rates(size, grids, found)
        if not beyond:
            break
        planned = _tried(size, beyond, workshop.should_stop)
        more = yield from make_rows(workshop, planned, before=len(found), later=len(grids) * len(size.seeds))
        if more is None:
            return None
        found = {**found, **more}
        grids = {key: tuple(sorted({*grid, *beyond.get(key, ())})) for key, grid in grids.items()}
    rates = best_rates(size, grids, found)
    trained = yield from make_rows(workshop, _trained(size, rates, workshop.should_stop), before=len(found))
    if trained is None:
        return None
    table = _table(size, {**found, **trained}, grids, rates, workshop)
    yield TableDone(table)
    return table


def small_run(kind: str, d_k: int, *, rate: float, steps: int, seed: int) -> SmallRun:
    """One training of the study."""
    model = ModelConfig.model_validate(
        {
            "vocab_size": TASK.vocab_size,
            "d_model": 64,
            "d_ff": 128,
            "num_heads": 1,
            "d_k": d_k,
            "d_v": 64,
            "num_encoder_layers": 1,
            "num_decoder_layers": 1,
            "dropout": 0.0,
            "attention_score": kind,
        }
    )
    train = TrainConfig(max_steps=steps, warmup_steps=50, learning_rate=rate, label_smoothing=0.0)
    return SmallRun(TASK, model, train, sentences=32, seed=seed)


def build(run: SmallRun) -> Transformer:
    """The model at its begin: weights of Glorot, but queries and keys with components of variance 1 after a norm.

    Glorot's limits shrink as d_k grows, so that they would hide what footnote 4 tells of.
    """
    model = first_model(run)
    generator = torch.Generator().manual_seed(run.seed)
    deviation = run.model.d_model**-0.5
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, MultiHeadAttention):
                module.query.weight.normal_(0.0, deviation, generator=generator)
                module.key.weight.normal_(0.0, deviation, generator=generator)
    return model


def _drawn(size: Sizes) -> list[Planned]:
    planned: list[Planned] = []
    for d_k in size.widths:
        settings = {"d_k": d_k, "pairs": size.num_pairs, "draws": size.num_draws, "keys": NUM_KEYS, "seed": 1}
        name = f"scaling-drawn-{d_k}"
        planned.append(at_once(name, settings, lambda d_k=d_k: _draw(d_k, size)))
    return planned


def _draw(d_k: int, size: Sizes) -> Values:
    slopes = {
        kind: draw_slopes(kind, d_k, num_draws=size.num_draws, num_keys=NUM_KEYS, seed=1).tolist() for kind in KINDS
    }
    return {"variance": product_variance(d_k, num_pairs=size.num_pairs, seed=1), "slopes": slopes}


def _tried(size: Sizes, grids: Grids, should_stop: ShouldStop) -> list[Planned]:
    """The runs that rates are chosen by."""
    planned: list[Planned] = []
    for (kind, d_k), grid in grids.items():
        for rate in grid:
            run = small_run(kind, d_k, rate=rate, steps=size.steps, seed=TRIAL_SEED)
            name = _trial_name(kind, d_k, rate)
            planned.append(plan_run(name, run, should_stop, num_tested=NUM_TESTED, build=build))
    return planned


def best_rates(size: Sizes, grids: Grids, rows: Rows) -> Rates:
    """The rate of each kind and d_k whose trial came to the least loss, of those that did not break off.

    Where all broke off it is the least rate.
    """
    rates: Rates = {}
    for (kind, d_k), grid in grids.items():
        trials = [(rows[_trial_name(kind, d_k, rate)], rate) for rate in grid]
        whole = [(number(trial, "loss"), rate) for trial, rate in trials if number(trial, "steps") == size.steps]
        finite = [(loss, rate) for loss, rate in whole if math.isfinite(loss)]
        rates[kind, d_k] = min(finite)[1] if finite else min(grid)
    return rates


def further_rates(size: Sizes, grids: Grids, rows: Rows) -> Grids:
    """Where the best rate is the least or the greatest of its grid: the next one beyond, half or twice as high."""
    further: Grids = {}
    for key, rate in best_rates(size, grids, rows).items():
        if rate == grids[key][0]:
            further[key] = (rate / 2,)
        elif rate == grids[key][-1]:
            further[key] = (rate * 2,)
    return further


def _trained(size: Sizes, rates: Rates, should_stop: ShouldStop) -> list[Planned]:
    planned: list[Planned] = []
    for d_k in size.widths:
        for kind in KINDS:
            for seed in size.seeds:
                run = small_run(kind, d_k, rate=rates[kind, d_k], steps=size.steps, seed=seed)
                name = _name(kind, d_k, seed)
                planned.append(plan_run(name, run, should_stop, num_tested=NUM_TESTED, build=build))
    return planned


def _trial_name(kind: str, d_k: int, rate: float) -> str:
    return f"scaling-{kind}-{d_k}-rate{rate:g}"


def _name(kind: str, d_k: int, seed: int) -> str:
    return f"scaling-{kind}-{d_k}-seed{seed}"


def _losses(rows: Rows, kind: str, d_k: int, seeds: range) -> list[float]:
    return numbers(rows, (_name(kind, d_k, seed) for seed in seeds), "loss")


def _slopes(rows: Rows, kind: str, d_k: int) -> list[float]:
    slopes = rows[f"scaling-drawn-{d_k}"]["slopes"]
    assert isinstance(slopes, dict)
    return slopes[kind]


def _at_end(grids: Grids, rates: Rates) -> list[tuple[str, int]]:
    """Whose best rate is at an end of its grid, even after that has grown."""
    return [key for key, rate in rates.items() if rate in (grids[key][0], grids[key][-1])]


def _claims(size: Sizes, rows: Rows, at_end: Sequence[tuple[str, int]]) -> tuple[Claim, ...]:
    small, large = size.widths[0], size.widths[-1]
    return (
        Claim("variance", "q k has variance d_k", tuple(_variance_part(d_k, size, rows) for d_k in size.widths)),
        Claim(
            "gradient",
            "large d_k pushes the softmax to where its gradients are small; the scale keeps them",
            (
                _slope_part(
                    f"unscaled, d_k {large} against {small}",
                    _slopes(rows, "unscaled", large),
                    _slopes(rows, "unscaled", small),
                ),
                _slope_part(
                    f"d_k {large}, unscaled against scaled",
                    _slopes(rows, "unscaled", large),
                    _slopes(rows, "scaled", large),
                ),
            ),
        ),
        Claim(
            "loss",
            "unscaled does as additive for small d_k, worse for large; scaled mends it",
            (
                _loss_part(size, rows, small, "additive", at_end),
                _loss_part(size, rows, large, "additive", at_end),
                _loss_part(size, rows, large, "scaled", at_end),
            ),
        ),
    )


def _variance_part(d_k: int, size: Sizes, rows: Rows) -> Part:
    share = number(rows[f"scaling-drawn-{d_k}"], "variance") / d_k
    half = SIGMAS * variance_error(d_k, num_pairs=size.num_pairs)
    difference = Difference(share - 1.0, share - 1.0 - half, share - 1.0 + half, f"{size.num_pairs:,} pairs")
    return Part(f"d_k {d_k}, variance / d_k - 1", difference, "near", VARIANCE_MARGIN)


def _slope_part(what: str, these: Sequence[float], those: Sequence[float]) -> Part:
    return Part(what, over_seeds(these, those, of="draws"), "below")


def _loss_part(size: Sizes, rows: Rows, d_k: int, other: str, at_end: Sequence[tuple[str, int]]) -> Part:
    """Unscaled against another kind: alike at the least d_k, worse at the largest.

    It settles nothing where a better rate than the best that was tried might turn it: of the worse of the two, or of
    either, where both are claimed to be alike.
    """
    these, those = (_losses(rows, kind, d_k, size.seeds) for kind in ("unscaled", other))
    is_small = d_k == size.widths[0]
    claimed, margin = ("near", LOSS_MARGIN) if is_small else ("above", 0.0)
    part = Part(f"d_k {d_k}, unscaled against {other}", paired(these, those), claimed, margin, "nats")
    worse = {Verdict.HOLDS: ("unscaled",), Verdict.DOES_NOT_HOLD: (other,), Verdict.NOT_SETTLED: ()}
    turning = ("unscaled", other) if is_small else worse[part.verdict]
    open_ones = [kind for kind in turning if (kind, d_k) in at_end]
    if not open_ones:
        return part
    return replace(part, what=f"{part.what}, {' and '.join(open_ones)} at the end of the rates", settles=False)


def _rate_notes(size: Sizes, grids: Grids, rates: Rates) -> list[str]:
    """The grid, how far those of some kinds went, and where the best rate lies at an end all the same."""
    grid = ", ".join(f"{rate:g}" for rate in size.rates)
    notes = [f"Peak rates tried: {grid}; {size.steps:,} steps each, seed {TRIAL_SEED}, which no other run has."]
    grown = [
        f"{kind} at d_k {d_k} ({', '.join(f'{rate:g}' for rate in tried if rate not in size.rates)})"
        for (kind, d_k), tried in grids.items()
        if tried != size.rates
    ]
    if grown:
        notes.append(f"Further ones, as the best lay at an end: {'; '.join(grown)}.")
    at_end = [f"{kind} at d_k {d_k}" for kind, d_k in _at_end(grids, rates)]
    if at_end:
        notes.append(f"The best rate lies at an end of the grid, and a better one may lie beyond: {', '.join(at_end)}.")
    return notes


def _table(size: Sizes, rows: Rows, grids: Grids, rates: Rates, workshop: Workshop) -> Table:
    slopes = {kind: [(d_k, fmean(_slopes(rows, kind, d_k))) for d_k in size.widths] for kind in KINDS}
    losses = {kind: [(d_k, fmean(_losses(rows, kind, d_k, size.seeds))) for d_k in size.widths] for kind in KINDS}
    columns = [Column("variance of q k")]
    columns += [Column(f"slope, {kind}", form=".4f", is_printed=False) for kind in KINDS]
    columns += [Column(f"rate, {kind}", form="g", is_printed=False) for kind in KINDS]
    columns += [Column(f"loss, {kind}", "nats", ".3f", is_printed=False) for kind in KINDS]
    made: list[Row] = []
    for place, d_k in enumerate(size.widths):
        cells = {"variance of q k": Cell(float(d_k), number(rows[f"scaling-drawn-{d_k}"], "variance"))}
        cells |= {f"slope, {kind}": Cell(measured=slopes[kind][place][1]) for kind in KINDS}
        cells |= {f"rate, {kind}": Cell(measured=rates[kind, d_k]) for kind in KINDS}
        cells |= {f"loss, {kind}": Cell(measured=losses[kind][place][1]) for kind in KINDS}
        made.append(Row(f"d_k {d_k}", cells))
    plots = {
        "scaling-slope.svg": plot(slopes, title="Slope of the softmax", x_label="d_k", y_label="norm of the Jacobian"),
        "scaling-loss.svg": plot(
            losses, title=f"Loss after {size.steps:,} steps", x_label="d_k", y_label="nats a token", y_scale="even"
        ),
    }
    guess = math.log(TASK.num_symbols)
    notes = (
        *workshop.extent.notes,
        PROTOCOL,
        *_rate_notes(size, grids, rates),
        f"Seeds: {len(size.seeds)}; steps: {size.steps:,}. Guessing among the symbols costs {guess:.2f} nats.",
        time_note(rows),
    )
    title = "Scaled, unscaled and additive attention against d_k (Section 3.2.1)"
    points = {"scaling-slope.svg": slopes, "scaling-loss.svg": losses}
    return Table(
        "scaling",
        title,
        tuple(columns),
        tuple(made),
        _claims(size, rows, _at_end(grids, rates)),
        notes,
        plots,
        points=points,
        command=workshop.command,
    )


STUDY = Study(
    section="3.2.1",
    statement=TEXT,
    protocol=PROTOCOL,
    verdict="variance within 5 % of d_k; slopes by draws; losses in pairs by seed, at the least and the largest d_k, "
    "each at the best learning rate of a grid, and none where a better one beyond its end might turn it",
    make=make,
)
