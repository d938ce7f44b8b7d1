"""Which number format the matrix products of training use."""

import time
from collections.abc import Callable

import torch

from headway.data.batch import Batch
from headway.model.transformer import Transformer
from headway.train.objective import Objective

REPEATS = 3


def settle_precision(model: Transformer, batch: Batch, *, objective: Objective, device: torch.device) -> str:
    """``bf16`` where this model learns the objective faster with it on this device than with ``float32``, else that.

    A run asks once and keeps the answer in its training state, so that a resumed run computes as it began.
    """
    if device.type == "cuda":
        return "bf16" if torch.cuda.is_bf16_supported() else "float32"
    if device.type != "cpu":
        return "float32"
    batch = batch.to(device)
    seconds = {name: _seconds(lambda name=name: _pass(model, batch, objective, name)) for name in ("float32", "bf16")}
    return min(seconds, key=lambda name: seconds[name])


def _pass(model: Transformer, batch: Batch, objective: Objective, precision: str) -> None:
    objective.sums(model, batch, precision=precision)[0].backward()
    model.zero_grad()


def _seconds(run: Callable[[], None]) -> float:
    """The fastest of some runs, after one that does not count."""
    run()
    fastest = float("inf")
    for _ in range(REPEATS):
        begin = time.perf_counter()
        run()
        fastest = min(fastest, time.perf_counter() - begin)
    return fastest
