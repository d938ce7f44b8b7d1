"""A run's events as text: a live line on a terminal, a plain log elsewhere."""

import sys
import time
from collections.abc import Callable, Iterator
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any

import click

from headway.cli.reports import accuracy_text, clip, count, render_report
from headway.metrics.accuracy import Accuracy
from headway.metrics.perplexity import HiddenTokens, WordPerplexity

if TYPE_CHECKING:
    from headway.train.events import Event, Finished, Started, StepDone, Validated
    from headway.translate.evaluate_parser import ParserEvaluation

LOG_SECONDS = 15.0  # between two step lines of a plain log
LIVE_SECONDS = 0.2  # between two drawings of the live line
BAR_WIDTH = 24


class ProgressPrinter:
    """Prints every event of a run to standard error, so that standard output stays free for results."""

    def __init__(self, *, live: bool | None = None, details: bool = True) -> None:
        self._live = sys.stderr.isatty() if live is None else live
        self._details = details
        self._last_line = 0.0
        self._may_end_early = False

    def watch(self, events: "Iterator[Event]") -> "Iterator[Event]":
        """Print each event as it comes, and pass it on."""
        for event in events:
            self.show(event)
            yield event

    def show(self, event: "Event") -> None:
        """Print one event."""
        from headway.train import events as kinds

        if isinstance(event, kinds.StepDone):
            self._step(event)
        else:
            if isinstance(event, kinds.Started):
                self._may_end_early = event.patience is not None
            text = self._text(event)
            if text:
                self._say(text)

    def _text(self, event: "Event") -> str:
        """What an event other than a step says; nothing where it needs no word."""
        from headway.train import events as kinds

        texts: dict[type, Callable[[Any], str]] = {
            kinds.Stage: lambda stage: f"{stage.name} ...",
            kinds.DataReady: lambda ready: render_report(ready.prepared.report) if self._details else "",
            kinds.Started: _started,
            kinds.Validated: lambda validated: _validated(validated, self._details),
            kinds.Warned: lambda warned: f"warning: {warned.text}",
            kinds.Notice: lambda notice: f"note: {notice.text}",
            kinds.Interrupted: lambda stop: f"stopped after step {stop.step:,}; the training state is saved.",
            kinds.Finished: _finished,
        }
        return texts.get(type(event), lambda _: "")(event)

    def _step(self, event: "StepDone") -> None:
        now = time.monotonic()
        due = LIVE_SECONDS if self._live else LOG_SECONDS
        if now - self._last_line < due:
            return
        self._last_line = now
        line = _step_line(event, may_end_early=self._may_end_early)
        if self._live:
            share = event.seconds / max(event.seconds + event.seconds_left, 1e-9)
            click.echo("\r\x1b[K" + _with_bar(line, share, columns=get_terminal_size().columns), nl=False, err=True)
        else:
            click.echo(line, err=True)

    def _say(self, text: str) -> None:
        click.echo(("\r\x1b[K" if self._live else "") + text, err=True)


