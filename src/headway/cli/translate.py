"""``headway translate``: standard input to standard output, files, TSV, JSONL; or the scores of given pairs."""

import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain, tee
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from headway.cli.bulk import Bulk, Load, bulk_options, translate_in_bulk
from headway.cli.computing import computing_options, load_translator
from headway.cli.documents import check_document, fill_document
from headway.cli.options import tag_option
from headway.cli.outputs import check_output
from headway.cli.records import FORMATS, SCORE_FORMATS, Notes, Settings, line_pairs, translate_rows, with_phrases
from headway.cli.search_options import given_search_options, is_given, search_options
from headway.corpus.lines import STANDARD_STREAM, name_of, open_writer, read_lines
from headway.translate.compute import Compute
from headway.translate.decoding import Decoding

if TYPE_CHECKING:
    from headway.text.tag import Syntax
    from headway.translate.marked import MarkedTranslation
    from headway.translate.translation import PairScore
    from headway.translate.translator import Translator

_OF_LINES = {  # what a document has no use for
    "output": "--output",
    "output_format": "--format",
    "n_best": "--n-best",
    "alignment": "--alignment",
    "prefix": "--prefix",
    "phrases": "--phrase",
    "phrase_file": "--phrases",
    "markup": "--markup",
    "targets": "--score",
    "shard": "--shard",
    "ray": "--ray",
}
_OF_ONE_PROCESS = {"sentences": "--sentence", "targets": "--score"}  # what --shard and --ray have no use for
MARKUP: dict[str, "Syntax | None"] = {"auto": "plain", "none": None, "plain": "plain", "html": "html", "xml": "xml"}


@click.command("translate")
@click.argument("file", default=STANDARD_STREAM)
@click.argument("out", required=False)
@click.option(
    "-m",
    "--model",
    "models",
    required=True,
    multiple=True,
    type=click.Path(path_type=Path),
    help="The model folder; of several the mean probabilities count.",
)
@click.option("-s", "--sentence", "sentences", multiple=True, help="Translate these lines, not a file; repeatable.")
@click.option("-o", "--output", default=STANDARD_STREAM, help="Write to this file (.gz .bz2 .xz .zst too).")
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["lines", "tsv", "jsonl"]),
    default="lines",
    help="lines: translations only. tsv: source, translation, score. jsonl: everything.",
)
@search_options
@click.option("--n-best", type=click.IntRange(min=1), default=1, help="Translations of each line (jsonl only).")
@click.option("--alignment", is_flag=True, help="Pairs of source and target tokens (tsv and jsonl).")
@tag_option
@click.option("--prefix", default="", help="Every translation begins with this text.")
@click.option("--phrase", "phrases", multiple=True, help="Every translation contains this text; repeatable.")
@click.option("--phrases", "phrase_file", metavar="FILE", help="A line a line: texts it contains, with tabs between.")
@click.option("--markup", type=click.Choice(list(MARKUP)), default="auto", help="What lines are. auto: plain text.")
@click.option("--keep-numbers", is_flag=True, help="Compare numbers too, by their digits.")
@click.option("--overwrite", is_flag=True, help="In a document, translate what has a translation too.")
@click.option("--as-final", is_flag=True, help="In a document, do not mark what was filled as in need of review.")
@click.option("--score", "targets", metavar="FILE", help="Translate nothing: score the lines of FILE as translations.")
@computing_options
@click.option("--batch-tokens", type=click.IntRange(min=1), help="Padded source tokens times beam computed at once.")
@bulk_options
def command(  # noqa: PLR0913 - one parameter an option
    *,
    file: str,
    out: str | None,
    models: tuple[Path, ...],
    sentences: tuple[str, ...],
    output: str,
    output_format: str,
    decoding: Decoding,
    n_best: int,
    alignment: bool,
    tag: str | None,
    prefix: str,
    phrases: tuple[str, ...],
    phrase_file: str | None,
    markup: str,
    keep_numbers: bool,
    overwrite: bool,
    as_final: bool,
    targets: str | None,
    compute: Compute,
    batch_tokens: int | None,
    shard: tuple[int, int] | None,
    ray: bool,
    ray_workers: int | None,
    ray_address: str | None,
) -> None:
    """Translate FILE, or standard input, line by line: n lines in, n lines out, in order.

    Only a line feed ends a line; empty lines stay empty. FILE may be .gz .bz2 .xz .zst.

    A document (.po .pot .tmx .xlf .xliff .sdlxliff .mqxliff .mxliff) is filled in place: OUT is FILE with its empty
    translations filled, and all else as it was. OUT may be FILE.

    Example: headway translate -m runs/demo -s "3 May 2024"

    Example: headway translate in.xlf out.xlf -m runs/demo
    """
    settings = Settings(
        replace(decoding, n_best=n_best),
        alignment=alignment,
        prefix=prefix,
        phrases=phrases,
        phrase_file=phrase_file,
        batch_tokens=batch_tokens,
        syntax=MARKUP[markup],
        numbers=keep_numbers,
    )
    _check_inputs(file, sentences, {"--score": targets, "--phrases": phrase_file})
    is_document = check_document(file, out, refused=[option for name, option in _OF_LINES.items() if is_given(name)])
    if not is_document and (overwrite or as_final):
        raise click.UsageError("--overwrite and --as-final are for documents: headway translate IN.xlf OUT.xlf.")
    _check(settings, output_format, scores=targets is not None)
    check_output(output, {"FILE": file, "--score": targets, "--phrases": phrase_file})
    bulk = Bulk(shard, ray=ray, ray_workers=ray_workers, ray_address=ray_address)
    bulk.check(file, output, refused=[option for name, option in _OF_ONE_PROCESS.items() if is_given(name)])
    if bulk.is_asked:
        load = Load(models, compute, tag=tag, settings=settings, output_format=output_format)
        translate_in_bulk(bulk, load, file, output)
        return
    from headway.translate.lines import CHUNK, FIRST_CHUNK, in_chunks

    translator = load_translator(models, compute, tag=tag)
    if is_document and out:
        fill_document(
            translator,
            file,
            out,
            decoding=decoding,
            batch_tokens=batch_tokens,
            numbers=keep_numbers,
            overwrite=overwrite,
            for_review=not as_final,
        )
        return
    lines = chain.from_iterable(text.split("\n") for text in sentences) if sentences else read_lines(file)
    notes = Notes()
    with open_writer(output) as writer:
        if targets is None:
            wanted = with_phrases(lines, settings, name="--sentence" if sentences else name_of(file))
            typed = not sentences and file == STANDARD_STREAM and sys.stdin.isatty()
            chunk = 1 if typed else CHUNK
            in_file = output != STANDARD_STREAM and translator.takes_all  # whose first line nobody waits for
            first = chunk if in_file else FIRST_CHUNK
            records = _translate(translator, in_chunks(wanted, chunk=chunk, first=first), settings, notes)
            _write(
                writer, (FORMATS[output_format](*record, notes) for record in records), flush=output == STANDARD_STREAM
            )
        else:
            pairs = line_pairs(
                lines, read_lines(targets), names=("--sentence" if sentences else name_of(file), name_of(targets))
            )
            scored = _score(translator, pairs, batch_tokens=batch_tokens)
            _write(writer, (SCORE_FORMATS[output_format](*record, notes) for record in scored), flush=False)
    notes.tell()


