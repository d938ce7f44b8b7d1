"""Lines to be translated in several processes, and the chunks in which one process alone would translate them.

A text's score depends, in its last digits, on the texts that are computed beside it. So every process takes whole
chunks of the input, cut as one process cuts them, and the bytes come out the same.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from itertools import accumulate
from pathlib import Path

from headway.corpus.lines import STANDARD_STREAM, name_of
from headway.errors import CorpusError, TranslationError
from headway.translate.lines import CHUNK, in_chunks

Row = tuple[str, tuple[str, ...]]  # a line, and the phrases that its translation must contain


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some lines of the input: which chunk, from 0, which line is its first, from 1, and the lines."""

    number: int
    first_line: int
    rows: list[Row]

    def digest(self) -> str:
        """A digest of the lines and their phrases."""
        digest = sha256()
        for line, phrases in self.rows:
            digest.update("\n".join((line, "\t".join(phrases), "")).encode("utf-8", "surrogatepass"))
        return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a chunk: a record a line, without line ends, and the numbers of lines by what is to be told."""

    records: list[str]
    notes: dict[str, list[int]]


Translate = Callable[[Chunk], Result]


@dataclass(frozen=True, slots=True)
class Job:
    """What to translate and how.

    ``rows`` reads the input from its start, the same each time; ``load`` gives what translates a chunk. For several
    machines both must be picklable. ``chunk`` is the most lines of a chunk. ``computed_by`` names what computes on the
    machine that asks; machines that answer differently do not share a job.
    """

    rows: Callable[[], Iterator[Row]]
    load: Callable[[], Translate]
    chunk: int = CHUNK
    computed_by: Callable[[], str] = str


@dataclass(frozen=True, slots=True)
class Survey:
    """The whole input at a glance: the lines of each chunk, and a digest of them."""

    sizes: tuple[int, ...]
    digests: tuple[str, ...]

    @property
    def lines(self) -> int:
        """Lines in all."""
        return sum(self.sizes)

    @property
    def digest(self) -> str:
        """A digest of all lines with their phrases."""
        return sha256("".join(self.digests).encode("ascii")).hexdigest()

    def shares(self, count: int) -> list[range]:
        """The chunks of each of ``count`` processes: those whose middle lies in its part of the lines."""
        lines = self.lines
        starts = accumulate(self.sizes, initial=0)
        owners = [(2 * start + size) * count // (2 * lines) for start, size in zip(starts, self.sizes, strict=False)]
        return [range(bisect_left(owners, index), bisect_right(owners, index)) for index in range(count)]

    def check(self, number: int, digest: str) -> None:
        """Refuse a chunk, from 0, that was not read as it was at the survey. Raises TranslationError."""
        if number >= len(self.digests) or digest != self.digests[number]:
            raise TranslationError(
                f"bulk/job: the input changed while it was translated: chunk {number + 1:,} of {len(self.sizes):,} is "
                "not as it was when the lines were counted. Remedy: leave the input as it is, and begin again."
            )


def survey(job: Job) -> Survey:
    """Read all of the input. Raises CorpusError where a line cannot be read."""
    sizes: list[int] = []
    digests: list[str] = []
    for chunk in read_chunks(job):
        sizes.append(len(chunk.rows))
        digests.append(chunk.digest())
    return Survey(tuple(sizes), tuple(digests))


def read_chunks(job: Job) -> Iterator[Chunk]:
    """All chunks of the input, in order."""
    first_line = 1
    for number, rows in enumerate(in_chunks(job.rows(), chunk=job.chunk)):
        yield Chunk(number, first_line, rows)
        first_line += len(rows)


def check_files(paths: Iterable[str]) -> None:
    """Refuse what cannot be read more than once. Raises CorpusError for a pipe or standard input."""
    for path in paths:
        place = Path(path)  # one that is missing, or a folder, is told when it is read
        if path == STANDARD_STREAM or (place.exists() and not place.is_file() and not place.is_dir()):
            raise CorpusError(
                f"bulk/job: {name_of(path)} is no file; each process reads the input from its start, more than once. "
                "Remedy: write it to a file first."
            )
