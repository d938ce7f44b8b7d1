"""paper/chain.py: chains by hand, and layers whose chains do or do not grow."""

import pytest
import torch

from headway.nn.sequence_kinds import SEQUENCE_LAYERS, Sizes
from headway.paper.chain import layer_chain, longest_chain


def test_the_longest_of_two_ways_counts():
    x = torch.ones(3, requires_grad=True)
    short, long = x * 2, ((x * 3) * 5) * 7
    # leaf, three products, the sum of both, the sum of all
    assert longest_chain((short + long).sum()) == 6
    assert longest_chain(short.sum()) == 3


def test_a_way_that_is_shared_is_walked_once():
    x = torch.ones(2, requires_grad=True)
    for _ in range(60):  # 2^60 ways
        x = x + x
    assert longest_chain(x) == 61


@pytest.mark.parametrize("kind", SEQUENCE_LAYERS)
def test_only_recurrence_grows_with_the_sentence_and_by_the_same_each_step(kind):
    is_recurrent = kind in {"lstm", "gru"}
    sizes = Sizes(4, kernel_size=3, neighbourhood=4, causal=is_recurrent)
    chains = [layer_chain(kind, sizes, length) for length in (11, 12, 13)]
    steps = {chains[1] - chains[0], chains[2] - chains[1]}
    assert len(steps) == 1
    assert (steps.pop() > 0) == is_recurrent
