"""Attention by blocks against attention under a mask.

Shapes: B sentences, H heads, T positions, K d_k, V d_v.
"""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from headway.nn.restricted_attention import blocked_attention, restricted_attention

B, H, K, V = 2, 3, 5, 7


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("window", [0, 1, 2, 3, 12, 13, 40])
@pytest.mark.parametrize("num_positions", [1, 2, 13, 24])
def test_blocks_equal_the_mask_forward_and_backward(num_positions, window, causal):
    generator = torch.Generator().manual_seed(1)
    drawn = [torch.randn(B, H, num_positions, size, generator=generator) for size in (K, K, V)]
    for mask in (None, torch.arange(num_positions) < torch.tensor([[num_positions], [num_positions // 2]])):
        results = []
        for path in (restricted_attention, blocked_attention):
            given = [x.clone().requires_grad_() for x in drawn]
            mixed = path(*given, mask, window=window, causal=causal)
            mixed.sin().sum().backward()
            results.append([mixed, *(x.grad for x in given)])
        for plain, blocked in zip(*results, strict=True):
            torch.testing.assert_close(blocked, plain, atol=2e-6, rtol=1e-5)


@pytest.mark.parametrize(("causal", "blocks"), [(False, 3), (True, 2)])
def test_products_grow_with_the_neighbourhood_and_the_length_and_no_faster(causal, blocks):
    def products(num_positions, window):
        q = torch.randn(1, H, num_positions, K)
        with FlopCounterMode(display=False) as counter:
            blocked_attention(q, q, q, None, window=window, causal=causal)
        return counter.get_total_flops() // 2

    # q k and weights v: two products of each query with each key of its blocks
    for num_positions, window in ((24, 4), (48, 4), (24, 8)):
        assert products(num_positions, window) == 2 * num_positions * blocks * window * H * K
