"""One update of the weights from one or more microbatches."""

import hashlib
import math
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

from headway.data.batch import Batch
from headway.errors import TrainingError, is_out_of_memory
from headway.model.token_model import TokenModel
from headway.train.distributed import ALONE, Group, is_sharded
from headway.train.objective import Objective
from headway.train.optimizer import Optimizer
from headway.train.sharding import whole


@dataclass(frozen=True, slots=True)
class StepResult:
    """Means over the step's predictions (nats), which mostly are its real target tokens, and what it cost."""

    loss: float
    nll: float
    gradient_norm: float
    num_target_tokens: int  # or what else the objective predicts
    num_tokens: int
    num_padded_tokens: int


def train_step(
    model: TokenModel,
    optimizer: Optimizer,
    *,
    batches: Sequence[Batch],
    step: int,
    seed: int,
    learning_rate: float,
    objective: Objective,
    precision: str,
    clip_norm: float | None = None,
    group: Group = ALONE,
) -> StepResult:
    """Forward and backward of every microbatch, then one update with the gradient of the mean over all their tokens.

    However the step's sentences are spread over microbatches, the gradient is the same (dropout apart: its masks come
    from (seed, step, number of the microbatch), so a resumed run repeats them, and several processes, each with its
    share, equal one). TrainingError before anything has moved when loss or gradient is not finite, or memory runs out.
    """
    first, *_ = model.parameters()
    shares = group.world_size if is_sharded(first) else 1  # sharded gradients are means over the ranks, wanted are sums
    num_predictions, num_tokens, num_padded_tokens = group.sum(_count(batches, objective)).tolist()
    sums = torch.zeros(2, dtype=torch.float64)
    optimizer.zero_grad()
    for index, batch in enumerate(batches):
        torch.manual_seed(microbatch_seed(seed, step, group.rank + index * group.world_size))
        with _told_where_memory_ends(step, batch):
            loss_and_nll = objective.sums(model, batch.to(first.device), precision=precision)
            (loss_and_nll[0] / (num_predictions / shares)).backward()
        sums += loss_and_nll.detach().double().cpu()
    group.sum_gradients(model.parameters())
    loss, nll = (group.sum(sums) / num_predictions).tolist()
    gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    gradient_norm = whole(torch.nn.utils.get_total_norm(gradients))
    _check_finite(step, loss, gradient_norm=gradient_norm.item(), learning_rate=learning_rate)
    if clip_norm is not None:
        torch.nn.utils.clip_grads_with_norm_(model.parameters(), clip_norm, gradient_norm)
    for settings in optimizer.param_groups:
        settings["lr"] = learning_rate
    optimizer.step()
    return StepResult(
        loss=loss,
        nll=nll,
        gradient_norm=gradient_norm.item(),
        num_target_tokens=num_predictions,
        num_tokens=num_tokens,
        num_padded_tokens=num_padded_tokens,
    )


@contextmanager
def _told_where_memory_ends(step: int, batch: Batch) -> Generator[None]:
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        rows, length = batch.source_BS.shape[0], max(batch.source_BS.shape[1], batch.target_in_BT.shape[1])
        raise TrainingError(
            f"train/step: step {step:,}: memory ran out on a microbatch of {rows:,} sentences of up to {length:,} "
            f"tokens, {rows * length:,} in all. The weights have not moved and the last training state is good. "
            f"Remedy: set train.microbatch_tokens to {max(rows * length // 2, length):,} or less, which computes the "
            "same steps in smaller parts; it begins a run anew (--fresh)"
        ) from error


def microbatch_seed(seed: int, step: int, index: int) -> int:
    """Where the random stream of a microbatch starts; unlike numbers give unrelated streams."""
    digest = hashlib.blake2b(f"{seed} {step} {index}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


def _count(batches: Sequence[Batch], objective: Objective) -> Tensor:
    """Predictions, tokens and positions of the microbatches; one without target tokens only fills a gap."""
    real = [batch for batch in batches if batch.num_target_tokens]
    counts = [(objective.num_predictions(batch), batch.num_tokens, batch.num_padded_tokens) for batch in real]
    return torch.tensor([(0, 0, 0), *counts]).sum(dim=0)


def _check_finite(step: int, loss: float, *, gradient_norm: float, learning_rate: float) -> None:
    if math.isfinite(loss) and math.isfinite(gradient_norm):
        return
    raise TrainingError(
        f"train/step: step {step}: loss {loss}, gradient norm {gradient_norm}, at learning rate {learning_rate:.3g}; "
        "finite numbers are wanted. The weights have not moved and the last training state is good. "
        "Remedy: lower train.learning_rate or raise train.warmup_steps; or set train.clip_norm = 1.0; "
        "or set train.precision = float32"
    )
