"""The longest chain of operations that must follow one another, read off the graph that autograd records.

Shapes: B sentences, T positions, D d_model.
"""

import torch
from torch import Tensor
from torch.autograd.graph import Node

from headway.nn.recurrent import Recurrent
from headway.nn.sequence_kinds import SEQUENCE_LAYERS, Sizes


def longest_chain(output: Tensor) -> int:
    """How many recorded operations lie on the longest way from a result back to what it was computed from."""
    assert output.grad_fn is not None
    longest: dict[Node, int] = {}
    stack = [output.grad_fn]
    while stack:
        node = stack[-1]
        before = [other for other, _ in node.next_functions if other is not None]
        open_nodes = [other for other in before if other not in longest]
        if open_nodes:
            stack += open_nodes
            continue
        stack.pop()
        longest[node] = 1 + max((longest[other] for other in before), default=0)
    return longest[output.grad_fn]


def layer_chain(kind: str, sizes: Sizes, length: int) -> int:
    """The longest chain of one layer of a kind of ``SEQUENCE_LAYERS``; recurrence as its definition, step by step."""
    layer = SEQUENCE_LAYERS[kind](sizes)
    x_BTD = torch.randn(1, length, sizes.d_model, requires_grad=True)
    return longest_chain(layer.plain(x_BTD) if isinstance(layer, Recurrent) else layer(x_BTD))
