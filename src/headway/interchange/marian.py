"""The weights of a MarianMT model under Hugging Face's names and in its layout, and Headway's.

Marian's sinusoids have the paper's exponents but stand in halves, all sines before all cosines; Headway's alternate, as
printed in the paper. So whatever writes or reads the model dimension is put into the other order.

Shapes: V vocabulary, D d_model, T positions.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headway.config.model_config import ModelConfig
from headway.config.positions import BASE
from headway.errors import InterchangeError
from headway.folder.weights import Array

Indices = npt.NDArray[np.int64]

PROJECTIONS = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "output": "out_proj"}
SELF_ATTENTION = {f"self_attention.{ours}": f"self_attn.{theirs}" for ours, theirs in PROJECTIONS.items()}
CROSS_ATTENTION = {f"cross_attention.{ours}": f"encoder_attn.{theirs}" for ours, theirs in PROJECTIONS.items()}
FEED_FORWARD = {"feed_forward.inner": "fc1", "feed_forward.outer": "fc2"}
LAYERS = {
    "encoder": {
        **SELF_ATTENTION,
        "attention_sublayer.norm": "self_attn_layer_norm",
        **FEED_FORWARD,
        "feed_forward_sublayer.norm": "final_layer_norm",
    },
    "decoder": {
        **SELF_ATTENTION,
        "self_sublayer.norm": "self_attn_layer_norm",
        **CROSS_ATTENTION,
        "cross_sublayer.norm": "encoder_attn_layer_norm",
        **FEED_FORWARD,
        "feed_forward_sublayer.norm": "final_layer_norm",
    },
}
WRITERS = ("output", "outer", "norm")  # their rows are the model dimension; of the other layers the columns are
SHARED, SOURCE, TARGET, OUTPUT, OUTPUT_BIAS = (
    "model.shared.weight",
    "model.encoder.embed_tokens.weight",
    "model.decoder.embed_tokens.weight",
    "lm_head.weight",
    "final_logits_bias",
)
POSITIONS = ("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight")
NEVER = -1e4  # a logit's bias that gives probability 0, and does not make a smoothed loss useless

_ROWS_AT_ONCE = 1024


@dataclass(frozen=True, slots=True)
class Rows:
    """For each of our ids, the row of Marian's table; ``never`` are ids of ours that no output may have."""

    row_V: Indices
    never: tuple[int, ...] = ()


def halves(d_model: int) -> Indices:
    """Where Marian's numbers stand in ours: the even places, then the odd ones."""
    return np.concatenate([np.arange(0, d_model, 2), np.arange(1, d_model, 2)])


def from_marian(
    arrays: Mapping[str, Array], model: ModelConfig, *, source_rows: Rows, target_rows: Rows
) -> tuple[dict[str, Array], ModelConfig]:
    """Our weights and what of the model is there: without attention biases and output bias, if all are zero.

    ``model`` has Marian's vocabulary sizes, ``source_rows`` and ``target_rows`` say which rows ours are made of. Raises
    InterchangeError for arrays that are missing, too many, of another shape, or not finite numbers.
    """
    reader = _Reader(arrays, model.d_model)
    weights = reader.embeddings(model, source_rows, target_rows)
    inverse_D = np.argsort(halves(model.d_model))
    for ours, theirs, shape, axis in _layer_weights(model):
        array = reader.take(theirs, shape)
        weights[ours] = array if axis is None else np.ascontiguousarray(np.take(array, inverse_D, axis=axis))
    bias_V = np.zeros(model.vocab_size, dtype=np.float32)
    if OUTPUT_BIAS in arrays:
        bias_V = reader.take(OUTPUT_BIAS, (1, model.vocab_size))[0]
    bias_V = bias_V[target_rows.row_V]
    bias_V[list(target_rows.never)] = NEVER
    weights["output.bias"] = bias_V
    reader.finish(model)
    has_bias, has_output_bias = _has_bias(weights), bool(bias_V.any())
    kept = {
        name: array
        for name, array in weights.items()
        if (has_bias or not _is_attention_bias(name)) and (has_output_bias or name != "output.bias")
    }
    source_size = None if model.source_vocab_size is None else len(source_rows.row_V)
    changes = {
        "vocab_size": len(target_rows.row_V),
        "source_vocab_size": source_size,
        "attention_bias": has_bias,
        "output_bias": has_output_bias,
    }
    return kept, model.model_copy(update=changes)


def to_marian(weights: Mapping[str, Array], model: ModelConfig) -> dict[str, Array]:
    """Marian's weights, ids unchanged; biases that the model has not are zero."""
    order_D = halves(model.d_model)
    source_VD = weights["source_stem.embedding.weight"][:, order_D]
    if model.embedding_sharing == "all":
        found: dict[str, Array] = {SHARED: source_VD}
    else:
        found = {SOURCE: source_VD, TARGET: weights["target_stem.embedding.weight"][:, order_D]}
        if model.embedding_sharing == "none":
            found[OUTPUT] = weights["output.weight"][:, order_D]
    for ours, theirs, shape, axis in _layer_weights(model):
        array = weights.get(ours, np.zeros(shape, dtype=np.float32))
        found[theirs] = array if axis is None else np.ascontiguousarray(np.take(array, order_D, axis=axis))
    found[OUTPUT_BIAS] = weights.get("output.bias", np.zeros(model.vocab_size, dtype=np.float32))[None]
    return found


