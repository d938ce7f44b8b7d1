"""``headway translate``: standard input to standard output, files, TSV, JSONL; or the scores of given pairs."""

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain, tee
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from headway.cli.documents import check_document, fill_document
from headway.cli.options import tag_option
from headway.cli.reports import count
from headway.cli.search_options import given_search_options, is_given, search_options
from headway.corpus.lines import STANDARD_STREAM, name_of, open_writer, read_lines
from headway.errors import CorpusError
from headway.translate.decoding import Decoding

if TYPE_CHECKING:
    from headway.text.tag import Syntax
    from headway.translate.marked import MarkedTranslation
    from headway.translate.translation import PairScore
    from headway.translate.translator import Translator

_TABS = str.maketrans("\t", " ")
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
    "phrases": "--phrase",
    "phrase_file": "--phrases",
}
MARKUP: dict[str, "Syntax | None"] = {"auto": "plain", "none": None, "plain": "plain", "html": "html", "xml": "xml"}
_NAMED = 10  # line numbers that a warning names


@dataclass(frozen=True)
class _Settings:
    """How to translate, as the options say."""

    decoding: Decoding
    alignment: bool
    prefix: str
    phrases: tuple[str, ...]
    phrase_file: str | None
    batch_tokens: int | None
    syntax: "Syntax | None"
    numbers: bool


