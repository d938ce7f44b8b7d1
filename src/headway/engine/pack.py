"""A model folder to the one file that the engine maps: matrices laid out, in 8 bits or float32."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from headway.config.model_config import ModelConfig
from headway.config.positions import read_bits
from headway.engine.layout import BLOCK, Floats, pack_matrix, pad, stack
from headway.errors import EngineError
from headway.folder.atomic import replace_file
from headway.folder.contents import PACKED_FILE, WEIGHTS_FILE, ModelFolder
from headway.folder.weights import Array, open_weights, stream_weights

FORMAT_VERSION = 1
PRECISIONS = ("int8", "float32")
ROLES = ("query", "key", "value")
TARGET_EMBEDDING, SOURCE_EMBEDDING = "target_stem.embedding.weight", "source_stem.embedding.weight"
SHARED_WITH_OUTPUT = {"all": (TARGET_EMBEDDING, SOURCE_EMBEDDING), "target": (TARGET_EMBEDDING,), "none": ()}
RUNS = {  # values that the engine knows of each part; a new one takes the torch path until it stands here
    "architecture": ("transformer",),
    "cross_positions": ("none", "words"),
    "positions": ("none", "sinusoidal", "learned", "rope", "alibi", "words"),
    "norm_placement": ("post", "pre"),
    "norm": ("layer", "rms"),
    "activation": ("relu", "gelu", "silu", "swiglu"),
    "residual_scaling": ("none", "deepnorm"),
    "attention_score": ("scaled",),
}


def packed_path(folder: Path, precision: str) -> Path:
    """Where a folder's packed file lies."""
    return folder / PACKED_FILE.format(precision=precision)


def pack_folder(folder: ModelFolder, *, precision: str = "int8", path: Path | None = None) -> Path:
    """Write the packed file, beside the weights unless ``path`` says where; several processes may do so at once.

    Raises EngineError for a model that the engine does not run, FolderError for weights that are damaged, OSError.
    """
    path = path or packed_path(folder.path, precision)
    metadata = packed_metadata(folder, precision)  # first: weights that are exchanged now are then seen as others
    arrays = packed_weights(folder, precision)
    with replace_file(path, shared=True) as file:
        stream_weights(file, arrays, metadata=metadata)
    return path


def packed_weights(folder: ModelFolder, precision: str) -> dict[str, Array]:
    """The arrays of a folder's packed file. Raises EngineError and FolderError as ``pack_folder`` does."""
    check_supported(folder.config.model)
    return dict(packed_arrays(folder.config.model, folder.weights(), precision=precision))


def packed_metadata(folder: ModelFolder, precision: str) -> dict[str, str]:
    """What a packed file says about itself; one that says the same is a file of these very weights."""
    return {
        "format": str(FORMAT_VERSION),
        "precision": precision,
        "model": folder.config.model.model_dump_json(),
        "weights": fingerprint(folder.path / WEIGHTS_FILE),
    }


def fingerprint(path: Path) -> str:
    """What tells one weights file from another without reading its arrays: a digest of its header.

    The header has the checksum of the arrays, so that a copy has the same. Of a file that another program wrote,
    without a checksum, size and time count too. Raises FolderError for a file that is damaged.
    """
    weights = open_weights(path)
    if weights.checksum is not None:
        return f"{weights.digest} {weights.checksum}"
    found = path.stat()
    return f"{weights.digest} {found.st_size} {found.st_mtime_ns}"


def unsupported(config: ModelConfig) -> list[str]:
    """What a model has that the engine does not run, by name."""
    found = [f"{part} {getattr(config, part)}" for part, known in RUNS.items() if getattr(config, part) not in known]
    if config.attention_window is not None:
        found.append(f"attention_window {config.attention_window}")
    return found


def check_supported(config: ModelConfig) -> None:
    """Raise EngineError, by name, for what the engine does not run."""
    found = unsupported(config)
    if found:
        raise EngineError(
            f"engine/pack: the engine does not run a model with {' and '.join(found)}; torch does, and such a model "
            "needs no packing: it is used as it is."
        )


