"""A Headway model's weights in the layout of CTranslate2's TransformerSpec.

What the layout has no word for is said by other weights that compute the same: heads of keys and values of unlike size
are padded with zeros, DeepNorm's factor moves into the norms and the matrices that read them, ALiBi of the encoder
becomes a table of biases.

Shapes: V vocabulary, D d_model, H heads of queries, G heads of keys and values, O outputs, I inputs, P positions,
S the size that all heads get.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.config.model_config import ModelConfig
from headway.config.positions import BASE, MAX_DISTANCE, alibi_slopes
from headway.config.residual_scaling import RESIDUAL_SCALINGS
from headway.errors import InterchangeError, MissingExtraError
from headway.folder.weights import Array

Layer = Any  # a specification of the library, or a part of one: it has no types

_ACTIVATIONS = {"relu": "RELU", "gelu": "GELU", "silu": "SWISH", "swiglu": "SWISH"}


def check_expressible(config: ModelConfig) -> None:
    """Raise InterchangeError, by key, for what CTranslate2 has no place for."""
    if config.attention_score != "scaled":
        raise InterchangeError(
            f"interchange/ctranslate2_spec: model.attention_score: found {config.attention_score}; the format has "
            "scaled alone. Remedy: translate with Headway, or train with model.attention_score = scaled."
        )
    if config.attention_window is not None:
        raise InterchangeError(
            f"interchange/ctranslate2_spec: model.attention_window: found {config.attention_window}; the format has no "
            "place for a window to both sides of a token: its encoders see the whole sentence. "
            "Remedy: translate with Headway, or train with no model.attention_window."
        )


def build_spec(config: ModelConfig, weights: Mapping[str, Array], *, num_positions: int) -> Layer:
    """A TransformerSpec with all weights, its vocabularies still to be registered.

    Positions that are a table there have ``num_positions`` rows, learned ones as many as were trained.
    Raises InterchangeError for a model that cannot be said, MissingExtraError without CTranslate2.
    """
    check_expressible(config)
    specs = load_specs()
    encoder, decoder = (_Stack(config, weights, side, num_positions) for side in ("encoder", "decoder"))
    spec = specs.TransformerSpec(
        specs.TransformerEncoderSpec(config.num_encoder_layers, config.num_heads, **encoder.options()),
        specs.TransformerDecoderSpec(config.num_decoder_layers, config.num_heads, **decoder.options()),
    )
    source = weights["source_stem.embedding.weight"]
    target = weights.get("target_stem.embedding.weight", source)
    spec.encoder.embeddings[0].weight = _float32(source)
    spec.decoder.embeddings.weight = _float32(target)
    _fill(spec.decoder.projection, weights.get("output.weight", target), weights.get("output.bias"))
    encoder.fill(spec.encoder)
    decoder.fill(spec.decoder)
    spec.config.layer_norm_epsilon = config.norm_epsilon
    return spec


def load_specs() -> Layer:
    """The library's module of specifications. Raises MissingExtraError where it is not installed."""
    try:
        from ctranslate2.specs import transformer_spec  # noqa: PLC0415 - an optional library
    except ImportError as error:
        raise MissingExtraError(
            "interchange/ctranslate2_spec: writing a model for CTranslate2, and verifying it, needs the library, which "
            "is not installed. Run: pip install 'headway[ctranslate2]'"
        ) from error
    return transformer_spec


