"""One file of one text, a line at a time: what models of one text learn from."""

from collections.abc import Iterator

from headway.corpus.lines import FilePath, read_lines
from headway.corpus.pair import SentencePair


def read_text(path: FilePath) -> Iterator[SentencePair]:
    """Yield each line as both sides of a pair, so that what is done to pairs is done to lines.

    Filters, overlap and the choice of what is held out then need no second form. Raises CorpusError as ``read_lines``.
    """
    return (SentencePair(line, line, number) for number, line in enumerate(read_lines(path), 1))


def read_consecutive(path: FilePath) -> Iterator[SentencePair]:
    """Yield each line with the one after it, counted by the first; a blank line ends a document, which no pair crosses.

    Raises CorpusError as ``read_lines``.
    """
    before = ""
    for number, line in enumerate(read_lines(path)):
        if before.strip() and line.strip():
            yield SentencePair(before, line, number)
        before = line
