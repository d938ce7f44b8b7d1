"""What the config.json of a Hugging Face MarianMT model says, as a ModelConfig, and the other way.

A value that Headway's model cannot have is an error that names its key; so is one that MarianMT cannot have.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import ValidationError

from headway.config.model_config import ModelConfig
from headway.errors import InterchangeError
from headway.text.reserved import BOS_ID, EOS_ID, PAD_ID

NORM_EPSILON = 1e-5  # of every norm in MarianMT; no key says it
# theirs -> ours; silu has two names
ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "gelu_python": "gelu", "silu": "silu", "swish": "silu"}
# What Headway builds, and MarianMT as well, whatever older configurations may say of them.
_FIXED: dict[str, tuple[object, ...]] = {
    "model_type": ("marian",),
    "is_encoder_decoder": (True, None),
    "normalize_before": (False, None),
    "normalize_embedding": (False, None),
    "add_final_layer_norm": (False, None),
    "static_position_embeddings": (True, None),
    "quantization_config": (None,),
}
# MarianConfig's own defaults, for keys that are absent
_DEFAULTS: dict[str, int] = {
    "vocab_size": 58101,
    "max_position_embeddings": 1024,
    "encoder_layers": 12,
    "encoder_ffn_dim": 4096,
    "encoder_attention_heads": 16,
    "decoder_layers": 12,
    "decoder_ffn_dim": 4096,
    "decoder_attention_heads": 16,
    "d_model": 1024,
}
_LARGEST = 1 << 31  # of any size


@dataclass(frozen=True, slots=True)
class MarianModel:
    """The sizes of a MarianMT model and its ids. ``shares``: one table for both sides; ``ties``: the softmax has it."""

    source_vocab_size: int
    target_vocab_size: int
    pad_id: int
    eos_id: int
    start_id: int
    shares: bool
    ties: bool
    max_positions: int
    model: ModelConfig  # with Marian's vocabulary sizes

    @property
    def embedding_sharing(self) -> str:
        """What ``[model]`` says of it."""
        if not self.ties:
            return "none"
        return "all" if self.shares else "target"


def read_marian_config(values: Mapping[str, object]) -> MarianModel:
    """Take what config.json says; raises InterchangeError, naming the key, for what Headway cannot be."""
    for key, wanted in _FIXED.items():
        found = values.get(key)
        if not any(found == value and type(found) is type(value) for value in wanted):
            raise cannot(key, found, wanted[0])
    shares = _flag(values, "share_encoder_decoder_embeddings", default=True)
    ties = _flag(values, "tie_word_embeddings", default=True)
    size = {key: _whole(values, key, default) for key, default in _DEFAULTS.items()}
    target_size = size["vocab_size"]
    if values.get("decoder_vocab_size") is not None:
        target_size = _whole(values, "decoder_vocab_size", target_size)
    if shares and target_size != size["vocab_size"]:
        raise cannot("decoder_vocab_size", target_size, f"vocab_size {size['vocab_size']}, as the table is shared")
    for one, other in (("encoder_ffn_dim", "decoder_ffn_dim"), ("encoder_attention_heads", "decoder_attention_heads")):
        if size[one] != size[other]:
            raise cannot(other, size[other], f"{one} {size[one]}")
    activation = values.get("activation_function", "gelu")
    if not isinstance(activation, str) or activation not in ACTIVATIONS:
        raise cannot("activation_function", activation, " or ".join(ACTIVATIONS))
    sharing = "none" if not ties else "all" if shares else "target"
    try:
        model = ModelConfig(
            vocab_size=target_size,
            source_vocab_size=None if sharing == "all" else size["vocab_size"],
            d_model=size["d_model"],
            d_ff=size["encoder_ffn_dim"],
            num_heads=size["encoder_attention_heads"],
            num_encoder_layers=size["encoder_layers"],
            num_decoder_layers=size["decoder_layers"],
            dropout=_share(values, "dropout", default=0.1),
            attention_bias=True,
            embedding_sharing=sharing,
            norm_epsilon=NORM_EPSILON,
            activation=ACTIVATIONS[activation],  # type: ignore[arg-type]
            attention_dropout=_share(values, "attention_dropout"),
            activation_dropout=_share(values, "activation_dropout"),
            embedding_scale=_flag(values, "scale_embedding", default=False),
            output_bias=True,
        )
    except ValidationError as error:
        reason = " ".join(str(error.errors()[0]["msg"]).split())
        raise InterchangeError(
            f"interchange/marian_config: config.json: {reason}. Remedy: copy the model again from where it was whole."
        ) from error
    if model.d_model % model.num_heads:
        raise cannot("d_model", model.d_model, f"a multiple of encoder_attention_heads {model.num_heads}")
    return MarianModel(
        size["vocab_size"],
        target_size,
        pad_id=_id(values, "pad_token_id", target_size),
        eos_id=_id(values, "eos_token_id", target_size),
        start_id=_id(values, "decoder_start_token_id", target_size),
        shares=shares,
        ties=ties,
        max_positions=size["max_position_embeddings"],
        model=model,
    )


def write_marian_config(model: ModelConfig, *, max_positions: int) -> dict[str, object]:
    """What config.json says of one of ours, with our ids; raises InterchangeError for what MarianMT cannot be.

    Norms have no key: see ``NORM_EPSILON``.
    """
    wanted: dict[str, object] = {
        "norm_placement": "post",
        "norm": "layer",
        "positions": "sinusoidal",
        "attention_score": "scaled",
        "attention_window": None,
        "residual_scaling": "none",
    }
    for key, value in wanted.items():
        if getattr(model, key) != value:
            raise _cannot_express(key, getattr(model, key), value)
    if model.kv_heads != model.num_heads:
        raise _cannot_express("num_kv_heads", model.kv_heads, f"num_heads {model.num_heads}")
    for key, size in (("d_k", model.key_size), ("d_v", model.value_size)):
        if size * model.num_heads != model.d_model:
            raise _cannot_express(key, size, f"d_model / num_heads, {model.d_model / model.num_heads:g}")
    names = {ours: theirs for theirs, ours in reversed(ACTIVATIONS.items())} | {"silu": "swish"}
    if model.activation not in names:
        raise _cannot_express("activation", model.activation, " or ".join(names))
    return {
        "architectures": ["MarianMTModel"],
        "model_type": "marian",
        "is_encoder_decoder": True,
        "vocab_size": model.source_vocab_size or model.vocab_size,
        "decoder_vocab_size": model.vocab_size,
        "d_model": model.d_model,
        "encoder_layers": model.num_encoder_layers,
        "decoder_layers": model.num_decoder_layers,
        "encoder_attention_heads": model.num_heads,
        "decoder_attention_heads": model.num_heads,
        "encoder_ffn_dim": model.d_ff,
        "decoder_ffn_dim": model.d_ff,
        "activation_function": names[model.activation],
        "scale_embedding": model.embedding_scale,
        "dropout": model.dropout,
        "attention_dropout": model.attention_dropout,
        "activation_dropout": model.activation_dropout,
        "share_encoder_decoder_embeddings": model.embedding_sharing == "all",
        "tie_word_embeddings": model.embedding_sharing != "none",
        "static_position_embeddings": True,
        "max_position_embeddings": max_positions,
        "pad_token_id": PAD_ID,
        "bos_token_id": BOS_ID,
        "decoder_start_token_id": BOS_ID,
        "eos_token_id": EOS_ID,
        "forced_eos_token_id": EOS_ID,
        "use_cache": True,
        "dtype": "float32",
    }


def cannot(key: str, found: object, wanted: object, *, file: str = "config.json") -> InterchangeError:
    """Make the error of a value that Headway's model cannot have."""
    return InterchangeError(
        f"interchange/marian_config: {file}: {key}: found {_shown(found)}; wanted {_shown(wanted)}. "
        "Headway cannot import such a model; use it where it was made."
    )


