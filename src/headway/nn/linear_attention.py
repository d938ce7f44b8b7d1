"""Attention whose cost grows with n alone (Katharopoulos et al. 2020).

The exponential of a product becomes a product of features, phi(q) phi(k) with phi(x) = elu(x) + 1, so that sums over
keys can be kept in the place of the keys.

Shapes: B sentences or rows, T positions, D d_model, H heads, K d_k, V d_v, C chunks of positions, P positions of a
chunk, R rows.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from headway.nn.sequence import SequenceLayer

CHUNK = 64  # positions that the causal form handles as one product


@dataclass(frozen=True, slots=True)
class Sums:
    """All that later queries need of the past: sums of phi(k) v^T and of phi(k)."""

    values_BHKV: Tensor
    keys_BHK: Tensor

    def select(self, rows_R: Tensor) -> "Sums":
        """The given rows in the given order."""
        return Sums(self.values_BHKV.index_select(0, rows_R), self.keys_BHK.index_select(0, rows_R))


def features(x: Tensor) -> Tensor:
    """phi(x) = elu(x) + 1, above 0 everywhere; float32 at least."""
    return functional.elu(x.to(torch.promote_types(x.dtype, torch.float32))) + 1.0


def linear_attention(q_BHTK: Tensor, k_BHTK: Tensor, v_BHTV: Tensor, mask_BT: Tensor | None, *, causal: bool) -> Tensor:
    """The definition, equation 4 of the article: sum_j phi(q_i) phi(k_j) v_j / sum_j phi(q_i) phi(k_j), (B, H, T, V).

    j runs over the real positions, and up to i where it is causal. A query with no key gets zeros.
    """
    weights_BHTT = features(q_BHTK) @ features(k_BHTK).mT
    if mask_BT is not None:
        weights_BHTT = weights_BHTT.masked_fill(~mask_BT[:, None, None, :], 0.0)
    if causal:
        weights_BHTT = weights_BHTT.tril()
    total_BHT = weights_BHTT.sum(dim=-1)
    return _divide(weights_BHTT @ v_BHTV.to(weights_BHTT.dtype), total_BHT).to(v_BHTV.dtype)


def summed_attention(q_BHTK: Tensor, k_BHTK: Tensor, v_BHTV: Tensor, mask_BT: Tensor | None, *, causal: bool) -> Tensor:
    """The same by sums over the keys, equations 5, 6 and 9 of the article: no T x T matrix is made.

    Causal, it takes ``CHUNK`` positions together: the sums of the chunks before, and within the chunk the definition.
    """
    query_BHTK, key_BHTK = features(q_BHTK), features(k_BHTK)
    value_BHTV = v_BHTV.to(key_BHTK.dtype)
    if mask_BT is not None:
        key_BHTK = key_BHTK.masked_fill(~mask_BT[:, None, :, None], 0.0)
    if causal:
        return _by_chunks(query_BHTK, key_BHTK, value_BHTV).to(v_BHTV.dtype)
    mixed_BHTV = query_BHTK @ (key_BHTK.mT @ value_BHTV)
    total_BHT = (query_BHTK @ key_BHTK.sum(dim=2)[..., None])[..., 0]
    return _divide(mixed_BHTV, total_BHT).to(v_BHTV.dtype)


def _by_chunks(query_BHTK: Tensor, key_BHTK: Tensor, value_BHTV: Tensor) -> Tensor:
    num_positions = query_BHTK.shape[2]
    query_BHCPK, key_BHCPK, value_BHCPV = (_chunks(x) for x in (query_BHTK, key_BHTK, value_BHTV))
    own_BHCKV = key_BHCPK.mT @ value_BHCPV
    own_BHCK = key_BHCPK.sum(dim=3)
    before_BHCKV = own_BHCKV.cumsum(dim=2) - own_BHCKV
    before_BHCK = own_BHCK.cumsum(dim=2) - own_BHCK
    weights_BHCPP = (query_BHCPK @ key_BHCPK.mT).tril()
    mixed_BHCPV = query_BHCPK @ before_BHCKV + weights_BHCPP @ value_BHCPV
    total_BHCP = (query_BHCPK @ before_BHCK[..., None])[..., 0] + weights_BHCPP.sum(dim=-1)
    return _divide(mixed_BHCPV, total_BHCP).flatten(2, 3)[:, :, :num_positions]


def _chunks(x_BHTK: Tensor) -> Tensor:
    """(B, H, C, P, K), filled up with zeros."""
    num_positions = x_BHTK.shape[2]
    size = min(CHUNK, num_positions)
    return functional.pad(x_BHTK, (0, 0, 0, -num_positions % size)).unflatten(2, (-1, size))


def _divide(mixed: Tensor, total: Tensor) -> Tensor:
    """Mixed values by their total weight; zeros where no key had any."""
    nothing = (total == 0.0)[..., None]
    return (mixed / total[..., None].masked_fill(nothing, 1.0)).masked_fill(nothing, 0.0)


class LinearAttention(SequenceLayer[Sums]):
    """Linear self-attention in ``num_heads`` heads of d_model / num_heads numbers, with the paper's four matrices."""

    def __init__(self, d_model: int, num_heads: int, *, causal: bool, bias: bool = False) -> None:
        super().__init__()
        assert d_model % num_heads == 0
        self.causal = causal
        self.num_heads = num_heads
        self.query = nn.Linear(d_model, d_model, bias=bias)
        self.key = nn.Linear(d_model, d_model, bias=bias)
        self.value = nn.Linear(d_model, d_model, bias=bias)
        self.output = nn.Linear(d_model, d_model, bias=bias)

    def forward(self, x_BTD: Tensor, /, mask_BT: Tensor | None = None) -> Tensor:
        """All positions: (B, T, D)."""
        return self._joined(summed_attention(*self._heads(x_BTD), mask_BT, causal=self.causal))

    def step(self, x_B1D: Tensor, past: Sums | None, /) -> tuple[Tensor, Sums]:
        """One new position: (B, 1, D), and the sums with it; their size does not grow."""
        assert self.causal
        q_BH1K, k_BH1K, v_BH1V = self._heads(x_B1D)
        query_BH1K, key_BH1K = features(q_BH1K), features(k_BH1K)
        values_BHKV, keys_BHK = key_BH1K.mT @ v_BH1V.to(key_BH1K.dtype), key_BH1K[:, :, 0]
        if past is not None:
            values_BHKV, keys_BHK = past.values_BHKV + values_BHKV, past.keys_BHK + keys_BHK
        total_BH1 = (query_BH1K @ keys_BHK[..., None])[..., 0]
        mixed_BH1V = _divide(query_BH1K @ values_BHKV, total_BH1).to(v_BH1V.dtype)
        return self._joined(mixed_BH1V), Sums(values_BHKV, keys_BHK)

    def plain(self, x_BTD: Tensor, mask_BT: Tensor | None = None) -> Tensor:
        """The definition: (B, T, D)."""
        return self._joined(linear_attention(*self._heads(x_BTD), mask_BT, causal=self.causal))

    def _heads(self, x_BTD: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        query, key, value = (
            layer(x_BTD).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        return query, key, value

    def _joined(self, mixed_BHTV: Tensor) -> Tensor:
        return self.output(mixed_BHTV.transpose(1, 2).flatten(start_dim=2))
