"""``headway audit``: what is wrong with parallel text, before anything is trained on it."""

import json
import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import click

from headway.cli.audit_page import render_page
from headway.cli.audit_report import audit_facts, render_audit
from headway.config.data_config import TextConfig
from headway.corpus.audit import Audit
from headway.corpus.audit_report import AuditReport
from headway.corpus.held_text import HeldText
from headway.corpus.identifier import Identifier, load_identifier
from headway.corpus.language import check_language
from headway.corpus.lines import STANDARD_STREAM, name_of, open_writer
from headway.corpus.pair import SentencePair
from headway.corpus.read import MOSES, READERS, SUFFIXES, elsewhere, holds_both_sides, read
from headway.data.round_trip import RoundTrip, check_round_trip
from headway.errors import CorpusError, MissingExtraError
from headway.text.comparison import find_marks
from headway.text.subword import LEARNERS

_SIGN = re.compile(r"[<{%$&@:\]]")

Files = tuple[str, str | None]  # a file of both sides; or two of one side each


@click.command("audit")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--source-language", required=True, help="The language to translate from: en, de, zh-Hans ...")
@click.option("--target-language", required=True, help="The language to translate to.")
@click.option(
    "--format", "format_name", default="auto", show_default=True, help=f"auto, {MOSES}, {', '.join(READERS)}."
)
@click.option("--source-field", default="", help="The source's column (TSV, from 1) or key (JSONL, Parquet).")
@click.option("--target-field", default="", help="The target's column or key.")
@click.option(
    "--against", multiple=True, metavar="FILE", help="A test set that the files must not hold; may be repeated."
)
@click.option("-m", "--model", type=click.Path(path_type=Path), help="Try the vocabulary of this model folder.")
@click.option("--vocab-size", type=click.IntRange(min=1), help="Learn a vocabulary of a sample, and try it.")
@click.option("--html", type=click.Path(path_type=Path), metavar="FILE", help="Write the report as a page, too.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--strict", is_flag=True, help="End with exit code 1 where anything is fatal.")
def command(  # noqa: PLR0913 - click gives one argument an option
    *,
    files: tuple[str, ...],
    source_language: str,
    target_language: str,
    format_name: str,
    source_field: str,
    target_field: str,
    against: tuple[str, ...],
    model: Path | None,
    vocab_size: int | None,
    html: Path | None,
    as_json: bool,
    strict: bool,
) -> None:
    """Look at parallel text before training: what is fatal, what it costs, what to do.

    A file that holds both sides (TSV, JSONL, TMX, XLIFF, PO, Parquet) stands alone; files of one side come in pairs,
    the source first: a.en a.de b.en b.de. Compressed files are read as they are.
    """
    check_language(source_language, name="--source-language")
    check_language(target_language, name="--target-language")
    if model is not None and vocab_size is not None:
        raise click.UsageError("found both --model and --vocab-size; wanted one vocabulary to try.")
    open_file = partial(
        _open,
        languages=(source_language, target_language),
        fields=(source_field, target_field),
        format_name=format_name,
    )
    corpora, tests = _grouped(files, format_name, "FILE"), _grouped(against, format_name, "--against")
    audit = Audit(
        source_language,
        target_language,
        marks=marks_of,
        identify=_identifier(),
        held=[HeldText(_name(test), open_file(test)) for test in tests],
    )
    for corpus in corpora:
        languages: dict[str, int] = {}
        audit.read(
            _name(corpus),
            partial(open_file, corpus, languages_found=languages),
            may_reopen=all(Path(file).is_file() for file in corpus if file),
            lacking=languages,
        )
    report = audit.report()
    broken = next((file.error for file in report.files if file.error), "")
    if broken and not report.total.pairs:
        raise CorpusError(broken)
    trip = _round_trip(audit.sample(), model, vocab_size)
    facts = audit_facts(report, trip)
    if html is not None:
        with open_writer(html) as writer:
            writer.write(render_page(report, trip))
    click.echo(json.dumps(facts, indent=2) if as_json else render_audit(report, trip))
    if broken:  # the report is out; the error stands where scripts look for it
        raise CorpusError(broken)
    if strict and _is_fatal(report, trip):
        raise click.exceptions.Exit(1)


def _grouped(files: Sequence[str], format_name: str, what: str) -> list[Files]:
    """Tell files of both sides from files of one side, which come in pairs."""
    groups: list[Files] = []
    waiting: str | None = None
    for file in files:
        if format_name != MOSES and (format_name != "auto" or holds_both_sides(file)):
            if waiting is not None:
                break
            groups.append((file, None))
        elif waiting is None:
            waiting = file
        else:
            groups.append((waiting, file))
            waiting = None
    if waiting is not None:
        if elsewhere(waiting):
            raise click.UsageError(f"{what}: {name_of(waiting)} is of a kind that is not read; {elsewhere(waiting)}.")
        raise click.UsageError(
            f"{what}: {name_of(waiting)} should hold one side, by its name, and stands without the file of the other. "
            f"Give its target right behind it, or --format, or a file named as one of {', '.join(SUFFIXES)}."
        )
    if sum(file == STANDARD_STREAM for group in groups for file in group) > 1:
        raise click.UsageError("standard input can be read once only; name files.")
    return groups


def _open(
    files: Files,
    *,
    languages: tuple[str, str],
    fields: tuple[str, str],
    format_name: str,
    languages_found: dict[str, int] | None = None,
) -> Iterator[SentencePair]:
    return read(
        files[0],
        files[1],
        source_language=languages[0],
        target_language=languages[1],
        format=format_name,
        source_field=fields[0],
        target_field=fields[1],
        languages_found=languages_found,
    )


def _name(files: Files) -> str:
    return " + ".join(name_of(file) for file in files if file)


def marks_of(text: str) -> list[str]:
    """The placeholders and tags of a text; most text has none of their signs, and is told at once."""
    if not _SIGN.search(text) and "www." not in text.lower():
        return []
    return [text[mark.start : mark.end] for mark in find_marks(text)]


def _identifier() -> Identifier | None:
    """None where the extra is not installed; the report says so."""
    try:
        return load_identifier()
    except MissingExtraError:
        return None


def _round_trip(sample: Sequence[SentencePair], model: Path | None, vocab_size: int | None) -> RoundTrip | None:
    """Try a model's vocabulary, or one that is learnt of the sample, on the sample."""
    if not sample:
        return None
    if model is not None:
        from headway.folder.contents import ModelFolder

        folder = ModelFolder.open(model)
        return check_round_trip(sample, folder.source_tokenizer, folder.target_tokenizer)
    if vocab_size is not None:
        settings = TextConfig()
        texts = [text for pair in sample for text in (pair.source, pair.target)]
        learn = LEARNERS[settings.model]
        tokenizer = learn(texts, vocab_size=vocab_size, byte_fallback=settings.byte_fallback)
        return check_round_trip(sample, tokenizer, tokenizer)
    return None


def _is_fatal(report: AuditReport, trip: RoundTrip | None) -> bool:
    findings = [*report.total.findings, *(trip.findings if trip else ())]
    return any(finding.severity == "fatal" for finding in findings)
