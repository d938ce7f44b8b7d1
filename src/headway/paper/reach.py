"""How many steps a position needs to reach every other: which entries of a layer's Jacobian are not zero, composed.

Shapes: B sentences, T positions, D d_model.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count

import torch
from torch import Tensor

from headway.nn.convolution import Convolution, SeparableConvolution
from headway.nn.recurrent import Recurrence, Recurrent
from headway.nn.sequence_kinds import SEQUENCE_LAYERS, Sizes

SEED = 5
MOST = 100_000  # steps after which a stack is said to reach nothing more


def dependencies(layer: Callable[[Tensor], Tensor], length: int, d_model: int) -> Tensor:
    """Which position of the output depends on which of the input: bool (T, T), output first.

    One random input in float64, each output position in a copy of its own, so that one backward pass gives all
    rows of the Jacobian. A dependence whose derivative is exactly zero at this input is not seen.
    """
    generator = torch.Generator().manual_seed(SEED)
    x_TD = torch.randn(length, d_model, generator=generator, dtype=torch.float64)
    weight_D = torch.randn(d_model, generator=generator, dtype=torch.float64)
    x_BTD = x_TD.expand(length, -1, -1).clone().requires_grad_()
    y_BTD = layer(x_BTD)
    own_T = torch.arange(length)
    (y_BTD[own_T, own_T] @ weight_D).sum().backward()
    assert x_BTD.grad is not None
    return (x_BTD.grad != 0.0).any(dim=-1)


def update_dependencies(layer: Recurrent, length: int, d_model: int) -> Tensor:
    """The same of one state update of a recurrent layer: a state depends on its input and on the state before."""
    generator = torch.Generator().manual_seed(SEED)
    x_B1D, hidden_BD, cell_BD = (
        torch.randn(*shape, d_model, generator=generator, dtype=torch.float64) for shape in ((1, 1), (1,), (1,))
    )
    x_B1D.requires_grad_()
    hidden_BD.requires_grad_()
    y_B1D, _ = layer.step(x_B1D, Recurrence(hidden_BD, cell_BD))
    y_B1D.sum().backward()
    own, before = (bool((each.grad != 0.0).any()) for each in (x_B1D, hidden_BD) if each.grad is not None)
    ones_TT = torch.ones(length, length, dtype=torch.bool)
    only_own_TT, only_before_TT = ones_TT.tril().triu(), ones_TT.tril(-1).triu(-1)
    return (only_own_TT & own) | (only_before_TT & before)


def steps_to_reach(steps: Iterator[Tensor], *, causal: bool) -> int:
    """The fewest steps after which every position has reached all (or all later) positions; see ``dependencies``."""
    first_TT = next(steps)
    wanted_TT = torch.ones_like(first_TT).tril() if causal else torch.ones_like(first_TT)
    reached_TT = first_TT
    for number in range(1, MOST):
        if bool((reached_TT | ~wanted_TT).all()):
            return number
        reached_TT = (next(steps).float() @ reached_TT.float()) > 0.0
    raise AssertionError("a stack that never reaches all positions")


def maximum_path(kind: str, sizes: Sizes, length: int) -> int:
    """The maximum path length of Table 1: layers of a stack, or state updates of one recurrent layer.

    A dilated stack has dilations 1, k, k^2 ..., all others have equal layers.
    """
    causal = sizes.causal
    if kind == "dilated":
        stack = (_of_layer(kind, replace(sizes, level=level), length) for level in count())
        return steps_to_reach(stack, causal=causal)
    one_TT = _of_layer(kind, sizes, length)
    return steps_to_reach((one_TT for _ in count()), causal=causal)


def _of_layer(kind: str, sizes: Sizes, length: int) -> Tensor:
    layer = SEQUENCE_LAYERS[kind](sizes).double()
    if isinstance(layer, Recurrent):
        return update_dependencies(layer, length, sizes.d_model)
    if isinstance(layer, Convolution | SeparableConvolution):  # torch has no fast one for dilated float64
        return dependencies(layer.plain, length, sizes.d_model)
    return dependencies(layer, length, sizes.d_model)
