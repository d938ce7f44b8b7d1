"""A text of a document and its translation, and what a format of documents must be able to do with them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, Protocol

from headway.corpus.compression import FilePath
from headway.errors import CorpusError

Syntax = Literal["plain", "xml"]


@dataclass(frozen=True, slots=True)
class Segment:
    """One text to translate. ``number`` counts from 1 in the order of the file, ``line`` is where the source begins.

    ``source`` and ``target`` are raw content. With the syntax ``xml`` they are what stands between the tags, character
    for character: entities escaped, inline elements as they are. With ``plain`` they are text without any escapes.
    ``target`` is None where the file has no place for it yet, and empty where the place is there.
    ``translate`` is False where the file says that the text must stay as it is. ``is_open`` says that the file waits
    for a translation, though there may be a target already (a copy of the source that is marked as new).
    """

    number: int
    line: int
    source: str
    target: str | None
    is_open: bool
    translate: bool = True
    syntax: Syntax = "plain"


class DocumentFormat(Protocol):
    """A format whose files hold sources and places for their translations. A module of ``corpus`` implements it."""

    def read_segments(self, path: FilePath, *, source_language: str, target_language: str) -> Iterator[Segment]:
        """Yield every segment in the order of the file, streaming; the numbers are 1, 2, 3 ...

        Languages are codes ("" is not checked): a file that names others is refused.

        Raises:
            CorpusError: the file is missing, damaged, of another format or for other languages.

        """
        ...

    def write_targets(
        self,
        path: FilePath,
        out: FilePath,
        targets: Iterable[tuple[int, str]],
        *,
        source_language: str,
        target_language: str,
        for_review: bool = True,
    ) -> None:
        """Write a copy of ``path`` in which the given segments have these targets, and all else its bytes.

        ``targets`` are (number of the segment, raw content as in ``Segment``), the numbers rising; they are asked for
        one by one while the copy is written, so that memory holds neither file. A target that is there is replaced.
        ``for_review`` marks what was filled as in need of review, where the format has a word for it. ``out`` takes its
        name when all has gone well (it may be ``path``); else an earlier ``out`` stays as it was.

        Raises:
            CorpusError: as ``read_segments``; ``out`` cannot be written; a number has no segment; the file's encoding
                cannot hold a target.

        """
        ...


class PendingTargets:
    """Targets that a writer has yet to reach, taken by the number of their segment."""

    def __init__(self, targets: Iterable[tuple[int, str]], name: str) -> None:
        """``name`` is the document's, for messages."""
        self._targets = iter(targets)
        self._name = name
        self._next = next(self._targets, None)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left to write."""
        return self._next is None

    def take(self, number: int) -> str | None:
        """The target of a segment; None where it is to stay as it is. Numbers rise from call to call."""
        if self._next is None or self._next[0] != number:
            return None
        target = self._next[1]
        self._next = next(self._targets, None)
        return target

    def check_all_taken(self) -> None:
        """Raise CorpusError when a target was given for a segment that the document did not have."""
        if self._next is not None:
            raise CorpusError(
                f"corpus/segment: {self._name}: found no segment {self._next[0]:,} to write a target to, wanted the "
                f"segments that were read from it before. Remedy: do not change the file while it is translated; "
                f"translate it again."
            )
