"""Initial weights, as the paper's code draws them; the paper itself is silent.

Embeddings: normal, standard deviation d_model^-0.5, the padding row zero. Matrices: Glorot uniform, where projections
of the same vectors count as one matrix (self-attention's query, key and value; cross-attention's key and value).
Biases 0, norm gains 1.

Parts that came later: a gated feed-forward network has Glorot's limits for each of its three matrices; T5's table is
normal with deviation d_model^-0.5, as in its code; the vectors of additive scores have Glorot's limits of a matrix of
d_k x 1; the bias of the logits is 0. With fewer heads of keys and values the
matrices that count as one are narrower, so their limits are wider. DeepNorm multiplies the limits of feed-forward,
value and output matrices by its beta (Wang et al. 2022, Figure 2, with Glorot's normal law there). Pre-norm is drawn
as post-norm is.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from headway.model.decoder import DecoderLayer
from headway.model.encoder import EncoderLayer
from headway.model.text_encoder import Classifier
from headway.model.token_model import TokenModel
from headway.nn.attention import MultiHeadAttention
from headway.nn.embedding import OutputProjection, TokenEmbedding
from headway.nn.feed_forward import FeedForward, GatedFeedForward
from headway.nn.position import Learned, RelativeBuckets
from headway.nn.score import AdditiveScore


def initialise(model: TokenModel, seed: int, *, encoder_gain: float = 1.0, decoder_gain: float = 1.0) -> None:
    """Draw every weight of the model from ``seed`` alone; the gains are DeepNorm's beta of each stack."""
    generator = torch.Generator().manual_seed(seed)
    d_model = model.output.weight.shape[1]
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, EncoderLayer):
                _self_attention(module.self_attention, generator, encoder_gain)
                _feed_forward(module.feed_forward, generator, encoder_gain)
            elif isinstance(module, DecoderLayer):
                _self_attention(module.self_attention, generator, decoder_gain)
                _cross_attention(module.cross_attention, generator, decoder_gain)
                _feed_forward(module.feed_forward, generator, decoder_gain)
            elif isinstance(module, TokenEmbedding | OutputProjection):
                draw_rows(module.weight, generator, d_model)
                module.weight[0] = 0.0
            elif isinstance(module, Classifier):
                for layer in (module.dense, module.output):
                    draw_glorot((layer,), generator, (1.0,))
            elif isinstance(module, Learned | RelativeBuckets):
                draw_rows(module.weight, generator, d_model)
            elif isinstance(module, AdditiveScore):
                limit = math.sqrt(6.0 / (module.weight.numel() // module.num_heads + 1))
                module.weight.uniform_(-limit, limit, generator=generator)
        if model.output.bias is not None:
            model.output.bias.zero_()


def draw_rows(weight: Tensor, generator: torch.Generator, d_model: int) -> None:
    """Normal, of deviation d_model^-0.5."""
    weight.normal_(0.0, d_model**-0.5, generator=generator)


def _self_attention(attention: MultiHeadAttention, generator: torch.Generator, gain: float) -> None:
    together = (attention.query, attention.key, attention.value)
    draw_glorot(together, generator, (1.0, 1.0, gain))
    draw_glorot((attention.output,), generator, (gain,))


def _cross_attention(attention: MultiHeadAttention, generator: torch.Generator, gain: float) -> None:
    draw_glorot((attention.query,), generator, (1.0,))
    draw_glorot((attention.key, attention.value), generator, (1.0, gain))
    draw_glorot((attention.output,), generator, (gain,))


def _feed_forward(feed_forward: FeedForward | GatedFeedForward, generator: torch.Generator, gain: float) -> None:
    for layer in feed_forward.children():
        if isinstance(layer, nn.Linear):
            draw_glorot((layer,), generator, (gain,))


def draw_glorot(layers: Sequence[nn.Linear], generator: torch.Generator, gains: Sequence[float]) -> None:
    """Uniform within +-gain x sqrt(6 / (fan in + fan out)), the layers taken as one matrix (Glorot and Bengio 2010)."""
    fan_out = sum(layer.out_features for layer in layers)
    limit = math.sqrt(6.0 / (layers[0].in_features + fan_out))
    for layer, gain in zip(layers, gains, strict=True):
        for parameter in layer.parameters():
            if parameter.dim() == 2:
                parameter.uniform_(-gain * limit, gain * limit, generator=generator)
            else:
                parameter.zero_()
