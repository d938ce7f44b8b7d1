"""The model as a Predictor, and the forced pass that looks at a chosen output.

Shapes: B sentences, S source positions, T target positions, R rows under way, D d_model, V vocabulary.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from headway.model.stepping_predictor import SteppingPredictor
from headway.model.transformer import Transformer
from headway.model.translation_model import Looking, SteppingModel, TranslationModel
from headway.nn.attention import MultiHeadAttention, allowed
from headway.nn.cache import KeyValue
from headway.nn.masks import key_mask
from headway.search.predictor import Predictor


@dataclass(frozen=True, slots=True)
class DecoderState:
    """Everything the next step needs. ``sentence_R`` says which source each row reads."""

    sentence_R: Tensor
    memory: tuple[KeyValue, ...]  # one a layer: the source's keys and values, a row each
    cross_mask_R11S: Tensor | None
    past: tuple[KeyValue, ...]  # one a layer; empty before the first token; with a window no more than can be seen
    position: int
    word_R: Tensor | None = None  # the word that each row is at, where words are counted
    source_word_RS: Tensor | None = None  # that of each token of its source


class TransformerPredictor:
    """Cached, step-by-step decoding with one model."""

    def __init__(self, model: Transformer) -> None:
        self.model = model

    @torch.inference_mode()
    def start(self, source_BS: Tensor, source_mask_BS: Tensor) -> DecoderState:
        """Run the encoder once, and project its memory for every decoder layer once."""
        mask_B11S = allowed(key_mask(source_mask_BS))
        memory_BSD = self.model.encode(source_BS, mask_B11S)
        memory = tuple(layer.cross_attention.keys_values(memory_BSD) for layer in self.model.decoder.each_layer())
        sentence_R = torch.arange(source_BS.shape[0], device=source_BS.device)
        return DecoderState(
            sentence_R, memory, mask_B11S, (), 0, source_word_RS=self.model.source_stem.words(source_BS)
        )

    @torch.inference_mode()
    def predict(self, token_R: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        """Log-probabilities (R, V) of the token after ``token_R``, in float32."""
        stem, window = self.model.target_stem, self.model.window
        word_R1 = stem.words(token_R[:, None], state.word_R)
        num_past = state.position if window is None else min(state.position, window)
        x_R1D, past = self.model.decoder.step(
            stem(token_R[:, None], state.position, word_BT=word_R1),
            state.past,
            memory=state.memory,
            cross_mask=state.cross_mask_R11S,
            span=stem.position.span(1, num_past + 1, state.position),
            cross_bias_BHTS=self.model.cross_bias(word_R1, state.source_word_RS),
        )
        log_probs_RV = self.model.output(x_R1D[:, 0]).float().log_softmax(dim=-1)
        word_R = None if word_R1 is None else word_R1[:, 0]
        return log_probs_RV, replace(state, past=past, position=state.position + 1, word_R=word_R)

    @torch.inference_mode()
    def select(self, state: DecoderState, rows_R: Tensor) -> DecoderState:
        """Reorder, repeat or drop rows. What belongs to the source is copied only when its rows change."""
        sentence_R = state.sentence_R.index_select(0, rows_R)
        past = tuple(layer.select(rows_R) for layer in state.past)
        word_R = None if state.word_R is None else state.word_R.index_select(0, rows_R)
        if torch.equal(sentence_R, state.sentence_R):
            return replace(state, past=past, word_R=word_R)
        mask_R11S = None if state.cross_mask_R11S is None else state.cross_mask_R11S.index_select(0, rows_R)
        memory = tuple(layer.select(rows_R) for layer in state.memory)
        word_RS = None if state.source_word_RS is None else state.source_word_RS.index_select(0, rows_R)
        return DecoderState(sentence_R, memory, mask_R11S, past, state.position, word_R=word_R, source_word_RS=word_RS)


def predictor_of(model: TranslationModel) -> Predictor:
    """The model as search sees it."""
    if isinstance(model, SteppingModel):
        return SteppingPredictor(model)
    assert isinstance(model, Transformer)
    return TransformerPredictor(model)


@contextmanager
def recorded(attention: Looking, reduce: Callable[[Tensor], Tensor] | None = None) -> Generator[list[Tensor]]:
    """Within the block, the module's attention weights (B, H, T, S) are kept in the list, one entry a call.

    Or what ``reduce`` makes of them, where all of them would be too many.
    """
    weights: list[Tensor] = []
    attention.recorder = weights.append if reduce is None else lambda heard: weights.append(reduce(heard))
    try:
        yield weights
    finally:
        attention.recorder = None


@contextmanager
def gated(attention: MultiHeadAttention, gate_H: Tensor) -> Generator[None]:
    """Within the block, what each head of the module has mixed is multiplied by its number: 1 leaves it, 0 is off."""
    attention.gate_H = gate_H
    try:
        yield
    finally:
        attention.gate_H = None


@torch.inference_mode()
def forced_pass(
    model: TranslationModel, source_BS: Tensor, source_mask_BS: Tensor, *, target_in_BT: Tensor, target_out_BT: Tensor
) -> tuple[Tensor, Tensor]:
    """What the model thinks of a given output, all positions at once.

    Gives the log-probabilities (B, T) of target_out (0 at padding), and the last decoder layer's attention over the
    source (B, T, S), averaged over heads.
    """
    with recorded(model.looking()[-1]) as weights:
        logits_BTV = model(source_BS, source_mask_BS, target_in_BT)
    return target_log_probs(logits_BTV, target_out_BT), weights[0].mean(dim=1)


def target_log_probs(logits_BTV: Tensor, target_out_BT: Tensor) -> Tensor:
    """The log-probabilities (B, T) of the tokens that are to come, in float32; 0 at padding."""
    log_probs_BTV = logits_BTV.float().log_softmax(dim=-1)
    log_probs_BT = log_probs_BTV.gather(-1, target_out_BT[:, :, None])[:, :, 0]
    return log_probs_BT.masked_fill(target_out_BT == 0, 0.0)