def _cannot_express(key: str, found: object, wanted: object) -> InterchangeError:
    return InterchangeError(
        f"interchange/marian_config: model.{key}: found {_shown(found)}; MarianMT has {_shown(wanted)} alone. "
        "Such a model cannot be exported to huggingface; train one without this part."
    )


def _shown(value: object) -> str:
    return str(value)[:80] if isinstance(value, str) else repr(value)[:80]


def _whole(values: Mapping[str, object], key: str, default: int) -> int:
    found = values.get(key, default)
    if type(found) is not int or not 1 <= found <= _LARGEST:
        raise cannot(key, found, "a whole number from 1 up")
    return found


def _share(values: Mapping[str, object], key: str, default: float = 0.0) -> float:
    found = values.get(key, default)
    if type(found) not in (int, float) or not isinstance(found, int | float) or not 0.0 <= found < 1.0:
        raise cannot(key, found, "a number from 0 to below 1")
    return float(found)


def _flag(values: Mapping[str, object], key: str, *, default: bool) -> bool:
    found = values.get(key, default)
    if not isinstance(found, bool):
        raise cannot(key, found, "true or false")
    return found


def _id(values: Mapping[str, object], key: str, size: int) -> int:
    found = values.get(key)
    if isinstance(found, list) and len(found) == 1:
        found = found[0]
    if type(found) is not int or not 0 <= found < size:
        raise cannot(key, found, f"one token id from 0 to {size - 1}")
    return found
