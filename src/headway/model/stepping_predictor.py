"""A model that steps, as a Predictor.

Shapes: B sentences, S source positions, R rows under way, D d_model, V vocabulary.
"""

from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import torch
from torch import Tensor

from headway.model.translation_model import SteppingModel
from headway.nn.sequence import Past

MemoryT = TypeVar("MemoryT", bound=Past)
PastT = TypeVar("PastT", bound=Past)


@dataclass(frozen=True, slots=True)
class SteppingState(Generic[MemoryT, PastT]):
    """Everything the next step needs. ``sentence_R`` says which source each row reads."""

    sentence_R: Tensor
    memory: MemoryT  # a row each
    past: tuple[PastT, ...]  # one a layer; empty before the first token
    position: int


class SteppingPredictor(Generic[MemoryT, PastT]):
    """Cached, step-by-step decoding with one model."""

    def __init__(self, model: SteppingModel[MemoryT, PastT]) -> None:
        self.model = model

    @torch.inference_mode()
    def start(self, source_BS: Tensor, source_mask_BS: Tensor) -> SteppingState[MemoryT, PastT]:
        """Run the encoder once."""
        memory = self.model.remember(source_BS, source_mask_BS)
        return SteppingState(torch.arange(source_BS.shape[0], device=source_BS.device), memory, (), 0)

    @torch.inference_mode()
    def predict(
        self, token_R: Tensor, state: SteppingState[MemoryT, PastT]
    ) -> tuple[Tensor, SteppingState[MemoryT, PastT]]:
        """Log-probabilities (R, V) of the token after ``token_R``, in float32."""
        hidden_RD, past = self.model.step(token_R, state.position, memory=state.memory, past=state.past)
        log_probs_RV = self.model.output(hidden_RD).float().log_softmax(dim=-1)
        return log_probs_RV, replace(state, past=past, position=state.position + 1)

    @torch.inference_mode()
    def select(self, state: SteppingState[MemoryT, PastT], rows_R: Tensor) -> SteppingState[MemoryT, PastT]:
        """Reorder, repeat or drop rows. What belongs to the source is copied only when its rows change."""
        sentence_R = state.sentence_R.index_select(0, rows_R)
        past = tuple(layer.select(rows_R) for layer in state.past)
        if torch.equal(sentence_R, state.sentence_R):
            return replace(state, past=past)
        return SteppingState(sentence_R, state.memory.select(rows_R), past, state.position)
