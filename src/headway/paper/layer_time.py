"""Seconds and bytes of a layer against the length of a sentence: a forward and backward pass, by torch's best kernels.

Shapes: B sentences, T positions, D d_model, H heads, K size of a head.
"""

import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.nn import functional

from headway.errors import PaperError
from headway.nn.attention import attention
from headway.nn.sequence_kinds import SEQUENCE_LAYERS, Sizes
from headway.paper.random import seeded

HEAD = 64  # numbers of a head, where a layer has heads
STORED_UP_TO = 4096  # tokens: beyond, the stored weights of attention are gigabytes
ATTENTION, RECURRENT = "self-attention", "LSTM"  # whose times are compared
BLOCK = 0.2  # seconds: hundreds of the shortest passes, so that one that was held up does not count
FEWEST = 3  # passes of a block: the median of fewer has in it the one that was held up
LONG = 1.0  # seconds: of a pass that takes as long, what else runs and what warming up saves are a small part ...
LONG_FROM = 4096  # tokens: ... and only those of so many take as long by themselves

Layer = Callable[[Tensor], Tensor]
Clock = Callable[[], float]  # seconds, from anywhere


@dataclass(frozen=True, slots=True)
class Timed:
    """A line of the drawings: how to make what is timed, and the longest sentence it is given."""

    make: Callable[[int], Layer]  # of d
    longest: int | None = None


def _layer(kind: str, *, causal: bool = False) -> Callable[[int], Layer]:
    return lambda d_model: SEQUENCE_LAYERS[kind](Sizes(d_model, num_heads=max(1, d_model // HEAD), causal=causal))


def _alone(d_model: int) -> Layer:
    """Self-attention without its projections, which Table 1 leaves out, by torch's fused kernel."""

    def function(x_BTD: Tensor) -> Tensor:
        x_BHTK = _heads(x_BTD)
        return functional.scaled_dot_product_attention(x_BHTK, x_BHTK, x_BHTK)

    return function


def _stored(d_model: int) -> Layer:
    """The same as its definition, which stores n x n weights."""

    def function(x_BTD: Tensor) -> Tensor:
        x_BHTK = _heads(x_BTD)
        return attention(x_BHTK, x_BHTK, x_BHTK, None)[0]

    return function


def _heads(x_BTD: Tensor) -> Tensor:
    size = min(HEAD, x_BTD.shape[-1])
    return x_BTD.unflatten(-1, (-1, size)).transpose(1, 2)


TIMED = {
    ATTENTION: Timed(_layer("self-attention")),
    "without projections": Timed(_alone),
    "with stored weights": Timed(_stored, STORED_UP_TO),
    "restricted, r = 64": Timed(_layer("restricted")),
    RECURRENT: Timed(_layer("lstm", causal=True)),
    "GRU": Timed(_layer("gru", causal=True)),
    "convolution, k = 3": Timed(_layer("convolution")),
    "dilated, k = 3": Timed(_layer("dilated")),
    "separable, k = 3": Timed(_layer("separable")),
    "linear attention": Timed(_layer("linear-attention")),
}


def check_width(d_model: int) -> None:
    """Refuse a width that heads of ``HEAD`` numbers do not fill; up to ``HEAD`` numbers are one head."""
    if d_model <= HEAD or d_model % HEAD == 0:
        return
    less = d_model - d_model % HEAD
    raise PaperError(
        f"paper/layer_time: a width of {d_model:,} is no whole number of heads, which have {HEAD} numbers where layers "
        f"are timed; wanted a multiple of {HEAD}, or less than {HEAD}, which is one head. "
        f"Remedy: --width {less} or --width {less + HEAD}."
    )


def seconds(name: str, d_model: int, length: int, *, block: float = BLOCK) -> float:
    """One pass over one sentence: the median of ``block`` seconds of passes; of a long sentence one, if it is long."""
    long = LONG if length >= LONG_FROM else math.inf
    return block_seconds(_pass(name, d_model, length), block=block, long=long)


def block_seconds(
    run: Callable[[], None], *, block: float = BLOCK, long: float = math.inf, clock: Clock = time.perf_counter
) -> float:
    """Seconds of one run: the median of those of ``block`` seconds, ``FEWEST`` at least.

    One run before them warms caches and finds memory; where it takes ``long`` seconds, it is the only one, and counts.
    """
    first = _once(run, clock)
    if first >= long:
        return first
    found: list[float] = []
    spent = 0.0
    while len(found) < FEWEST or spent < block:
        found.append(_once(run, clock))
        spent += found[-1]
    return statistics.median(found)


def _once(run: Callable[[], None], clock: Clock) -> float:
    begin = clock()
    run()
    return clock() - begin


def kept_bytes(name: str, d_model: int, length: int) -> int:
    """Bytes that the forward pass keeps for the backward pass, each storage once, parameters counted."""
    storages: dict[int, int] = {}

    def note(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        storages[storage.data_ptr()] = storage.nbytes()
        return tensor

    function, x_BTD = _made(name, d_model, length)
    with saved_tensors_hooks(note, lambda tensor: tensor):
        function(x_BTD).sum()
    return sum(storages.values())


def _pass(name: str, d_model: int, length: int) -> Callable[[], None]:
    """A forward and backward pass, each the same as the one before: gradients are found and not added up."""
    function, x_BTD = _made(name, d_model, length)
    wanted = [x_BTD, *(function.parameters() if isinstance(function, nn.Module) else ())]

    def run() -> None:
        torch.autograd.grad(function(x_BTD).sum(), wanted)

    return run


def _made(name: str, d_model: int, length: int) -> tuple[Layer, Tensor]:
    """What is timed and the sentence that it is given."""
    with seeded():
        return TIMED[name].make(d_model), torch.randn(1, length, d_model, requires_grad=True)
