"""Which number format the matrix products of training use."""

from typing import NamedTuple

import torch

from headway.data.batch import Batch
from headway.model.token_model import TokenModel
from headway.train.objective import Objective
from headway.train.trial import trial_seconds


class Settled(NamedTuple):
    """``bf16`` or ``float32``, and one line on why."""

    precision: str
    reason: str


def settle_precision(model: TokenModel, batch: Batch, *, objective: Objective, device: torch.device) -> Settled:
    """``bf16`` where this model learns the objective faster with it on this device than with ``float32``, else that.

    A run asks once and keeps the answer in its training state, so that a resumed run computes as it began.
    """
    if device.type == "cuda":
        has_bf16 = torch.cuda.is_bf16_supported(including_emulation=False)
        return Settled("bf16", "this GPU has it") if has_bf16 else Settled("float32", "this GPU has no bf16")
    if device.type != "cpu":
        return Settled("float32", f"bf16 is not used on {device.type}")
    batch = batch.to(device)
    seconds = {name: trial_seconds(model, batch, objective=objective, precision=name) for name in ("float32", "bf16")}
    best = min(seconds, key=lambda name: seconds[name])
    measured = " and ".join(
        f"{seconds[name]:.3g} s in {name}" for name in sorted(seconds, key=lambda name: name != best)
    )
    return Settled(best, f"a microbatch of {batch.num_tokens:,} tokens took {measured} on this processor")