@dataclass(frozen=True, slots=True)
class _Stack:
    """The encoder or the decoder, written into its specification.

    Where DeepNorm weighs x with alpha, what is kept between the sub-layers is alpha x: then x + Sublayer(x) is the sum
    that DeepNorm wants, once the matrices that read alpha x are divided by it.
    """

    config: ModelConfig
    weights: Mapping[str, Array]
    side: str
    num_positions: int

    @property
    def alpha(self) -> float:
        config = self.config
        scalings = RESIDUAL_SCALINGS[config.residual_scaling](config.num_encoder_layers, config.num_decoder_layers)
        return scalings[0 if self.side == "encoder" else 1].alpha

    @property
    def head_size(self) -> int:
        return max(self.config.key_size, self.config.value_size)

    def options(self) -> dict[str, Any]:
        """What the constructor of the specification is to be told."""
        from ctranslate2.specs import common_spec  # noqa: PLC0415 - an optional library

        config = self.config
        options: dict[str, Any] = {
            "pre_norm": config.norm_placement == "pre",
            "activation": common_spec.Activation[_ACTIVATIONS[config.activation]],
            "ffn_glu": config.activation == "swiglu",
            "rms_norm": config.norm == "rms",
            "num_heads_kv": None if config.kv_heads == config.num_heads else config.kv_heads,
            "head_dim": self.head_size,
        }
        if config.positions == "rope":
            options |= {"rotary_dim": config.key_size, "rotary_interleave": True, "rotary_base": BASE}
        elif config.positions == "t5" or (config.positions == "alibi" and self.side == "encoder"):
            options["relative_attention_bias"] = True
        elif config.positions == "alibi":
            options["alibi"] = True
        return options

    def fill(self, spec: Layer) -> None:
        """Give the specification its numbers; the embeddings are another's task."""
        config = self.config
        scale = math.sqrt(config.d_model) if config.embedding_scale else 1.0
        spec.scale_embeddings = scale * self.alpha
        self._fill_positions(spec)
        for place, layer in enumerate(spec.layer):
            own = f"{self.side}.layers.{place}"
            is_last = place + 1 == len(spec.layer)
            self._fill_self_attention(layer.self_attention, own)
            if self.side == "decoder":
                self._fill_cross_attention(layer.attention, own)
            self._fill_feed_forward(layer.ffn, own, scale=1.0 if is_last else self.alpha)
        if config.norm_placement == "pre":
            self._fill_norm(spec.layer_norm, f"{self.side}.norm")

    def _fill_positions(self, spec: Layer) -> None:
        config = self.config
        own = f"{'source' if self.side == 'encoder' else 'target'}_stem.position.weight"
        if config.positions in ("sinusoidal", "learned", "none"):
            tables = {
                "sinusoidal": lambda: sinusoids(self.num_positions, config.d_model),
                "learned": lambda: self.weights[own],
                "none": lambda: np.zeros((self.num_positions, config.d_model), np.float32),
            }
            spec.position_encodings.encodings = _float32(tables[config.positions]() * self.alpha)
        elif config.positions == "t5":
            self._fill_biases(spec, self.weights[own], MAX_DISTANCE)
        elif config.positions == "alibi" and self.side == "encoder":
            self._fill_biases(spec, alibi_table(config.num_heads, self.num_positions), 2 * self.num_positions)

    def _fill_biases(self, spec: Layer, table: Array, distance: int) -> None:
        for layer in spec.layer:
            layer.self_attention.relative_attention_bias = _float32(table)
            layer.self_attention.relative_attention_max_distance = np.int32(distance)

    def _fill_self_attention(self, spec: Layer, own: str) -> None:
        name = f"{own}.self_attention"
        heads = [self._heads(name, role, 1) for role in ("query", "key", "value")]
        _fill(spec.linear[0], *_stacked(heads), divisor=self.alpha)
        self._fill_output(spec, name)
        sublayer = "attention_sublayer" if self.side == "encoder" else "self_sublayer"
        self._fill_norm(spec.layer_norm, f"{own}.{sublayer}.norm", scale=self.alpha)

    def _fill_cross_attention(self, spec: Layer, own: str) -> None:
        """Each head of queries gets keys and values of its own: shared ones are known of self-attention alone."""
        name, repeats = f"{own}.cross_attention", self.config.num_heads // self.config.kv_heads
        _fill(spec.linear[0], *self._heads(name, "query", 1), divisor=self.alpha)
        _fill(spec.linear[1], *_stacked([self._heads(name, role, repeats) for role in ("key", "value")]))
        self._fill_output(spec, name)
        if repeats > 1:
            spec.num_heads_kv = np.int32(self.config.num_heads)
        self._fill_norm(spec.layer_norm, f"{own}.cross_sublayer.norm", scale=self.alpha)

    def _fill_output(self, spec: Layer, name: str) -> None:
        config = self.config
        weight_DHV = self.weights[f"{name}.output.weight"].reshape(config.d_model, config.num_heads, config.value_size)
        padded_DHS = _padded(weight_DHV, self.head_size, axis=2)
        _fill(spec.linear[-1], padded_DHS.reshape(config.d_model, -1), self.weights.get(f"{name}.output.bias"))
        spec.queries_scale = 1.0 / math.sqrt(config.key_size)

    def _heads(self, name: str, role: str, repeats: int) -> tuple[Array, Array | None]:
        """The matrix and bias of one role, each head of it padded to the common size, ``repeats`` times."""
        config = self.config
        size = config.value_size if role == "value" else config.key_size
        weight = self.weights[f"{name}.{role}.weight"]
        bias = self.weights.get(f"{name}.{role}.bias")

        def spread(array: Array) -> Array:
            padded = _padded(array.reshape(-1, size, *array.shape[1:]), self.head_size, axis=1)
            return np.repeat(padded, repeats, axis=0).reshape(-1, *array.shape[1:])

        return spread(weight), None if bias is None else spread(bias)

    def _fill_feed_forward(self, spec: Layer, own: str, *, scale: float) -> None:
        name = f"{own}.feed_forward"
        inner, outer = (
            (self.weights[f"{name}.{part}.weight"], self.weights.get(f"{name}.{part}.bias"))
            for part in ("inner", "outer")
        )
        gate = self.weights.get(f"{name}.gate.weight")
        if gate is None:
            _fill(spec.linear_0, *inner, divisor=self.alpha)
        else:
            _fill(spec.linear_0, gate, None, divisor=self.alpha)
            _fill(spec.linear_0_noact, *inner, divisor=self.alpha)
        _fill(spec.linear_1, *outer)
        self._fill_norm(spec.layer_norm, f"{own}.feed_forward_sublayer.norm", scale=scale)

    def _fill_norm(self, spec: Layer, name: str, *, scale: float = 1.0) -> None:
        spec.gamma = _float32(self.weights[f"{name}.weight"] * scale)
        if f"{name}.bias" in self.weights:
            spec.beta = _float32(self.weights[f"{name}.bias"] * scale)


