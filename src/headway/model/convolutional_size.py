"""Sizes of the convolutional model (``convolutional_model.py``), without torch.

Letters: d = d_model, k = kernel_size, V = vocabulary, N and M = layers of encoder and decoder, n = source length.
"""

from headway.config.model_config import ModelConfig
from headway.model.counts import MultiplyAdds, ParameterCounts


def count_parameters(config: ModelConfig, embedding: int) -> ParameterCounts:
    """Count the parameters exactly; ``embedding`` are those of the embedding matrices.

    A convolution: k d x 2 d and a bias of 2 d; the attention of a decoder layer: d x d and a bias.
    """
    d = config.d_model
    convolution = config.kernel_size * d * 2 * d + 2 * d
    return ParameterCounts(
        embedding=embedding,
        positions=2 * config.max_positions * d if config.positions == "learned" else 0,
        encoder_attention=0,
        encoder_feed_forward=0,
        encoder_norm=0,
        decoder_self_attention=0,
        decoder_cross_attention=config.num_decoder_layers * (d * d + d),
        decoder_feed_forward=0,
        decoder_norm=0,
        output_bias=config.vocab_size if config.output_bias else 0,
        encoder_convolution=config.num_encoder_layers * convolution,
        decoder_convolution=config.num_decoder_layers * convolution,
    )


def count_multiply_adds(config: ModelConfig, source_length: int) -> MultiplyAdds:
    """Count the multiply-adds of the matrix products, for a token of each side.

    Encoder, a source token:   N k d 2 d
    Decoder, a target token:   M (k d 2 d + d d + 2 n d)
    Softmax, a target token:   d V

    Zeros beside a sentence are counted as the tokens are; gates and biases are left out.
    """
    d = config.d_model
    convolution = config.kernel_size * d * 2 * d
    return MultiplyAdds(
        encoder=config.num_encoder_layers * convolution,
        cross_projection=0,
        decoder=config.num_decoder_layers * (convolution + d * d + 2 * source_length * d),
        softmax=d * config.vocab_size,
    )


def kept_numbers(config: ModelConfig, length: int) -> int:
    """Count the numbers that a pair of tokens leaves for the backward pass.

    A layer: its dropout, what the convolution reads and gives, 6 d in all; attention, the fused kernel, 4 d more.
    Embeddings: 3 d a stack. ``length`` does not matter.
    """
    d = config.d_model
    return config.num_encoder_layers * 6 * d + config.num_decoder_layers * 10 * d + 6 * d
