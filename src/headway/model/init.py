"""Initial weights, as the paper's code draws them; the paper itself is silent.

Embeddings: normal, standard deviation d_model^-0.5, the padding row zero. Matrices: Glorot uniform, where projections
of the same vectors count as one matrix (self-attention's query, key and value; cross-attention's key and value).
Biases 0, norm gains 1.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from headway.model.decoder import DecoderLayer
from headway.model.encoder import EncoderLayer
from headway.model.transformer import Transformer
from headway.nn.attention import MultiHeadAttention
from headway.nn.embedding import OutputProjection, TokenEmbedding
from headway.nn.feed_forward import FeedForward
from headway.nn.position import Learned


def initialise(model: Transformer, seed: int) -> None:
    """Draw every weight of the model from ``seed`` alone."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, EncoderLayer):
                _self_attention(module.self_attention, generator)
                _feed_forward(module.feed_forward, generator)
            elif isinstance(module, DecoderLayer):
                _self_attention(module.self_attention, generator)
                _cross_attention(module.cross_attention, generator)
                _feed_forward(module.feed_forward, generator)
            elif isinstance(module, TokenEmbedding | OutputProjection):
                _rows(module.weight, generator)
                module.weight[0] = 0.0
            elif isinstance(module, Learned):
                _rows(module.weight, generator)


def _rows(weight_VD: Tensor, generator: torch.Generator) -> None:
    weight_VD.normal_(0.0, weight_VD.shape[1] ** -0.5, generator=generator)


def _self_attention(attention: MultiHeadAttention, generator: torch.Generator) -> None:
    _glorot((attention.query, attention.key, attention.value), generator)
    _glorot((attention.output,), generator)


def _cross_attention(attention: MultiHeadAttention, generator: torch.Generator) -> None:
    _glorot((attention.query,), generator)
    _glorot((attention.key, attention.value), generator)
    _glorot((attention.output,), generator)


def _feed_forward(feed_forward: FeedForward, generator: torch.Generator) -> None:
    _glorot((feed_forward.inner,), generator)
    _glorot((feed_forward.outer,), generator)


def _glorot(layers: Sequence[nn.Linear], generator: torch.Generator) -> None:
    """Uniform within +-sqrt(6 / (fan in + fan out)), the layers taken as one matrix (Glorot and Bengio 2010)."""
    fan_out = sum(layer.out_features for layer in layers)
    limit = math.sqrt(6.0 / (layers[0].in_features + fan_out))
    for layer in layers:
        for parameter in layer.parameters():
            if parameter.dim() == 2:
                parameter.uniform_(-limit, limit, generator=generator)
            else:
                parameter.zero_()
