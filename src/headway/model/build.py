"""Configuration into parts: the only place that reads a ModelConfig to make layers."""

from collections.abc import Callable, Mapping

import numpy as np
import torch
from torch import nn

from headway.config.model_config import ModelConfig
from headway.config.positions import read_bits
from headway.config.residual_scaling import RESIDUAL_SCALINGS, Scaling
from headway.errors import ModelError
from headway.model.convolutional_model import (
    ConvolutionalDecoder,
    ConvolutionalDecoderLayer,
    ConvolutionalEncoder,
    ConvolutionalEncoderLayer,
    ConvolutionalModel,
)
from headway.model.decoder import Decoder, DecoderLayer
from headway.model.encoder import Encoder, EncoderLayer
from headway.model.init import initialise
from headway.model.init_sequential import initialise_convolutional, initialise_recurrent
from headway.model.language_model import LanguageModel
from headway.model.recurrent_model import RecurrentDecoder, RecurrentEncoder, RecurrentModel
from headway.model.text_encoder import Classifier, TextEncoder
from headway.model.token_model import TokenModel
from headway.model.transformer import Stem, Transformer
from headway.model.translation_model import TranslationModel
from headway.nn.additive_attention import AdditiveAttention
from headway.nn.attention import MultiHeadAttention
from headway.nn.convolution import Convolution
from headway.nn.dropout import Dropout
from headway.nn.embedding import OutputProjection, TokenEmbedding
from headway.nn.feed_forward import FEED_FORWARDS, FeedForward, GatedFeedForward
from headway.nn.multi_step_attention import MultiStepAttention
from headway.nn.norm import NORMS
from headway.nn.position import POSITIONS, NoPosition, Position, Stack
from headway.nn.recurrent import Recurrent
from headway.nn.residual import SUBLAYERS, DeepNorm, Sublayer
from headway.nn.score import ATTENTION_SCORES
from headway.nn.words import WordCounter, WordDistance


def build_transformer(config: ModelConfig, *, seed: int = 1) -> Transformer:
    """A freshly initialised model on the CPU, in float32."""
    source_embedding, target_embedding, output = _embeddings(config)
    scalings = RESIDUAL_SCALINGS[config.residual_scaling](config.num_encoder_layers, config.num_decoder_layers)
    encoder_layers = [_encoder_layer(config, scalings[0]) for _ in range(config.num_encoder_layers)]
    decoder_layers = [_decoder_layer(config, scalings[1]) for _ in range(config.num_decoder_layers)]
    model = Transformer(
        _counting_stem(config, source_embedding, is_target=False),
        _counting_stem(config, target_embedding, is_target=True),
        encoder=Encoder(encoder_layers, norm=_final_norm(config)),
        decoder=Decoder(decoder_layers, norm=_final_norm(config)),
        output=output,
        window=config.attention_window,
        word_distance=WordDistance(config.num_heads) if config.cross_positions == "words" else None,
    )
    initialise(model, seed, encoder_gain=scalings[0].beta, decoder_gain=scalings[1].beta)
    return model


def build_recurrent(config: ModelConfig, *, seed: int = 1) -> RecurrentModel:
    """The same, of recurrent layers."""
    source_embedding, target_embedding, output = _embeddings(config)
    model = RecurrentModel(
        Stem(source_embedding, NoPosition(), dropout=Dropout(config.dropout)),
        Stem(target_embedding, NoPosition(), dropout=Dropout(config.dropout)),
        encoder=RecurrentEncoder(
            [_recurrent(config, causal=False) for _ in range(config.num_encoder_layers)],
            dropout=Dropout(config.dropout),
        ),
        decoder=RecurrentDecoder(
            [_recurrent(config, causal=True, is_first=layer == 0) for layer in range(config.num_decoder_layers)],
            AdditiveAttention(config.d_model, config.d_model),
            dropout=Dropout(config.dropout),
        ),
        output=output,
    )
    initialise_recurrent(model, seed)
    return model


