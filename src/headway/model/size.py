"""How large a model is, before it is built: parameters, multiply-adds, cache and training memory, without torch.

Letters: d = d_model, ff = d_ff, K = num_heads * d_k, U = num_heads * d_v, V = vocabulary, N = layers of a stack,
n = source length, m = target length, both in tokens.
"""

from dataclasses import asdict, dataclass

from headway.config.schema import ModelConfig

# Table 3 prints 213 million for the big model. With the one set of assumptions under which the ten other counts of the
# table come out (V = 40,960, one shared matrix, attention biases) it has 218,300,416, which rounds to 218.
BIG_ERRATUM = (
    "Table 3 of the paper prints 213 million parameters for big. The assumptions that give its ten other counts "
    "(V 40,960, one shared matrix, attention biases) give 218,300,416: 213 is probably a misprint of 218."
)

OVERHEAD = {4: 1.3, 2: 1.75}  # bytes of a number -> measured by counted bytes of activations
LOSS_CHUNK_BYTES = 16 * 2**20  # as in headway.train.loss
EMBEDDING_MATRICES = {"all": 1, "target": 2, "none": 3}


@dataclass(frozen=True)
class ParameterCounts:
    """Trained numbers, by component; every matrix that is shared is counted once."""

    embedding: int  # of source, target and softmax: 1, 2 or 3 matrices
    positions: int  # the learned tables, one a stack; 0 for sinusoids
    encoder_attention: int
    encoder_feed_forward: int
    encoder_norm: int
    decoder_self_attention: int
    decoder_cross_attention: int
    decoder_feed_forward: int
    decoder_norm: int

    @property
    def total(self) -> int:
        """All of them."""
        return sum(asdict(self).values())

    @property
    def non_embedding(self) -> int:
        """All but the token and position embeddings."""
        return self.total - self.embedding - self.positions


@dataclass(frozen=True)
class MultiplyAdds:
    """Multiply-adds of a forward pass, for one token of each side. Each is two FLOPs; backward takes twice as many."""

    encoder: int  # a source token: through the encoder
    cross_projection: int  # a source token: its keys and values for all decoder layers, once a sentence
    decoder: int  # a target token: through the decoder
    softmax: int  # a target token: its scores over the vocabulary

    @property
    def source_token(self) -> int:
        """What one source token costs."""
        return self.encoder + self.cross_projection

    @property
    def target_token(self) -> int:
        """What one target token costs; in decoding, one hypothesis of the beam."""
        return self.decoder + self.softmax


@dataclass(frozen=True)
class TrainingMemory:
    """Bytes while training, estimated; see ``training_memory``."""

    weights: int
    gradients: int
    moments: int
    activations: int
    loss: int

    @property
    def total(self) -> int:
        """All of them."""
        return sum(asdict(self).values())


def _widths(config: ModelConfig) -> tuple[int, int, int]:
    """Give d, K and U."""
    return config.d_model, config.num_heads * config.key_size, config.num_heads * config.value_size


def count_parameters(config: ModelConfig) -> ParameterCounts:
    """Count the parameters of a model exactly.

    Attention: W_Q, W_K of d x K, W_V of d x U, W_O of U x d, with biases on all four only with ``attention_bias``.
    Feed forward: d x ff and ff x d, with biases. LayerNorm: gain and bias of d, two an encoder layer and three a
    decoder layer; post-norm has no final one. The softmax has no bias. Section 3 of the paper and its Table 3.
    """
    d, key, value = _widths(config)
    attention = 2 * d * key + 2 * d * value + (2 * key + value + d if config.attention_bias else 0)
    feed_forward = 2 * d * config.d_ff + config.d_ff + d
    norm = 2 * d
    source_rows = config.vocab_size if config.source_vocab_size is None else config.source_vocab_size
    own_matrices = (
        EMBEDDING_MATRICES[config.embedding_sharing] - 1
    )  # those of the target's vocabulary beside the source's
    rows = source_rows + own_matrices * config.vocab_size
    encoders, decoders = config.num_encoder_layers, config.num_decoder_layers
    return ParameterCounts(
        embedding=rows * d,
        positions=2 * config.max_positions * d if config.positions == "learned" else 0,
        encoder_attention=encoders * attention,
        encoder_feed_forward=encoders * feed_forward,
        encoder_norm=encoders * 2 * norm,
        decoder_self_attention=decoders * attention,
        decoder_cross_attention=decoders * attention,
        decoder_feed_forward=decoders * feed_forward,
        decoder_norm=decoders * 3 * norm,
    )


