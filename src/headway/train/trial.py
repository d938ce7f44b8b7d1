"""How long a forward and backward pass takes here, for what is settled by trying."""

import time

from headway.data.batch import Batch
from headway.model.transformer import Transformer
from headway.train.objective import Objective

REPEATS = 3


def trial_seconds(model: Transformer, batch: Batch, *, objective: Objective, precision: str) -> float:
    """The fastest of some passes, after one that does not count. The model keeps no gradient of them."""
    fastest = float("inf")
    for repeat in range(1 + REPEATS):
        begin = time.perf_counter()
        objective.sums(model, batch, precision=precision)[0].backward()
        model.zero_grad()
        if repeat:
            fastest = min(fastest, time.perf_counter() - begin)
    return fastest
