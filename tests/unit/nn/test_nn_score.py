"""Scores of queries and keys against sums written out by hand.

Shapes: B sentences, H heads of queries, G heads of keys, T queries, S keys, K size of a key.
"""

import math

import pytest
import torch

from headway.nn.attention import MultiHeadAttention, attention, fused_attention
from headway.nn.score import ATTENTION_SCORES, AdditiveScore, dot_product, scaled_dot_product

B, H, G, T, S, K = 2, 6, 3, 5, 7, 11


def queries_and_keys(num_groups=G, dtype=torch.float32):
    generator = torch.Generator().manual_seed(1)
    shapes = ((B, H, T, K), (B, num_groups, S, K))
    return [torch.randn(shape, generator=generator).to(dtype) for shape in shapes]


def by_hand(kind, query, key, vector):
    if kind == "additive":
        return sum(v * math.tanh(q + k) for v, q, k in zip(vector, query, key, strict=True))
    product = sum(q * k for q, k in zip(query, key, strict=True))
    return product / math.sqrt(len(query)) if kind == "scaled" else product


def made(kind):
    score = ATTENTION_SCORES[kind](H, K)
    if isinstance(score, AdditiveScore):
        torch.nn.init.normal_(score.weight, generator=torch.Generator().manual_seed(2))
        return score, score.weight.view(H, K).tolist()
    return score, [[]] * H


@pytest.mark.parametrize("num_groups", [1, 2, 3, 6])
@pytest.mark.parametrize("kind", ATTENTION_SCORES)
def test_every_score_is_its_formula_for_shared_heads_of_keys_too(kind, num_groups):
    q_BHTK, k_BGSK = queries_and_keys(num_groups)
    score, vectors = made(kind)
    found = score(q_BHTK, k_BGSK)
    for b in range(B):
        for h in range(H):
            for t in range(T):
                keys = k_BGSK[b, h * num_groups // H].tolist()
                wanted = [by_hand(kind, q_BHTK[b, h, t].tolist(), key, vectors[h]) for key in keys]
                assert found[b, h, t].tolist() == pytest.approx(wanted, abs=1e-5)


def test_the_variance_of_unscaled_scores_is_d_k_and_of_scaled_ones_1_within_their_own_error():
    num_pairs = 20_000
    for d_k in (4, 64, 256):
        q, k = torch.randn(2, num_pairs, 1, 1, d_k, generator=torch.Generator().manual_seed(d_k))
        error = 4 * math.sqrt((2 + 6 / d_k) / num_pairs)  # of a sample's variance, by the fourth moment of a sum
        assert dot_product(q, k).var().item() == pytest.approx(d_k, rel=error)
        assert scaled_dot_product(q, k).var().item() == pytest.approx(1, rel=error)


@pytest.mark.parametrize("kind", ATTENTION_SCORES)
def test_the_path_in_use_equals_the_definition_forward_and_backward(kind):
    score, _ = made(kind)
    mask = torch.rand(T, S, generator=torch.Generator().manual_seed(3)) < 0.7
    results = []
    for path in (lambda *given, **how: attention(*given, **how)[0], fused_attention):
        q, k = (x.requires_grad_() for x in queries_and_keys())
        v = torch.randn(B, G, S, 13, generator=torch.Generator().manual_seed(4)).requires_grad_()
        mixed = path(q, k, v, mask, score=score)
        mixed.sin().sum().backward()
        results.append([mixed, q.grad, k.grad, v.grad])
    for plain, fused in zip(*results, strict=True):
        torch.testing.assert_close(fused, plain, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("kind", ATTENTION_SCORES)
def test_scores_of_bf16_products_are_in_float32(kind):
    q, k = queries_and_keys(dtype=torch.bfloat16)
    score, _ = made(kind)
    assert score(q, k).dtype == torch.float32
    torch.testing.assert_close(score(q, k), score(q.float(), k.float()), atol=0.2, rtol=0.05)


def test_a_recorded_attention_uses_its_own_score():
    torch.manual_seed(5)
    layer = MultiHeadAttention(17, H, d_k=K, d_v=3, bias=False, score=dot_product)
    x, seen = torch.randn(B, T, 17), []
    plain = layer(x, x)
    layer.recorder = seen.append
    torch.testing.assert_close(layer(x, x), plain, atol=1e-5, rtol=1e-5)
    keys = layer.keys_values(x).key_BGSK
    torch.testing.assert_close(seen[0], (layer.queries(x) @ keys.transpose(-2, -1)).softmax(dim=-1))
