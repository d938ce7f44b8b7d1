"""What ``headway evaluate`` measures of models that do not translate."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from headway.cli.reports import accuracy_comparison_text, accuracy_text, columns, count
from headway.cli.search_options import is_given, written
from headway.errors import MetricError

CLASSIFICATION = "classification"
SHARED = ("task", "models", "reference", "device", "threads", "batch_tokens", "as_json")  # options of every task


@dataclass(frozen=True, slots=True)
class Measuring:
    """What a task is given: the one model, the text, and how to compute."""

    model: Path
    reference: Path
    device: str
    threads: int | None
    batch_tokens: int | None
    baseline: Path | None
    as_json: bool


def language_model(given: Measuring) -> None:
    """Tell the perplexity of a text, a word and a token."""
    from headway.corpus.lines import read_lines
    from headway.translate.generator import Generator

    generator = Generator.from_folder(given.model, given.device, threads=given.threads)
    found = generator.measure(list(read_lines(given.reference)), batch_tokens=given.batch_tokens)
    if given.as_json:
        click.echo(json.dumps(found.to_dict(), indent=2))
    else:
        rows = [
            ("perplexity a word", f"{found.per_word:.2f}", f"of {found.num_words:,} words, ends of lines counted"),
            ("perplexity a token", f"{found.per_token:.2f}", f"of {found.num_tokens:,} tokens"),
            ("lines", f"{found.num_lines:,}", ""),
        ]
        click.echo(columns(rows, right={1}))
    if found.num_unknown:
        click.echo(
            f"warning: {count(found.num_unknown, 'token')} stand for characters that the vocabulary lacks, so the "
            "perplexity is lower than that of the whole text.",
            err=True,
        )


def classification(given: Measuring) -> None:
    """Tell the accuracy on labelled texts, a label, a tab and a text a line; with a baseline a paired test."""
    from headway.corpus.tsv import read_tsv
    from headway.metrics.accuracy import accuracy, compare_labels
    from headway.translate.classifier import BATCH_TOKENS, TextClassifier

    pairs = list(read_tsv(given.reference, languages=("", ""), fields=("2", "1")))
    classifier = TextClassifier.from_folder(given.model, given.device, threads=given.threads)
    wanted = [pair.target for pair in pairs]
    classifier.check_labels(wanted)
    others = None if given.baseline is None else _labels_of(given.baseline, given.reference, num_wanted=len(wanted))
    room = given.batch_tokens or BATCH_TOKENS
    labels = [each.label for each in classifier.classify([pair.source for pair in pairs], batch_tokens=room)]
    found = accuracy(labels, wanted)
    comparison = None if others is None else compare_labels(others, labels, wanted)
    if given.as_json:
        added = {} if comparison is None else {"comparison": comparison.to_dict()}
        click.echo(json.dumps({**found.to_dict(), **added}, indent=2))
        return
    click.echo(accuracy_text(found))
    if comparison is not None:
        click.echo(accuracy_comparison_text(comparison))


def _labels_of(baseline: Path, reference: Path, *, num_wanted: int) -> list[str]:
    """The labels of another classifier, a line a text. Raises MetricError for another number than there are texts."""
    from headway.corpus.lines import name_of, read_lines

    labels = list(read_lines(baseline))
    if len(labels) != num_wanted:
        raise MetricError(
            f"cli/evaluate_tasks: {name_of(baseline)} has {len(labels):,} lines, {name_of(reference)} has "
            f"{num_wanted:,} labelled texts; a baseline has a label a line for each. Write it by headway classify, of "
            "the same texts."
        )
    return labels


def check_only(names: Sequence[str], task: str) -> None:
    """Refuse every option that was given and is none of these."""
    context = click.get_current_context()
    unused = [written(name) for name in context.params if name not in names and is_given(name)]
    if unused:
        raise click.UsageError(f"{', '.join(unused)} would have no effect with --task {task}; leave it out.")


TASKS: dict[str, Callable[[Measuring], None]] = {"language-model": language_model, CLASSIFICATION: classification}


def evaluate_task(
    task: str,
    models: Sequence[Path],
    *,
    reference: Path,
    device: str,
    threads: int | None,
    batch_tokens: int | None,
    baseline: Path | None,
    as_json: bool,
) -> None:
    """Measure one model at its task; options of translating are refused, for they would have no effect."""
    if len(models) != 1:
        raise click.UsageError(f"--task {task} measures one model; found {len(models)} (-m). Give one.")
    if str(reference) == str(baseline) == "-":
        raise click.UsageError("--reference and --baseline are both standard input, which can be read once.")
    check_only((*SHARED, "baseline") if task == CLASSIFICATION else SHARED, task)
    TASKS[task](Measuring(models[0], reference, device, threads, batch_tokens, baseline, as_json))
