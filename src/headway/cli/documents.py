"""The part of ``headway translate`` that fills the translations of a document in place."""

import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headway.cli.reports import count
from headway.corpus.document import DOCUMENTS, document_format, is_document
from headway.corpus.lines import STANDARD_STREAM

if TYPE_CHECKING:
    from headway.translate.decoding import Decoding
    from headway.translate.documents import DocumentReport, Problem
    from headway.translate.translator import Translator

_NAMED = 10  # places that a line of the report names
_LIVE_SECONDS = 0.5  # between two drawings of the live line


def check_document(file: str, out: str | None, *, refused: Sequence[str]) -> bool:
    """Whether a document is to be translated; ``refused`` are the options given that a document has no use for.

    Raises UsageError when the two names do not go together.
    """
    if not is_document(file):
        if out is not None:
            from headway.corpus.read import elsewhere

            if elsewhere(file):
                raise click.UsageError(f"{_shown(file)} is of a kind that is not read; {elsewhere(file)}.")
            raise click.UsageError(
                f"{_shown(file)} is no document to be filled in place (these are: {', '.join(DOCUMENTS)}). "
                f"Leave OUT out; lines are written with -o {_shown(out)}."
            )
        return False
    suffix = Path(file).suffix
    if out is None or out == STANDARD_STREAM:
        raise click.UsageError(
            f"{_shown(file)} is a document, by its suffix {suffix}. Name the file to write too: "
            f"headway translate {_shown(file)} OUT{suffix} -m MODEL."
        )
    if not is_document(out) or document_format(out) is not document_format(file):
        raise click.UsageError(f"OUT has the format of {_shown(file)}; give it the suffix {suffix}, not {_shown(out)}.")
    if refused:
        raise click.UsageError(f"A document has no use for {', '.join(refused)}; leave it out.")
    return True


def fill_document(
    translator: "Translator",
    file: str,
    out: str,
    *,
    decoding: "Decoding",
    batch_tokens: int | None,
    numbers: bool,
    overwrite: bool,
    for_review: bool,
) -> None:
    """Translate a document, with a live line on a terminal, and report on standard error."""
    from headway.translate.documents import translate_document

    live = _Live()
    try:
        report = translate_document(
            translator,
            file,
            out,
            decoding=decoding,
            batch_tokens=batch_tokens,
            numbers=numbers,
            overwrite=overwrite,
            for_review=for_review,
            on_progress=live.show,
        )
    finally:
        live.clear()
    for line in _lines(report, out):
        click.echo(f"headway: {line}", err=True)


class _Live:
    """One line on a terminal that tells how far it has come; nothing elsewhere."""

    def __init__(self) -> None:
        self._is_on = sys.stderr.isatty()
        self._last = time.monotonic()

    def show(self, report: "DocumentReport") -> None:
        """Draw the counts, not too often."""
        now = time.monotonic()
        if self._is_on and now - self._last >= _LIVE_SECONDS:
            self._last = now
            click.echo(f"\r\x1b[K{count(report.num_filled, 'segment')} translated", nl=False, err=True)

    def clear(self) -> None:
        """Make room for what comes next."""
        if self._is_on:
            click.echo("\r\x1b[K", nl=False, err=True)


def _lines(report: "DocumentReport", out: str) -> Iterable[str]:
    """The closing report: the counts, and a line for each kind of problem."""
    kept = f", {report.num_kept:,} kept as they were" if report.num_kept else ""
    left = f", {report.num_left:,} not to be translated" if report.num_left else ""
    yield f"{out}: {count(report.num_filled, 'segment')} of {report.num_segments:,} filled{kept}{left}"
    by_kind: dict[str, list[Problem]] = {}
    for problem in report.problems:
        by_kind.setdefault(problem.kind, []).append(problem)
    for kind, problems in by_kind.items():
        named = ", ".join(f"{problem.line:,}" for problem in problems[:_NAMED])
        more = ", ..." if len(problems) > _NAMED else ""
        yield f"{count(len(problems), 'segment')} {kind}: line {named}{more}"
        for problem in problems[:_NAMED]:
            if problem.details:
                yield f"  line {problem.line:,} (segment {problem.number:,}): {'; '.join(problem.details)}"


def _shown(name: str) -> str:
    return "standard input" if name == STANDARD_STREAM else name
