"""What an audit says of each file, and of all together."""

from dataclasses import dataclass

from headway.corpus.finding import Finding
from headway.corpus.length import Lengths

SIDES = ("source", "target")


@dataclass(frozen=True, slots=True)
class SideReport:
    """One side of a file: lengths in characters and words, texts by script, and of the sample by language."""

    characters: Lengths
    words: Lengths
    scripts: dict[str, int]
    languages: dict[str, int]


@dataclass(frozen=True, slots=True)
class FileReport:
    """A file, or all together. ``ratio``: target / source characters, 5th, 50th, 95th percentile, to within 2 %.

    ``error`` says why the file was not read to its end; empty where it was.
    """

    name: str
    pairs: int
    error: str
    source: SideReport
    target: SideReport
    ratio: tuple[float, float, float]
    stretches: tuple[tuple[int, int, int, int], ...]  # first line, last line, pairs, shift (0: none)
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class AuditReport:
    """All that was found: of each file, and of all together (``total``), whose findings include test sets."""

    source_language: str
    target_language: str
    files: tuple[FileReport, ...]
    total: FileReport
    sampled: int
    identified: bool  # whether languages were told
