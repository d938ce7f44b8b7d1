"""Table 1: operations, dependent steps and path lengths of layer types, counted on the layers of ``nn`` themselves."""

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial

import torch

from headway.paper.events import PaperEvent, TableDone
from headway.paper.layer_claims import crossing, fastest, order_claims, speed_claim
from headway.paper.layer_kinds import FULL, KINDS, LayerKind, Ranges
from headway.paper.layer_measure import Orders, by_length, measure_memory, measure_orders, measure_round
from headway.paper.layer_time import ATTENTION, BLOCK, FEWEST, LONG, LONG_FROM, RECURRENT, TIMED, check_width, seconds
from headway.paper.plot import Points, plot
from headway.paper.slope import slope
from headway.paper.table import Cell, Column, Row, Table
from headway.paper.work import WorkFolder
from headway.train.memory import settle_memory

LONGEST, SHORTEST = 16_384, 16
ALONE = "without projections"
Rounds = Sequence[Mapping[str, Mapping[int, float]]]

NOTES = (
    "operations: multiply-adds of one sentence, forward, counted by torch's counter on the real layers; the factor and "
    "the exponents are fitted. LSTM: 4 gates of 2 matrices; GRU: 3. Restricted attention works in blocks of r / 2, "
    "each with the two beside it: 3 r / 2 for each of two products.",
    "sequential: exponent of the longest chain of operations that autograd records, against n; claimed of d, k and r, "
    "too, is that it does not grow with them.",
    "maximum path: layers (state updates, where recurrent) until every position depends on every one it may see, by "
    "entries of the Jacobian that are not zero; of a dilated stack at several k, each at lengths that are its powers.",
    "Table 1 leaves out the four projections of attention, 4 n d^2 multiply-adds beside 2 n^2 d: at n = 50, d = 512 "
    "they are {share:.0%} of the layer. Exponents with them are of the same sizes as those without.",
    "The window r reaches r / 2 to a side, so the maximum path of restricted attention is 2 n / r.",
    "A separable convolution as wide as the sentence (k = n) costs what self-attention and a point-wise layer do, "
    "n^2 d + n d^2: the paper's last remark on the table.",
)


@dataclass(frozen=True, slots=True)
class Timing:
    """How layers are timed: vectors of ``d_model``, sentences of these lengths, so many rounds through all of them.

    ``block``: seconds that passes over one sentence go on in a round, where they are short.
    """

    d_model: int = 256
    lengths: tuple[int, ...] = tuple(SHORTEST * 2**power for power in range(11))
    rounds: int = 5
    block: float = BLOCK


FULL_TIMING = Timing()
QUICK_TIMING = Timing(d_model=64, lengths=(16, 64, 256), rounds=2, block=0.05)


def make(
    work: WorkFolder, *, ranges: Ranges = FULL, timing: Timing = FULL_TIMING, command: str = "headway paper table1"
) -> Iterator[PaperEvent]:
    """Measure every row, then time and weigh; the last event is TableDone.

    Raises PaperError for a width that the layers cannot be timed at, before anything is measured.
    """
    check_width(timing.d_model)
    settle_memory()
    total = len(KINDS) + timing.rounds + 1
    orders: dict[str, Orders] = {}
    for number, kind in enumerate(KINDS, start=1):
        name, settings = f"orders-{kind.layer}", {"ranges": asdict(ranges)}
        values = yield from work.row(name, settings, partial(measure_orders, kind, ranges), number=number, total=total)
        assert values is not None
        orders[kind.name] = Orders.read(values)
    rounds, memory = yield from _timed(work, timing, total)
    yield TableDone(_table(orders, timing, rounds, memory, command))


def _timed(
    work: WorkFolder, timing: Timing, total: int
) -> Generator[PaperEvent, None, tuple[Rounds, Mapping[str, Mapping[int, float]]]]:
    """The rounds, each through all layers and lengths, and the memory; each is a row of the work folder."""
    rounds: list[dict[str, dict[int, float]]] = []
    sizes = {"d_model": timing.d_model, "lengths": timing.lengths, "layers": list(TIMED)}
    given = timing.d_model, timing.lengths
    timer = partial(seconds, block=timing.block)
    for number in range(1, timing.rounds + 1):
        values = yield from work.row(
            f"round-{number}",
            {**sizes, "block": timing.block, "threads": torch.get_num_threads()},
            partial(measure_round, *given, number=number, timer=timer),
            number=len(KINDS) + number,
            total=total,
        )
        assert values is not None
        rounds.append(by_length(values["seconds"]))
    values = yield from work.row("memory", sizes, partial(measure_memory, *given), number=total, total=total)
    assert values is not None
    return rounds, by_length(values["bytes"])


