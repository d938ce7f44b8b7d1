"""What ``headway translate`` writes for each line, and what it notes down on the way."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import click

from headway.cli.reports import count
from headway.corpus.lines import name_of, read_lines
from headway.errors import CorpusError
from headway.translate.decoding import Decoding

if TYPE_CHECKING:
    from headway.text.tag import Syntax
    from headway.translate.marked import MarkedTranslation
    from headway.translate.translation import PairScore
    from headway.translate.translator import Translator

_TABS = str.maketrans("\t", " ")
_NAMED = 10  # line numbers that a warning names


@dataclass(frozen=True)
class Settings:
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
class Notes:
    """What a user must hear of after the last line, by line number from 1."""

    cut: list[int] = field(default_factory=list[int])
    split: list[int] = field(default_factory=list[int])
    unknown: list[int] = field(default_factory=list[int])
    unmet: list[int] = field(default_factory=list[int])
    tabs: list[int] = field(default_factory=list[int])
    empty: list[int] = field(default_factory=list[int])
    problems: list[int] = field(default_factory=list[int])
    mended: list[int] = field(default_factory=list[int])

    def add(self, number: int, marked: "MarkedTranslation") -> None:
        """Take in one translation."""
        from headway.translate.marked import EMPTY

        translation = marked.translation
        if EMPTY in marked.problems:
            self.empty.append(number)
        if any(problem != EMPTY for problem in marked.problems):
            self.problems.append(number)
        elif marked.notes:
            self.mended.append(number)
        if translation.is_cut:
            self.cut.append(number)
        if translation.is_long:
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
            (self.empty, "with an empty translation (JSONL: problems)"),
            (self.problems, "where tags or placeholders are not those of the source (JSONL: problems)"),
            (self.mended, "where the model lost or invented placeholders, mended by position (JSONL: notes)"),
        ):
            if numbers:
                named = ", ".join(f"{number:,}" for number in numbers[:_NAMED])
                more = ", ..." if len(numbers) > _NAMED else ""
                click.echo(f"headway: {count(len(numbers), 'line')} {what}: line {named}{more}", err=True)


def with_phrases(lines: Iterator[str], settings: Settings, *, name: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each line with what its translation must contain; raises CorpusError for unequal files."""
    if settings.phrase_file is None:
        return ((line, settings.phrases) for line in lines)
    pairs = line_pairs(lines, read_lines(settings.phrase_file), names=(name, name_of(settings.phrase_file)))
    return (
        (line, (*settings.phrases, *(phrase for phrase in row.split("\t") if phrase.strip()))) for line, row in pairs
    )


def translate_rows(
    translator: "Translator", rows: Sequence[tuple[str, tuple[str, ...]]], settings: Settings
) -> list["MarkedTranslation"]:
    """The translation of each line, with its markup unless that is not to be looked at."""
    from headway.text.markup import parse
    from headway.translate.marked import translate_parsed, unchecked

    syntax, numbers = settings.syntax, settings.numbers
    texts = [text for text, _ in rows]
    prefixes = [settings.prefix] * len(rows) if settings.prefix else None
    has_phrases = settings.phrases or settings.phrase_file is not None
    phrases = [own for _, own in rows] if has_phrases else None
    if syntax is not None:
        return translate_parsed(
            translator,
            [parse(text, syntax=syntax, numbers=numbers) for text in texts],
            decoding=settings.decoding,
            batch_tokens=settings.batch_tokens,
            target_prefixes=prefixes,
            phrases=phrases,
            with_alignment=settings.alignment,
        )
    translations = translator.translate(
        texts,
        decoding=settings.decoding,
        batch_tokens=settings.batch_tokens,
        target_prefixes=prefixes,
        phrases=phrases,
        with_alignment=settings.alignment,
    )
    return [unchecked(translation, text) for translation, text in zip(translations, texts, strict=True)]


def line_pairs(sources: Iterator[str], targets: Iterator[str], *, names: tuple[str, str]) -> Iterator[tuple[str, str]]:
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
        f"cli/records: {names[0]} has {num_sources:,} lines, {names[1]} has {num_targets:,}; "
        "pairs need equal counts. Remedy: restore the original files."
    )


def _as_line(number: int, source: str, marked: "MarkedTranslation", notes: Notes) -> str:
    return marked.text


def _as_tsv(number: int, source: str, marked: "MarkedTranslation", notes: Notes) -> str:
    translation = marked.translation
    columns = [*_columns(number, source, marked.text, notes), f"{translation.score:.6f}"]
    if translation.alignment is not None:
        columns.append(" ".join(f"{source}-{target}" for source, target in translation.alignment))
    return "\t".join(columns)


def _as_json(number: int, source: str, marked: "MarkedTranslation", notes: Notes) -> str:
    translation = marked.translation
    record: dict[str, object] = {"source": source, **_fields(marked)}
    record |= {
        "source_tokens": translation.source_tokens,
        "num_pieces": translation.num_pieces,
        "num_unknown": translation.num_unknown,
    }
    if marked.tags_ok is not None:
        record |= {"tags_ok": marked.tags_ok, "problems": marked.problems, "notes": marked.notes}
    elif marked.problems:  # the markup was not looked at, and yet there is something to tell
        record["problems"] = marked.problems
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


def _score_as_line(number: int, pair: tuple[str, str], score: "PairScore", notes: Notes) -> str:
    return f"{score.log_prob:.6f}"


def _score_as_tsv(number: int, pair: tuple[str, str], score: "PairScore", notes: Notes) -> str:
    return "\t".join([*_columns(number, *pair, notes), f"{score.log_prob:.6f}", str(score.num_tokens)])


def _score_as_json(number: int, pair: tuple[str, str], score: "PairScore", notes: Notes) -> str:
    record = {
        "source": pair[0],
        "target": pair[1],
        "log_prob": score.log_prob,
        "num_tokens": score.num_tokens,
        "tokens": score.tokens,
        "token_log_probs": score.token_log_probs,
    }
    return json.dumps(record, ensure_ascii=False)


def _columns(number: int, source: str, target: str, notes: Notes) -> list[str]:
    """Two texts as TSV columns."""
    if "\t" in source + target:
        notes.tabs.append(number)
    return [source.translate(_TABS), target.translate(_TABS)]


FORMATS: dict[str, Callable[[int, str, "MarkedTranslation", Notes], str]] = {
    "lines": _as_line,
    "tsv": _as_tsv,
    "jsonl": _as_json,
}
SCORE_FORMATS: dict[str, Callable[[int, tuple[str, str], "PairScore", Notes], str]] = {
    "lines": _score_as_line,
    "tsv": _score_as_tsv,
    "jsonl": _score_as_json,
}