def _layer_weights(model: ModelConfig) -> Iterator[tuple[str, str, tuple[int, ...], int | None]]:
    """Of every array in the layers: our name, theirs, the shape, and the axis that is the model dimension."""
    d_model, d_ff = model.d_model, model.d_ff
    for stack, depth in (("encoder", model.num_encoder_layers), ("decoder", model.num_decoder_layers)):
        for layer in range(depth):
            for ours, theirs in LAYERS[stack].items():
                writes = ours.endswith(WRITERS)
                rows = d_ff if ours.endswith("inner") else d_model
                columns = d_ff if ours.endswith("outer") else d_model
                shape = (d_model,) if ours.endswith("norm") else (rows, columns)
                names = (f"{stack}.layers.{layer}.{ours}", f"model.{stack}.layers.{layer}.{theirs}")
                yield f"{names[0]}.weight", f"{names[1]}.weight", shape, 0 if writes else 1
                yield f"{names[0]}.bias", f"{names[1]}.bias", (rows,), 0 if writes else None


def _is_attention_bias(name: str) -> bool:
    return "_attention." in name and name.endswith(".bias")


def _has_bias(weights: Mapping[str, Array]) -> bool:
    return any(array.any() for name, array in weights.items() if _is_attention_bias(name))


class _Reader:
    """Takes arrays out of a file by name and shape, and knows which are left."""

    def __init__(self, arrays: Mapping[str, Array], d_model: int) -> None:
        self._arrays = arrays
        self._left = dict(arrays)
        self._d_model = d_model

    def take(self, name: str, shape: Sequence[int]) -> Array:
        """The float32 array of this name."""
        if name not in self._arrays:
            raise _wrong(name, "no such array", f"one of shape {tuple(shape)}")
        array = self._arrays[name]
        if tuple(array.shape) != tuple(shape):
            raise _wrong(name, f"shape {tuple(array.shape)}", f"{tuple(shape)}, as config.json has it")
        if array.dtype.kind != "f":
            raise _wrong(name, f"type {array.dtype}", "floating-point numbers")
        if not np.isfinite(array).all():
            raise _wrong(name, "a number that is not finite", "finite numbers")
        self._left.pop(name, None)
        return array.astype(np.float32)

    def embeddings(self, model: ModelConfig, source_rows: Rows, target_rows: Rows) -> dict[str, Array]:
        """Our tables. They come first, so that sizes that the file does not have are found before memory is taken."""
        target_size = model.vocab_size
        source_size = model.source_vocab_size or target_size
        inverse: list[Indices] = []

        def table(names: Sequence[str], size: int, rows: Rows) -> Array:
            array = self._equal(names, (size, self._d_model))
            if not inverse:
                inverse.append(np.argsort(halves(self._d_model)))
            return np.ascontiguousarray(array[rows.row_V][:, inverse[0]])

        if model.embedding_sharing == "all":
            names = (SHARED, SOURCE, TARGET, OUTPUT)
            return {"source_stem.embedding.weight": table(names, target_size, target_rows)}
        targets = (TARGET, OUTPUT) if model.embedding_sharing == "target" else (TARGET,)
        found = {
            "source_stem.embedding.weight": table((SOURCE,), source_size, source_rows),
            "target_stem.embedding.weight": table(targets, target_size, target_rows),
        }
        if model.embedding_sharing == "none":
            found["output.weight"] = table((OUTPUT,), target_size, target_rows)
        return found

    def _equal(self, names: Sequence[str], shape: tuple[int, int]) -> Array:
        """One table that may stand under several names; raises InterchangeError where these differ."""
        there = [name for name in names if name in self._arrays] or [names[0]]
        first = self.take(there[0], shape)
        for name in there[1:]:
            if not np.array_equal(self.take(name, shape), first):
                raise _wrong(name, f"other numbers than {there[0]}", "the same, as config.json says that they are tied")
        return first

    def finish(self, model: ModelConfig) -> None:
        """Refuse arrays that nobody asked for, and positions that are no sinusoids."""
        for name in POSITIONS:
            if name in self._left:
                _check_positions(name, self._left.pop(name), model.d_model)
        if model.embedding_sharing != "all":
            self._left.pop(SHARED, None)  # an old file may have it, and MarianMT does not look
        if self._left:
            name = sorted(self._left)[0]
            raise _wrong(name, f"an array unknown to MarianMT (one of {len(self._left)})", "none")


def _check_positions(name: str, table_TD: Array, d_model: int) -> None:
    """Positions may be in the file; they must be those that Headway computes."""
    if table_TD.ndim != 2 or table_TD.shape[1] != d_model:
        raise _wrong(name, f"shape {tuple(table_TD.shape)}", f"(positions, {d_model})")
    wave_D = BASE ** (np.arange(0, d_model, 2) / d_model)
    for start in range(0, len(table_TD), _ROWS_AT_ONCE):
        part_TD = table_TD[start : start + _ROWS_AT_ONCE]
        angle_TD = np.arange(start, start + len(part_TD))[:, None] / wave_D
        wanted_TD = np.concatenate([np.sin(angle_TD), np.cos(angle_TD)[:, : d_model // 2]], axis=1)
        tolerance = 1e-2 if part_TD.dtype == np.float16 else 1e-4
        if not (np.abs(part_TD - wanted_TD) < tolerance).all():
            raise _wrong(name, "other numbers than sinusoids in halves", "these")


def _wrong(name: str, found: str, wanted: str) -> InterchangeError:
    return InterchangeError(
        f"interchange/marian: weights: {name}: found {found}; wanted {wanted}. "
        "Remedy: use config.json and weights of one MarianMT model, copied whole."
    )
