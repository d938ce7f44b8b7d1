"""Which settings of a model an architecture has no use for: they are refused, for what they ask would not be done."""

from collections.abc import Mapping

SEQUENTIAL = ("recurrent", "convolutional")  # those without self-attention
ONE_SIDED = ("decoder_only", "encoder_only")  # those of one stack: they read one text, and give no translation

OF_SELF_ATTENTION = (
    *("d_ff", "num_heads", "d_k", "d_v", "num_kv_heads", "attention_bias", "attention_dropout"),
    *("attention_score", "attention_window"),
    *("norm_placement", "norm", "norm_epsilon", "residual_scaling", "activation", "activation_dropout"),
)
OF_SEQUENCES = ("recurrent_cell", "kernel_size")

# architecture -> keys of [model] that must keep their defaults
UNUSED: dict[str, tuple[str, ...]] = {
    "transformer": OF_SEQUENCES,
    "recurrent": (*OF_SELF_ATTENTION, "positions", "max_positions", "kernel_size"),
    "convolutional": (*OF_SELF_ATTENTION, "recurrent_cell"),
    "decoder_only": OF_SEQUENCES,
    "encoder_only": OF_SEQUENCES,
}
EMBEDDED = ("sinusoidal", "learned", "none")  # positions that act on embeddings; the others act within self-attention


def check_architecture(architecture: str, given: Mapping[str, object]) -> None:
    """Raise ValueError for a key, among those that differ from their defaults, without a meaning there."""
    unused = [name for name in UNUSED[architecture] if name in given]
    if unused:
        name = unused[0]
        also = " (and model.preset, if a preset sets it)" if name in OF_SELF_ATTENTION else ""
        raise ValueError(
            f"{name} is {given[name]} and has no meaning for architecture {architecture}; take "
            f"{', '.join(f'model.{other}' for other in unused)} out{also}, or back to the default: "
            f"{' '.join(f'--set model.{other}=' for other in unused)}"
        )
    positions = given.get("positions", EMBEDDED[0])
    for name in ("positions", "cross_positions"):
        if given.get(name) == "words" and architecture != "transformer":
            raise ValueError(
                f"{name} words count the words of a source and of the tree over it, and architecture is "
                f"{architecture}; set model.architecture to transformer, or choose other {name}"
            )
    if architecture == "convolutional" and positions not in EMBEDDED:
        raise ValueError(
            f"positions {positions} act within self-attention and architecture is convolutional; "
            f"set model.positions to one of {', '.join(EMBEDDED)}"
        )
