"""A sub-layer within its residual connection (Sections 3.1 and 5.4).

Shapes: B sentences, T positions, D d_model.
"""

from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor, nn


class PostNorm(nn.Module):
    """LayerNorm(x + Dropout(Sublayer(x))), as the paper has it."""

    ends_in_norm = True

    def __init__(self, norm: nn.Module, dropout: nn.Module) -> None:
        super().__init__()
        self.norm = norm
        self.dropout = dropout

    def forward(self, x_BTD: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """X after one sub-layer: (B, T, D)."""
        return self.norm(x_BTD + self.dropout(sublayer(x_BTD)))


class PreNorm(nn.Module):
    """x + Dropout(Sublayer(LayerNorm(x))) (Xiong et al. 2020); the stack ends in a norm of its own.

    Departure: the norm stands before the sub-layer, so that x itself reaches the end of the stack.
    """

    ends_in_norm = False

    def __init__(self, norm: nn.Module, dropout: nn.Module) -> None:
        super().__init__()
        self.norm = norm
        self.dropout = dropout

    def forward(self, x_BTD: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """X after one sub-layer: (B, T, D)."""
        return x_BTD + self.dropout(sublayer(self.norm(x_BTD)))


class DeepNorm(nn.Module):
    """LayerNorm(alpha x + Dropout(Sublayer(x))) (Wang et al. 2022, DeepNet).

    Departure: x weighs more than the sub-layer's output, by the depth of the model.
    """

    ends_in_norm = True

    def __init__(self, norm: nn.Module, dropout: nn.Module, *, alpha: float) -> None:
        super().__init__()
        self.norm = norm
        self.dropout = dropout
        self.alpha = alpha

    def forward(self, x_BTD: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """X after one sub-layer: (B, T, D)."""
        return self.norm(self.alpha * x_BTD + self.dropout(sublayer(x_BTD)))


Sublayer = PostNorm | PreNorm | DeepNorm
SUBLAYERS: dict[str, type[PostNorm] | type[PreNorm]] = {"post": PostNorm, "pre": PreNorm}


class Scaling(NamedTuple):
    """What DeepNorm does to one stack."""

    alpha: float  # weight of the residual connection
    beta: float  # factor of the initial feed-forward, value and output matrices


def deepnorm(num_encoder_layers: int, num_decoder_layers: int) -> tuple[Scaling, Scaling]:
    """DeepNorm's constants for encoder and decoder of N and M layers (Wang et al. 2022, Figure 2)."""
    depth = num_encoder_layers**4 * num_decoder_layers
    encoder = Scaling(alpha=0.81 * depth ** (1 / 16), beta=0.87 * depth ** (-1 / 16))
    decoder = Scaling(alpha=(3 * num_decoder_layers) ** (1 / 4), beta=(12 * num_decoder_layers) ** (-1 / 4))
    return encoder, decoder


def unscaled(num_encoder_layers: int, num_decoder_layers: int) -> tuple[Scaling, Scaling]:
    """The paper's: neither stack is scaled, whatever its depth."""
    return Scaling(1.0, 1.0), Scaling(1.0, 1.0)


RESIDUAL_SCALINGS: dict[str, Callable[[int, int], tuple[Scaling, Scaling]]] = {"none": unscaled, "deepnorm": deepnorm}
