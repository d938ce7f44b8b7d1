"""A sentence and its translation."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SentencePair:
    """One unit of parallel text. ``line`` counts from 1 in the file it came from."""

    source: str
    target: str
    line: int
