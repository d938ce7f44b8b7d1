"""A language model as a Predictor: its source has length 0, and what it is to go on from is a forced prefix.

Shapes: B texts, S source positions (0), R rows under way, D d_model, V vocabulary.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from headway.model.language_model import LanguageModel
from headway.nn.cache import KeyValue


@dataclass(frozen=True, slots=True)
class LanguageState:
    """Everything the next step needs: the keys and values of each layer, empty before the first token."""

    past: tuple[KeyValue, ...]  # with a window no more than can be seen
    position: int


class LanguagePredictor:
    """Cached, step-by-step generation with one model."""

    def __init__(self, model: LanguageModel) -> None:
        self.model = model

    def start(self, source_BS: Tensor, source_mask_BS: Tensor) -> LanguageState:
        """Nothing has been read yet: there is no source."""
        assert source_BS.shape[1] == 0, "a language model has no source"
        return LanguageState((), 0)

    @torch.inference_mode()
    def predict(self, token_R: Tensor, state: LanguageState) -> tuple[Tensor, LanguageState]:
        """Log-probabilities (R, V) of the token after ``token_R``, in float32."""
        stem, window = self.model.target_stem, self.model.window
        num_past = state.position if window is None else min(state.position, window)
        x_R1D, past = self.model.decoder.step(
            stem(token_R[:, None], state.position),
            state.past,
            span=stem.position.span(1, num_past + 1, state.position),
        )
        log_probs_RV = self.model.output(x_R1D[:, 0]).float().log_softmax(dim=-1)
        return log_probs_RV, LanguageState(past, state.position + 1)

    @torch.inference_mode()
    def select(self, state: LanguageState, rows_R: Tensor) -> LanguageState:
        """Reorder, repeat or drop rows."""
        return LanguageState(tuple(layer.select(rows_R) for layer in state.past), state.position)