def sinusoids(num_positions: int, d_model: int) -> Array:
    """The paper's waves, sine and cosine in turn (Section 3.5): (P, D)."""
    even_E = np.arange(0, d_model, 2, dtype=np.float64)
    angle_PE = np.arange(num_positions, dtype=np.float64)[:, None] / BASE ** (even_E / d_model)
    table_PD = np.empty((num_positions, d_model))
    table_PD[:, 0::2] = np.sin(angle_PE)
    table_PD[:, 1::2] = np.cos(angle_PE)[:, : d_model // 2]
    return table_PD.astype(np.float32)


def alibi_table(num_heads: int, num_positions: int) -> Array:
    """ALiBi to both sides as T5's buckets: -slope x distance, exactly for distances below ``num_positions``.

    The first half of the rows is the past, the second the future. In each half a distance has the row of its number as
    far as half of the rows reach; behind that the format lets several distances share a row.
    """
    distance = np.arange(2 * num_positions, dtype=np.float64)
    return np.tile(-distance[:, None] * np.array(alibi_slopes(num_heads)), (2, 1)).astype(np.float32)


def _stacked(parts: Sequence[tuple[Array, Array | None]]) -> tuple[Array, Array | None]:
    """Several matrices as one, and their biases, which all have or none has."""
    biases = [bias for _, bias in parts if bias is not None]
    return np.concatenate([weight for weight, _ in parts]), np.concatenate(biases) if biases else None


def _padded(array: Array, size: int, *, axis: int) -> Array:
    widths = [(0, size - array.shape[axis]) if place == axis else (0, 0) for place in range(array.ndim)]
    return np.pad(array, widths)


def _fill(spec: Layer, weight_OI: Array, bias_O: Array | None, *, divisor: float = 1.0) -> None:
    spec.weight = _float32(weight_OI / divisor)
    if bias_O is not None:
        spec.bias = _float32(bias_O)


def _float32(array: Array) -> Array:
    return np.ascontiguousarray(array, dtype=np.float32)