@dataclass
class _Notes:
    """What a user must hear of after the last line, by line number from 1."""

    cut: list[int] = field(default_factory=list[int])
    split: list[int] = field(default_factory=list[int])
    unknown: list[int] = field(default_factory=list[int])
    unmet: list[int] = field(default_factory=list[int])
    tabs: list[int] = field(default_factory=list[int])
    problems: list[int] = field(default_factory=list[int])
    mended: list[int] = field(default_factory=list[int])

    def add(self, number: int, marked: "MarkedTranslation") -> None:
        """Take in one translation."""
        translation = marked.translation
        if marked.problems:
            self.problems.append(number)
        elif marked.notes:
            self.mended.append(number)
        if translation.is_cut:
            self.cut.append(number)
        if translation.num_pieces > 1:
            self.split.append(number)
        if translation.num_unknown:
            self.unknown.append(number)
        if not translation.phrases_met:
            self.unmet.append(number)

    def tell(self) -> None:
        """Print one line on standard error for each kind of thing that happened."""
        for numbers, what in (
            (self.cut, "reached the length limit, so the translation may be incomplete (JSONL: is_cut)"),
            (self.split, "longer than the model was trained on, translated in pieces"),
            (self.unknown, "with characters outside the model's vocabulary, which it saw as one unknown token"),
            (self.unmet, "without a phrase that was asked for (JSONL: phrases_met)"),
            (self.tabs, "with tabs inside a text, written as spaces, because tabs separate the columns"),
            (self.problems, "where tags or placeholders are not those of the source (JSONL: problems)"),
            (self.mended, "where the model lost or invented placeholders, mended by position (JSONL: notes)"),
        ):
            if numbers:
                named = ", ".join(f"{number:,}" for number in numbers[:_NAMED])
                more = ", ..." if len(numbers) > _NAMED else ""
                click.echo(f"headway: {count(len(numbers), 'line')} {what}: line {named}{more}", err=True)


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
@click.option("--device", default="auto", type=click.Choice(["auto", "cpu", "cuda", "mps"]), help="Where to compute.")
@click.option("--threads", type=click.IntRange(min=1), help="CPU threads. [torch's choice]")
@click.option("--batch-tokens", type=click.IntRange(min=1), help="Padded source tokens times beam computed at once.")
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
    device: str,
    threads: int | None,
    batch_tokens: int | None,
) -> None:
    """Translate FILE, or standard input, line by line: n lines in, n lines out, in order.

    Only a line feed ends a line; empty lines stay empty. FILE may be .gz .bz2 .xz .zst.

    A document (.po .pot .tmx .xlf .xliff .sdlxliff .mqxliff .mxliff) is filled in place: OUT is FILE with its empty
    translations filled, and all else as it was. OUT may be FILE.

    Example: headway translate -m runs/demo -s "3 May 2024"

    Example: headway translate in.xlf out.xlf -m runs/demo
    """
    settings = _Settings(
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
    if threads:
        from headway.translate.backend import set_threads

        set_threads(threads)
    from headway.translate.translator import Translator

    translator = Translator.from_folders(models, device=device)
    translator = translator if tag is None else translator.tagged(tag)
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
    notes = _Notes()
    with open_writer(output) as writer:
        if targets is None:
            wanted = _with_phrases(lines, settings, name="--sentence" if sentences else name_of(file))
            typed = not sentences and file == STANDARD_STREAM and sys.stdin.isatty()
            records = _translate(translator, wanted, settings, chunk=1 if typed else None, notes=notes)
            _write(
                writer, (FORMATS[output_format](*record, notes) for record in records), flush=output == STANDARD_STREAM
            )
        else:
            pairs = _pairs(
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


def _check(settings: _Settings, output_format: str, *, scores: bool) -> None:
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


def _with_phrases(lines: Iterator[str], settings: _Settings, *, name: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each line with what its translation must contain; raises CorpusError for unequal files."""
    if settings.phrase_file is None:
        return ((line, settings.phrases) for line in lines)
    pairs = _pairs(lines, read_lines(settings.phrase_file), names=(name, name_of(settings.phrase_file)))
    return (
        (line, (*settings.phrases, *(phrase for phrase in row.split("\t") if phrase.strip()))) for line, row in pairs
    )


def _translate(
    translator: "Translator",
    lines: Iterator[tuple[str, tuple[str, ...]]],
    settings: _Settings,
    *,
    chunk: int | None,
    notes: _Notes,
) -> Iterator[tuple[int, str, "MarkedTranslation"]]:
    """Each line's number, text and translation."""
    sources, kept = tee(lines)
    wanted = None
    if settings.phrases or settings.phrase_file is not None:
        sources, with_phrases = tee(sources)
        wanted = (own for _, own in with_phrases)
    translations = _marked(translator, (line for line, _ in sources), settings, phrases=wanted, chunk=chunk)
    for number, ((source, _), translation) in enumerate(zip(kept, translations, strict=True), start=1):
        notes.add(number, translation)
        yield number, source, translation


def _marked(
    translator: "Translator",
    lines: Iterable[str],
    settings: _Settings,
    *,
    phrases: Iterable[tuple[str, ...]] | None,
    chunk: int | None,
) -> Iterator["MarkedTranslation"]:
    """Each line's translation, with its markup unless that is not to be looked at."""
    from headway.text.markup import parse
    from headway.translate.lines import CHUNK, translate_lines
    from headway.translate.marked import translate_parsed_lines, unchecked

    if settings.syntax is not None:
        syntax = settings.syntax
        yield from translate_parsed_lines(
            translator,
            (parse(line, syntax=syntax, numbers=settings.numbers) for line in lines),
            decoding=settings.decoding,
            batch_tokens=settings.batch_tokens,
            target_prefix=settings.prefix,
            phrases=phrases,
            with_alignment=settings.alignment,
            chunk=chunk or CHUNK,
        )
        return
    for translation in translate_lines(
        translator,
        lines,
        decoding=settings.decoding,
        batch_tokens=settings.batch_tokens,
        target_prefix=settings.prefix,
        phrases=phrases,
        with_alignment=settings.alignment,
        chunk=chunk or CHUNK,
    ):
        yield unchecked(translation)


def _pairs(sources: Iterator[str], targets: Iterator[str], *, names: tuple[str, str]) -> Iterator[tuple[str, str]]:
    """Pairs of lines; raises CorpusError with both counts when one side ends first."""
    count = 0
    for source in sources:
        target = next(targets, None)
        if target is None:
            raise _unequal(names, count + 1 + sum(1 for _ in sources), count)
        count += 1
        yield source, target
    rest = sum(1 for _ in targets)
    if rest:
        raise _unequal(names, count, count + rest)


def _unequal(names: tuple[str, str], num_sources: int, num_targets: int) -> CorpusError:
    return CorpusError(
        f"cli/translate: {names[0]} has {num_sources:,} lines, {names[1]} has {num_targets:,}; "
        "pairs need equal counts. Remedy: restore the original files."
    )


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


def _as_line(number: int, source: str, marked: "MarkedTranslation", notes: _Notes) -> str:
    return marked.text


def _as_tsv(number: int, source: str, marked: "MarkedTranslation", notes: _Notes) -> str:
    translation = marked.translation
    columns = [*_columns(number, source, marked.text, notes), f"{translation.score:.6f}"]
    if translation.alignment is not None:
        columns.append(" ".join(f"{source}-{target}" for source, target in translation.alignment))
    return "\t".join(columns)


def _as_json(number: int, source: str, marked: "MarkedTranslation", notes: _Notes) -> str:
    translation = marked.translation
    record: dict[str, object] = {"source": source, **_fields(marked)}
    record |= {
        "source_tokens": translation.source_tokens,
        "num_pieces": translation.num_pieces,
        "num_unknown": translation.num_unknown,
    }
    if marked.tags_ok is not None:
        record |= {"tags_ok": marked.tags_ok, "problems": marked.problems, "notes": marked.notes}
    if translation.alignment is not None:
        record["alignment"] = translation.alignment
    if marked.alternatives:
        record["alternatives"] = [_alternative(alternative) for alternative in marked.alternatives]
    return json.dumps(record, ensure_ascii=False)


def _alternative(marked: "MarkedTranslation") -> dict[str, object]:
    """A further translation, with its problems where it has any."""
    return _fields(marked) | ({"problems": marked.problems} if marked.problems else {})


def _fields(marked: "MarkedTranslation") -> dict[str, object]:
    """What every translation and alternative has."""
    translation = marked.translation
    return {
        "text": marked.text,
        "score": translation.score,
        "log_prob": translation.log_prob,
        "tokens": translation.tokens,
        "is_cut": translation.is_cut,
        "phrases_met": translation.phrases_met,
        "count": translation.count,
    }


def _score_as_line(number: int, pair: tuple[str, str], score: "PairScore", notes: _Notes) -> str:
    return f"{score.log_prob:.6f}"


def _score_as_tsv(number: int, pair: tuple[str, str], score: "PairScore", notes: _Notes) -> str:
    return "\t".join([*_columns(number, *pair, notes), f"{score.log_prob:.6f}", str(score.num_tokens)])


def _score_as_json(number: int, pair: tuple[str, str], score: "PairScore", notes: _Notes) -> str:
    record = {
        "source": pair[0],
        "target": pair[1],
        "log_prob": score.log_prob,
        "num_tokens": score.num_tokens,
        "tokens": score.tokens,
        "token_log_probs": score.token_log_probs,
    }
    return json.dumps(record, ensure_ascii=False)


def _columns(number: int, source: str, target: str, notes: _Notes) -> list[str]:
    """Two texts as TSV columns."""
    if "\t" in source + target:
        notes.tabs.append(number)
    return [source.translate(_TABS), target.translate(_TABS)]


FORMATS: dict[str, Callable[[int, str, "MarkedTranslation", _Notes], str]] = {
    "lines": _as_line,
    "tsv": _as_tsv,
    "jsonl": _as_json,
}
SCORE_FORMATS: dict[str, Callable[[int, tuple[str, str], "PairScore", _Notes], str]] = {
    "lines": _score_as_line,
    "tsv": _score_as_tsv,
    "jsonl": _score_as_json,
}
