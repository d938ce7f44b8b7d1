"""Self-attention over a neighbourhood of each position, at a cost of its size (Section 4, "restricted").

Shapes: B sentences, T positions, H heads, K d_k, V d_v, W positions of a block, C blocks, S = 2 W (causal) or 3 W
positions that a block sees, L = T filled up to whole blocks with what stands around.
"""

import torch
from torch import Tensor
from torch.nn import functional

from headway.nn.attention import attention
from headway.nn.masks import causal_mask, key_mask, local_mask


def restricted_attention(
    q_BHTK: Tensor, k_BHTK: Tensor, v_BHTV: Tensor, mask_BT: Tensor | None, *, window: int, causal: bool
) -> Tensor:
    """The definition: attention under a mask, position i sees |i - j| <= window, or only j <= i of these; (B, H, T, V).

    It costs as much as attention to all positions: the mask hides what has been computed.
    """
    size, device = q_BHTK.shape[2], q_BHTK.device
    band_TT = (causal_mask if causal else local_mask)(size, window=window, device=device)
    mask = band_TT if mask_BT is None else band_TT & key_mask(mask_BT)
    return attention(q_BHTK, k_BHTK, v_BHTV, mask)[0]


def blocked_attention(
    q_BHTK: Tensor, k_BHTK: Tensor, v_BHTV: Tensor, mask_BT: Tensor | None, *, window: int, causal: bool
) -> Tensor:
    """The same by blocks of ``window`` queries, each with its own keys and those of the blocks beside it.

    A query is set against 3 window keys, or 2 window where it is causal, whatever T is.
    """
    num_sentences, num_heads, num_positions, _ = q_BHTK.shape
    size = max(1, min(window, num_positions))
    num_blocks = -(-num_positions // size)
    real_BT = q_BHTK.new_ones(num_sentences, num_positions, dtype=torch.bool) if mask_BT is None else mask_BT
    query = _own(q_BHTK, size)
    key, value = (_seen(x, size, causal=causal) for x in (k_BHTK, v_BHTV))
    real_BCS = _seen(real_BT[:, None, :, None], size, causal=causal)[:, 0, :, 0].unflatten(0, (num_sentences, -1))
    band_WS = _band(size, real_BCS.shape[2], window=window, causal=causal, device=q_BHTK.device)
    mask_BC1WS = (real_BCS[:, :, None, :] & band_WS)[:, :, None]
    mixed, _ = attention(query, key, value, mask_BC1WS.flatten(0, 1))
    mixed_BCHWV = mixed.unflatten(0, (num_sentences, num_blocks))
    return mixed_BCHWV.transpose(1, 2).reshape(num_sentences, num_heads, num_blocks * size, -1)[:, :, :num_positions]


def _own(x_BHTK: Tensor, size: int) -> Tensor:
    """Blocks of positions, each a sentence of its own: (B x C, H, W, K)."""
    missing = -x_BHTK.shape[2] % size
    return functional.pad(x_BHTK, (0, 0, 0, missing)).unflatten(2, (-1, size)).transpose(1, 2).flatten(0, 1)


def _seen(x_BHTK: Tensor, size: int, *, causal: bool) -> Tensor:
    """What each block sees: the block before, itself, and the one after unless it is causal: (B x C, H, S, K)."""
    missing = -x_BHTK.shape[2] % size
    padded_BHLK = functional.pad(x_BHTK, (0, 0, size, missing + (0 if causal else size)))
    # unfold puts the positions of a block last
    blocks_BHCKS = padded_BHLK.unfold(2, (2 if causal else 3) * size, size)
    return blocks_BHCKS.permute(0, 2, 1, 4, 3).flatten(0, 1)


def _band(size: int, num_seen: int, *, window: int, causal: bool, device: torch.device) -> Tensor:
    """Which of the seen positions lie within the window of each query of a block: (W, S)."""
    query_W1 = torch.arange(size, device=device)[:, None]
    offset_WS = torch.arange(num_seen, device=device) - size - query_W1
    return (offset_WS >= -window) & (offset_WS <= (0 if causal else window))
