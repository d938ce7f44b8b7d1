"""Small models for tests of the engine, drawn with NumPy alone and written as packed files."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from headway.config.model_config import ModelConfig
from headway.engine.engine import Engine
from headway.engine.pack import FORMAT_VERSION, packed_arrays
from headway.engine.packed import PackedModel
from headway.folder.weights import Array, write_weights

EOS = 3
SMALL = ModelConfig(
    vocab_size=61, d_model=20, d_ff=37, num_heads=2, d_k=6, d_v=7, num_encoder_layers=2, num_decoder_layers=2
)


def drawn_weights(config: ModelConfig, seed: int = 5) -> dict[str, Array]:
    """Weights under the names of a model folder: matrices that keep the size of what they multiply, norms about 1."""
    generator = np.random.default_rng(seed)
    return {name: _drawn(name, shape, generator) for name, shape in _shapes(config).items()}


def packed_model(config: ModelConfig = SMALL, precision: str = "float32", weights=None) -> PackedModel:
    """The packed arrays of drawn (or given) weights, in memory."""
    weights = drawn_weights(config) if weights is None else weights
    arrays = {name: np.ascontiguousarray(array) for name, array in packed_arrays(config, weights, precision=precision)}
    return PackedModel(Path("memory"), config, precision, arrays)


def write_packed(path: Path, packed: PackedModel) -> Path:
    """A packed file as ``pack_folder`` writes it."""
    metadata = {
        "format": str(FORMAT_VERSION),
        "precision": packed.precision,
        "model": packed.config.model_dump_json(),
        "weights": "0 0",
    }
    write_weights(path, packed.arrays, metadata=metadata)
    return path


def small_engine(config: ModelConfig = SMALL, precision: str = "float32", **settings) -> Engine:
    return Engine(packed_model(config, precision), **{"threads": 1, **settings})


def drawn_sources(count: int, longest: int = 19, *, config: ModelConfig = SMALL, seed: int = 7) -> list[list[int]]:
    """Sentences of 1 to ``longest`` tokens, the last EOS."""
    generator = np.random.default_rng(seed)
    vocab_size = config.source_vocab_size or config.vocab_size
    return [[*generator.integers(4, vocab_size, generator.integers(0, longest)).tolist(), EOS] for _ in range(count)]


def _shapes(config: ModelConfig) -> Mapping[str, tuple[int, ...]]:
    width = config.d_model
    shapes: dict[str, tuple[int, ...]] = {"output.weight": (config.vocab_size, width)}
    sides = {"encoder": config.num_encoder_layers, "decoder": config.num_decoder_layers}
    for side, layers in sides.items():
        for layer in range(layers):
            name = f"{side}.layers.{layer}"
            kinds = {"self_attention": "attention_sublayer" if side == "encoder" else "self_sublayer"}
            if side == "decoder":
                kinds["cross_attention"] = "cross_sublayer"
            for attention, sublayer in kinds.items():
                shapes[f"{name}.{attention}.query.weight"] = (config.num_heads * config.key_size, width)
                shapes[f"{name}.{attention}.key.weight"] = (config.kv_heads * config.key_size, width)
                shapes[f"{name}.{attention}.value.weight"] = (config.kv_heads * config.value_size, width)
                shapes[f"{name}.{attention}.output.weight"] = (width, config.num_heads * config.value_size)
                shapes |= {f"{name}.{sublayer}.norm.{part}": (width,) for part in ("weight", "bias")}
            shapes[f"{name}.feed_forward.inner.weight"] = (config.d_ff, width)
            shapes[f"{name}.feed_forward.outer.weight"] = (width, config.d_ff)
            shapes |= {f"{name}.feed_forward.inner.bias": (config.d_ff,), f"{name}.feed_forward.outer.bias": (width,)}
            shapes |= {f"{name}.feed_forward_sublayer.norm.{part}": (width,) for part in ("weight", "bias")}
    return shapes


def _drawn(name: str, shape: tuple[int, ...], generator: np.random.Generator) -> Array:
    numbers = generator.standard_normal(shape).astype(np.float32)
    if name.endswith("norm.weight"):
        return 1 + numbers / 10
    return numbers / np.float32(10 if len(shape) == 1 else np.sqrt(shape[1]))