def _check_inputs(file: str, sentences: tuple[str, ...], others: dict[str, str | None]) -> None:
    """Refuse two inputs in one place; ``others`` are the files that go with the lines, by their options."""
    if sentences and file != STANDARD_STREAM:
        raise click.UsageError("Give either FILE or --sentence, not both.")
    piped = [name for name, path in others.items() if path == STANDARD_STREAM]
    if piped and ((file == STANDARD_STREAM and not sentences) or len(piped) > 1):
        raise click.UsageError(f"Standard input cannot be both sides; name a file for FILE or for {piped[0]}.")


def _check(settings: Settings, output_format: str, *, scores: bool) -> None:
    """Refuse combinations in which an option would be ignored."""
    if settings.decoding.n_best != 1 and output_format != "jsonl":
        raise click.UsageError("--n-best above 1 needs --format jsonl: with the others, n lines in are n lines out.")
    if settings.alignment and output_format == "lines":
        raise click.UsageError("--alignment needs --format tsv or jsonl.")
    if settings.numbers and settings.syntax is None:
        raise click.UsageError("--keep-numbers looks for numbers as for placeholders; leave --markup none out.")
    searching = {
        "--n-best": settings.decoding.n_best != 1,
        "--alignment": settings.alignment,
        "--prefix": bool(settings.prefix),
        "--phrase": bool(settings.phrases),
        "--phrases": settings.phrase_file is not None,
        "--markup": is_given("markup"),
        "--keep-numbers": settings.numbers,
    }
    unused = given_search_options() + [name for name, is_given in searching.items() if is_given]
    if scores and unused:
        raise click.UsageError(f"--score searches nothing; leave out {', '.join(unused)}.")
    decoding = settings.decoding
    without_beam = decoding.sampling is not None or decoding.risk is not None or decoding.diversity is not None
    if without_beam and (settings.phrases or settings.phrase_file is not None):
        raise click.UsageError("--phrase and --phrases need a beam, not --sample, --mbr or --diversity-groups.")


def _translate(
    translator: "Translator", chunks: Iterator[list[tuple[str, tuple[str, ...]]]], settings: Settings, notes: Notes
) -> Iterator[tuple[int, str, "MarkedTranslation"]]:
    """Each line's number, text and translation."""
    number = 0
    for rows in chunks:
        for (source, _), translation in zip(rows, translate_rows(translator, rows, settings), strict=True):
            number += 1
            notes.add(number, translation)
            yield number, source, translation


def _score(
    translator: "Translator", pairs: Iterable[tuple[str, str]], *, batch_tokens: int | None
) -> Iterator[tuple[int, tuple[str, str], "PairScore"]]:
    """Each pair's number, texts and score."""
    from headway.translate.lines import score_lines

    given, kept = tee(pairs)
    scores = score_lines(translator, given, batch_tokens=batch_tokens)
    for number, (pair, score) in enumerate(zip(kept, scores, strict=True), start=1):
        yield number, pair, score


def _write(writer: TextIO, records: Iterable[str], *, flush: bool) -> None:
    """One line a record."""
    for record in records:
        writer.write(record + "\n")
        if flush:
            writer.flush()
