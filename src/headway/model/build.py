"""Configuration into parts: the only place that reads a ModelConfig to make layers."""

from collections.abc import Mapping

import numpy as np
import torch
from torch import nn

from headway.config.schema import ModelConfig
from headway.errors import ModelError
from headway.model.decoder import Decoder, DecoderLayer
from headway.model.encoder import Encoder, EncoderLayer
from headway.model.init import initialise
from headway.model.transformer import Stem, Transformer
from headway.nn.attention import MultiHeadAttention
from headway.nn.dropout import Dropout
from headway.nn.embedding import OutputProjection, TokenEmbedding
from headway.nn.feed_forward import FeedForward
from headway.nn.norm import layer_norm
from headway.nn.position import POSITIONS
from headway.nn.residual import PostNorm


def build_transformer(config: ModelConfig, *, seed: int = 1) -> Transformer:
    """A freshly initialised model on the CPU, in float32."""
    source_embedding, target_embedding, output = _embeddings(config)
    position = POSITIONS[config.positions]
    model = Transformer(
        Stem(source_embedding, position(config.d_model, config.max_positions), dropout=Dropout(config.dropout)),
        Stem(target_embedding, position(config.d_model, config.max_positions), dropout=Dropout(config.dropout)),
        encoder=Encoder(_encoder_layer(config) for _ in range(config.num_encoder_layers)),
        decoder=Decoder(_decoder_layer(config) for _ in range(config.num_decoder_layers)),
        output=output,
    )
    initialise(model, seed)
    return model


def export_weights(model: nn.Module) -> dict[str, np.ndarray]:
    """Every parameter once, by its first name, as float32 arrays that share no memory with the model."""
    return {
        name: parameter.detach().to("cpu", torch.float32, copy=True).numpy()
        for name, parameter in model.named_parameters()
    }


def load_weights(model: nn.Module, weights: Mapping[str, np.ndarray]) -> None:
    """Copy weights into the model in place, so that what was shared stays shared; names and shapes must fit."""
    parameters = dict(model.named_parameters())
    missing = sorted(parameters.keys() - weights.keys())
    extra = sorted(weights.keys() - parameters.keys())
    if missing or extra:
        raise ModelError(
            f"model/build: the weights are not this model's: {len(missing)} missing (first: {missing[:1]}), "
            f"{len(extra)} unknown (first: {extra[:1]}). Remedy: use config.json and model.safetensors of one folder"
        )
    for name, parameter in parameters.items():
        if tuple(weights[name].shape) != tuple(parameter.shape):
            raise ModelError(
                f"model/build: {name} has shape {tuple(weights[name].shape)}, the configuration wants "
                f"{tuple(parameter.shape)}. Remedy: use config.json and model.safetensors of one folder"
            )
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(torch.from_numpy(np.array(weights[name], dtype=np.float32)))


def _embeddings(config: ModelConfig) -> tuple[TokenEmbedding, TokenEmbedding, OutputProjection]:
    """Source, target and softmax matrix, shared as the configuration says (Section 3.4)."""
    source_embedding = TokenEmbedding(config.source_vocab_size or config.vocab_size, config.d_model)
    target_embedding = TokenEmbedding(config.vocab_size, config.d_model)
    output = OutputProjection(config.vocab_size, config.d_model)
    if config.embedding_sharing in ("all", "target"):
        output.weight = target_embedding.weight
    if config.embedding_sharing == "all":
        source_embedding.weight = target_embedding.weight
    return source_embedding, target_embedding, output


def _encoder_layer(config: ModelConfig) -> EncoderLayer:
    return EncoderLayer(
        _attention(config),
        FeedForward(config.d_model, config.d_ff),
        sublayers=(_sublayer(config), _sublayer(config)),
    )


def _decoder_layer(config: ModelConfig) -> DecoderLayer:
    return DecoderLayer(
        _attention(config),
        _attention(config),
        feed_forward=FeedForward(config.d_model, config.d_ff),
        sublayers=(_sublayer(config), _sublayer(config), _sublayer(config)),
    )


def _attention(config: ModelConfig) -> MultiHeadAttention:
    return MultiHeadAttention(
        config.d_model, config.num_heads, d_k=config.key_size, d_v=config.value_size, bias=config.attention_bias
    )


def _sublayer(config: ModelConfig) -> PostNorm:
    return PostNorm(layer_norm(config.d_model), Dropout(config.dropout))
