"""Attention of the models without self-attention, against sums in plain numbers.

Shapes: B sentences, T target positions, S source positions, D numbers, A numbers inside.
"""

import math

import pytest
import torch

from headway.nn.additive_attention import AdditiveAttention
from headway.nn.cache import KeyValue
from headway.nn.multi_step_attention import MultiStepAttention

B, T, S, D, A = 2, 3, 5, 7, 11
MASK = torch.tensor([[True] * S, [True] * 2 + [False] * 3])


def vectors(*shape, seed):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def softmax(scores):
    powers = [math.exp(score) for score in scores]
    return [power / sum(powers) for power in powers]


def test_additive_attention_is_its_equations_in_plain_numbers():
    torch.manual_seed(1)
    layer, kept = AdditiveAttention(D, A), []
    layer.recorder = kept.append
    x_BTD, memory_BSD = vectors(B, T, D, seed=2), vectors(B, S, D, seed=3)
    context = layer(x_BTD, layer.memory(memory_BSD, MASK))
    query, key, bias = layer.query.weight.tolist(), layer.key.weight.tolist(), layer.key.bias.tolist()
    score = layer.score.weight[0].tolist()

    def product(row, vector):
        return sum(w * x for w, x in zip(row, vector, strict=True))

    for b, length in ((0, S), (1, 2)):
        for t in range(T):
            states, asked = memory_BSD[b].tolist(), x_BTD[b, t].tolist()
            inner = [
                [math.tanh(product(query[a], asked) + product(key[a], states[s]) + bias[a]) for a in range(A)]
                for s in range(length)
            ]
            weights = softmax([product(score, values) for values in inner])
            wanted = [sum(w * states[s][d] for s, w in enumerate(weights)) for d in range(D)]
            assert kept[0][b, 0, t].tolist() == pytest.approx([*weights, *[0.0] * (S - length)], abs=1e-5)
            assert context[b, t].tolist() == pytest.approx(wanted, abs=1e-5)


@pytest.mark.parametrize("recorded", [False, True])
def test_multi_step_attention_is_its_equations_in_plain_numbers(recorded):
    torch.manual_seed(1)
    layer, kept = MultiStepAttention(D), []
    layer.recorder = kept.append if recorded else None
    x_BTD, target_BTD, z_BSD, value_BSD = (vectors(B, n, D, seed=n + i) for i, n in enumerate((T, T, S, S)))
    memory = KeyValue(z_BSD[:, None], value_BSD[:, None])
    context = layer(x_BTD, target_BTD, memory=memory, mask_B11S=MASK[:, None, None])
    for b, length in ((0, S), (1, 2)):
        query_TD = (x_BTD[b] @ layer.query.weight.T + layer.query.bias + target_BTD[b]) * math.sqrt(0.5)
        for t in range(T):
            scores = [(query_TD[t] @ z_BSD[b, s]).item() / math.sqrt(D) for s in range(length)]
            weights = softmax(scores)
            mixed = sum(w * value_BSD[b, s] for s, w in enumerate(weights))
            torch.testing.assert_close(context[b, t], mixed, atol=1e-5, rtol=1e-5)
    assert [weights.shape for weights in kept] == [(B, 1, T, S)] * recorded


def test_a_memory_that_is_all_masked_gives_zeros_and_finite_gradients():
    mask = torch.tensor([[True] * S, [False] * S])
    x_BTD, memory_BSD = vectors(B, T, D, seed=2).requires_grad_(), vectors(B, S, D, seed=3).requires_grad_()
    additive, multi_step = AdditiveAttention(D, A), MultiStepAttention(D)
    memory = KeyValue(memory_BSD[:, None], memory_BSD[:, None])
    for context in (
        additive(x_BTD, additive.memory(memory_BSD, mask)),
        multi_step(x_BTD, x_BTD, memory=memory, mask_B11S=mask[:, None, None]),
    ):
        assert (context[1] == 0).all()
        assert (context[0] != 0).any()
        context.sin().sum().backward()
        assert x_BTD.grad.isfinite().all()
        assert memory_BSD.grad.isfinite().all()


def test_a_source_without_padding_needs_no_mask():
    layer, additive = MultiStepAttention(D), AdditiveAttention(D, A)
    x_BTD, memory_BSD = vectors(B, T, D, seed=2), vectors(B, S, D, seed=3)
    memory = KeyValue(memory_BSD[:, None], memory_BSD[:, None])
    all_real = torch.ones(B, 1, 1, S, dtype=torch.bool)
    torch.testing.assert_close(
        layer(x_BTD, x_BTD, memory=memory, mask_B11S=None), layer(x_BTD, x_BTD, memory=memory, mask_B11S=all_real)
    )
    torch.testing.assert_close(
        additive(x_BTD, additive.memory(memory_BSD, None)),
        additive(x_BTD, additive.memory(memory_BSD, all_real[:, 0, 0])),
    )
