"""paper/operations.py: the multiply-adds of every kind of layer, by hand."""

import pytest

from headway.nn.sequence_kinds import SEQUENCE_LAYERS, Sizes
from headway.paper.operations import Operations, count_operations

N, D, K, R = 24, 10, 3, 8  # restricted: blocks of r / 2 = 4, which divide n
HAND = {
    "self-attention": (2 * N * N * D, 4 * N * D * D),
    "restricted": (2 * N * (3 * R // 2) * D, 4 * N * D * D),
    "lstm": (4 * 2 * N * D * D, 0),
    "gru": (3 * 2 * N * D * D, 0),
    "convolution": (K * N * D * D, 0),
    "dilated": (K * N * D * D, 0),
    "separable": (K * N * D + N * D * D, 0),
    "linear-attention": (2 * N * D * D + N * D, 4 * N * D * D),  # sums of values, and of keys
}


def test_every_kind_has_a_count_by_hand():
    assert set(HAND) == set(SEQUENCE_LAYERS)


@pytest.mark.parametrize("kind", HAND)
def test_operations_are_those_by_hand(kind):
    causal = kind in {"lstm", "gru", "convolution", "dilated", "separable"}
    counted = count_operations(kind, Sizes(D, kernel_size=K, neighbourhood=R, causal=causal), N)
    core, projections = HAND[kind]
    assert counted == Operations(core + projections, projections)
    assert counted.core == core


def test_heads_share_the_work_of_one():
    assert count_operations("self-attention", Sizes(D, num_heads=5), N) == count_operations(
        "self-attention", Sizes(D), N
    )


def test_a_separable_kernel_as_wide_as_the_sentence_costs_attention_and_a_point_wise_layer():
    counted = count_operations("separable", Sizes(512, kernel_size=50, causal=True), 50)
    assert counted.total == 14_387_200 == 50 * 50 * 512 + 50 * 512 * 512
