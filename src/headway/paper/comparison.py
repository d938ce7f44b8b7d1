"""Runs on text set side by side: a table of their scores, a plot, and paired differences of what is claimed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np

from headway.paper.difference import SEEDS_FOR_SEEDS, over_runs
from headway.paper.events import TableDone
from headway.paper.plot import plot
from headway.paper.study import Rows, StudyMaking, Workshop, make_rows, time_note
from headway.paper.table import Cell, Column, Row, Table
from headway.paper.text_counts import accuracy, bleu, token_perplexity, word_perplexity
from headway.paper.text_run import corpus_notes, counts_of, plan
from headway.paper.verdict import Claim, Part, Side

BY_PAIRS = f"paired bootstrap over the same sentences; from {SEEDS_FOR_SEEDS} seeds on Student's interval over seeds"
Weights = tuple[str, str]  # a variant of the recipe, and which of its weights: their average, or the last
COLUMNS: dict[Column, Callable[[np.ndarray], float]] = {
    Column("BLEU", is_printed=False): bleu,
    Column("perplexity", is_printed=False): token_perplexity,
    Column("perplexity a word", is_printed=False): word_perplexity,
    Column("tokens right", "%", ".1f", is_printed=False): accuracy,
}


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number of a corpus, and on which side of 0 its difference is claimed to lie."""

    name: str
    value: Callable[[np.ndarray], float]
    claimed: Side
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Against:
    """A claim: these weights against those, in each quantity."""

    name: str
    text: str
    these: Weights
    those: Weights
    quantities: tuple[Quantity, ...]


def make_comparison(
    name: str,
    title: str,
    workshop: Workshop,
    *,
    names: Mapping[Weights, str],
    against: Sequence[Against],
    protocol: str,
    published: Mapping[Weights, Mapping[str, float]] | None = None,
) -> StudyMaking:
    """Train what is not trained yet, and compare; ``names`` has the table's rows. The last event is TableDone.

    ``published``: what the paper prints of a row, by the names of columns.
    """
    seeds = workshop.extent.seeds(1)
    variants = list(dict.fromkeys(variant for variant, _ in names))
    rows = yield from make_rows(workshop, plan(workshop, variants))
    if rows is None:
        return None
    lines = {
        row_name: list(zip(map(float, seeds), _values(rows, weights, seeds, bleu), strict=True))
        for weights, row_name in names.items()
    }
    printed = {column for row in (published or {}).values() for column in row}
    table = Table(
        name,
        title,
        tuple(replace(column, is_printed=column.name in printed) for column in COLUMNS),
        tuple(
            _row(row_name, rows, weights, seeds, (published or {}).get(weights, {}))
            for weights, row_name in names.items()
        ),
        tuple(_claim(each, names, rows, seeds) for each in against),
        (*workshop.extent.notes, protocol, *corpus_notes(workshop.extent), time_note(rows)),
        {f"{name}.svg": plot(lines, title=title, x_label="seed", y_label="BLEU", x_scale="even", y_scale="even")},
        points={f"{name}.svg": lines},
        command=workshop.command,
    )
    yield TableDone(table)
    return table


def _row(name: str, rows: Rows, weights: Weights, seeds: range, published: Mapping[str, float]) -> Row:
    scores = {column.name: fmean(_values(rows, weights, seeds, value)) for column, value in COLUMNS.items()}
    return Row(name, {column: Cell(published.get(column), score) for column, score in scores.items()})


def _values(rows: Rows, weights: Weights, seeds: range, value: Callable[[np.ndarray], float]) -> list[float]:
    variant, kind = weights
    return [value(counts.sum(axis=0)) for counts in counts_of(rows, variant, seeds, weights=kind)]


def _claim(against: Against, names: Mapping[Weights, str], rows: Rows, seeds: range) -> Claim:
    these, those = (counts_of(rows, variant, seeds, weights=kind) for variant, kind in (against.these, against.those))
    sides = f"{names[against.these]} against {names[against.those]}"
    parts = tuple(
        Part(f"{quantity.name}, {sides}", over_runs(these, those, quantity.value), quantity.claimed, unit=quantity.unit)
        for quantity in against.quantities
    )
    return Claim(against.name, against.text, parts)
