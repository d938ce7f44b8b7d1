"""Files of parallel text, whatever their format, as pairs."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Protocol

from headway.corpus.compression import FilePath, compression_of
from headway.corpus.inline import InlineTags
from headway.corpus.jsonl import read_jsonl
from headway.corpus.lines import STANDARD_STREAM, name_of
from headway.corpus.moses import read_moses
from headway.corpus.pair import SentencePair
from headway.corpus.parquet import read_parquet
from headway.corpus.po import read_po
from headway.corpus.text import read_consecutive, read_text
from headway.corpus.tmx import read_tmx
from headway.corpus.tsv import read_tsv
from headway.corpus.xliff import read_xliff
from headway.errors import CorpusError


class Reader(Protocol):
    """Reads a file that holds both sides; ``fields`` say where in a record they are (empty: the format's default)."""

    def __call__(
        self, path: FilePath, *, languages: tuple[str, str], fields: tuple[str, str]
    ) -> Iterator[SentencePair]:
        """Yield the pairs in file order."""
        ...


# Formats of one file that holds both sides; "moses" is the one format of two files.
READERS: dict[str, Reader] = {
    "tsv": read_tsv,
    "jsonl": read_jsonl,
    "tmx": read_tmx,
    "po": read_po,
    "xliff": read_xliff,
    "parquet": read_parquet,
}
# Of the formats with inline tags: what reads them with their tags in the canonical form of ``inline``.
TAG_READERS: dict[str, Reader] = {
    "tmx": partial(read_tmx, inline_tags="keep"),
    "xliff": partial(read_xliff, inline_tags="keep"),
}
SUFFIXES = {
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".tmx": "tmx",
    ".po": "po",
    ".xlf": "xliff",
    ".xliff": "xliff",
    ".sdlxliff": "xliff",
    ".mqxliff": "xliff",
    ".mxliff": "xliff",
    ".parquet": "parquet",
}
# Files that people have and that hold no plain text: what to do about each.
ELSEWHERE = {
    **dict.fromkeys((".csv", ".xlsx", ".xls", ".ods"), "save the table as tab-separated text in UTF-8, named .tsv"),
    **dict.fromkeys((".docx", ".doc", ".odt", ".pptx", ".pdf"), "bring it into XLIFF with a translation tool"),
    **dict.fromkeys((".sdltm", ".mtm", ".wfm"), "export the translation memory as TMX"),
}
MOSES = "moses"
TEXT = "text"  # one file of one side: a line is both sides of its pair
ONE_TEXT: dict[str, Callable[[FilePath], Iterator[SentencePair]]] = {TEXT: read_text, "consecutive": read_consecutive}
WITH_GAPS = ("tmx", "po", "xliff", "parquet")  # formats with units that wait for a side


def read(
    source: FilePath,
    target: FilePath | None = None,
    *,
    source_language: str,
    target_language: str,
    format: str = "auto",
    source_field: str = "",
    target_field: str = "",
    inline_tags: InlineTags = "drop",
    languages_found: dict[str, int] | None = None,
) -> Iterator[SentencePair]:
    """Yield the pairs of parallel text in file order.

    ``format`` is ``auto``, ``moses`` (two files), a key of ``ONE_TEXT`` (one file of one side: each line is both sides
    of a pair, or a line and the next are one) or of ``READERS`` (one file of both). ``auto`` takes two files as
    ``moses``, unless just one is named as holding both sides, and one by its suffix, before a suffix of compression.
    ``-`` is standard input, for one file at most. Fields are column numbers (TSV) or keys (JSONL) and play no part in
    ``moses``. ``inline_tags`` says whether formats that have such tags (``TAG_READERS``) are read without or with them.
    A unit of theirs that lacks one of the languages is a pair with an empty side, for cleaning to count.
    ``languages_found``, of formats with many languages (tmx), is filled with them and their numbers of texts.

    Raises:
        CorpusError: at once when the arguments do not fit together; else while reading, or at its end.

    """
    if not source:
        raise CorpusError("corpus/read: found no name of a source file, wanted one. Remedy: name the source file.")
    chosen = _format_of(source, target) if format == "auto" else format
    if chosen == MOSES:
        if not target:
            raise CorpusError(
                f"corpus/read: found one file ({name_of(source)}), wanted two for the format moses. "
                f"Remedy: name the target file, or set format to one of {', '.join(READERS)}."
            )
        if STANDARD_STREAM == source == target:
            raise CorpusError(
                "corpus/read: found standard input for both source and target, wanted it for one of them at most. "
                "Remedy: name a file for one side, or give both sides in one TSV."
            )
        return read_moses(source, target)
    if chosen not in (*READERS, *ONE_TEXT):
        raise CorpusError(
            f"corpus/read: found format {chosen!r}, wanted one of auto, {MOSES}, {', '.join((*READERS, *ONE_TEXT))}. "
            f"Remedy: set format to one of these."
        )
    if target:
        raise CorpusError(
            f"corpus/read: found two files ({name_of(source)}, {name_of(target)}), wanted one for the format {chosen}. "
            f"Remedy: leave the target file out, or set format to {MOSES}."
        )
    if chosen in ONE_TEXT:
        return ONE_TEXT[chosen](source)
    reader = TAG_READERS.get(chosen, READERS[chosen]) if inline_tags == "keep" else READERS[chosen]
    if chosen == "tmx" and languages_found is not None:
        reader = partial(read_tmx, inline_tags=inline_tags, languages_found=languages_found)
    return reader(source, languages=(source_language, target_language), fields=(source_field, target_field))


def may_have_gaps(source: FilePath, target: FilePath | None = None, *, format: str = "auto") -> bool:
    """Whether the units of such a file need not have both sides, as lines of text have; ``format`` as in ``read``."""
    return (SUFFIXES.get(_suffix(source), MOSES) if format == "auto" and not target else format) in WITH_GAPS


def holds_both_sides(path: FilePath) -> bool:
    """Whether a file holds both sides, by its name."""
    return _suffix(path) in SUFFIXES


def elsewhere(path: FilePath) -> str:
    """What to do about a file of an office or translation program that is not read, by its suffix; else nothing."""
    return ELSEWHERE.get(_suffix(path), "")


def _format_of(source: FilePath, target: FilePath | None) -> str:
    if target:
        whole = [name_of(side) for side in (source, target) if _suffix(side) in SUFFIXES]
        if len(whole) == 1:  # read as one side, it would bring the other side with it
            raise CorpusError(
                f"corpus/read: found two files, but {whole[0]} should hold both sides, by its suffix; wanted it alone, "
                f"or two files of one side each. Remedy: leave the other file out, or set data.format to {MOSES}."
            )
        return MOSES
    if _suffix(source) in SUFFIXES:
        return SUFFIXES[_suffix(source)]
    if elsewhere(source):
        raise CorpusError(
            f"corpus/read: {name_of(source)}: found a {_suffix(source)} file, which is not read; wanted one of the "
            f"suffixes {', '.join(SUFFIXES)}. Remedy: {elsewhere(source)}."
        )
    raise CorpusError(
        f"corpus/read: {name_of(source)} is one file without a target file, and its name does not tell its format; "
        f"wanted one of the suffixes {', '.join(SUFFIXES)}. "
        f"Remedy: name the target file too, or set data.format to one of {', '.join(READERS)} (or to {TEXT}, "
        "where a language model is to learn from one text)."
    )


def _suffix(path: FilePath) -> str:
    """The suffix that tells a format, before a suffix of compression."""
    name = Path(path)
    return (name.with_suffix("") if compression_of(name) else name).suffix.lower()
