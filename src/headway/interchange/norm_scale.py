"""Weights that compute the same under norms that add another number to the variance.

A norm of c x that adds E to the variance gives what a norm of x gives that adds E / c^2. So what stands between the
sub-layers is kept c times as large: norms write it so, the matrices that read it are divided by c, and those that write
into the residual are multiplied. c is a power of two, which changes no digit and can be undone to the last bit. What
goes into the first sub-layer of a stack is embeddings and positions, and what leaves a stack is read elsewhere: both
stay as they are, and the first norm of each stack with them.
"""

import math
from collections.abc import Iterator, Mapping

from headway.config.model_config import ModelConfig
from headway.folder.weights import Array

SUBLAYERS = {  # in their order: what reads the stack, what writes into it, the norm
    "encoder": (
        (("self_attention.query", "self_attention.key", "self_attention.value"), "self_attention.output", "attention"),
        (("feed_forward.inner",), "feed_forward.outer", "feed_forward"),
    ),
    "decoder": (
        (("self_attention.query", "self_attention.key", "self_attention.value"), "self_attention.output", "self"),
        (("cross_attention.query",), "cross_attention.output", "cross"),
        (("feed_forward.inner",), "feed_forward.outer", "feed_forward"),
    ),
}


def norm_scale(epsilon: float, *, there: float) -> float:
    """The power of two c for which ``there`` / c^2 is nearest to ``epsilon``, by their ratio."""
    return 2.0 ** round(math.log2(there / epsilon) / 2)


def scale_norms(weights: Mapping[str, Array], model: ModelConfig, scale: float) -> dict[str, Array]:
    """The weights of a post-norm model with ``scale`` between its sub-layers; 1 / ``scale`` takes it back."""
    factors = dict(_factors(model, scale))
    return {name: array * array.dtype.type(factors.get(name, 1.0)) for name, array in weights.items()}


def _factors(model: ModelConfig, scale: float) -> Iterator[tuple[str, float]]:
    """What each array is multiplied by; the others stay."""
    depths = {"encoder": model.num_encoder_layers, "decoder": model.num_decoder_layers}
    for stack, depth in depths.items():
        kinds = SUBLAYERS[stack]
        for place in range(depth * len(kinds)):
            layer, kind = divmod(place, len(kinds))
            readers, writer, norm = kinds[kind]
            own = f"{stack}.layers.{layer}"
            read = 1.0 if place == 0 else scale
            written = 1.0 if place + 1 == depth * len(kinds) else scale
            yield from ((f"{own}.{reader}.weight", 1.0 / read) for reader in readers)
            for part in ("weight", "bias"):
                yield f"{own}.{writer}.{part}", read
                yield f"{own}.{norm}_sublayer.norm.{part}", written
