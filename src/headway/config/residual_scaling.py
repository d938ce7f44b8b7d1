"""What residual connections and initial matrices are scaled by; layers ask, and the compiled engine."""

from collections.abc import Callable
from typing import NamedTuple


class Scaling(NamedTuple):
    """What is scaled in one stack."""

    alpha: float  # weight of the residual connection
    beta: float  # factor of the initial feed-forward, value and output matrices


def deepnorm(num_encoder_layers: int, num_decoder_layers: int) -> tuple[Scaling, Scaling]:
    """DeepNorm's constants for encoder and decoder of N and M layers (Wang et al. 2022, Figure 2).

    A model of one stack, the other with 0 layers, has constants of its own.
    """
    if not (num_encoder_layers and num_decoder_layers):
        layers = num_encoder_layers + num_decoder_layers
        alone = Scaling(alpha=(2 * layers) ** (1 / 4), beta=(8 * layers) ** (-1 / 4))
        return alone, alone
    depth = num_encoder_layers**4 * num_decoder_layers
    encoder = Scaling(alpha=0.81 * depth ** (1 / 16), beta=0.87 * depth ** (-1 / 16))
    decoder = Scaling(alpha=(3 * num_decoder_layers) ** (1 / 4), beta=(12 * num_decoder_layers) ** (-1 / 4))
    return encoder, decoder


def unscaled(num_encoder_layers: int, num_decoder_layers: int) -> tuple[Scaling, Scaling]:
    """The paper's: neither stack is scaled, whatever its depth."""
    return Scaling(1.0, 1.0), Scaling(1.0, 1.0)


RESIDUAL_SCALINGS: dict[str, Callable[[int, int], tuple[Scaling, Scaling]]] = {"none": unscaled, "deepnorm": deepnorm}