def count_multiply_adds(config: ModelConfig, *, source_length: int, target_length: int) -> MultiplyAdds:
    """Count the multiply-adds of the matrix products, for a token of each side.

    Encoder, a source token:       N (2 d K + 2 d U + 2 d ff + n (K + U))
    Cross-attention, a source token: N d (K + U), its keys and values
    Decoder, a target token:       N (3 d K + 3 d U + 2 d ff + m (K + U) + n (K + U))
    Softmax, a target token:       d V

    Every query is counted against all m targets, as a dense product computes it. A decoding step with a cache that
    holds m tokens costs the same; lengths of 0 give the weights that one step touches. Biases, norms, residuals and
    exponentials are left out.
    """
    d, key, value = _widths(config)
    feed_forward = 2 * d * config.d_ff
    projections = 2 * d * key + 2 * d * value
    cross = d * key + d * value  # W_Q and W_O for a target token, as many numbers in W_K and W_V for a source token
    over_source = source_length * (key + value)
    over_target = target_length * (key + value)
    encoders, decoders = config.num_encoder_layers, config.num_decoder_layers
    return MultiplyAdds(
        encoder=encoders * (projections + feed_forward + over_source),
        cross_projection=decoders * cross,
        decoder=decoders * (projections + over_target + cross + over_source + feed_forward),
        softmax=d * config.vocab_size,
    )


def cache_bytes_per_token(config: ModelConfig, *, value_bytes: int = 2) -> int:
    """Give the bytes of keys and values that one token leaves in the decoder: N (K + U), times the bytes of a number.

    The same for a target token (self-attention, one a hypothesis) and a source token (cross-attention, one a sentence).
    ``value_bytes`` is 2 for float16 and bfloat16, 4 for float32.
    """
    _, key, value = _widths(config)
    return config.num_decoder_layers * (key + value) * value_bytes


def training_memory(config: ModelConfig, *, microbatch_tokens: int, value_bytes: int = 4) -> TrainingMemory:
    """Estimate the bytes that training takes for microbatches of so many tokens on each side.

    Weights, their gradients and Adam's two moments: 4, 4 and 8 bytes a parameter. Activations kept for the backward
    pass, in numbers a token, where attention is the fused kernel (no n x n matrix is kept):

    encoder layer: 2 K + 3 U + ff for the projections, 6 d for two sub-layers: sum, norm and dropout mask of each
    decoder layer: 2 K + 3 U + ff, for cross-attention K + 2 U a target and K + U a source token, 9 d for three
                   sub-layers
    embeddings:    3 d in each stack

    ``value_bytes`` is 4 for float32, 2 for bf16 (where some of these stay float32). Measured for base on one CPU
    thread, between 1,620 and 3,240 tokens of 27-token sentences, a token of both sides took 0.63 MB in float32 and
    0.43 MB in bf16; counted are 0.48 and 0.24, so ``OVERHEAD`` stands for what passes through. The loss works in
    chunks: two of them and the softmax matrix' gradient, whatever the tokens. torch itself takes some 0.3 GB more.
    """
    d, key, value = _widths(config)
    parameters = count_parameters(config).total
    encoder = 2 * key + 3 * value + config.d_ff + 6 * d
    decoder = 4 * key + 6 * value + config.d_ff + 9 * d
    numbers = config.num_encoder_layers * encoder + config.num_decoder_layers * decoder + 6 * d
    return TrainingMemory(
        weights=4 * parameters,
        gradients=4 * parameters,
        moments=8 * parameters,
        activations=round(OVERHEAD[value_bytes] * microbatch_tokens * numbers * value_bytes),
        loss=2 * LOSS_CHUNK_BYTES + 4 * d * config.vocab_size,
    )
