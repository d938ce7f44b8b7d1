"""Attention against sums written out by hand, the paper's worked numbers, and its laws.

Shapes: B sentences, H heads, T queries, S keys, K size of a key, V size of a value, D d_model.
"""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.nn.attention import MultiHeadAttention, allowed, attention, fused_attention
from headway.nn.dropout import Dropout
from headway.nn.feed_forward import FeedForward
from headway.nn.masks import causal_mask, key_mask

B, H, T, S, K, V, D = 2, 3, 5, 7, 11, 13, 17
PRECISIONS = {"float32": (torch.float32, 1e-6), "bf16": (torch.bfloat16, 2e-2)}
PATHS = {"explicit": lambda *given, **how: attention(*given, **how)[0], "fused": fused_attention}

# The seven words and the vectors that a reader of the paper is given; the query belongs to the fifth word.
WORDS = ("那只", "猫", "睡了", "因为", "它", "很", "累")
WORD_KEYS = [[0.2, 0.0], [2.0, 0.4], [0.3, 1.6], [0.0, 0.2], [1.0, 0.3], [0.1, 0.5], [0.4, 1.4]]
WORD_QUERY = [2.2, 0.0]
WORD_SCORES = [0.311, 3.111, 0.467, 0.0, 1.556, 0.156, 0.622]
WORD_PERCENT = [3.99, 65.68, 4.67, 2.93, 13.86, 3.42, 5.45]
CAUSAL_PERCENT = [4.38, 72.08, 5.12, 3.21, 15.21, 0.0, 0.0]


def qkv(dtype=torch.float32, *, seed=1, num_queries=T, num_keys=S, grad=False):
    generator = torch.Generator().manual_seed(seed)
    shapes = ((B, H, num_queries, K), (B, H, num_keys, K), (B, H, num_keys, V))
    return [torch.randn(shape, generator=generator).to(dtype).requires_grad_(grad) for shape in shapes]


def by_hand(query, keys, values, may_attend):
    """One query over its keys in plain Python numbers: the weights and the mixed value."""
    scores = [sum(q * k for q, k in zip(query, key, strict=True)) / math.sqrt(len(query)) for key in keys]
    powers = [math.exp(score) if may else 0.0 for score, may in zip(scores, may_attend, strict=True)]
    total = sum(powers)
    weights = [power / total if total else 0.0 for power in powers]
    mixed = [sum(w * v[i] for w, v in zip(weights, values, strict=True)) for i in range(len(values[0]))]
    return weights, mixed


def random_mask(shape, seed):
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed)) < 0.6


def module(seed=3, *, bias=True):
    torch.manual_seed(seed)
    return MultiHeadAttention(D, H, d_k=K, d_v=V, bias=bias)


@pytest.mark.parametrize("masked", [False, True])
def test_attention_equals_the_formula_written_out_by_hand(masked):
    q_BHTK, k_BHSK, v_BHSV = qkv()
    mask_BHTS = random_mask((B, H, T, S), seed=5) if masked else torch.ones(B, H, T, S, dtype=torch.bool)
    mixed, weights = attention(q_BHTK, k_BHSK, v_BHSV, mask_BHTS if masked else None)
    for b in range(B):
        for h in range(H):
            for t in range(T):
                wanted_weights, wanted = by_hand(
                    q_BHTK[b, h, t].tolist(), k_BHSK[b, h].tolist(), v_BHSV[b, h].tolist(), mask_BHTS[b, h, t].tolist()
                )
                assert weights[b, h, t].tolist() == pytest.approx(wanted_weights, abs=1e-6)
                assert mixed[b, h, t].tolist() == pytest.approx(wanted, abs=1e-5)