def packed_arrays(config: ModelConfig, weights: Mapping[str, Array], *, precision: str) -> Iterator[tuple[str, Array]]:
    """Every array of the packed file by name.

    Raises EngineError for weights that are not finite, not all there, or more than the configuration asks for.
    """
    packer = _Packer(config, weights, is_int8=precision == "int8")
    yield from packer.matrix("output", ["output.weight"], ["output.bias"] if config.output_bias else [])
    if config.embedding_sharing == "none":
        yield from packer.matrix("target_embedding", [TARGET_EMBEDDING])
    if config.embedding_sharing != "all":
        yield from packer.matrix("source_embedding", [SOURCE_EMBEDDING])
    if config.positions == "learned":
        for side in ("source", "target"):
            yield f"{side}_positions", packer.row(f"{side}_stem.position.weight")
    if config.counts_words:
        yield "source_word_starts", _starts(config.source_word_starts, config.source_vocab_size or config.vocab_size)
        yield "target_word_starts", _starts(config.target_word_starts, config.vocab_size)
    for layer in range(config.num_encoder_layers):
        yield from _encoder_layer(packer, layer)
    for layer in range(config.num_decoder_layers):
        yield from _decoder_layer(packer, layer)
    if config.norm_placement == "pre":
        yield from packer.norm("encoder.norm", "encoder.norm")
        yield from packer.norm("decoder.norm", "decoder.norm")
    packer.check_all_read()


def weight_shape(config: ModelConfig, name: str) -> tuple[int, ...]:
    """The shape of an array of a model folder: (outputs, inputs) of a matrix, (outputs,) of a bias or a gain."""
    *_, owner, part, kind = ("", *name.split("."))
    d_model, heads, kv_heads = config.d_model, config.num_heads, config.kv_heads
    outer = {
        ("source_stem", "embedding"): (config.source_vocab_size or config.vocab_size, d_model),
        ("target_stem", "embedding"): (config.vocab_size, d_model),
        ("", "output"): (config.vocab_size, d_model),
        ("feed_forward", "inner"): (config.d_ff, d_model),
        ("feed_forward", "gate"): (config.d_ff, d_model),
        ("feed_forward", "outer"): (d_model, config.d_ff),
    }
    inner = {
        "position": (config.max_positions, d_model),
        "query": (heads * config.key_size, d_model),
        "key": (kv_heads * config.key_size, d_model),
        "value": (kv_heads * config.value_size, d_model),
        "output": (d_model, heads * config.value_size),
        "norm": (d_model,),
    }
    shape = outer.get((owner, part)) or inner[part]
    return shape if kind == "weight" else shape[:1]


def _starts(digits: str, vocab_size: int) -> npt.NDArray[np.uint8]:
    """A byte a token: 1 where it begins a word. Raises EngineError where none is known."""
    if not digits:
        raise EngineError(
            "engine/pack: words are counted, and the configuration does not say which tokens begin one. "
            "config.json is not the one that training wrote: copy the folder again as a whole."
        )
    starts = np.zeros(vocab_size, dtype=np.uint8)
    starts[read_bits(digits)] = 1
    return pad(starts, BLOCK, axis=0)


def _encoder_layer(packer: "_Packer", layer: int) -> Iterator[tuple[str, Array]]:
    own, name = f"encoder.layers.{layer}", f"encoder.{layer}"
    yield from _self_attention(packer, f"{own}.self_attention", f"{name}.attention")
    yield from packer.norm(f"{name}.attention.norm", f"{own}.attention_sublayer.norm")
    yield from _feed_forward(packer, own, name)


def _decoder_layer(packer: "_Packer", layer: int) -> Iterator[tuple[str, Array]]:
    own, name = f"decoder.layers.{layer}", f"decoder.{layer}"
    yield from _self_attention(packer, f"{own}.self_attention", f"{name}.self_attention")
    yield from packer.norm(f"{name}.self_attention.norm", f"{own}.self_sublayer.norm")
    cross = f"{own}.cross_attention"
    yield from packer.attention(f"{name}.cross_attention.query", [f"{cross}.query"])
    yield from packer.attention(f"{name}.cross_attention.memory", [f"{cross}.key", f"{cross}.value"])
    yield from packer.attention(f"{name}.cross_attention.output", [f"{cross}.output"])
    yield from packer.norm(f"{name}.cross_attention.norm", f"{own}.cross_sublayer.norm")
    yield from _feed_forward(packer, own, name)


