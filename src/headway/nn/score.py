"""How well a query and a key go together, before the softmax (Section 3.2.1).

Shapes: B sentences, T query positions, S key positions, H heads of queries, G heads of keys, K d_k, J = H / G x T
queries that share a head of keys.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

Score = Callable[[Tensor, Tensor], Tensor]  # of queries (B, H, T, K) and keys (B, G, S, K), to (B, H, T, S)


def scaled_dot_product(q_BHTK: Tensor, k_BGSK: Tensor) -> Tensor:
    """Q K^T / sqrt(d_k), the paper's: components of variance 1 give scores of variance 1. In float32, or wider."""
    return dot_product(q_BHTK, k_BGSK) / math.sqrt(q_BHTK.shape[-1])


def dot_product(q_BHTK: Tensor, k_BGSK: Tensor) -> Tensor:
    """Q K^T, the products in the precision given, the scores in float32 or wider.

    Departure, by itself: without the scale the scores of components of variance 1 have variance d_k (footnote 4).
    """
    num_groups = k_BGSK.shape[1]
    q_BGJK = q_BHTK.reshape(q_BHTK.shape[0], num_groups, -1, q_BHTK.shape[3])
    scores_BHTS = (q_BGJK @ k_BGSK.transpose(-2, -1)).reshape(*q_BHTK.shape[:3], k_BGSK.shape[2])
    return scores_BHTS.to(torch.promote_types(scores_BHTS.dtype, torch.float32))


class AdditiveScore(nn.Module):
    """v^T tanh(q + k) with a trained v a head; q and k are W q and U k already (Bahdanau et al. 2015).

    Departure: a feed-forward network with one hidden layer of d_k in the place of the product. It stores d_k numbers
    for each pair of query and key, where the product stores one.
    """

    def __init__(self, num_heads: int, d_k: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.weight = nn.Parameter(torch.empty(num_heads * d_k))  # flat, as biases are: it is no matrix

    def forward(self, q_BHTK: Tensor, k_BGSK: Tensor) -> Tensor:
        """Scores (B, H, T, S), in float32 or wider."""
        k_BHSK = k_BGSK.repeat_interleave(self.num_heads // k_BGSK.shape[1], dim=1)
        # contiguous: else the sum takes the order of the queries in memory, and the product would copy all of it
        hidden_BHTSK = (q_BHTK.contiguous()[:, :, :, None] + k_BHSK.contiguous()[:, :, None]).tanh()
        v_H1K1 = self.weight.to(hidden_BHTSK.dtype).unflatten(0, (self.num_heads, 1, -1, 1))
        scores_BHTS = (hidden_BHTSK @ v_H1K1)[..., 0]
        return scores_BHTS.to(torch.promote_types(scores_BHTS.dtype, torch.float32))


# name -> the score of a layer with so many heads of so many numbers
ATTENTION_SCORES: dict[str, Callable[[int, int], Score]] = {
    "scaled": lambda num_heads, d_k: scaled_dot_product,
    "unscaled": lambda num_heads, d_k: dot_product,
    "additive": AdditiveScore,
}
