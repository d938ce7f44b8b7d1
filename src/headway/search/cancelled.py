"""A Predictor whose searches another thread may end.

Shapes: B sentences, S source positions, V vocabulary, R rows (hypotheses under way).
"""

from typing import Generic, TypeVar

from torch import Tensor

from headway.search.cancel import Cancel
from headway.search.predictor import Predictor

State = TypeVar("State")


class CancelledPredictor(Generic[State]):
    """Another Predictor, with a look at ``cancel`` before each of its steps: CancelledError once that is set."""

    def __init__(self, predictor: Predictor[State], cancel: Cancel) -> None:
        self.predictor = predictor
        self.cancel = cancel

    def start(self, source_BS: Tensor, source_mask_BS: Tensor) -> State:
        """Read the sources."""
        self.cancel.check()
        return self.predictor.start(source_BS, source_mask_BS)

    def predict(self, token_R: Tensor, state: State) -> tuple[Tensor, State]:
        """The log-probabilities (R, V) of the next token."""
        self.cancel.check()
        return self.predictor.predict(token_R, state)

    def select(self, state: State, rows_R: Tensor) -> State:
        """The state with the given old rows."""
        return self.predictor.select(state, rows_R)