def _self_attention(packer: "_Packer", own: str, name: str) -> Iterator[tuple[str, Array]]:
    yield from packer.attention(f"{name}.project", [f"{own}.{role}" for role in ROLES])
    yield from packer.attention(f"{name}.output", [f"{own}.output"])


def _feed_forward(packer: "_Packer", own: str, name: str) -> Iterator[tuple[str, Array]]:
    is_gated = packer.config.activation == "swiglu"
    parts = ("gate", "inner") if is_gated else ("inner",)
    inner = [f"{own}.feed_forward.{part}" for part in parts]
    yield from packer.linear(f"{name}.feed_forward.inner", inner, is_biased=not is_gated)
    yield from packer.linear(f"{name}.feed_forward.outer", [f"{own}.feed_forward.outer"], is_biased=not is_gated)
    yield from packer.norm(f"{name}.feed_forward.norm", f"{own}.feed_forward_sublayer.norm")


class _Packer:
    """The arrays of a model folder by name: those that its configuration asks for, all of them and no more."""

    def __init__(self, config: ModelConfig, weights: Mapping[str, Array], *, is_int8: bool) -> None:
        self.config = config
        self.weights = weights
        self.is_int8 = is_int8
        self._unread = set(weights)

    def check_all_read(self) -> None:
        """Raise EngineError for arrays that nothing has asked for: what they do would be left out in silence."""
        if self._unread:
            raise EngineError(
                f"engine/pack: the weights have {min(self._unread)}, for which their configuration does not ask "
                f"({len(self._unread)} such in all). The folder's files are of different models: copy the folder "
                "again as a whole."
            )

    def attention(self, name: str, layers: Sequence[str]) -> Iterator[tuple[str, Array]]:
        """Layers of attention that read the same vectors, as one matrix."""
        return self.linear(name, layers, is_biased=self.config.attention_bias)

    def linear(self, name: str, layers: Sequence[str], *, is_biased: bool) -> Iterator[tuple[str, Array]]:
        """Layers that read the same vectors, as one matrix."""
        biases = [f"{layer}.bias" for layer in layers] if is_biased else []
        return self.matrix(name, [f"{layer}.weight" for layer in layers], biases)

    def matrix(self, name: str, parts: Sequence[str], biases: Sequence[str] = ()) -> Iterator[tuple[str, Array]]:
        """Matrices (and their biases, if they have any) as one; each part begins with a whole block."""
        weight = stack([self._array(part) for part in parts]) if len(parts) > 1 else self._array(parts[0])
        bias = stack([self._array(part) for part in biases]) if biases else None
        packed = pack_matrix(weight, bias, is_int8=self.is_int8)
        yield f"{name}.weight", packed.weight
        if packed.scale is not None:
            yield f"{name}.scale", packed.scale
        if packed.bias is not None:
            yield f"{name}.bias", packed.bias

    def norm(self, name: str, own: str) -> Iterator[tuple[str, Array]]:
        yield f"{name}.gain", self.row(f"{own}.weight")
        if self.config.norm == "layer":
            yield f"{name}.bias", self.row(f"{own}.bias")

    def row(self, name: str) -> Floats:
        """An array as one row, padded to whole blocks."""
        return np.ascontiguousarray(pad(self._array(name).reshape(-1), BLOCK, axis=0), dtype=np.float32)

    def _array(self, name: str) -> Floats:
        stored = self._stored_name(name)
        self._unread.discard(stored)
        found = self.weights.get(stored)
        if found is None:
            raise EngineError(
                f"engine/pack: the weights have no {name}. The folder's files are of different models: copy the folder "
                "again as a whole."
            )
        array = np.asarray(found, dtype=np.float32)
        wanted = weight_shape(self.config, name)
        if array.shape != wanted:
            raise EngineError(
                f"engine/pack: {name} has the shape {array.shape}; its configuration wants {wanted}. The folder's "
                "files are of different models: copy the folder again as a whole."
            )
        if not np.isfinite(array).all():
            raise EngineError(
                f"engine/pack: {name} holds numbers that are not finite. The weights are damaged, or training had "
                "diverged: take another checkpoint."
            )
        return array

    def _stored_name(self, name: str) -> str:
        """Shared matrices are stored once, under one of their names."""
        if name != "output.weight":
            return name
        shared = SHARED_WITH_OUTPUT[self.config.embedding_sharing]
        return next((other for other in (name, *shared) if other in self.weights), name)
