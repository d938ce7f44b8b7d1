"""How large a model is, before it is built: parameters, multiply-adds, cache and training memory, without torch.

Letters: d = d_model, ff = d_ff, h = num_heads, K = h * d_k, U = h * d_v, L and W the same for the heads of keys and
values (K and U unless num_kv_heads is given), V = vocabulary, N = layers of a stack, n = source length, m = target
length, both in tokens.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import NamedTuple

from headway.config.architecture import ONE_SIDED
from headway.config.model_config import ModelConfig
from headway.config.positions import NUM_BUCKETS
from headway.model import convolutional_size, recurrent_size
from headway.model.counts import MultiplyAdds, ParameterCounts

# Table 3 prints 213 million for the big model. With the one set of assumptions under which the ten other counts of the
# table come out (V = 40,960, one shared matrix, attention biases) it has 218,300,416, which rounds to 218.
BIG_ERRATUM = (
    "Table 3 of the paper prints 213 million parameters for big. The assumptions that give its ten other counts "
    "(V 40,960, one shared matrix, attention biases) give 218,300,416: 213 is probably a misprint of 218."
)

OVERHEAD = {4: 2.05, 2: 2.5}  # bytes of a number -> measured by counted bytes of activations
LOSS_CHUNK_TOKENS, LOSS_CHUNK_BYTES, LOSS_BLOCK_BYTES = 2048, 128 * 2**20, 4 * 2**20  # as in headway.train.chunked
EMBEDDING_MATRICES = {"all": 1, "target": 2, "none": 3}
ONE_SIDED_MATRICES = {"all": 1, "target": 1, "none": 2}  # of an architecture without a source
NORM_VECTORS = {"layer": 2, "rms": 1}  # gain and bias, or gain
FEED_FORWARD_MATRICES = {"relu": 2, "gelu": 2, "silu": 2, "swiglu": 3}
KEPT_INSIDE = {"relu": 1, "gelu": 2, "silu": 2, "swiglu": 4}  # vectors of ff that a backward pass needs


@dataclass(frozen=True)
class TrainingMemory:
    """Bytes while training, estimated; see ``training_memory``."""

    weights: int
    gradients: int
    moments: int  # and the moving average
    activations: int
    loss: int

    @property
    def total(self) -> int:
        """All of them."""
        return sum(asdict(self).values())


class _Counting(NamedTuple):
    """How an architecture's sizes are counted: by its configuration, and numbers of embeddings or a length."""

    parameters: Callable[[ModelConfig, int], ParameterCounts]
    multiply_adds: Callable[[ModelConfig, int], MultiplyAdds]
    kept_numbers: Callable[[ModelConfig, int], int]


OTHERS = {
    name: _Counting(room.count_parameters, room.count_multiply_adds, room.kept_numbers)
    for name, room in (("recurrent", recurrent_size), ("convolutional", convolutional_size))
}


class _Widths(NamedTuple):
    """Of all heads together: d, K, U, L and W."""

    model: int
    query: int
    mixed: int
    key: int
    value: int


def _widths(config: ModelConfig) -> _Widths:
    heads, shared = config.num_heads, config.kv_heads
    return _Widths(
        model=config.d_model,
        query=heads * config.key_size,
        mixed=heads * config.value_size,
        key=shared * config.key_size,
        value=shared * config.value_size,
    )


class _Stacks(NamedTuple):
    """Layers of encoder and decoder, decoder layers that look at a source, and stacks there are."""

    encoders: int
    decoders: int
    looking: int
    stacks: int


def _stacks(config: ModelConfig) -> _Stacks:
    if config.architecture == "decoder_only":
        return _Stacks(0, config.num_decoder_layers, 0, 1)
    if config.architecture == "encoder_only":
        return _Stacks(config.num_encoder_layers, 0, 0, 1)
    return _Stacks(config.num_encoder_layers, config.num_decoder_layers, config.num_decoder_layers, 2)


