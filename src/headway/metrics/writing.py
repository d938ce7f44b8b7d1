"""Whether outputs are written as their references are: tokenised or plain, with capital letters or without."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from headway.metrics.tokenised import differs

CAPITALS = "capital letters, of the lines whose letters have case"
FEWEST_CASED = 3  # texts of each side, and half of them, have case, or capitals tell nothing: Chinese has a few names
WITH_CAPITALS, WITHOUT_CAPITALS = 0.5, 0.05  # shares of two texts, from which and up to which they differ in case


class Capitals(NamedTuple):
    """Of some texts: in how many letters have case, and in how many of these a letter is a capital."""

    cased: int
    with_capitals: int

    @property
    def share(self) -> float:
        """Of the cased texts, those with a capital; 0 where no text is cased."""
        return self.with_capitals / max(self.cased, 1)


@dataclass(frozen=True, slots=True)
class Mismatch:
    """What one side shows and the other does not: in how many lines, of how many that could show it."""

    name: str
    references: int
    num_references: int
    outputs: int
    num_outputs: int

    @property
    def share(self) -> float:
        """By how much the sides differ, as a share of their lines."""
        return abs(self.references / self.num_references - self.outputs / self.num_outputs)


def mismatch(references: Sequence[str], outputs: Sequence[str], *, is_cased: bool = True) -> Mismatch | None:
    """What most sets equally many references and outputs apart; None where they are written alike.

    Without ``is_cased``, as where scores ignore case, capital letters do not count.
    """
    traces = differs(references, outputs)
    if traces is not None:
        name, in_references, in_outputs = traces
        return Mismatch(name, in_references, len(references), in_outputs, len(outputs))
    ours, theirs = count_capitals(references), count_capitals(outputs)
    if not is_cased or min(ours.cased, theirs.cased) < max(FEWEST_CASED, len(references) / 2):
        return None
    if max(ours.share, theirs.share) < WITH_CAPITALS or min(ours.share, theirs.share) > WITHOUT_CAPITALS:
        return None
    return Mismatch(CAPITALS, ours.with_capitals, ours.cased, theirs.with_capitals, theirs.cased)


def count_capitals(texts: Sequence[str]) -> Capitals:
    """How many texts have letters of a script with case, and how many of these a capital."""
    cased = [text for text in texts if text.lower() != text.upper()]
    return Capitals(len(cased), sum(text != text.lower() for text in cased))
