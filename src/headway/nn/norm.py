"""Layer normalisation."""

from torch import nn

EPSILON = 1e-6  # the paper does not give it; its code has this


def layer_norm(d_model: int) -> nn.LayerNorm:
    """Mean 0, biased variance 1 over the last dimension, then gain and bias (Ba et al. 2016)."""
    return nn.LayerNorm(d_model, eps=EPSILON)
