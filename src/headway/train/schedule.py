"""The learning rate of each step: the paper's curve (Section 5.3, equation 3), and three that came after it."""

import math
from collections.abc import Callable
from typing import Protocol

from headway.config.learning_rate import FALLING, peak_rate
from headway.config.train_config import TrainConfig


class Schedule(Protocol):
    """The rate of a step (the first is 1). ``peak`` absent is the paper's: (d_model * warmup_steps)^-0.5."""

    def __call__(
        self, step: int, *, d_model: int, warmup_steps: int, peak: float | None = None, max_steps: int
    ) -> float:
        """The rate, above 0 but for the last step of a schedule that ends there."""
        ...


def noam(step: int, *, d_model: int, warmup_steps: int, peak: float | None = None, max_steps: int = 0) -> float:
    """Learning rate of a step (the first is 1): d_model^-0.5 * min(step^-0.5, step * warmup_steps^-1.5).

    It rises to its peak at ``warmup_steps``, then falls with the square root. ``peak`` scales the curve to that height.
    Where the run ends (``max_steps``) is nothing to it.
    """
    shape = min(step**-0.5, step * warmup_steps**-1.5)
    if peak is not None:
        return peak * warmup_steps**0.5 * shape
    return d_model**-0.5 * shape


def linear(step: int, *, d_model: int, warmup_steps: int, peak: float | None = None, max_steps: int) -> float:
    """Up to the peak at ``warmup_steps``, then straight down to 0 at ``max_steps``."""
    height = peak_rate(d_model, warmup_steps, given=peak)
    return height * _risen(step, warmup_steps) * (1.0 - _gone(step, warmup_steps, max_steps=max_steps))


def cosine(step: int, *, d_model: int, warmup_steps: int, peak: float | None = None, max_steps: int) -> float:
    """Up to the peak at ``warmup_steps``, then down to 0 at ``max_steps`` by half a cosine."""
    height = peak_rate(d_model, warmup_steps, given=peak)
    gone = _gone(step, warmup_steps, max_steps=max_steps)
    return height * _risen(step, warmup_steps) * 0.5 * (1.0 + math.cos(math.pi * gone))


def constant(step: int, *, d_model: int, warmup_steps: int, peak: float | None = None, max_steps: int = 0) -> float:
    """Up to the peak at ``warmup_steps``, then flat, wherever the run ends."""
    return peak_rate(d_model, warmup_steps, given=peak) * _risen(step, warmup_steps)


SCHEDULES: dict[str, Schedule] = {"noam": noam, "linear": linear, "cosine": cosine, "constant": constant}


def learning_rate(step: int, train: TrainConfig, *, d_model: int) -> float:
    """The rate of a step as the recipe has it."""
    return SCHEDULES[train.schedule](
        step, d_model=d_model, warmup_steps=train.warmup_steps, peak=train.learning_rate, max_steps=train.max_steps
    )


def early_end(train: TrainConfig, *, epoch_steps: Callable[[], int]) -> list[str]:
    """What to tell where the rate is to fall to 0 at ``max_steps`` and another end may come before.

    ``epoch_steps`` counts the steps of an epoch, and is asked only where that matters.
    """
    if train.schedule not in FALLING:
        return []
    ends: list[str] = []
    if train.max_epochs is not None and (steps := train.max_epochs * epoch_steps()) < train.max_steps:
        ends.append(f"train.max_epochs = {train.max_epochs} is about {steps:,} steps")
    if train.max_minutes is not None:
        ends.append(f"train.max_minutes = {train.max_minutes:g} may come first")
    if train.early_stopping != "none":
        ends.append(f"train.early_stopping = {train.early_stopping} may come first")
    if not ends:
        return []
    return [
        f"train.schedule {train.schedule} falls to 0 at train.max_steps = {train.max_steps:,}, but "
        f"{' and '.join(ends)}: a run that ends earlier ends at a higher rate"
    ]


def _risen(step: int, warmup_steps: int) -> float:
    """How much of the rise is done, 0 to 1."""
    return min(1.0, step / warmup_steps)


def _gone(step: int, warmup_steps: int, *, max_steps: int) -> float:
    """How much of the way from the warm-up's end to the run's is gone, 0 to 1."""
    if step <= warmup_steps:
        return 0.0
    return min(1.0, (step - warmup_steps) / (max_steps - warmup_steps)) if max_steps > warmup_steps else 1.0
