"""The packed file of a model, read and checked, as the compiled engine takes it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from headway.config.schema import ModelConfig
from headway.engine.pack import FORMAT_VERSION, PRECISIONS, fingerprint, pack_folder, packed_path
from headway.errors import EngineError
from headway.folder.contents import WEIGHTS_FILE, ModelFolder
from headway.folder.weights import Array, read_metadata, read_weights


@dataclass(frozen=True, slots=True)
class PackedModel:
    """A packed file, mapped into memory: processes that read the same file share it."""

    path: Path
    config: ModelConfig
    precision: str
    arrays: dict[str, Array]


def open_packed(folder: ModelFolder, *, precision: str = "int8") -> PackedModel:
    """The packed file beside a model's weights, made now where there is none, or none of these weights."""
    path = packed_path(folder.path, precision)
    if not _is_current(path, folder):
        pack_folder(folder, precision=precision, path=path)
    return read_packed(path)


def read_packed(path: Path) -> PackedModel:
    """Read a packed file. Raises FolderError where it is damaged, EngineError where it is of another version."""
    metadata = read_metadata(path)
    if metadata.get("format") != str(FORMAT_VERSION) or metadata.get("precision") not in PRECISIONS:
        raise EngineError(
            f"engine/packed: {path} is no packed model of version {FORMAT_VERSION} (found version "
            f"{metadata.get('format', 'none')}). Delete it; it is made again when it is needed."
        )
    try:
        config = ModelConfig.model_validate_json(metadata.get("model", ""))
    except ValidationError as error:
        raise EngineError(
            f"engine/packed: the configuration in {path} is not valid. Delete the file; it is made again when needed."
        ) from error
    return PackedModel(path, config, metadata["precision"], read_weights(path))


def _is_current(path: Path, folder: ModelFolder) -> bool:
    if not path.exists():
        return False
    metadata = read_metadata(path)
    wanted = {"format": str(FORMAT_VERSION), "weights": fingerprint(folder.path / WEIGHTS_FILE)}
    return all(metadata.get(name) == value for name, value in wanted.items())


def native_arguments(packed: PackedModel) -> dict[str, Any]:
    """Sizes, numbers, names and arrays as the compiled engine's ``Model.load`` takes them."""
    config, arrays = packed.config, dict(packed.arrays)
    for name in ("weight", "scale"):
        if f"output.{name}" in arrays:
            arrays.setdefault(f"target_embedding.{name}", arrays[f"output.{name}"])
            arrays.setdefault(f"source_embedding.{name}", arrays[f"output.{name}"])
    encoder, decoder = residual_weights(config)
    return {
        "sizes": {
            "d_model": config.d_model,
            "d_ff": config.d_ff,
            "num_heads": config.num_heads,
            "num_kv_heads": config.kv_heads,
            "d_k": config.key_size,
            "d_v": config.value_size,
            "num_encoder_layers": config.num_encoder_layers,
            "num_decoder_layers": config.num_decoder_layers,
            "vocab_size": config.vocab_size,
            "source_vocab_size": config.source_vocab_size or config.vocab_size,
            "max_positions": config.max_positions,
            "pre_norm": int(config.norm_placement == "pre"),
            "centred_norm": int(config.norm == "layer"),
            "gated": int(config.activation == "swiglu"),
        },
        "numbers": {
            "norm_epsilon": config.norm_epsilon,
            "encoder_residual": encoder,
            "decoder_residual": decoder,
            "embedding_scale": float(np.sqrt(config.d_model)) if config.embedding_scale else 1.0,
        },
        "names": {
            "positions": config.positions,
            "activation": "silu" if config.activation == "swiglu" else config.activation,
        },
        "arrays": {name: array.reshape(-1).view(np.uint8) for name, array in arrays.items()},
    }


def residual_weights(config: ModelConfig) -> tuple[float, float]:
    """What x counts in the residual connections of encoder and decoder: DeepNorm's alpha (Wang et al. 2022), else 1."""
    if config.residual_scaling == "none":
        return 1.0, 1.0
    depth = config.num_encoder_layers**4 * config.num_decoder_layers
    return 0.81 * depth ** (1 / 16), (3 * config.num_decoder_layers) ** (1 / 4)
