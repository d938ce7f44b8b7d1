"""A projection with a low-rank addition (Hu et al. 2021, LoRA).

Shapes: I inputs, O outputs, L rank; ``*`` stands for any leading dimensions.
"""

import torch
from torch import Tensor, nn


class LowRank(nn.Module):
    """W x + b + (alpha / rank) B A x: W and b stay as they are, A and B are trained.

    A is drawn from N(0, 1 / I), B is zero: before the first step nothing is added.
    """

    def __init__(self, linear: nn.Linear, rank: int, *, alpha: float, random: torch.Generator) -> None:
        super().__init__()
        self.linear = linear.requires_grad_(requires_grad=False)
        self.scale = alpha / rank
        drawn_LI = torch.randn(rank, linear.in_features, generator=random) * linear.in_features**-0.5
        weight = linear.weight
        self.down = nn.Parameter(drawn_LI.to(weight.device, weight.dtype))
        self.up = nn.Parameter(weight.new_zeros(linear.out_features, rank))

    def forward(self, x: Tensor) -> Tensor:
        """(*, I) to (*, O)."""
        low = nn.functional.linear(x, self.down)
        return self.linear(x) + self.scale * nn.functional.linear(low, self.up)

    def merged_weight(self) -> Tensor:
        """The one matrix (O, I) that does the same."""
        return self.linear.weight + self.scale * self.up @ self.down
