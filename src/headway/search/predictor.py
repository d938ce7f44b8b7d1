"""All that any search may ask of a model.

Shapes: B sentences, S source positions, V vocabulary, R rows (hypotheses under way).
"""

from typing import Protocol, TypeVar

from torch import Tensor

State = TypeVar("State")


class Predictor(Protocol[State]):
    """Next-token probabilities, step by step. A float model, an ensemble and a test table all implement it."""

    def start(self, source_BS: Tensor, source_mask_BS: Tensor) -> State:
        """Read B sources (token ids, padded with 0; the mask is True at real tokens). The state has R = B rows."""
        ...

    def predict(self, token_R: Tensor, state: State) -> tuple[Tensor, State]:
        """Natural log-probabilities log_probs_RV (float32) of the token after ``token_R``; the first token is BOS."""
        ...

    def select(self, state: State, rows_R: Tensor) -> State:
        """The state with the given old rows, in that order; rows may repeat (open a beam) or be left out (drop)."""
        ...
