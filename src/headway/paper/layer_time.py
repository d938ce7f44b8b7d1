"""Seconds and bytes of a layer against the length of a sentence: a forward and backward pass, by torch's best kernels.

Shapes: B sentences, T positions, D d_model, H heads, K size of a head.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks
from torch.nn import functional

from headway.nn.attention import attention
from headway.nn.sequence_kinds import SEQUENCE_LAYERS, Sizes
from headway.paper.random import seeded

HEAD = 64  # numbers of a head, where a layer has heads
STORED_UP_TO = 4096  # tokens: beyond, the stored weights of attention are gigabytes


@dataclass(frozen=True, slots=True)
class Timed:
    """A line of the drawings: how to make what is timed, and the longest sentence it is given."""

    make: Callable[[int], Callable[[Tensor], Tensor]]  # of d
    longest: int | None = None


def _layer(kind: str, *, causal: bool = False) -> Callable[[int], Callable[[Tensor], Tensor]]:
    return lambda d_model: SEQUENCE_LAYERS[kind](Sizes(d_model, num_heads=max(1, d_model // HEAD), causal=causal))


def _alone(d_model: int) -> Callable[[Tensor], Tensor]:
    """Self-attention without its projections, which Table 1 leaves out, by torch's fused kernel."""

    def function(x_BTD: Tensor) -> Tensor:
        x_BHTK = _heads(x_BTD)
        return functional.scaled_dot_product_attention(x_BHTK, x_BHTK, x_BHTK)

    return function


def _stored(d_model: int) -> Callable[[Tensor], Tensor]:
    """The same as its definition, which stores n x n weights."""

    def function(x_BTD: Tensor) -> Tensor:
        x_BHTK = _heads(x_BTD)
        return attention(x_BHTK, x_BHTK, x_BHTK, None)[0]

    return function


def _heads(x_BTD: Tensor) -> Tensor:
    size = min(HEAD, x_BTD.shape[-1])
    return x_BTD.unflatten(-1, (-1, size)).transpose(1, 2)


TIMED = {
    "self-attention": Timed(_layer("self-attention")),
    "without projections": Timed(_alone),
    "with stored weights": Timed(_stored, STORED_UP_TO),
    "restricted, r = 64": Timed(_layer("restricted")),
    "LSTM": Timed(_layer("lstm", causal=True)),
    "GRU": Timed(_layer("gru", causal=True)),
    "convolution, k = 3": Timed(_layer("convolution")),
    "separable, k = 3": Timed(_layer("separable")),
    "linear attention": Timed(_layer("linear-attention")),
}


def seconds(name: str, d_model: int, length: int) -> float:
    """One pass over one sentence, the second of two: the first warms caches and finds memory."""
    run = _pass(name, d_model, length)
    run()
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


def kept_bytes(name: str, d_model: int, length: int) -> int:
    """Bytes that the forward pass keeps for the backward pass, each storage once, parameters counted."""
    storages: dict[int, int] = {}

    def note(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        storages[storage.data_ptr()] = storage.nbytes()
        return tensor

    with saved_tensors_hooks(note, lambda tensor: tensor):
        _pass(name, d_model, length)()
    return sum(storages.values())


def _pass(name: str, d_model: int, length: int) -> Callable[[], None]:
    with seeded():
        function = TIMED[name].make(d_model)
        x_BTD = torch.randn(1, length, d_model, requires_grad=True)

    def run() -> None:
        function(x_BTD).sum().backward()

    return run
