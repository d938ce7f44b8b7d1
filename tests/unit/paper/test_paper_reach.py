"""paper/reach.py: Jacobians of layers that are known by hand, and path lengths by their formulas."""

import math

import pytest
import torch

from headway.nn.convolution import Convolution
from headway.nn.recurrent import Recurrent
from headway.nn.sequence_kinds import SEQUENCE_LAYERS, Sizes
from headway.paper.random import seeded
from headway.paper.reach import dependencies, maximum_path, steps_to_reach, update_dependencies

D = 4


def test_a_shift_depends_on_the_position_before_alone():
    found = dependencies(lambda x: x.roll(1, dims=1), 5, 3)
    assert found.tolist() == torch.eye(5, dtype=torch.bool).roll(1, dims=0).tolist()


def test_a_dependence_of_one_number_is_seen():
    def layer(x):
        y = torch.zeros_like(x)
        y[:, 2, 1] = x[:, 0, 3]
        return y

    found = dependencies(layer, 4, 5)
    assert found.nonzero().tolist() == [[2, 0]]


def test_one_update_depends_on_its_input_and_on_the_state_before():
    with seeded():
        layer = Recurrent(D, "lstm", causal=True).double()
    found = update_dependencies(layer, 5, D)
    assert found.tolist() == [[i - j in (0, 1) for j in range(5)] for i in range(5)]


@pytest.mark.parametrize(
    ("kind", "length", "wanted"),
    [
        ("self-attention", 13, 1),
        ("linear-attention", 13, 1),
        ("lstm", 13, 12),
        ("gru", 7, 6),
        ("convolution", 14, math.ceil(13 / 2)),  # k = 3: two more a layer
        ("separable", 13, 6),
        ("dilated", 9, 2),  # 3^2
        ("dilated", 10, 3),
        ("restricted", 14, math.ceil(13 / 3)),  # r = 7: three to a side
    ],
)
def test_paths_are_as_long_as_the_formulas_say(kind, length, wanted):
    causal = kind not in {"self-attention", "linear-attention", "restricted"}
    with seeded():
        assert maximum_path(kind, Sizes(D, kernel_size=3, neighbourhood=7, causal=causal), length) == wanted


@pytest.mark.parametrize(("k", "length", "wanted"), [(5, 25, 2), (5, 26, 3), (9, 9, 1), (9, 81, 2), (9, 82, 3)])
def test_a_dilated_stack_reaches_by_powers_of_its_kernel(k, length, wanted):
    with seeded():
        assert maximum_path("dilated", Sizes(D, kernel_size=k, causal=True), length) == wanted


@pytest.mark.parametrize("num_layers", [1, 2, 3])
def test_what_a_real_stack_reaches_is_what_its_layers_compose_to(num_layers):
    with seeded():
        layers = [Convolution(D, 3, causal=True, dilation=3**level).double() for level in range(num_layers)]
    composed = torch.eye(17, dtype=torch.bool)
    for layer in layers:
        composed = (dependencies(layer, 17, D).float() @ composed.float()) > 0

    def stack(x):
        for layer in layers:
            x = layer(x)
        return x

    assert torch.equal(dependencies(stack, 17, D), composed)


def test_the_definition_of_a_recurrence_depends_on_all_that_is_before():
    with seeded():
        layer = SEQUENCE_LAYERS["gru"](Sizes(D, causal=True)).double()
    one = update_dependencies(layer, 6, D)
    assert torch.equal(dependencies(layer.plain, 6, D), torch.ones(6, 6, dtype=torch.bool).tril())
    assert steps_to_reach((one for _ in range(9)), causal=True) == 5
