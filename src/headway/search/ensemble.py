"""Several models as one: at every step the mean of their probabilities.

Shapes: B sentences, S source positions, R rows, M models, V vocabulary.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from headway.search.predictor import Predictor


class EnsemblePredictor:
    """Predictors of one vocabulary that take every step together; the state is a tuple of theirs.

    The probability of a token is the arithmetic mean of the models' (``geometric``: the geometric mean, scaled so that
    a step's probabilities sum to 1). An ensemble of one gives that model's numbers bit for bit.
    """

    def __init__(self, predictors: Sequence[Predictor[Any]], *, geometric: bool = False) -> None:
        assert predictors
        self.predictors = tuple(predictors)
        self.geometric = geometric

    def start(self, source_BS: Tensor, source_mask_BS: Tensor) -> tuple[Any, ...]:
        """Every model reads the sources."""
        return tuple(predictor.start(source_BS, source_mask_BS) for predictor in self.predictors)

    def predict(self, token_R: Tensor, state: tuple[Any, ...]) -> tuple[Tensor, tuple[Any, ...]]:
        """The logarithm of the mean probabilities (R, V)."""
        steps = [predictor.predict(token_R, own) for predictor, own in zip(self.predictors, state, strict=True)]
        state = tuple(own for _, own in steps)
        if len(steps) == 1:
            return steps[0][0], state
        log_probs_MRV = torch.stack([log_probs for log_probs, _ in steps])
        return (_geometric_mean(log_probs_MRV) if self.geometric else _mean(log_probs_MRV)), state

    def select(self, state: tuple[Any, ...], rows_R: Tensor) -> tuple[Any, ...]:
        """The rows of every model's state."""
        return tuple(predictor.select(own, rows_R) for predictor, own in zip(self.predictors, state, strict=True))


def _mean(log_probs_MRV: Tensor) -> Tensor:
    """log(mean(exp)); of equal values that value exactly, because the largest is taken out before and put back."""
    largest_RV = log_probs_MRV.amax(dim=0)
    largest_RV = largest_RV.masked_fill(largest_RV == -torch.inf, 0.0)
    return (log_probs_MRV - largest_RV).exp().mean(dim=0).log() + largest_RV


def _geometric_mean(log_probs_MRV: Tensor) -> Tensor:
    """The mean of the logarithms, normalised."""
    return log_probs_MRV.mean(dim=0).log_softmax(dim=-1)