def count_parameters(config: ModelConfig) -> ParameterCounts:
    """Count the parameters of a model exactly.

    Attention: W_Q of d x K, W_K of d x L, W_V of d x W, W_O of U x d, with biases on all four only with
    ``attention_bias``, and d_k a head with additive scores. Feed forward: d x ff and ff x d, with biases;
    gated: two of d x ff and one of ff x d, without.
    LayerNorm: gain and bias of d, two an encoder layer and three a decoder layer; RMSNorm: gain alone; pre-norm: one
    more a stack. The softmax has no bias unless it is asked for. Section 3 of the paper and its Table 3. Decoder-only:
    no encoder, and decoder layers without cross-attention and its norm. Encoder-only: no decoder; what tells C classes
    apart has matrices of d x d and d x C, with biases. Recurrent and
    convolutional models are counted in files of their own.
    """
    if config.architecture in OTHERS:
        return OTHERS[config.architecture].parameters(config, _embedding_rows(config) * config.d_model)
    width, bias = _widths(config), config.attention_bias
    d = width.model
    attention = d * (width.query + width.key + width.value + width.mixed)
    attention += width.query + width.key + width.value + d if bias else 0
    attention += width.query if config.attention_score == "additive" else 0
    matrices = FEED_FORWARD_MATRICES[config.activation]
    feed_forward = matrices * d * config.d_ff + (config.d_ff + d if matrices == 2 else 0)
    norm = NORM_VECTORS[config.norm] * d
    final = int(config.norm_placement == "pre")
    encoders, decoders, looking, num_stacks = _stacks(config)
    return ParameterCounts(
        embedding=_embedding_rows(config) * d,
        positions=num_stacks * _position_numbers(config),
        encoder_attention=encoders * attention,
        encoder_feed_forward=encoders * feed_forward,
        encoder_norm=(encoders * 2 + final) * norm if encoders else 0,
        decoder_self_attention=decoders * attention,
        decoder_cross_attention=looking * attention,
        decoder_feed_forward=decoders * feed_forward,
        decoder_norm=(decoders * 2 + looking + final) * norm if decoders else 0,
        output_bias=config.vocab_size if config.output_bias else 0,
        classifier=0 if config.num_classes is None else (d + 1) * (d + config.num_classes),
    )


def _embedding_rows(config: ModelConfig) -> int:
    """Count the rows of d of all embedding matrices."""
    source_rows = config.vocab_size if config.source_vocab_size is None else config.source_vocab_size
    if config.architecture in ONE_SIDED:
        return ONE_SIDED_MATRICES[config.embedding_sharing] * config.vocab_size
    matrices = EMBEDDING_MATRICES[config.embedding_sharing]
    return config.vocab_size if matrices == 1 else source_rows + (matrices - 1) * config.vocab_size


def _position_numbers(config: ModelConfig) -> int:
    """Count the trained numbers of one stack's positions."""
    tables = {"learned": config.max_positions * config.d_model, "t5": NUM_BUCKETS * config.num_heads}
    return tables.get(config.positions, 0)


def count_multiply_adds(config: ModelConfig, *, source_length: int, target_length: int) -> MultiplyAdds:
    """Count the multiply-adds of the matrix products, for a token of each side.

    Encoder, a source token:       N (d (K + L + W + U) + F + n (K + U))
    Cross-attention, a source token: N d (L + W), its keys and values
    Decoder, a target token:       N (d (2 K + L + W + 2 U) + F + m (K + U) + n (K + U))
    Softmax, a target token:       d V

    F is 2 d ff, and 3 d ff where it is gated. Every query is counted against all m targets, as a dense product computes
    it; a window only hides them. A decoding step with a cache that holds m tokens costs the same; lengths of 0 give the
    weights that one step touches. A decoder without a source has no terms of cross-attention. Biases, norms, residuals,
    rotations and exponentials are left out.
    """
    if config.architecture in OTHERS:
        return OTHERS[config.architecture].multiply_adds(config, source_length)
    d, query, mixed, key, value = _widths(config)
    feed_forward = FEED_FORWARD_MATRICES[config.activation] * d * config.d_ff
    projections = d * (query + key + value + mixed)
    over_source = source_length * (query + mixed)
    over_target = target_length * (query + mixed)
    encoders, decoders, looking, _ = _stacks(config)
    return MultiplyAdds(
        encoder=encoders * (projections + feed_forward + over_source),
        cross_projection=looking * d * (key + value),
        decoder=decoders * (projections + over_target + feed_forward) + looking * (d * (query + mixed) + over_source),
        softmax=d * config.vocab_size,
    )


def cache_bytes_per_token(config: ModelConfig, *, value_bytes: int = 2) -> int:
    """Give the bytes of keys and values that one token leaves in the decoder: N (L + W), times the bytes of a number.

    The same for a target token (self-attention, one a hypothesis) and a source token (cross-attention, one a sentence).
    With an attention window w only the last w target tokens are kept. A recurrent or convolutional decoder keeps keys
    and values of source tokens alone, 2 d, beside a state that does not grow. ``value_bytes`` is 2 for float16 and
    bfloat16, 4 for float32.
    """
    if config.architecture in OTHERS:
        return 2 * config.d_model * value_bytes
    width = _widths(config)
    return _stacks(config).decoders * (width.key + width.value) * value_bytes


