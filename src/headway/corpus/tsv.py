"""One file, one pair a line, columns parted by tabs. There is no quoting: a double quote is one more character."""

from collections.abc import Iterator

from headway.corpus.lines import FilePath, name_of, read_lines
from headway.corpus.pair import SentencePair
from headway.errors import CorpusError


def read_tsv(path: FilePath, *, languages: tuple[str, str], fields: tuple[str, str]) -> Iterator[SentencePair]:
    """Yield the pairs of a TSV file; ``fields`` are two column numbers from 1 (empty: 1 and 2). No line is a heading.

    Every line must have as many columns as the first: a stray tab inside a text would otherwise shift it in
    silence. ``languages`` play no part, since columns have no names.

    Raises:
        CorpusError: a column number that is none, a missing column, a line with another number of columns.

    """
    del languages
    name = name_of(path)
    source_column, target_column = (_column(field, default) for field, default in zip(fields, (1, 2), strict=True))
    if source_column == target_column:
        raise CorpusError(
            f"corpus/tsv: {name}: source and target are both column {source_column}, wanted two columns. "
            f"Remedy: set source_field and target_field to different numbers."
        )
    num_columns = 0
    for number, line in enumerate(read_lines(path), 1):
        columns = line.split("\t")
        if number == 1 and len(columns) == 1 and (separators := _other_separators(line)):
            raise CorpusError(
                f"corpus/tsv: {name} line 1: found no tab, but {separators}; wanted tabs between the columns. "
                f"Remedy: export the table as tab-separated text."
            )
        if len(columns) < max(source_column, target_column):
            raise CorpusError(
                f"corpus/tsv: {name} line {number:,}: found {_count(columns)}, wanted columns {source_column} "
                f"and {target_column} for source and target. Remedy: mend the line, or set source_field and "
                f"target_field to columns that the file has (the first is 1)."
            )
        if number == 1:
            num_columns = len(columns)
        elif len(columns) != num_columns:
            raise CorpusError(
                f"corpus/tsv: {name} line {number:,}: found {_count(columns)}, wanted {num_columns} as in line 1. "
                f"Remedy: take the stray tab out of the text, or keep two columns only "
                f"(cut -f{source_column},{target_column})."
            )
        yield SentencePair(columns[source_column - 1], columns[target_column - 1], number)


def _column(field: str, default: int) -> int:
    if not field:
        return default
    if field.isascii() and field.isdigit() and len(field) < 10 and int(field) >= 1:
        return int(field)
    raise CorpusError(
        f"corpus/tsv: found field {field!r}, wanted a column number (the first is 1). "
        f"Remedy: set source_field and target_field to numbers."
    )


def _other_separators(line: str) -> str:
    """What may part the columns of a line in place of tabs, with its count; nothing where there is none."""
    counts = {"semicolon": line.count(";"), "comma": line.count(",")}
    what = max(counts, key=lambda name: counts[name])
    return f"{counts[what]:,} {what}{'s' if counts[what] > 1 else ''}" if counts[what] else ""


def _count(columns: list[str]) -> str:
    return "1 column" if len(columns) == 1 else f"{len(columns)} columns"
