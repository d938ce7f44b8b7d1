"""Table 2 as it is printed, with the training cost computed again: by the paper's rule, and by counted operations."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from headway.config.model_config import ModelConfig
from headway.config.presets import BASE, BIG
from headway.paper.cost import DAY, HOUR, by_count, by_rule
from headway.paper.events import PaperEvent, TableDone
from headway.paper.plot import Points, plot
from headway.paper.table import Cell, Column, Row, Table
from headway.paper.verdict import Claim, Difference, Part

PROCESSORS, PROCESSOR = 8, "P100"  # Section 5.2
BATCH_TOKENS = 25_000  # of each side, Section 5.1
LENGTH = 27  # tokens of a sentence; attention's share of the operations is small, so little hangs on it


@dataclass(frozen=True, slots=True)
class Printed:
    """A row of Table 2: BLEU on newstest2014 and training cost in FLOP, English to German and to French."""

    name: str
    bleu_de: float | None = None
    bleu_fr: float | None = None
    cost_de: float | None = None
    cost_fr: float | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """How a model of the paper was trained, in numbers of Section 5."""

    model: ModelConfig
    seconds: float  # as the text says, 12 hours and 3.5 days
    steps: int
    step_seconds: float


PRINTED = (
    Printed("ByteNet", 23.75),
    Printed("Deep-Att + PosUnk", None, 39.2, None, 1.0e20),
    Printed("GNMT + RL", 24.6, 39.92, 2.3e19, 1.4e20),
    Printed("ConvS2S", 25.16, 40.46, 9.6e18, 1.5e20),
    Printed("MoE", 26.03, 40.56, 2.0e19, 1.2e20),
    Printed("Deep-Att + PosUnk ensemble", None, 40.4, None, 8.0e20),
    Printed("GNMT + RL ensemble", 26.30, 41.16, 1.8e20, 1.1e21),
    Printed("ConvS2S ensemble", 26.36, 41.29, 7.7e19, 1.2e21),
    Printed("Transformer (base)", 27.3, 38.1, 3.3e18),
    Printed("Transformer (big)", 28.4, 41.8, 2.3e19),
)
RUNS = {
    "Transformer (base)": Run(BASE, 12 * HOUR, 100_000, 0.4),
    "Transformer (big)": Run(BIG, 3.5 * DAY, 300_000, 1.0),
}
COLUMNS = (
    Column("BLEU EN-DE", is_measured=False),
    Column("BLEU EN-FR", is_measured=False),
    Column("cost EN-DE", "FLOP", ".1e"),
    Column("cost EN-FR", "FLOP", ".1e", is_measured=False),
    Column("by the time of its steps", "FLOP", ".2e", is_printed=False),
    Column("counted", "FLOP", ".2e", is_printed=False),
    Column("counted / rule", "", ".0%", is_printed=False),
)
PRINTED_DIGITS = 2  # of a cost
NOTES = (
    "cost, here: the paper's rule, time x 8 P100 x 9.5 TFLOPS. The rule takes what a processor can do for what it did: "
    "the operations of the matrix products are 29 % of it for base and 42 % for big.",
    f"counted: forward and backward of {BATCH_TOKENS:,} source and {BATCH_TOKENS:,} target tokens a step, V = 37,000, "
    f"sentences of {LENGTH} tokens.",
    "Erratum: 12 hours and 3.5 days are, by Section 5.2's steps, 11.1 hours (100,000 of 0.4 s) and 3.47 days "
    "(300,000 of 1.0 s).",
    "Erratum: English to French, big: 41.8 here and in the abstract, 41.0 in Section 6.1.",
    "The Transformers have one cost for both columns; the others' costs differ by language.",
    "BLEU is of tokenised text with compounds split (`headway evaluate --paper-bleu`); the rows are of averaged "
    "checkpoints.",
)


def make(command: str = "headway paper table2") -> Iterator[PaperEvent]:
    """Compute the costs again; the only event is TableDone."""
    rows = tuple(_row(printed) for printed in PRINTED)
    title = "Table 2: BLEU on newstest2014 and training cost"
    lines = _lines(rows)
    drawing = plot(
        lines,
        title="Table 2, English to German",
        x_label="training cost, FLOP",
        y_label="BLEU",
        x_scale=10,
        y_scale="even",
    )
    yield TableDone(
        Table(
            "table2",
            title,
            COLUMNS,
            rows,
            claims=(_claim(rows),),
            notes=NOTES,
            plots={"table2.svg": drawing},
            points={"table2": lines},
            command=command,
        )
    )


def _lines(rows: Sequence[Row]) -> dict[str, Points]:
    """BLEU against cost, each row a point as printed; of one that is counted here a line from the count to the rule."""
    found: dict[str, Points] = {}
    for row in rows:
        bleu, cost = row.cells["BLEU EN-DE"].published, row.cells["cost EN-DE"]
        costs = [row.cells["counted"].measured, cost.measured] if "counted" in row.cells else [cost.published]
        if isinstance(bleu, float):
            found[row.name] = [(float(value), bleu) for value in costs if isinstance(value, int | float)]
    return {name: points for name, points in found.items() if points}


def _claim(rows: Sequence[Row]) -> Claim:
    """That the printed costs are those of the paper's own rule, to the digits that are printed."""
    parts: list[Part] = []
    for row in rows:
        cost = row.cells["cost EN-DE"]
        if not (isinstance(cost.published, float) and isinstance(cost.measured, float)):
            continue
        last_digit = 10.0 ** (math.floor(math.log10(cost.published)) + 1 - PRINTED_DIGITS)
        share = cost.measured / cost.published - 1.0
        difference = Difference.exact(share, "the printed digits")
        what = f"{row.name}: cost by the rule, less the printed, as a share of it"
        parts.append(Part(what, difference, "near", last_digit / 2 / cost.published))
    return Claim("cost", "the costs of the Transformers are time x processors x what one sustains", tuple(parts))


def _row(printed: Printed) -> Row:
    cells = {
        "BLEU EN-DE": Cell(printed.bleu_de),
        "BLEU EN-FR": Cell(printed.bleu_fr),
        "cost EN-DE": Cell(printed.cost_de),
        "cost EN-FR": Cell(printed.cost_fr),
    }
    run = RUNS.get(printed.name)
    if run is not None:
        rule = by_rule(run.seconds, processors=PROCESSORS, processor=PROCESSOR)
        counted = by_count(
            run.model, steps=run.steps, source_tokens=BATCH_TOKENS, target_tokens=BATCH_TOKENS, length=LENGTH
        )
        steps = by_rule(run.steps * run.step_seconds, processors=PROCESSORS, processor=PROCESSOR)
        cells["cost EN-DE"] = Cell(printed.cost_de, rule)
        cells["by the time of its steps"] = Cell(measured=steps)
        cells["counted"] = Cell(measured=counted)
        cells["counted / rule"] = Cell(measured=counted / rule)
    return Row(printed.name, cells)
