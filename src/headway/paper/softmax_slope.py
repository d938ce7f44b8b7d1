"""How steep a softmax is where its scores stand: what is left of a gradient that passes through it.

Shapes: N draws, S keys, K d_k, 1 query.
"""

import math

import torch
from torch import Tensor

from headway.nn.score import ATTENTION_SCORES, AdditiveScore


def softmax_slope(scores_NS: Tensor) -> Tensor:
    """The norm (Frobenius) of the softmax's Jacobian diag(p) - p p^T at each row of scores: (N).

    Its square is sum p^2 - 2 sum p^3 + (sum p^2)^2. Of two scores it is the root of 4 times p (1 - p).
    """
    p_NS = scores_NS.double().softmax(dim=-1)
    second_N, third_N = p_NS.square().sum(dim=-1), p_NS.pow(3).sum(dim=-1)
    return (second_N - 2.0 * third_N + second_N.square()).clamp(min=0.0).sqrt()


def draw_slopes(kind: str, d_k: int, *, num_draws: int, num_keys: int, seed: int) -> Tensor:
    """Slopes for queries and keys whose components are independent, of mean 0 and variance 1 (footnote 4): (N).

    The vector v of additive scores has components of variance 1 / d_k. Equal seeds draw equal queries and keys.
    """
    generator = torch.Generator().manual_seed(seed)
    q_N11K = torch.randn(num_draws, 1, 1, d_k, generator=generator)
    k_N1SK = torch.randn(num_draws, 1, num_keys, d_k, generator=generator)
    score = ATTENTION_SCORES[kind](1, d_k)
    if isinstance(score, AdditiveScore):
        torch.nn.init.normal_(score.weight, std=1.0 / math.sqrt(d_k), generator=generator)
    with torch.no_grad():
        return softmax_slope(score(q_N11K, k_N1SK)[:, 0, 0])


def product_variance(d_k: int, *, num_pairs: int, seed: int, at_once: int = 1000) -> float:
    """The variance of q k over pairs drawn as footnote 4 has them; its mean is known to be 0."""
    generator = torch.Generator().manual_seed(seed)
    total = 0.0
    for begin in range(0, num_pairs, at_once):
        q_NK, k_NK = torch.randn(2, min(at_once, num_pairs - begin), d_k, generator=generator)
        total += (q_NK * k_NK).sum(dim=-1).double().square().sum().item()
    return total / num_pairs


def variance_error(d_k: int, *, num_pairs: int) -> float:
    """The standard error of ``product_variance``, as a share of d_k.

    A product of two such numbers has the fourth moment 9, so a sum of d_k of them has the kurtosis 3 + 6 / d_k, and the
    mean of N squares the error sqrt((2 + 6 / d_k) / N).
    """
    return math.sqrt((2.0 + 6.0 / d_k) / num_pairs)
