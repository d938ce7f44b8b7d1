"""One update of the weights from one or more microbatches.

Shapes: B sentences, T target positions, N real target tokens, D d_model.
"""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from headway.data.batch import Batch
from headway.errors import TrainingError
from headway.model.transformer import Transformer
from headway.train.loss import chunked_smoothed_loss


@dataclass(frozen=True, slots=True)
class StepResult:
    """Means over the step's real target tokens (nats), and what it cost."""

    loss: float
    nll: float
    gradient_norm: float
    num_target_tokens: int
    num_tokens: int
    num_padded_tokens: int


def train_step(
    model: Transformer,
    optimizer: torch.optim.Adam,
    *,
    batches: Sequence[Batch],
    step: int,
    seed: int,
    learning_rate: float,
    label_smoothing: float,
    precision: str,
    clip_norm: float | None = None,
) -> StepResult:
    """Forward and backward of every microbatch, then one update with the gradient of the mean over all their tokens.

    However the step's sentences are spread over microbatches, the gradient is the same (dropout apart: its masks come
    from (seed, step, number of the microbatch), so a resumed run repeats them). TrainingError before anything has
    moved when loss or gradient is not finite.
    """
    device = next(model.parameters()).device
    num_target_tokens = sum(batch.num_target_tokens for batch in batches)
    sums = torch.zeros(2, dtype=torch.float64)
    optimizer.zero_grad()
    for index, batch in enumerate(batches):
        torch.manual_seed(microbatch_seed(seed, step, index))
        loss_and_nll = loss_sums(model, batch.to(device), label_smoothing=label_smoothing, precision=precision)
        (loss_and_nll[0] / num_target_tokens).backward()
        sums += loss_and_nll.detach().double().cpu()
    loss, nll = (sums / num_target_tokens).tolist()
    gradient_norm = torch.nn.utils.get_total_norm(
        [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    )
    _check_finite(step, loss, gradient_norm=gradient_norm.item(), learning_rate=learning_rate)
    if clip_norm is not None:
        torch.nn.utils.clip_grads_with_norm_(model.parameters(), clip_norm, gradient_norm)
    for group in optimizer.param_groups:
        group["lr"] = learning_rate
    optimizer.step()
    return StepResult(
        loss=loss,
        nll=nll,
        gradient_norm=gradient_norm.item(),
        num_target_tokens=num_target_tokens,
        num_tokens=sum(batch.num_tokens for batch in batches),
        num_padded_tokens=sum(batch.num_padded_tokens for batch in batches),
    )


def loss_sums(model: Transformer, batch: Batch, *, label_smoothing: float, precision: str) -> Tensor:
    """Smoothed loss and negative log-likelihood of a batch, summed over its real target tokens (nats)."""
    with torch.autocast(batch.source_BS.device.type, dtype=torch.bfloat16, enabled=precision == "bf16"):
        hidden_BTD = model.hidden(batch.source_BS, batch.source_mask_BS, batch.target_in_BT)
        real_BT = batch.target_out_BT != 0
        hidden_ND = hidden_BTD[real_BT]
        if precision == "bf16":
            hidden_ND = hidden_ND.bfloat16()
        return chunked_smoothed_loss(
            hidden_ND,
            model.output.weight,
            target_N=batch.target_out_BT[real_BT],
            label_smoothing=label_smoothing,
        )


def microbatch_seed(seed: int, step: int, index: int) -> int:
    """Where the random stream of a microbatch starts; unlike numbers give unrelated streams."""
    digest = hashlib.blake2b(f"{seed} {step} {index}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


def _check_finite(step: int, loss: float, *, gradient_norm: float, learning_rate: float) -> None:
    if math.isfinite(loss) and math.isfinite(gradient_norm):
        return
    raise TrainingError(
        f"train/step: step {step}: loss {loss}, gradient norm {gradient_norm}, at learning rate {learning_rate:.3g}; "
        "finite numbers are wanted. The weights have not moved and the last training state is good. "
        "Remedy: lower train.learning_rate or raise train.warmup_steps; or set train.clip_norm = 1.0; "
        "or set train.precision = float32"
    )
