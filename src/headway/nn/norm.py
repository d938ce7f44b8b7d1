"""Normalisation of a token's vector."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

EPSILON = 1e-6  # the paper does not give it; its code has this


def layer_norm(d_model: int, epsilon: float = EPSILON) -> nn.LayerNorm:
    """Mean 0, biased variance 1 over the last dimension, then gain and bias (Ba et al. 2016)."""
    return nn.LayerNorm(d_model, eps=epsilon)


class RMSNorm(nn.Module):
    """Root mean square 1 over the last dimension, then gain; no mean, no bias (Zhang and Sennrich 2019).

    Squares are summed in float32, whatever type comes in; that type also comes out.
    """

    def __init__(self, d_model: int, epsilon: float = EPSILON) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))
        self.epsilon = epsilon

    def forward(self, x: Tensor) -> Tensor:
        """X, each vector by itself normalised."""
        return functional.rms_norm(x.float(), self.weight.shape, self.weight.float(), self.epsilon).to(x.dtype)


NORMS: dict[str, Callable[[int, float], nn.Module]] = {"layer": layer_norm, "rms": RMSNorm}