def training_memory(
    config: ModelConfig,
    *,
    microbatch_tokens: int,
    value_bytes: int = 4,
    length: int = 27,
    passes: int = 1,
    optimizer: str = "adam",
    moving_average: bool = False,
) -> TrainingMemory:
    """Estimate the bytes that training takes for microbatches of so many tokens on each side, in so many ``passes``.

    Weights, their gradients and Adam's two moments: 4, 4 and 8 bytes a parameter, of Schedule-Free as of Adam; Muon
    keeps 4 of the matrices of attention and feed-forward networks. A moving average takes 4 more. Activations kept for
    the backward pass, in numbers a token, where attention is the fused kernel (no n x n matrix is kept):

    encoder layer: K + L + W + 2 U + ff for the projections, 6 d for two sub-layers: sum, norm and dropout mask of each
    decoder layer: K + L + W + 2 U + ff, for cross-attention K + 2 U a target and L + W a source token, 9 d for three
                   sub-layers
    embeddings:    3 d in each stack

    More is kept by: another activation than relu, 2 ff in the place of ff, or 4 ff where it is gated; dropout within,
    2 ff more; RMSNorm, d more a norm; pre-norm, the input of one norm more a stack; fewer heads of keys, K more an
    attention. On a CPU dropout of attention weights keeps 3 h n more an attention, and T5's positions h n more a
    self-attention, with sentences of n = ``length`` tokens; additive scores keep (K + h) n an attention in
    the place of K + L.

    ``value_bytes`` is 4 for float32, 2 for bf16 (where some of these stay float32). Measured for base on a
    CPU, between 6,272 and 12,544 tokens of 28-token sentences, a token of both sides took 0.99 MB in float32 and
    0.60 MB in bf16 (docs/results.md); counted are 0.48 and 0.24, so ``OVERHEAD`` stands for what passes through. The
    loss works in chunks, whatever the tokens. torch itself takes some 0.3 GB more. What other architectures keep stands
    in their own files; it is counted and has not been measured.
    """
    counts = count_parameters(config)
    moments = (12 if moving_average else 8) * counts.total - (4 * counts.hidden if optimizer == "muon" else 0)
    kept = passes * microbatch_tokens * _kept_numbers(config, length)
    return TrainingMemory(
        weights=4 * counts.total,
        gradients=4 * counts.total,
        moments=moments,
        activations=round(OVERHEAD[value_bytes] * kept * value_bytes),
        loss=_loss_bytes(config, min(LOSS_CHUNK_TOKENS, microbatch_tokens) * passes, value_bytes),
    )


def _loss_bytes(config: ModelConfig, rows: int, value_bytes: int) -> int:
    """A chunk's logits, its gradient of the softmax matrix, the sum of these, and twice a block in float32."""
    logits = min(LOSS_CHUNK_BYTES, rows * config.vocab_size * value_bytes)
    return logits + (value_bytes + 4) * config.d_model * config.vocab_size + 2 * LOSS_BLOCK_BYTES


def _kept_numbers(config: ModelConfig, length: int) -> int:
    """Count the numbers that a pair of tokens leaves for the backward pass; see ``training_memory``."""
    if config.architecture in OTHERS:
        return OTHERS[config.architecture].kept_numbers(config, length)
    d, query, mixed, key, value = _widths(config)
    encoders, decoders, looking, num_stacks = _stacks(config)
    attention = query + key + value + 2 * mixed + (query if config.kv_heads < config.num_heads else 0)
    attention += 3 * config.num_heads * length if config.attention_dropout else 0
    if config.attention_score == "additive":
        attention += (query + config.num_heads) * length - query - key
    relative = config.num_heads * length if config.positions == "t5" and not config.attention_dropout else 0
    inside = (KEPT_INSIDE[config.activation] + (2 if config.activation_dropout else 0)) * config.d_ff
    sublayer = (3 if config.norm == "layer" else 4) * d
    alone = attention + relative + inside + 2 * sublayer  # an encoder layer, or a decoder layer without a source
    final = sublayer - 2 * d if config.norm_placement == "pre" else 0
    return (encoders + decoders) * alone + looking * (attention + sublayer) + num_stacks * (3 * d + final)
