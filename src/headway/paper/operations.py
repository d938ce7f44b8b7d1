"""Multiply-adds of a layer, counted on the real module while it computes, by torch's own counter.

Shapes: B sentences, T positions, D d_model.
"""

from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from headway.nn.recurrent import Recurrent
from headway.nn.self_attention import SelfAttention
from headway.nn.sequence_kinds import SEQUENCE_LAYERS, Sizes

FLOPS_OF_A_MULTIPLY_ADD = 2
ALL_LINEAR_ARE_PROJECTIONS = {"self-attention", "restricted", "linear-attention"}


@dataclass(frozen=True, slots=True)
class Operations:
    """Multiply-adds of one sentence, forward; ``projections`` are those of the matrices around an attention."""

    total: int
    projections: int

    @property
    def core(self) -> int:
        """What Table 1 counts."""
        return self.total - self.projections


@torch.no_grad()
def count_operations(kind: str, sizes: Sizes, length: int) -> Operations:
    """Count the multiply-adds of a kind of ``SEQUENCE_LAYERS`` for a sentence of ``length`` tokens.

    Matrix products and convolutions are counted, as they are computed: a restricted layer's blocks hold more than the
    window. Attention and recurrence run as their definitions, since torch's fused kernels tell the counter nothing.
    Nothing is computed where the shapes are enough (device meta), which a restricted layer's masks are not.
    """
    with torch.device("cpu" if kind == "restricted" else "meta"):
        layer = SEQUENCE_LAYERS[kind](sizes)
        x_BTD = torch.empty(1, length, sizes.d_model)
    if isinstance(layer, SelfAttention):
        layer.attention.recorder = lambda weights: None  # the definition, which shows its weights
    with FlopCounterMode(display=False) as counter:
        layer.plain(x_BTD) if isinstance(layer, Recurrent) else layer(x_BTD)
    projections = 0
    if kind in ALL_LINEAR_ARE_PROJECTIONS:
        counts = counter.get_flop_counts()
        names = [name for name, module in layer.named_modules() if isinstance(module, nn.Linear)]
        projections = sum(sum(counts[f"{type(layer).__name__}.{name}"].values()) for name in names)
    total = counter.get_total_flops()
    return Operations(total // FLOPS_OF_A_MULTIPLY_ADD, projections // FLOPS_OF_A_MULTIPLY_ADD)
