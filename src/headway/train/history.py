"""What a run has shown so far, as its watchdog must know it; a run that goes on reads it from ``metrics.jsonl``."""

import json
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Self

from headway.train.events import Signs, StepDone

WINDOW = 50  # steps before a step that its loss is compared with, and the fewest that a training loss is taken from
LATEST = 200  # the most steps that a training loss is taken from
SPIKE_DEVIATIONS = 8.0  # median absolute deviations above the median; Multi30k's batches of like length reach 5.5
SPIKE_NATS = 1.0  # and at least so much: near the end of the demo a hard batch of 0.7 nats stands 19 deviations out


@dataclass(frozen=True, slots=True)
class Spike:
    """A step whose loss stands far above the median of the 50 steps before it."""

    step: int
    loss: float
    usual: float


@dataclass(frozen=True, slots=True)
class Step:
    """What is remembered of one step."""

    step: int
    loss: float
    nll: float
    gradient_norm: float
    learning_rate: float

    @classmethod
    def of_event(cls, event: StepDone) -> Self:
        """What is remembered of a step just done."""
        return cls(event.step, event.loss, event.nll, event.gradient_norm, event.learning_rate)


@dataclass
class History:
    """Latest steps, spikes since the last validation, signs of all validations, and what was told with which value."""

    steps: deque[Step] = field(default_factory=lambda: deque[Step](maxlen=LATEST))
    spikes: list[Spike] = field(default_factory=list[Spike])
    validations: list[Signs] = field(default_factory=list[Signs])
    told: dict[str, float] = field(default_factory=dict[str, float])
    peak_rate: float = 0.0

    @classmethod
    def read(cls, path: Path) -> Self:
        """The history that a log tells; a line that is not one of ours tells nothing."""
        history = cls()
        pending: list[Step] = []  # since the last validation: only there do spikes count
        if path.exists():
            with path.open("rb") as file:
                for line in file:
                    pending = history._replay(line, pending)
        for step in pending:
            history.add(step)
        return history

    def add(self, step: Step) -> None:
        """Take note of a step, and whether it is a spike."""
        losses = [before.loss for before in list(self.steps)[-WINDOW:]]
        if len(losses) == WINDOW:
            usual = median(losses)
            deviation = median(abs(loss - usual) for loss in losses)
            if step.loss - usual >= max(SPIKE_NATS, SPIKE_DEVIATIONS * deviation):
                self.spikes.append(Spike(step.step, step.loss, usual))
        self._remember(step)

    def end_of_validation(self, signs: Signs) -> None:
        """Take note of a validation: spikes are counted anew from here."""
        self.validations.append(signs)
        self.spikes = []

    def training_nll(self) -> float | None:
        """The median of -log p (nats a token) of the latest 200 steps, of 50 at least."""
        return median(step.nll for step in self.steps) if len(self.steps) >= WINDOW else None

    def gradient_norm(self) -> float | None:
        """The median of the same steps."""
        return median(step.gradient_norm for step in self.steps) if len(self.steps) >= WINDOW else None

    def is_falling(self, by: float) -> bool:
        """Whether the second half of the latest steps is lower than the first by so many nats."""
        nlls = [step.nll for step in self.steps]
        half = len(nlls) // 2
        return half > 0 and median(nlls[:half]) - median(nlls[half:]) >= by

    def _remember(self, step: Step) -> None:
        self.steps.append(step)
        self.peak_rate = max(self.peak_rate, step.learning_rate)

    def _replay(self, line: bytes, pending: list[Step]) -> list[Step]:
        """Take in a line of the log; the steps that are pending after it."""
        try:
            record: Any = json.loads(line)
            kind = record["event"]
            if kind == "step":
                pending.append(_step(record))
            if kind == "warning":
                self.told[record["kind"]] = float(record["value"])
            elif kind == "validation":
                signs = Signs(**record["signs"])
                for step in pending:
                    self._remember(step)
                self.end_of_validation(signs)
                return []
        except (ValueError, TypeError, KeyError):  # another version's, or cut by a kill
            pass
        return pending


def _step(record: dict[str, Any]) -> Step:
    """What is remembered of a step, from its record in the log."""
    return Step(
        int(record["step"]),
        *(float(record[name]) for name in ("loss", "nll", "gradient_norm", "learning_rate")),
    )
