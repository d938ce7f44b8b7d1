"""``headway evaluate --task parsing``: trees of a parser scored against those of a treebank."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headway.cli.reports import columns
from headway.errors import MetricError

if TYPE_CHECKING:
    from headway.metrics.evalb_parameters import Parameters
    from headway.metrics.parseval import Figures, ParserComparison, ParsevalScores
    from headway.metrics.tree_bootstrap import PairedF1
    from headway.trees.tree import Tree


def evaluate_trees(
    hypothesis: Path,
    reference: Path,
    *,
    baseline: Path | None,
    parameters: str | None,
    reference_tags: bool,
    as_evalb: bool,
    as_json: bool,
) -> None:
    """Print both figures, ``all`` and ``evalb``, for all lengths and up to 40 words; with a baseline a paired test.

    ``as_evalb``: the second as EVALB prints it, and nothing else.
    """
    from headway.metrics.evalb_report import evalb_report
    from headway.metrics.parseval import compare_trees, score_trees

    if as_evalb and (as_json or baseline is not None):
        raise click.UsageError("--evalb prints what EVALB does: one parser, no JSON. Leave --json and --baseline out.")
    piped = [name for name, path in (("hypothesis", hypothesis), ("baseline", baseline)) if str(path) == "-"]
    if str(reference) == "-" or len(piped) > 1:
        raise click.UsageError("Standard input can be one of --hypothesis and --baseline; name files for the others.")
    chosen = _parameters(parameters)
    wanted = _references(reference)
    found = {
        side: _parses(path, num_wanted=len(wanted), reference=reference)
        for side, path in (("hypothesis", hypothesis), ("baseline", baseline))
        if path is not None
    }
    scores = score_trees(found["hypothesis"], wanted, parameters=chosen, reference_tags=reference_tags)
    _warn(scores)
    if as_evalb:
        click.echo(evalb_report(scores), nl=False)
        return
    comparison = None
    if baseline is not None:
        sides = found["baseline"], found["hypothesis"]
        comparison = compare_trees(*sides, wanted, parameters=chosen, reference_tags=reference_tags)
    if as_json:
        click.echo(json.dumps(_table(scores, comparison), indent=2, ensure_ascii=False))
        return
    click.echo(_scores_text(scores))
    if comparison is not None:
        click.echo("\n" + _comparison_text(comparison, cutoff=chosen.cutoff_length))


def _parameters(name: str | None) -> "Parameters":
    """COLLINS, one of those known by name, or a file of EVALB."""
    from headway.metrics.evalb_parameters import COLLINS, PARAMETERS, read_parameters

    if name is None:
        return COLLINS
    return PARAMETERS[name] if name in PARAMETERS else read_parameters(name)


def _references(path: Path) -> "list[Tree]":
    from headway.trees.brackets import read_trees

    return list(read_trees(path))


def _parses(path: Path, *, num_wanted: int, reference: Path) -> "list[Tree | None]":
    """A tree or nothing a line. Raises MetricError for another count than the references have."""
    from headway.corpus.lines import name_of
    from headway.trees.brackets import read_parses

    trees = list(read_parses(path))
    if len(trees) != num_wanted:
        raise MetricError(
            f"cli/evaluate_trees: {name_of(path)} has {len(trees):,} lines, {name_of(reference)} has {num_wanted:,} "
            "trees; scoring needs a line for each tree. Write one tree a line, and an empty line where there is none."
        )
    return trees


def _table(scores: "ParsevalScores", comparison: "ParserComparison | None") -> dict[str, object]:
    table = scores.to_dict()
    if comparison is not None:
        table["comparison"] = comparison.to_dict()
    return table


def _warn(scores: "ParsevalScores") -> None:
    """Tell what a reader of the figures must know."""
    warnings: list[str] = []
    if scores.num_failed:
        warnings.append(
            f"{scores.num_failed:,} of {len(scores.sentences):,} sentences have no parse over the words of their "
            f"reference ({scores.num_missing:,} none at all): evalb leaves them out, all counts them as missed. Quote "
            "all."
        )
    if scores.evalb_stops_at is not None:
        warnings.append(f"EVALB itself would stop at sentence {scores.evalb_stops_at:,}, for too many errors.")
    for warning in warnings:
        click.echo(f"warning: {warning}", err=True)


def _scores_text(scores: "ParsevalScores") -> str:
    cutoff = scores.parameters.cutoff_length
    heads = ("figure", "words", "sentences", "scored", "recall", "precision", "F1", "95 % interval", "complete", "tags")
    rows: list[tuple[str, ...]] = [heads]
    for name, by_length in (("all", scores.all), ("evalb", scores.evalb)):
        rows.append(_row(name, "any", by_length.every_length))
        rows.append(_row(name, f"<= {cutoff}", by_length.up_to_cutoff))
    note = (
        "all: a sentence without a parse over its words counts as missed; evalb: it is left out, as EVALB does. "
        f"Labelled: {'yes' if scores.parameters.labeled else 'no'}; tags on the scored trees: "
        f"{'those of the references' if scores.reference_tags else 'their own'}; intervals by {scores.num_bootstrap:,} "
        "resamples."
    )
    return columns(rows, right=set(range(2, 10))) + "\n\n" + note


def _row(name: str, words: str, figures: "Figures") -> tuple[str, ...]:
    interval = figures.f1_interval
    return (
        name,
        words,
        f"{figures.num_sentences:,}",
        f"{figures.num_scored:,}",
        f"{figures.recall:.2f}",
        f"{figures.precision:.2f}",
        f"{figures.f1:.2f}",
        "" if interval is None else f"{interval.low:.2f} to {interval.high:.2f}",
        f"{figures.complete_match:.2f}",
        f"{figures.tagging_accuracy:.2f}",
    )


def _comparison_text(comparison: "ParserComparison", *, cutoff: int) -> str:
    rows = [
        ("paired test, F1 of all", "baseline", "this", "difference", "95 % interval", "p"),
        _compared("any length", comparison.every_length),
        _compared(f"up to {cutoff} words", comparison.up_to_cutoff),
    ]
    note = f"p: how often chance alone gives a difference this large, by {comparison.num_bootstrap:,} resamples."
    return columns(rows, right={1, 2, 3, 4, 5}) + "\n" + note


def _compared(name: str, pair: "PairedF1") -> tuple[str, ...]:
    between = "" if pair.difference is None else f"{pair.difference.low:+.2f} to {pair.difference.high:+.2f}"
    return (
        name,
        f"{pair.baseline:.2f}",
        f"{pair.system:.2f}",
        f"{pair.system - pair.baseline:+.2f}",
        between,
        f"{pair.p_value:.4f}",
    )
