"""The packed file of a model, read and checked, as the compiled engine takes it."""

import errno
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from headway.config.model_config import ModelConfig
from headway.config.residual_scaling import RESIDUAL_SCALINGS
from headway.engine.pack import (
    FORMAT_VERSION,
    PRECISIONS,
    check_supported,
    pack_folder,
    packed_metadata,
    packed_path,
    packed_weights,
)
from headway.errors import EngineError, FolderError
from headway.folder.contents import ModelFolder
from headway.folder.weights import Array, open_weights

PARTS = ("weight", "scale")  # of a matrix that others may share; a bias is its own
SHARED_EMBEDDINGS = {  # with the output's matrix
    "all": ("target_embedding", "source_embedding"),
    "target": ("target_embedding",),
    "none": (),
}
SIZES_END = 2**31  # the compiled engine counts in 32 bits


@dataclass(frozen=True, slots=True)
class PackedModel:
    """A packed file, mapped into memory: processes that read the same file share it."""

    path: Path
    config: ModelConfig
    precision: str
    arrays: dict[str, Array]


def open_packed(
    folder: ModelFolder, *, precision: str = "int8", on_notice: Callable[[str], None] | None = None
) -> PackedModel:
    """The packed file beside a model's weights, made now where there is none, or none of these weights.

    Where the folder cannot be written, the packed model is in this process's memory alone, and ``on_notice`` hears of
    it; so it does of a damaged file, which is made again. Raises EngineError for a model that the engine does not run,
    FolderError for weights that are damaged.
    """
    path = packed_path(folder.path, precision)
    wanted = packed_metadata(folder, precision)
    tell = on_notice or _nobody
    try:
        weights = open_weights(path) if path.exists() else None
        if weights is not None and weights.metadata == wanted:
            return PackedModel(path, folder.config.model, precision, weights.arrays())
    except FolderError:
        tell(f"{path} was damaged; it is made again from the weights")
    try:
        return read_packed(pack_folder(folder, precision=precision, path=path))
    except OSError as error:
        once = "When there is room" if error.errno == errno.ENOSPC else "Once, as who may write there"
        tell(
            f"{path} cannot be written ({error.strerror or error}): the model is packed in memory, at each start anew. "
            f"{once}: headway pack -m {folder.path}"
        )
    return PackedModel(path, folder.config.model, precision, packed_weights(folder, precision))


def read_packed(path: Path) -> PackedModel:
    """Read a packed file. Raises FolderError where it is damaged, EngineError where it is of another version.

    The file stays mapped: whoever writes it again writes another beside it and renames that, as ``pack_folder`` does.
    A program that cuts it short in place ends the processes that have it mapped; the system does so with every file.
    """
    weights = open_weights(path)
    metadata = weights.metadata
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
    check_supported(config)
    try:
        return PackedModel(path, config, metadata["precision"], weights.arrays())
    except ValueError as error:  # the file was replaced between the reading of its header and that of its arrays
        raise EngineError(
            f"engine/packed: the arrays of {path} are not those of its header. Read it again, and delete it if that "
            "does not help; it is made again when it is needed."
        ) from error


def _nobody(_: str) -> None:
    """Hear nothing."""


def native_arguments(packed: PackedModel) -> dict[str, Any]:
    """Sizes, numbers, names and arrays as the compiled engine's ``Model.load`` takes them."""
    config, arrays = packed.config, dict(packed.arrays)
    shared = SHARED_EMBEDDINGS[config.embedding_sharing]
    arrays |= {
        f"{name}.{part}": arrays[f"output.{part}"] for name in shared for part in PARTS if f"output.{part}" in arrays
    }
    layers = config.num_encoder_layers, config.num_decoder_layers
    encoder, decoder = RESIDUAL_SCALINGS[config.residual_scaling](*layers)
    sizes = _sizes(config)
    return {
        "sizes": sizes,
        "numbers": {
            "norm_epsilon": config.norm_epsilon,
            "encoder_residual": encoder.alpha,
            "decoder_residual": decoder.alpha,
            "embedding_scale": float(np.sqrt(config.d_model)) if config.embedding_scale else 1.0,
        },
        "names": {
            "positions": config.positions,
            "activation": "silu" if config.activation == "swiglu" else config.activation,
        },
        "arrays": {name: array.reshape(-1).view(np.uint8) for name, array in arrays.items()},
    }


def _sizes(config: ModelConfig) -> dict[str, int]:
    sizes = {
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
        "cross_words": int(config.cross_positions == "words"),
    }
    for name, size in sizes.items():
        if size >= SIZES_END:
            raise EngineError(
                f"engine/packed: {name} of the model is 2^{size.bit_length() - 1} or more; wanted less than 2^31. "
                "Delete the packed file if it is damaged; it is made again when it is needed."
            )
    return sizes