def clock(seconds: float) -> str:
    """Seconds as 1:02:03 or 2:03."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def _with_bar(line: str, share: float, *, columns: int) -> str:
    """A bar before the line where both fit; never as wide as the terminal, where the next line could not erase it."""
    if len(line) + BAR_WIDTH + 3 >= columns:
        return line[: columns - 1]
    filled = round(BAR_WIDTH * share)
    return f"[{'#' * filled}{'.' * (BAR_WIDTH - filled)}] {line}"


def _step_line(event: "StepDone", *, may_end_early: bool) -> str:
    at_most = "at most " if may_end_early else ""
    return (
        f"step {event.step:,}  loss {event.loss:.3f}  lr {event.learning_rate:.2e}  "
        f"{event.tokens_per_second:,.0f} tokens/s  padding {event.padding:.1%}  "
        f"{clock(event.seconds)} gone, {at_most}{clock(event.seconds_left)} left"
    )


def _started(event: "Started") -> str:
    begin = f"going on after step {event.step:,}" if event.step else "training from the first step"
    return (
        f"{begin}: {event.num_parameters:,} parameters, {event.precision} on {event.device}, "
        f"{_workers(event)}, at most {count(event.max_steps, 'step')}{_end(event)}"
    )


def _end(event: "Started") -> str:
    if event.patience is None:
        return ""
    return f"; it ends sooner when {count(event.patience, 'validation')} in a row bring nothing better"


def _workers(event: "Started") -> str:
    threads = count(event.threads, "thread")
    return threads if event.processes == 1 else f"{event.processes} processes of {threads}"


def _validated(event: "Validated", details: bool) -> str:
    best = "  (best so far)" if event.is_best else ""
    outputs = f", BLEU {event.bleu:.2f}, chrF {event.chrf:.2f}" if event.bleu is not None else ""
    if event.f1 is not None:
        outputs = f", F1 {event.f1:.2f}"
    elif event.bleu is None and event.accuracy is not None:
        outputs = f", accuracy {event.accuracy:.1%}"
    head = (
        f"validation after step {event.step:,}, {clock(event.seconds)}: loss {event.loss:.3f}, "
        f"perplexity {event.perplexity:.2f}{outputs}{best}"
    )
    if not details:
        return head
    samples = [
        f"    {clip(sample.source, width=90)}\n"
        f"      reference  {clip(sample.reference, width=90)}\n"
        f"      Headway    {clip(sample.translation, width=90)}"
        for sample in event.samples
    ]
    return "\n".join([head, *samples])


def _measured(found: WordPerplexity | Accuracy | HiddenTokens) -> str:
    """How good a model is that does not translate."""
    if isinstance(found, Accuracy):
        return accuracy_text(found)
    if isinstance(found, HiddenTokens):
        return f"perplexity {found.perplexity:.2f} a hidden token, {found.accuracy:.1%} of them right"
    words = f"perplexity {found.per_word:.2f} a word, {found.per_token:.2f} a token"
    return f"{words}, of {count(found.num_lines, 'line')}"


def _finished(event: "Finished") -> str:
    if event.evaluation is None:
        return f"model folder: {event.folder}"
    if isinstance(event.evaluation, WordPerplexity | Accuracy | HiddenTokens):
        return f"on the {event.evaluated_on} text: {_measured(event.evaluation)}\nmodel folder: {event.folder}"
    from headway.translate.evaluate_parser import ParserEvaluation

    if isinstance(event.evaluation, ParserEvaluation):
        return "\n".join([*_parsed(event.evaluation, event.evaluated_on), f"model folder: {event.folder}"])
    scores = event.evaluation.scores
    rows = [scores.bleu, scores.chrf, *([scores.ter] if scores.ter else [])]
    lines = [f"scores on the {event.evaluated_on} text ({count(scores.num_sentences, 'sentence')}):"]
    for score in rows:
        interval = "" if score.low is None or score.high is None else f"  [{score.low:.2f}, {score.high:.2f}]"
        lines.append(f"  {score.name:5} {score.value:6.2f}{interval}  {score.signature}")
    if event.evaluation.perplexity is not None:
        lines.append(f"  perplexity {event.evaluation.perplexity:.2f}")
    lines.extend(f"  warning: {warning}" for warning in event.evaluation.warnings)
    return "\n".join([*lines, f"model folder: {event.folder}"])


def _parsed(evaluation: "ParserEvaluation", part: str) -> list[str]:
    """F1 of a parser, failed sentences counted as missed."""
    whole, short = evaluation.scores.all.every_length, evaluation.scores.all.up_to_cutoff
    tags: str = evaluation.tags
    if tags == "predicted":
        tags += f", {whole.tagging_accuracy:.2f} % of them right"
    lines = [f"labelled F1 on the {part} text ({count(whole.num_sentences, 'sentence')}, tags {tags}):"]
    for name, figures in (("any length", whole), (f"up to {evaluation.scores.parameters.cutoff_length} words", short)):
        interval = figures.f1_interval
        between = "" if interval is None else f"  [{interval.low:.2f}, {interval.high:.2f}]"
        lines.append(f"  {name:15} {figures.f1:6.2f}{between}")
    if evaluation.tags != "given":
        lines.append("  scored with the tags of the references on its trees, as is the custom")
    return [*lines, *(f"  warning: {warning}" for warning in evaluation.warnings)]
