"""Linear attention against its formula in plain numbers, and its fast form against its definition.

Shapes: B sentences, H heads, T positions, K d_k, V d_v.
"""

import math

import pytest
import torch

from headway.nn.linear_attention import CHUNK, LinearAttention, linear_attention, summed_attention

B, H, K, V = 2, 3, 5, 7


def qkv(num_positions, dtype=torch.float32, seed=1):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(B, H, num_positions, size, generator=generator).to(dtype) for size in (K, K, V)]


def phi(vector):
    return [x + 1.0 if x > 0 else math.exp(x) for x in vector]  # elu(x) + 1


@pytest.mark.parametrize("causal", [False, True])
def test_the_definition_is_the_formula_by_hand(causal):
    q, k, v = qkv(4)
    mask_BT = torch.tensor([[True, True, False, True], [True] * 4])
    mixed = linear_attention(q, k, v, mask_BT, causal=causal)
    for b in range(B):
        for t in range(4):
            query, keys, values = phi(q[b, 1, t].tolist()), k[b, 1].tolist(), v[b, 1].tolist()
            seen = [j for j in range(4) if mask_BT[b, j] and (j <= t or not causal)]
            weights = [sum(x * y for x, y in zip(query, phi(keys[j]), strict=True)) for j in seen]
            total = sum(weights)
            wanted = [sum(w * values[j][i] for w, j in zip(weights, seen, strict=True)) / total for i in range(V)]
            assert mixed[b, 1, t].tolist() == pytest.approx(wanted, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("num_positions", [1, 2, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 5])
def test_sums_over_keys_equal_the_definition_for_any_length(num_positions, causal):
    q, k, v = qkv(num_positions, torch.float64)
    mask_BT = torch.arange(num_positions) < torch.tensor([[num_positions], [num_positions // 2]])
    plain, fast = (path(q, k, v, mask_BT, causal=causal) for path in (linear_attention, summed_attention))
    torch.testing.assert_close(fast, plain, atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize("path", [linear_attention, summed_attention])
@pytest.mark.parametrize("causal", [False, True])
def test_a_query_with_no_key_gets_zeros_and_finite_gradients(path, causal):
    q, k, v = (x.requires_grad_() for x in qkv(4))
    mixed = path(q, k, v, torch.tensor([[False] * 4, [True] * 4]), causal=causal)
    assert (mixed[0] == 0).all()
    mixed.sin().sum().backward()
    assert all(x.grad.isfinite().all() and (x.grad[0] == 0).all() for x in (q, k, v))


@pytest.mark.parametrize("causal", [False, True])
def test_no_matrix_of_all_pairs_is_made(causal):
    q, k, v = (torch.randn(1, 1, 4_096, 8) for _ in range(3))
    largest = []

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            result = function(*args, **(kwargs or {}))
            largest.extend(x.numel() for x in (result,) if isinstance(x, torch.Tensor))
            return result

    with Watch():
        summed_attention(q, k, v, None, causal=causal)
    assert max(largest) <= 4_096 * CHUNK


def test_what_is_kept_of_the_past_does_not_grow():
    layer = LinearAttention(6, 2, causal=True)
    past, shapes = None, set()
    for _ in range(5):
        _, past = layer.step(torch.randn(B, 1, 6), past)
        shapes.add((past.values_BHKV.shape, past.keys_BHK.shape))
    assert shapes == {((B, 2, 3, 3), (B, 2, 3))}
