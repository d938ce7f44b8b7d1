"""How many threads a run computes with where nobody said."""

import os
from typing import NamedTuple

import torch

from headway.data.batch import Batch
from headway.model.token_model import TokenModel
from headway.train.objective import Objective
from headway.train.trial import trial_seconds

BUSY = 1.25  # processes that want a core, on average: more than the run's own preparation
LITTLE = 0.05  # seconds of a pass from which it matters
SLOWER = 1.5  # times one thread's seconds from which several threads stand in their own way


class SettledThreads(NamedTuple):
    """A number of threads, and one line on why."""

    threads: int
    reason: str


def settle_threads(
    model: TokenModel, batch: Batch, *, objective: Objective, threads: int, precision: str
) -> SettledThreads | None:
    """One thread where this machine is so busy that ``threads`` take longer than one; None where they may stay.

    The parts of a step wait for its slowest thread thousands of times a second; a thread that lost its core to
    another program holds up all. Tried only where other programs are seen to compute; a run keeps the answer in its
    training state.
    """
    if threads == 1 or _load() < BUSY:
        return None
    many = _seconds_with(threads, model, batch, objective, precision)
    if many < LITTLE:
        return None
    one = _seconds_with(1, model, batch, objective, precision)
    torch.set_num_threads(threads)
    if many < SLOWER * one:
        return None
    return SettledThreads(
        1,
        f"other programs keep the cores busy, and a microbatch of {batch.num_tokens:,} tokens took {many:.3g} s with "
        f"{threads} threads, {one:.3g} s with 1",
    )


def _seconds_with(threads: int, model: TokenModel, batch: Batch, objective: Objective, precision: str) -> float:
    torch.set_num_threads(threads)
    return trial_seconds(model, batch, objective=objective, precision=precision, repeats=1)


def _load() -> float:
    """The system's load over the last minute; 0 where the system does not tell."""
    try:
        return os.getloadavg()[0]
    except (AttributeError, OSError):
        return 0.0