def _table(
    orders: Mapping[str, Orders],
    timing: Timing,
    rounds: Rounds,
    memory: Mapping[str, Mapping[int, float]],
    command: str,
) -> Table:
    worked = list(next(iter(orders.values())).worked)
    columns = (
        Column("operations a layer"),
        Column("with projections", is_printed=False),
        Column("sequential operations"),
        Column("maximum path length"),
        *(Column(_worked_name(sizes), "multiply-adds", ",.0f") for sizes in worked),
    )
    times = fastest(rounds)
    crossings = _crossings(times)
    points = {
        "table1-operations": {name: list(found.core["n"].items()) for name, found in orders.items()},
        "table1-seconds": {name: list(row.items()) for name, row in times.items()},
        "table1-memory": {name: list(row.items()) for name, row in memory.items()},
    }
    core, total, _ = orders["self-attention"].worked[worked[0]]
    claims = [claim for kind in KINDS if kind.is_printed for claim in order_claims(kind, orders[kind.name])]
    return Table(
        name="table1",
        title="Table 1: layer types by operations, sequential operations and maximum path length",
        columns=columns,
        rows=tuple(_row(kind, orders[kind.name]) for kind in KINDS),
        claims=(*claims, speed_claim(rounds, timing.d_model)),
        notes=(
            *(note.format(share=1 - core / total) if "{share" in note else note for note in NOTES),
            _timing_note(timing),
            *_crossing_notes(crossings, timing.d_model),
        ),
        plots=_plots(points, timing.d_model, crossings),
        points=points,
        command=command,
    )


def _row(kind: LayerKind, orders: Orders) -> Row:
    """One line: the printed orders, and the fitted powers beside them."""
    factor = "" if orders.factor is None else f"{orders.factor:.3g} "
    core = _powers({letter: slope(points) for letter, points in orders.core.items()})
    if kind.layer == "separable":
        core = kind.operations  # a sum, which the factor stands for
    total = _powers({letter: slope(points) for letter, points in orders.total.items()})
    path = _powers({letter: slope(orders.path[letter]) for letter in kind.path or ("n",)})
    cells = {
        "operations a layer": Cell(kind.operations, factor + (f"({core})" if kind.layer == "separable" else core)),
        "with projections": Cell(measured=total if orders.total != orders.core else None),
        "sequential operations": Cell(kind.sequential, _powers({"n": slope(orders.chain["n"])})),
        "maximum path length": Cell(kind.maximum_path, f"{orders.path_factor(kind):.3g} {path}"),
        **{_worked_name(sizes): Cell(order, counted) for sizes, (counted, _, order) in orders.worked.items()},
    }
    return Row(kind.name, cells)


def _worked_name(sizes: tuple[int, int]) -> str:
    length, d_model = sizes
    return f"n = {length:,}, d = {d_model:,}"


def _powers(exponents: Mapping[str, float]) -> str:
    """The exponents as text, ``n^2.00 d^1.00``; -0.00 is 0.00."""
    return " ".join(
        f"{letter}^{exponent + 0.0:.2f}" if " " not in letter else f"({letter})^{exponent + 0.0:.2f}"
        for letter, exponent in ((letter, round(exponent, 2)) for letter, exponent in exponents.items())
    )


def _timing_note(timing: Timing) -> str:
    return (
        "seconds: of one sentence, forward and backward. A round has the median of the passes of "
        f"{timing.block:g} s, {FEWEST} at least (from n = {LONG_FROM:,} on one, where it takes {LONG:g} s); at each "
        f"length attention and LSTM are timed next to each other, in turn first. Drawn is the least of {timing.rounds} "
        f"round{'s' if timing.rounds != 1 else ''}, and the claim of speed is about their mean."
    )


def _crossings(times: Mapping[str, Mapping[int, float]]) -> dict[str, float | None]:
    """The lengths from which attention takes longer than an LSTM, with its projections and without."""
    return {
        name: crossing(times[ours], times[RECURRENT])
        for ours, name in ((ATTENTION, "with projections"), (ALONE, ALONE))
    }


def _crossing_notes(crossings: Mapping[str, float | None], d_model: int) -> list[str]:
    """Where attention comes to cost more than recurrence: by the printed orders at n = d, and by time."""
    notes = ["crossing: by the printed orders, n^2 d and n d^2, attention comes to cost more than recurrence at n = d."]
    for name, found in crossings.items():
        where = "nowhere among these lengths" if found is None else f"at n = {found:,.0f}"
        notes.append(f"crossing of the seconds, d = {d_model}, attention {name} and LSTM: {where}.")
    return notes


def _plots(
    points: Mapping[str, Mapping[str, Points]], d_model: int, crossings: Mapping[str, float | None]
) -> dict[str, str]:
    labels = {
        "table1-operations": ("Multiply-adds of a layer, projections left out", "multiply-adds"),
        "table1-seconds": (f"Seconds of a layer, forward and backward, d = {d_model}", "seconds"),
        "table1-memory": (f"Bytes kept for the backward pass, d = {d_model}", "bytes"),
    }
    met = {f"as long as LSTM, {name}: {at:,.0f}": at for name, at in crossings.items() if at is not None}
    marks = {"table1-seconds": {f"n = d: {d_model:,}": float(d_model), **met}}
    return {
        f"{name}.svg": plot(
            lines,
            title=labels[name][0],
            x_label="tokens of a sentence, n",
            y_label=labels[name][1],
            marks=marks.get(name),
        )
        for name, lines in points.items()
    }