def build_convolutional(config: ModelConfig, *, seed: int = 1) -> ConvolutionalModel:
    """The same, of convolutional layers."""
    source_embedding, target_embedding, output = _embeddings(config)
    encoder_layers = [
        ConvolutionalEncoderLayer(_convolution(config, causal=False), dropout=Dropout(config.dropout))
        for _ in range(config.num_encoder_layers)
    ]
    decoder_layers = [
        ConvolutionalDecoderLayer(
            _convolution(config, causal=True), MultiStepAttention(config.d_model), dropout=Dropout(config.dropout)
        )
        for _ in range(config.num_decoder_layers)
    ]
    model = ConvolutionalModel(
        Stem(source_embedding, _position(config, causal=False), dropout=Dropout(config.dropout)),
        Stem(target_embedding, _position(config, causal=True), dropout=Dropout(config.dropout)),
        encoder=ConvolutionalEncoder(encoder_layers),
        decoder=ConvolutionalDecoder(decoder_layers, dropout=Dropout(config.dropout)),
        output=output,
    )
    initialise_convolutional(model, seed, dropout=config.dropout)
    return model


def build_language_model(config: ModelConfig, *, seed: int = 1) -> LanguageModel:
    """The same, of a decoder alone."""
    _, scaling = RESIDUAL_SCALINGS[config.residual_scaling](0, config.num_decoder_layers)
    embedding, output = _own_embedding(config)
    model = LanguageModel(
        Stem(embedding, _position(config, causal=True), dropout=Dropout(config.dropout)),
        Encoder([_encoder_layer(config, scaling) for _ in range(config.num_decoder_layers)], norm=_final_norm(config)),
        output=output,
        window=config.attention_window,
    )
    initialise(model, seed, encoder_gain=scaling.beta)
    return model


def build_text_encoder(config: ModelConfig, *, seed: int = 1) -> TextEncoder:
    """The same, of an encoder alone; with a classifier where the configuration counts classes."""
    scaling, _ = RESIDUAL_SCALINGS[config.residual_scaling](config.num_encoder_layers, 0)
    embedding, output = _own_embedding(config)
    classifier = None
    if config.num_classes is not None:
        classifier = Classifier(config.d_model, config.num_classes, dropout=Dropout(config.dropout))
    model = TextEncoder(
        Stem(embedding, _position(config, causal=False), dropout=Dropout(config.dropout)),
        Encoder([_encoder_layer(config, scaling) for _ in range(config.num_encoder_layers)], norm=_final_norm(config)),
        output=output,
        classifier=classifier,
        window=config.attention_window,
    )
    initialise(model, seed, encoder_gain=scaling.beta)
    return model


TRANSLATION_MODELS: dict[str, Callable[..., TranslationModel]] = {
    "transformer": build_transformer,
    "recurrent": build_recurrent,
    "convolutional": build_convolutional,
}
ARCHITECTURES: dict[str, Callable[..., TokenModel]] = {
    **TRANSLATION_MODELS,
    "decoder_only": build_language_model,
    "encoder_only": build_text_encoder,
}


def build_model(config: ModelConfig, *, seed: int = 1) -> TokenModel:
    """A freshly initialised model of the architecture that the configuration names."""
    return ARCHITECTURES[config.architecture](config, seed=seed)


def build_translation_model(config: ModelConfig, *, seed: int = 1) -> TranslationModel:
    """The same, of an architecture that translates."""
    return TRANSLATION_MODELS[config.architecture](config, seed=seed)


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
    scaled, source_vocab_size = config.embedding_scale, config.source_vocab_size or config.vocab_size
    source_embedding = TokenEmbedding(source_vocab_size, config.d_model, scaled=scaled)
    target_embedding = TokenEmbedding(config.vocab_size, config.d_model, scaled=scaled)
    output = OutputProjection(config.vocab_size, config.d_model, bias=config.output_bias)
    if config.embedding_sharing in ("all", "target"):
        output.weight = target_embedding.weight
    if config.embedding_sharing == "all":
        source_embedding.weight = target_embedding.weight
    return source_embedding, target_embedding, output


