"""What a microbatch is trained on: likelihood alone, or likelihood and agreement of two passes.

Shapes: B sentences, S source positions, T target positions, N real target tokens, D d_model; a leading 2 is two passes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from headway.config.train_config import TrainConfig
from headway.data.batch import Batch
from headway.model.token_model import TokenModel
from headway.text.tokenizer import BOS_ID, EOS_ID
from headway.train.accuracy import correct_tokens
from headway.train.consistency import Weights, chunked_consistency_loss
from headway.train.loss import chunked_smoothed_loss


class Objective(Protocol):
    """What training makes small."""

    def sums(self, model: TokenModel, batch: Batch, *, precision: str) -> Tensor:
        """The loss and the negative log-likelihood of a batch, summed over its real target tokens (nats).

        Only the first carries a gradient. Random numbers come from torch's default generator, which the training step
        seeds for each microbatch.
        """
        ...

    def num_predictions(self, batch: Batch) -> int:
        """Over how many predictions the sums of a batch are; its draws change nothing of it."""
        ...


@dataclass(frozen=True, slots=True)
class Likelihood:
    """The smoothed likelihood of the target (Section 5.4)."""

    label_smoothing: float

    def num_predictions(self, batch: Batch) -> int:
        """Real target tokens."""
        return batch.num_target_tokens

    def sums(self, model: TokenModel, batch: Batch, *, precision: str) -> Tensor:
        """As ``Objective`` has it: the smoothed loss, and the likelihood without smoothing."""
        with products_in(precision, batch):
            return self._sums(model, *_real(model, batch, precision))

    def sums_and_correct(self, model: TokenModel, batch: Batch, *, precision: str) -> tuple[Tensor, Tensor]:
        """``sums``, and how many of the target tokens are the most probable where they stand; one forward pass."""
        with products_in(precision, batch):
            hidden_ND, target_N = _real(model, batch, precision)
            correct = correct_tokens(hidden_ND, model.output.weight, target_N=target_N, bias_V=model.output.bias)
            return self._sums(model, hidden_ND, target_N), correct

    def _sums(self, model: TokenModel, hidden_ND: Tensor, target_N: Tensor) -> Tensor:
        return chunked_smoothed_loss(
            hidden_ND,
            model.output.weight,
            target_N=target_N,
            label_smoothing=self.label_smoothing,
            bias_V=model.output.bias,
        )


@dataclass(frozen=True, slots=True)
class Agreement:
    """Likelihood, and agreement of two passes of the same sentences with other dropout masks.

    With a ``cutoff_share`` the second pass reads that share of the tokens as zero vectors. Both passes are one: twice
    the rows.
    """

    label_smoothing: float
    weights: Weights
    cutoff_share: float = 0.0

    def num_predictions(self, batch: Batch) -> int:
        """Real target tokens."""
        return batch.num_target_tokens

    def sums(self, model: TokenModel, batch: Batch, *, precision: str) -> Tensor:
        """As ``Objective`` has it: the loss with its divergences, and the likelihood by the shares of both passes."""
        kept_BS = kept_BT = None
        if self.cutoff_share:
            kept_BS = _twice(_kept(batch.source_BS, self.cutoff_share, spared=EOS_ID), whole_first=True)
            kept_BT = _twice(_kept(batch.target_in_BT, self.cutoff_share, spared=BOS_ID), whole_first=True)
        with products_in(precision, batch):
            hidden_BTD = model.hidden(
                _twice(batch.source_BS),
                _twice(batch.source_mask_BS),
                _twice(batch.target_in_BT),
                source_kept_BS=kept_BS,
                target_kept_BT=kept_BT,
            )
            real_BT = batch.target_out_BT != 0
            return chunked_consistency_loss(
                narrowed(hidden_BTD.unflatten(0, (2, -1))[:, real_BT], precision),
                model.output.weight,
                target_N=batch.target_out_BT[real_BT],
                label_smoothing=self.label_smoothing,
                weights=self.weights,
                bias_V=model.output.bias,
            )


def likelihood(train: TrainConfig) -> Objective:
    """The paper's: one pass, no agreement."""
    return Likelihood(train.label_smoothing)


def r_drop(train: TrainConfig) -> Objective:
    """R-Drop (Liang et al. 2021): two passes that differ by their dropout masks alone.

    The paper's loss, and its code's, is L(p) + L(q) + alpha / 2 (KL(p || q) + KL(q || p)) a token; this is half of it,
    so that a loss stays that of one token and the likelihood counts as much as without R-Drop.
    """
    alpha = 5.0 if train.consistency_weight is None else train.consistency_weight
    return Agreement(train.label_smoothing, Weights(first=0.5, second=0.5, divergence=alpha / 4, reverse=alpha / 4))


def cutoff(train: TrainConfig) -> Objective:
    """Token cutoff in its simple form, SimCut (Gao et al. 2022; Shen et al. 2020): one whole pass, one with tokens cut.

    L(p) + alpha KL(p || q), where q is of the cut pass; as in SimCut's code the gradient flows through p and q alike.
    """
    alpha = 3.0 if train.consistency_weight is None else train.consistency_weight
    weights = Weights(first=1.0, second=0.0, divergence=alpha, reverse=0.0)
    return Agreement(train.label_smoothing, weights, cutoff_share=train.cutoff_share)


OBJECTIVES: dict[str, Callable[[TrainConfig], Objective]] = {"none": likelihood, "rdrop": r_drop, "cutoff": cutoff}


def build_objective(train: TrainConfig) -> Objective:
    """What this recipe trains on. Validation always measures ``Likelihood``."""
    return OBJECTIVES[train.consistency](train)


def products_in(precision: str, batch: Batch) -> torch.autocast:
    """Matrix products in bf16 if the precision is that."""
    return torch.autocast(batch.source_BS.device.type, dtype=torch.bfloat16, enabled=precision == "bf16")


def _real(model: TokenModel, batch: Batch, precision: str) -> tuple[Tensor, Tensor]:
    """The decoder's vectors (N, D) of a batch where real target tokens stand, and these (N)."""
    hidden_BTD = model.hidden(batch.source_BS, batch.source_mask_BS, batch.target_in_BT)
    real_BT = batch.target_out_BT != 0
    return narrowed(hidden_BTD[real_BT], precision), batch.target_out_BT[real_BT]


def narrowed(hidden: Tensor, precision: str) -> Tensor:
    """Vectors in the number format of the precision."""
    return hidden.bfloat16() if precision == "bf16" else hidden


def _twice(rows: Tensor, *, whole_first: bool = False) -> Tensor:
    """Rows for the first pass, then for the second; with ``whole_first`` a mask of which the first pass sees all."""
    return torch.cat((torch.ones_like(rows) if whole_first else rows, rows))


def _kept(token: Tensor, share: float, *, spared: int) -> Tensor:
    """Draw which tokens stay: each is cut with probability ``share``, but never one with the id ``spared``."""
    return (torch.rand(token.shape, device=token.device) >= share) | (token == spared)
