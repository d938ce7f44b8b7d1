"""A Predictor with several rows a source, for searches that follow several outputs of one source from the first step.

Shapes: B sentences, S source positions, R rows.
"""

from typing import Generic, TypeVar

import torch
from torch import Tensor

from headway.search.constraint import Constraint
from headway.search.predictor import Predictor

State = TypeVar("State")


class Repeated(Generic[State]):
    """Another Predictor whose state starts with ``count`` rows for every source; each source is read once."""

    def __init__(self, predictor: Predictor[State], count: int) -> None:
        self.predictor = predictor
        self.count = count

    def start(self, source_BS: Tensor, source_mask_BS: Tensor) -> State:
        """Read the sources and repeat each row: 0 0 0 1 1 1 ..."""
        state = self.predictor.start(source_BS, source_mask_BS)
        sources = torch.arange(source_BS.shape[0], device=source_BS.device)
        return self.predictor.select(state, sources.repeat_interleave(self.count))

    def predict(self, token_R: Tensor, state: State) -> tuple[Tensor, State]:
        """As the predictor does."""
        return self.predictor.predict(token_R, state)

    def select(self, state: State, rows_R: Tensor) -> State:
        """As the predictor does."""
        return self.predictor.select(state, rows_R)


def repeat_constraint(constraint: Constraint, count: int) -> Constraint:
    """The constraint of each sentence ``count`` times, in the order of ``Repeated``."""
    sentences = torch.arange(constraint.limit_B.numel(), device=constraint.limit_B.device)
    return constraint.select(sentences.repeat_interleave(count))
