"""Whether a claim holds, by the interval of a paired difference: 95 %, or of counts their range."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

Side = Literal["above", "below", "near"]


class Verdict(StrEnum):
    """What was found of a claim."""

    HOLDS = "holds"
    DOES_NOT_HOLD = "does not hold"
    NOT_SETTLED = "not settled at this scale"


@dataclass(frozen=True, slots=True)
class Difference:
    """A paired difference, this minus that, with the ends of its interval; ``over`` says what was paired.

    ``interval`` says what the ends are: of counts, which have no chance in them, the least and the greatest of what was
    found (``range``), or twice the one value (``exact``).
    """

    value: float
    low: float
    high: float
    over: str = ""  # 1,014 sentences; 5 seeds; sizes
    interval: Literal["95 %", "range", "exact"] = "95 %"

    @staticmethod
    def exact(value: float, over: str) -> "Difference":
        """A single count or a law's number, which has no chance in it."""
        return Difference(value, value, value, over, "exact")


def judge(difference: Difference, *, claimed: Side, margin: float = 0.0) -> Verdict:
    """Judge a claim about a difference.

    ``above``: it holds when the whole interval is above 0, and does not hold when all of it is below; ``below`` is the
    mirror. ``near``: it holds when the whole interval is within ``margin`` of 0, and does not hold when all of it is
    further away on one side. Whatever else is not settled; so is an interval that ends at 0 exactly, or is no number.
    """
    low, high = difference.low, difference.high
    if claimed == "near":
        return _verdict(-margin <= low and high <= margin, low > margin or high < -margin)
    if claimed == "below":
        low, high = -high, -low
    return _verdict(low > 0.0, high < 0.0)


def _verdict(holds: bool, fails: bool) -> Verdict:
    if holds:
        return Verdict.HOLDS
    return Verdict.DOES_NOT_HOLD if fails else Verdict.NOT_SETTLED


def together(verdicts: Sequence[Verdict]) -> Verdict:
    """Judge a claim of several parts: it holds when all do, and does not when one does not; none settle nothing."""
    if Verdict.DOES_NOT_HOLD in verdicts:
        return Verdict.DOES_NOT_HOLD
    is_whole = bool(verdicts) and all(verdict == Verdict.HOLDS for verdict in verdicts)
    return Verdict.HOLDS if is_whole else Verdict.NOT_SETTLED


@dataclass(frozen=True, slots=True)
class Part:
    """One comparison that a claim rests on; without a difference (a row that was not made) it is not settled.

    Nor is one that ``settles`` nothing, whatever its difference: made otherwise than what is claimed; ``what`` says so.
    """

    what: str  # h = 1 against base, BLEU
    difference: Difference | None
    claimed: Side
    margin: float = 0.0
    unit: str = ""
    settles: bool = True

    @property
    def verdict(self) -> Verdict:
        """What was found of this part."""
        if self.difference is None or not self.settles:
            return Verdict.NOT_SETTLED
        return judge(self.difference, claimed=self.claimed, margin=self.margin)


@dataclass(frozen=True, slots=True)
class Claim:
    """What the paper says, in our words with its section, and the comparisons that bear it out or not."""

    name: str
    text: str
    parts: tuple[Part, ...]

    @property
    def verdict(self) -> Verdict:
        """What was found of the whole: every part has to hold."""
        return together([part.verdict for part in self.parts])