@pytest.mark.parametrize("masks", ["none", "keys", "causal", "both", "with empty rows"])
@pytest.mark.parametrize("precision", PRECISIONS)
def test_the_fused_kernel_equals_the_definition_forward_and_backward(masks, precision):
    dtype, tolerance = PRECISIONS[precision]
    keys = key_mask(random_mask((B, S), seed=2) | (torch.arange(S) == 0))
    mask = {
        "none": None,
        "keys": keys,
        "causal": causal_mask(S)[:T],
        "both": keys & causal_mask(S)[:T],
        "with empty rows": keys & (torch.arange(T) != 2)[:, None],
    }[masks]
    results = []
    for path in PATHS.values():
        q, k, v = qkv(dtype, grad=True)
        mixed = path(q, k, v, mask)
        mixed.float().sin().sum().backward()
        results.append([mixed.float(), q.grad.float(), k.grad.float(), v.grad.float()])
    for plain, fused in zip(*results, strict=True):
        torch.testing.assert_close(fused, plain, atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_query_that_may_attend_to_nothing_gets_zeros_and_finite_gradients(path, precision):
    q, k, v = qkv(PRECISIONS[precision][0], grad=True)
    mask = torch.ones(B, 1, T, S, dtype=torch.bool)
    mask[1] = False  # a sentence of padding
    mask[0, :, 3] = False  # one query of a real sentence
    mixed = PATHS[path](q, k, v, mask)
    assert (mixed[1] == 0).all()
    assert (mixed[0, :, 3] == 0).all()
    mixed.float().sin().sum().backward()  # its slope at the zeros is 1
    for tensor in (q, k, v):
        assert tensor.grad.isfinite().all()
        assert (tensor.grad[1] == 0).all()
    assert v.grad[0].abs().sum() > 0


@pytest.mark.parametrize("path", PATHS)
def test_an_empty_sentence_changes_nothing_for_its_neighbour(path):
    q, k, v = qkv()
    mask = key_mask(torch.tensor([[True] * S, [False] * S]))
    alone = PATHS[path](q[:1], k[:1], v[:1], mask[:1])
    torch.testing.assert_close(PATHS[path](q, k, v, mask)[:1], alone, atol=1e-6, rtol=0)


def test_the_weights_of_an_empty_row_are_zero_and_all_others_sum_to_one():
    q, k, v = qkv()
    mask = torch.ones(T, S, dtype=torch.bool)
    mask[1] = False
    weights = attention(q, k, v, mask)[1]
    assert (weights[:, :, 1] == 0).all()
    torch.testing.assert_close(weights.sum(dim=-1)[:, :, [0, 2, 3, 4]], torch.ones(B, H, T - 1))


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("changed", range(S))
def test_true_in_a_mask_means_may_be_attended(path, changed):
    q, k, v = qkv()
    mask_TS = random_mask((T, S), seed=11)
    assert mask_TS.any(dim=0).all(), "every key must be seen by some query"
    assert not mask_TS.all(dim=0).any(), "and hidden from some other"
    before = PATHS[path](q, k, v, mask_TS)
    k[:, :, changed] += 1.0
    v[:, :, changed] -= 2.0
    moved = (PATHS[path](q, k, v, mask_TS) - before).abs().amax(dim=(0, 1, 3)) > 1e-4
    assert moved.tolist() == mask_TS[:, changed].tolist()


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("place", range(T))
def test_the_future_never_changes_the_past(recorded, place):
    layer = module()
    layer.recorder = (lambda weights: None) if recorded else None
    x_BTD = torch.randn(B, T, D, generator=torch.Generator().manual_seed(4))
    later = x_BTD.clone()
    later[:, place] += 1.0
    first, second = (layer(x, x, mask=causal_mask(T)) for x in (x_BTD, later))
    torch.testing.assert_close(second[:, :place], first[:, :place], atol=1e-6, rtol=0)
    assert (second[:, place:] - first[:, place:]).abs().amax(dim=(0, 2)).min() > 1e-4


@settings(max_examples=25, deadline=None)
@given(num_queries=st.integers(1, 9), num_keys=st.integers(1, 9), seed=st.integers(0, 99))
def test_both_paths_agree_for_any_lengths_and_any_mask(num_queries, num_keys, seed):
    q, k, v = qkv(seed=seed, num_queries=num_queries, num_keys=num_keys)
    mask = random_mask((B, 1, num_queries, num_keys), seed)
    torch.testing.assert_close(fused_attention(q, k, v, mask), attention(q, k, v, mask)[0], atol=2e-6, rtol=1e-5)


def test_multi_head_attention_is_each_head_by_itself_then_one_matrix():
    layer = module()
    generator = torch.Generator().manual_seed(8)
    x_BTD, memory_BSD = torch.randn(B, T, D, generator=generator), torch.randn(B, S, D, generator=generator)
    mask = key_mask(torch.tensor([[True] * S, [True] * 3 + [False] * (S - 3)]))
    heads = []
    for h in range(H):
        key_rows, value_rows = slice(h * K, (h + 1) * K), slice(h * V, (h + 1) * V)
        q = x_BTD @ layer.query.weight[key_rows].T + layer.query.bias[key_rows]
        k = memory_BSD @ layer.key.weight[key_rows].T + layer.key.bias[key_rows]
        v = memory_BSD @ layer.value.weight[value_rows].T + layer.value.bias[value_rows]
        scores = (q @ k.transpose(1, 2) / math.sqrt(K)).masked_fill(~mask[:, 0], -math.inf)
        heads.append(scores.softmax(dim=-1) @ v)
    wanted = torch.cat(heads, dim=-1) @ layer.output.weight.T + layer.output.bias
    torch.testing.assert_close(layer(x_BTD, memory_BSD, mask=mask), wanted, atol=1e-5, rtol=1e-5)


def test_recording_the_weights_changes_no_output():
    layer, kept = module(), []
    x_BTD = torch.randn(B, T, D, generator=torch.Generator().manual_seed(8))
    plain = layer(x_BTD, x_BTD, mask=causal_mask(T))
    layer.recorder = kept.append
    torch.testing.assert_close(layer(x_BTD, x_BTD, mask=causal_mask(T)), plain, atol=1e-6, rtol=1e-5)
    assert [weights.shape for weights in kept] == [(B, H, T, T)]


def test_without_biases_a_module_has_four_matrices_and_nothing_else():
    shapes = {name: tuple(parameter.shape) for name, parameter in module(bias=False).named_parameters()}
    assert shapes == {
        "query.weight": (H * K, D),
        "key.weight": (H * K, D),
        "value.weight": (H * V, D),
        "output.weight": (D, H * V),
    }


def test_a_mask_that_forbids_nothing_counts_as_none():
    assert allowed(None) is None
    assert allowed(torch.ones(3, 1, 1, 5, dtype=torch.bool)) is None
    mask = torch.tensor([[True, False]])
    assert allowed(mask) is mask


# Fewer heads of keys, a bias on the scores, dropout of weights


MASKS = {
    "none": None,
    "keys": key_mask(torch.tensor([[True] * S, [True] * 3 + [False] * (S - 3)])),
    "causal": causal_mask(S)[:T],
    "both": key_mask(torch.tensor([[True] * S, [True] * 3 + [False] * (S - 3)])) & causal_mask(S)[:T],
    "with empty rows": key_mask(torch.tensor([[True] * S, [False] * S])) & (torch.arange(T) != 2)[:, None],
    "of each head": random_mask((B, 6, T, S), seed=3),
}


@pytest.mark.parametrize("masks", MASKS)
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("num_groups", [1, 2, 3, 6])
@pytest.mark.parametrize("precision", PRECISIONS)
def test_grouped_and_biased_attention_is_that_of_repeated_keys_on_both_paths(masks, biased, num_groups, precision):
    dtype, tolerance = PRECISIONS[precision]
    heads, share = 6, 6 // num_groups
    results = []
    for path in ("repeated", "explicit", "fused"):
        generator = torch.Generator().manual_seed(1)
        shapes = ((B, heads, T, K), (B, num_groups, S, K), (B, num_groups, S, V))
        q, k, v = (torch.randn(shape, generator=generator).to(dtype).requires_grad_() for shape in shapes)
        bias = torch.randn(heads, T, S, generator=generator).requires_grad_() if biased else None
        if path == "repeated":
            repeated = [x.repeat_interleave(share, dim=1) for x in (k, v)]
            scores = (q.float() @ repeated[0].float().mT / math.sqrt(K)) + (bias if biased else 0.0)
            mask = torch.ones(T, S, dtype=torch.bool) if MASKS[masks] is None else MASKS[masks]
            weights = scores.masked_fill(~mask, -1e9).softmax(dim=-1).where(mask, 0.0)  # an oracle may be plain
            mixed = weights @ repeated[1].float()
        else:
            mixed = PATHS[path](q, k, v, MASKS[masks], bias=bias)
            assert mixed.dtype == dtype
        mixed.float().sin().sum().backward()
        leaves = [q, k, v, *([bias] if biased else [])]
        results.append([mixed.float(), *(leaf.grad.float() for leaf in leaves)])
    for explicit, fused, wanted in zip(results[1], results[2], results[0], strict=True):
        tolerances = (
            {"atol": 2 * tolerance, "rtol": 2 * tolerance} if dtype == torch.float32 else {"atol": 0.1, "rtol": 0.1}
        )
        torch.testing.assert_close(explicit, wanted, **tolerances)
        torch.testing.assert_close(fused, wanted, **tolerances)


def test_as_many_heads_of_keys_as_of_queries_are_plain_multi_head_attention():
    plain = module()
    grouped = MultiHeadAttention(D, H, d_k=K, d_v=V, bias=True, num_kv_heads=H)
    grouped.load_state_dict(plain.state_dict())
    x_BTD = torch.randn(B, T, D)
    assert torch.equal(grouped(x_BTD, x_BTD, mask=causal_mask(T)), plain(x_BTD, x_BTD, mask=causal_mask(T)))


@pytest.mark.parametrize("num_groups", [1, 2, 3])
@pytest.mark.parametrize("recorded", [False, True])
def test_grouped_heads_equal_multi_head_attention_whose_key_matrices_are_repeated(num_groups, recorded):
    grouped = MultiHeadAttention(D, 6, d_k=K, d_v=V, bias=True, num_kv_heads=num_groups)
    plain = MultiHeadAttention(D, 6, d_k=K, d_v=V, bias=True)
    weights = grouped.state_dict()
    for name in ("key", "value"):
        for kind in ("weight", "bias"):
            rows = weights[f"{name}.{kind}"].unflatten(0, (num_groups, -1))
            weights[f"{name}.{kind}"] = rows.repeat_interleave(6 // num_groups, dim=0).flatten(0, 1)
    plain.load_state_dict(weights)
    kept = []
    grouped.recorder = kept.append if recorded else None
    x_BTD, memory_BSD = torch.randn(B, T, D), torch.randn(B, S, D)
    mask = MASKS["keys"]
    torch.testing.assert_close(grouped(x_BTD, memory_BSD, mask=mask), plain(x_BTD, memory_BSD, mask=mask))
    assert grouped.keys_values(memory_BSD).key_BGSK.shape == (B, num_groups, S, K)
    assert [weights.shape for weights in kept] == [(B, 6, T, S)] * recorded


def test_the_keys_of_a_group_are_not_repeated_in_memory():
    q, k, v = torch.randn(1, 64, 1, 16), torch.randn(1, 1, 4_096, 16), torch.randn(1, 1, 4_096, 16)
    seen = []

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            result = function(*args, **(kwargs or {}))
            seen.extend(x.untyped_storage().nbytes() for x in (result,) if isinstance(x, torch.Tensor))
            return result

    for path in PATHS.values():
        with Watch():
            path(q, k, v, None)
    assert max(seen) < 64 * 4_096 * 4 * 1.1  # the weights; repeated keys would take 16 times as much


@pytest.mark.parametrize("masks", ["none", "keys", "with empty rows"])
def test_dropped_weights_are_scaled_and_the_same_draws_give_the_same_result(masks):
    q, k, v = qkv(grad=True)
    layer = Dropout(0.25).train()
    mask = MASKS[masks]
    results = []
    for path in (fused_attention, lambda *given, **how: attention(*given, **how)[0]):
        torch.manual_seed(5)
        results.append(path(q, k, v, mask, dropout=layer))
    assert torch.equal(*results)
    torch.manual_seed(5)
    weights = attention(q, k, v, mask)[1]
    torch.testing.assert_close(results[0], layer(weights) @ v)
    assert not torch.allclose(results[0], fused_attention(q, k, v, mask), atol=1e-2)
    results[0].sin().sum().backward()
    assert all(tensor.grad.isfinite().all() for tensor in (q, k, v))


def test_recorded_weights_are_those_before_dropout():
    layer = MultiHeadAttention(D, H, d_k=K, d_v=V, bias=True, dropout=0.5).train()
    kept = []
    layer.recorder = kept.append
    x_BTD = torch.randn(B, T, D)
    layer(x_BTD, x_BTD)
    torch.testing.assert_close(kept[0].sum(dim=-1), torch.ones(B, H, T))
    assert (kept[0] > 0).all()


def test_outside_training_dropout_of_weights_changes_nothing():
    layer = MultiHeadAttention(D, H, d_k=K, d_v=V, bias=True, dropout=0.5)
    x_BTD = torch.randn(B, T, D)
    plain = MultiHeadAttention(D, H, d_k=K, d_v=V, bias=True)
    plain.load_state_dict(layer.state_dict())
    assert torch.equal(layer.eval()(x_BTD, x_BTD), plain(x_BTD, x_BTD))


# A gate a head


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("num_groups", [1, 2, 6])
def test_a_gate_of_ones_changes_nothing_to_the_last_bit(num_groups, recorded):
    layer = MultiHeadAttention(D, 6, d_k=K, d_v=V, bias=True, num_kv_heads=num_groups)
    layer.recorder = (lambda weights: None) if recorded else None
    x_BTD, memory_BSD = torch.randn(B, T, D), torch.randn(B, S, D)
    plain = layer(x_BTD, memory_BSD, mask=MASKS["keys"])
    layer.gate_H = torch.ones(6)
    assert torch.equal(layer(x_BTD, memory_BSD, mask=MASKS["keys"]), plain)


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("num_groups", [1, 2, 6])
@pytest.mark.parametrize("head", range(6))
def test_a_head_that_is_off_is_one_whose_rows_of_the_output_matrix_are_zero(head, num_groups, recorded):
    layer = MultiHeadAttention(D, 6, d_k=K, d_v=V, bias=True, num_kv_heads=num_groups)
    layer.recorder = (lambda weights: None) if recorded else None
    x_BTD, memory_BSD = torch.randn(B, T, D), torch.randn(B, S, D)
    whole = layer(x_BTD, memory_BSD)
    layer.gate_H = (torch.arange(6) != head).float()
    off = layer(x_BTD, memory_BSD)
    layer.gate_H = None
    with torch.no_grad():
        layer.output.weight[:, head * V : (head + 1) * V] = 0.0  # rows of W^O as the paper has it, transposed here
    torch.testing.assert_close(off, layer(x_BTD, memory_BSD), atol=1e-6, rtol=1e-5)
    assert not torch.allclose(off, whole, atol=1e-3)


@pytest.mark.parametrize("bias", [False, True])
def test_with_every_head_off_the_bias_of_the_output_matrix_alone_is_left(bias):
    layer = module(bias=bias)
    layer.gate_H = torch.zeros(H)
    x_BTD = torch.randn(B, T, D)
    wanted = layer.output.bias if bias else torch.zeros(D)
    torch.testing.assert_close(layer(x_BTD, x_BTD), wanted.expand(B, T, D), atol=0, rtol=0)


def test_half_a_gate_halves_what_the_head_mixes():
    layer = module(bias=False)
    x_BTD = torch.randn(B, T, D)
    outputs = []
    for number in (0.0, 0.5, 1.0):
        layer.gate_H = torch.tensor([1.0, number, 1.0])
        outputs.append(layer(x_BTD, x_BTD))
    torch.testing.assert_close(outputs[1], (outputs[0] + outputs[2]) / 2, atol=1e-6, rtol=1e-5)


def test_a_gate_keeps_the_type_that_a_module_computes_in_and_is_no_weight_of_it():
    layer = module().to(torch.bfloat16)
    names = set(layer.state_dict())
    layer.gate_H = torch.tensor([1.0, 0.0, 1.0])
    x_BTD = torch.randn(B, T, D, dtype=torch.bfloat16)
    assert layer(x_BTD, x_BTD).dtype == torch.bfloat16
    assert set(layer.state_dict()) == names


# Worked numbers of Section 3.2


def one_query(keys, values, query):
    tensors = (torch.tensor(rows, dtype=torch.float64)[None, None] for rows in ([query], keys, values))
    return tuple(tensors)


@pytest.mark.parametrize(
    ("gap", "first", "slope"), [(8.0, 0.9996646, 3.3524e-4), (1.0, 0.7310586, 0.1966119)], ids=["8 and 0", "1 and 0"]
)
def test_unscaled_scores_leave_the_softmax_almost_no_slope(gap, first, slope):
    q, k, v = one_query([[gap], [0.0]], [[1.0], [0.0]], [1.0])
    k.requires_grad_()
    mixed, weights = attention(q, k, v, None)
    assert weights[0, 0, 0].tolist() == pytest.approx([first, 1.0 - first], abs=5e-8)
    mixed.sum().backward()
    assert k.grad[0, 0, 0, 0].item() == pytest.approx(slope, rel=1e-4)  # p (1 - p)


def test_scores_of_64_dimensions_spread_by_8_and_by_1_after_scaling():
    generator = torch.Generator().manual_seed(1)
    q, k = (torch.randn(1, 1, 500, 64, generator=generator, dtype=torch.float64) for _ in range(2))
    raw = q @ k.transpose(-2, -1)
    assert raw.std().item() == pytest.approx(8.0, rel=0.02)
    logs = attention(q, k, k, None)[1].log()  # the scores, up to a constant a row
    spread = (logs - logs.mean(dim=-1, keepdim=True)).std().item()
    assert spread == pytest.approx(1.0, rel=0.02)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("percent", [WORD_PERCENT, CAUSAL_PERCENT], ids=["all words", "causal"])
def test_the_seven_words_have_the_printed_weights(path, percent):
    mask = None if percent is WORD_PERCENT else causal_mask(len(WORDS))[WORDS.index("它")][None]
    q, k, v = one_query(WORD_KEYS, torch.eye(len(WORDS)).tolist(), WORD_QUERY)
    mixed = PATHS[path](q, k, v, mask)  # values of one word each: what comes out is the weights
    assert (100.0 * mixed[0, 0, 0]).tolist() == pytest.approx(percent, abs=0.005)


def test_the_seven_words_have_the_printed_scores_and_output():
    q, k, v = one_query(WORD_KEYS, torch.zeros(len(WORDS), 2).tolist(), WORD_QUERY)
    weights = attention(q, k, v, None)[1][0, 0, 0]
    scores = (weights / weights[3]).log()  # the fourth word's score is 0
    assert scores.tolist() == pytest.approx(WORD_SCORES, abs=0.0005)
    output = torch.tensor([2.67, 1.16], dtype=torch.float64)
    values = weights[:, None] * output / weights.square().sum()  # the values are not given: the smallest that do it
    assert attention(q, k, values[None, None], None)[0][0, 0, 0].tolist() == pytest.approx(output.tolist())


def test_ten_words_of_512_pass_through_eight_heads_of_64():
    layer, kept = MultiHeadAttention(512, 8, d_k=64, d_v=64, bias=False), []
    layer.recorder = kept.append
    x_BTD = torch.zeros(1, 10, 512)
    memory = layer.keys_values(x_BTD)
    assert memory.key_BGSK.shape == memory.value_BGSV.shape == (1, 8, 10, 64)
    assert attention(memory.key_BGSK, memory.key_BGSK, memory.value_BGSV, None)[0].shape == (1, 8, 10, 64)
    assert layer(x_BTD, x_BTD).shape == (1, 10, 512)
    assert kept[0].shape == (1, 8, 10, 10)
    assert layer.output.weight.shape == (512, 512)
    assert sum(parameter.numel() for parameter in layer.parameters()) == 1_048_576


def test_an_encoder_layers_feed_forward_has_twice_its_attention_and_a_decoder_layers_as_much_as_both():
    attention_numbers = sum(p.numel() for p in MultiHeadAttention(512, 8, d_k=64, d_v=64, bias=False).parameters())
    feed_forward = FeedForward(512, 2048)
    feed_forward_numbers = feed_forward.inner.weight.numel() + feed_forward.outer.weight.numel()
    assert feed_forward_numbers == 2_097_152 == 2 * attention_numbers