def _own_embedding(config: ModelConfig) -> tuple[TokenEmbedding, OutputProjection]:
    """The two of a model of one stack; one matrix, unless nothing is shared."""
    embedding = TokenEmbedding(config.vocab_size, config.d_model, scaled=config.embedding_scale)
    output = OutputProjection(config.vocab_size, config.d_model, bias=config.output_bias)
    if config.embedding_sharing != "none":
        output.weight = embedding.weight
    return embedding, output


def _counting_stem(config: ModelConfig, embedding: TokenEmbedding, *, is_target: bool) -> Stem:
    position, counter = _position(config, causal=is_target), _counter(config, is_target=is_target)
    return Stem(embedding, position, dropout=Dropout(config.dropout), counter=counter)


def _position(config: ModelConfig, *, causal: bool) -> Position:
    stack = Stack(config.d_model, config.num_heads, config.key_size, config.max_positions, causal)
    return POSITIONS[config.positions](stack)


def _counter(config: ModelConfig, *, is_target: bool) -> WordCounter | None:
    """What counts the words of one side, where the configuration asks for it."""
    if not config.counts_words:
        return None
    digits = config.target_word_starts if is_target else config.source_word_starts
    if not digits:
        raise ModelError(
            "model/build: words are counted, and the configuration does not say which tokens begin one. Remedy: "
            "train a parser by a recipe, which finds them; or use config.json and model.safetensors of one folder"
        )
    vocab_size = config.vocab_size if is_target else config.source_vocab_size or config.vocab_size
    return WordCounter(read_bits(digits), vocab_size)


def _recurrent(config: ModelConfig, *, causal: bool, is_first: bool = True) -> Recurrent:
    """A layer; those of the decoder above its first read what the source has given too."""
    d_input = config.d_model if is_first else 2 * config.d_model
    return Recurrent(config.d_model, config.recurrent_cell, causal=causal, d_input=d_input)


def _convolution(config: ModelConfig, *, causal: bool) -> Convolution:
    """A layer's convolution; half of what it gives are gates."""
    return Convolution(config.d_model, config.kernel_size, causal=causal, d_output=2 * config.d_model)


def _encoder_layer(config: ModelConfig, scaling: Scaling) -> EncoderLayer:
    return EncoderLayer(
        _attention(config),
        _feed_forward(config),
        sublayers=(_sublayer(config, scaling), _sublayer(config, scaling)),
    )


def _decoder_layer(config: ModelConfig, scaling: Scaling) -> DecoderLayer:
    return DecoderLayer(
        _attention(config),
        _attention(config),
        feed_forward=_feed_forward(config),
        sublayers=(_sublayer(config, scaling), _sublayer(config, scaling), _sublayer(config, scaling)),
    )


def _attention(config: ModelConfig) -> MultiHeadAttention:
    return MultiHeadAttention(
        config.d_model,
        config.num_heads,
        d_k=config.key_size,
        d_v=config.value_size,
        bias=config.attention_bias,
        num_kv_heads=config.kv_heads,
        dropout=config.attention_dropout,
        score=ATTENTION_SCORES[config.attention_score](config.num_heads, config.key_size),
    )


def _feed_forward(config: ModelConfig) -> FeedForward | GatedFeedForward:
    return FEED_FORWARDS[config.activation](config.d_model, config.d_ff, dropout=config.activation_dropout)


def _sublayer(config: ModelConfig, scaling: Scaling) -> Sublayer:
    norm, dropout = _norm(config), Dropout(config.dropout)
    if config.residual_scaling == "deepnorm":
        return DeepNorm(norm, dropout, alpha=scaling.alpha)
    return SUBLAYERS[config.norm_placement](norm, dropout)


def _final_norm(config: ModelConfig) -> nn.Module:
    """A norm at the end of a stack whose layers do not end in one."""
    return nn.Identity() if SUBLAYERS[config.norm_placement].ends_in_norm else _norm(config)


def _norm(config: ModelConfig) -> nn.Module:
    return NORMS[config.norm](config.d_model, config.norm_epsilon)
