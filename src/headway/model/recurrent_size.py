"""Sizes of the recurrent model (``recurrent_model.py``), without torch.

Letters: d = d_model, g = gates of a cell, V = vocabulary, N and M = layers of encoder and decoder, n = source length.
"""

from headway.config.model_config import ModelConfig
from headway.model.counts import MultiplyAdds, ParameterCounts

GATES = {"lstm": 4, "gru": 3}


def count_parameters(config: ModelConfig, embedding: int) -> ParameterCounts:
    """Count the parameters exactly; ``embedding`` are those of the embedding matrices.

    A layer that reads i numbers and has a state of s: g s (i + s + 2), two biases counted. The encoder's have two
    directions of d / 2 each, the decoder's read d at first and then 2 d. Attention: two matrices of d x d, a bias and a
    vector of d; readout: 2 d x d and a bias.
    """
    d, gates = config.d_model, GATES[config.recurrent_cell]
    half = d // 2
    return ParameterCounts(
        embedding=embedding,
        positions=0,
        encoder_attention=0,
        encoder_feed_forward=0,
        encoder_norm=0,
        decoder_self_attention=0,
        decoder_cross_attention=2 * d * d + 2 * d,
        decoder_feed_forward=0,
        decoder_norm=0,
        output_bias=config.vocab_size if config.output_bias else 0,
        encoder_recurrent=config.num_encoder_layers * 2 * gates * half * (d + half + 2),
        decoder_recurrent=gates * d * (2 * d + 2) + (config.num_decoder_layers - 1) * gates * d * (3 * d + 2),
        readout=2 * d * d + d,
    )


def count_multiply_adds(config: ModelConfig, source_length: int) -> MultiplyAdds:
    """Count the multiply-adds of the matrix products, for a token of each side.

    Encoder, a source token:   N g d (3 / 2) d
    Keys, a source token:      d d
    Decoder, a target token:   g d 2 d + (M - 1) g d 3 d, attention d d + 2 n d, readout 2 d d
    Softmax, a target token:   d V

    Products of gates with states, hyperbolic tangents and biases are left out.
    """
    d, gates = config.d_model, GATES[config.recurrent_cell]
    layers = gates * d * 2 * d + (config.num_decoder_layers - 1) * gates * d * 3 * d
    return MultiplyAdds(
        encoder=config.num_encoder_layers * gates * d * (d + d // 2),
        cross_projection=d * d,
        decoder=layers + d * d + 2 * source_length * d + 2 * d * d,
        softmax=d * config.vocab_size,
    )


def kept_numbers(config: ModelConfig, length: int) -> int:
    """Count the numbers that a pair of tokens leaves for the backward pass.

    A layer: what it reads, gates, and of an LSTM the cell, itself and its tangent; 2 d for its dropout and sum. The
    attention: n d inside, 3 n weights, and keys, queries and contexts; the readout: 5 d. Embeddings: 3 d a stack.
    """
    d, gates = config.d_model, GATES[config.recurrent_cell]
    state = (gates + 4) * d
    encoder = config.num_encoder_layers * (state + d)
    decoder = config.num_decoder_layers * (state + 2 * d) - d
    return encoder + decoder + (d + 3) * length + 3 * d + 5 * d + 6 * d
