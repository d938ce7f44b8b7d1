"""One Parquet file, its sides two columns of text, or two fields of a column ``translation``."""

import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from headway.corpus.compression import FilePath, compression_of
from headway.corpus.language import best_of
from headway.corpus.lines import STANDARD_STREAM, name_of
from headway.corpus.pair import SentencePair
from headway.errors import CorpusError, MissingExtraError

if TYPE_CHECKING:
    from pyarrow import DataType, RecordBatch, Schema
    from pyarrow.parquet import ParquetFile

_NESTED = "translation"  # the struct of Hugging Face's translation datasets, a field a language
_BATCH = 1024  # rows decoded at a time: a text of the dictionary is copied for each row that names it
_BUFFER = 1 << 20  # bytes of a column read at a time; else it would be a whole row group
_NAMED = 8  # columns in an error message
_TEXT = {"string", "large_string", "string_view", "null"}  # types, as the library writes them


def read_parquet(path: FilePath, *, languages: tuple[str, str], fields: tuple[str, str]) -> Iterator[SentencePair]:
    """Yield the pairs of a Parquet file, ``line`` being the row from 1; ``fields`` are the columns of both sides.

    An empty field stands for the column of the language (in any spelling of its code), and where there are not both,
    for ``source`` and ``target``. Columns are looked for in the file itself, then in a struct ``translation``. Nulls
    are empty texts. Streams: memory holds a thousand rows and a piece of each column.

    Raises:
        CorpusError: the file is missing, damaged, no Parquet, lacks a column or has something else than text there.
        MissingExtraError: pyarrow is not installed.

    """
    name = name_of(path)
    row = 0
    with _open(path, name) as file:
        schema = _types(file.schema_arrow)
        holder, sides = _choose(schema, languages, fields, name)
        if any(file.schema_arrow.names.count(side) > 1 for side in (holder, *sides)):
            raise CorpusError(
                f"corpus/parquet: {name}: found two columns of the name {holder or ' or '.join(sides)}, wanted one. "
                f"Remedy: write the file with one column of each name."
            )
        paths = [f"{holder}.{side}" if holder else side for side in sides]
        batches = file.iter_batches(_BATCH, columns=paths, use_threads=False)
        while texts := _next_texts(batches, sides, f"{name} after row {row:,}"):
            for source, target in texts:
                row += 1
                yield SentencePair(source or "", target or "", row)


@contextmanager
def _open(path: FilePath, name: str) -> "Generator[ParquetFile, None, None]":
    """Open a Parquet file, its metadata read."""
    if find_spec("pyarrow") is None:
        raise MissingExtraError(
            f"corpus/parquet: {name}: reading Parquet needs pyarrow, which is not installed. "
            f"Run: pip install 'headway[parquet]'"
        )
    from pyarrow import parquet  # noqa: PLC0415 - a compiled library that only Parquet files need

    if os.fspath(path) == STANDARD_STREAM or compression_of(path):
        raise CorpusError(
            f"corpus/parquet: found {name}, wanted a plain file, because Parquet is read from its end and has its own "
            f"compression. Remedy: save or decompress it first."
        )
    if not Path(path).is_file():
        found = "is a directory" if Path(path).is_dir() else "does not exist"
        raise CorpusError(
            f"corpus/parquet: {name} {found}, wanted one Parquet file. "
            f"Remedy: name one file; a data set in several is several corpora."
        )
    try:
        file = parquet.ParquetFile(os.fspath(path), buffer_size=_BUFFER)
    except Exception as error:  # what damaged data make of the library; it has a dozen kinds
        raise _damaged(name, error) from error
    with file:
        yield file


def _types(holder: "Schema | DataType") -> "dict[str, DataType]":
    """The names and types of the columns of a schema, or of the fields of a struct."""
    fields = [holder.field(place) for place in range(_size(holder))]
    return {field.name: field.type for field in fields}


def _size(holder: "Schema | DataType") -> int:
    """How many columns or fields there are; a type that is no struct has none."""
    return getattr(holder, "num_fields", 0) if str(holder).startswith("struct<") else len(getattr(holder, "names", ()))


def _choose(
    types: "dict[str, DataType]", languages: tuple[str, str], fields: tuple[str, str], name: str
) -> tuple[str, tuple[str, str]]:
    """The column that holds the sides as fields ("" where they are columns), and the names of the sides."""
    nested = _types(types[_NESTED]) if _NESTED in types else {}
    for holder, columns in (("", types), (_NESTED, nested)):
        codes = [best_of(language, columns) or "" for language in languages]
        for defaults in (codes, ("source", "target")):
            source, target = (field or default for field, default in zip(fields, defaults, strict=True))
            if source in columns and target in columns and source != target:
                for side in (source, target):
                    _check_text(columns[side], f"{name}: column {holder and holder + '.'}{side}")
                return holder, (source, target)
    names = [*types, *(f"{_NESTED}.{field}" for field in nested)]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    wanted = [
        " and ".join(field or default for field, default in zip(fields, defaults, strict=True))
        for defaults in (languages, ("source", "target"))
    ]
    raise CorpusError(
        f"corpus/parquet: {name}: found the columns {', '.join(names[:_NAMED]) or '(none)'}{more}; wanted "
        f"{' or '.join(dict.fromkeys(wanted))}, two different ones. "
        f"Remedy: set source_field and target_field to the columns of the file."
    )


def _check_text(kind: "DataType", place: str) -> None:
    """Raise CorpusError for a column of something else than text, or nothing at all."""
    value = getattr(kind, "value_type", kind) if str(kind).startswith("dictionary<") else kind
    if str(value) not in _TEXT:
        raise CorpusError(
            f"corpus/parquet: {place}: found {kind}, wanted text. "
            f"Remedy: set source_field and target_field to columns of text."
        )


def _next_texts(
    batches: "Iterator[RecordBatch]", sides: tuple[str, str], place: str
) -> list[tuple[str | None, str | None]]:
    """The rows of the next batch that has any; an empty list at the end of the file."""
    try:
        for batch in batches:
            columns = dict(zip(batch.schema.names, batch.columns, strict=True))
            if len(columns) == 1:  # the struct with both sides
                whole = batch.column(0)
                columns = dict(zip(_types(whole.type), whole.flatten(), strict=True))
            source, target = (columns[side].to_pylist() for side in sides)
            if source:
                return list(zip(source, target, strict=True))
    except Exception as error:  # as in opening
        raise _damaged(place, error) from error
    return []


def _damaged(place: str, error: Exception) -> CorpusError:
    reason = " ".join(str(error).split())[:200]
    return CorpusError(
        f"corpus/parquet: {place}: found no sound Parquet data ({type(error).__name__}: {reason}), wanted a Parquet "
        f"file with UTF-8 text. Remedy: copy, download or export it again."
    )
