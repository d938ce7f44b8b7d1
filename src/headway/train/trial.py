"""How long a forward and backward pass takes here, for what is settled by trying."""

import time

from headway.data.batch import Batch
from headway.model.token_model import TokenModel
from headway.train.objective import Objective


def trial_seconds(model: TokenModel, batch: Batch, *, objective: Objective, precision: str, repeats: int = 3) -> float:
    """The fastest of ``repeats`` passes, after one that does not count. The model keeps no gradient of them."""
    fastest = float("inf")
    for repeat in range(1 + repeats):
        begin = time.perf_counter()
        objective.sums(model, batch, precision=precision)[0].backward()
        model.zero_grad()
        if repeat:
            fastest = min(fastest, time.perf_counter() - begin)
    return fastest
