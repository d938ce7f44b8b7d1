"""Two files, one side each: line n of the one is the translation of line n of the other."""

from collections.abc import Iterator
from itertools import zip_longest

from headway.corpus.lines import FilePath, name_of, read_lines
from headway.corpus.pair import SentencePair
from headway.errors import CorpusError


def read_moses(source: FilePath, target: FilePath) -> Iterator[SentencePair]:
    """Yield the pairs of two files with equally many lines.

    Unequal counts are known only at the end of the files, so the error comes after the last pair of the shorter
    one: pairs must not be put to use before the iterator has ended.

    Raises:
        CorpusError: the counts differ (both are given), or what ``read_lines`` raises.

    """
    source_count = target_count = 0
    for source_line, target_line in zip_longest(read_lines(source), read_lines(target)):
        source_count += source_line is not None
        target_count += target_line is not None
        if source_line is not None and target_line is not None:
            yield SentencePair(source_line, target_line, source_count)
    if source_count != target_count:
        raise CorpusError(
            f"corpus/moses: {name_of(source)} has {source_count:,} lines, {name_of(target)} has {target_count:,}; "
            f"pairs need equal counts. Remedy: restore the original files (a line is missing or added somewhere, not "
            f"always at the end), or export them again as one TSV."
        )
