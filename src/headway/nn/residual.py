"""A sub-layer within its residual connection (Sections 3.1 and 5.4).

Shapes: B sentences, T positions, D d_model.
"""

from collections.abc import Callable

from torch import Tensor, nn


class PostNorm(nn.Module):
    """LayerNorm(x + Dropout(Sublayer(x))), as the paper has it."""

    def __init__(self, norm: nn.Module, dropout: nn.Module) -> None:
        super().__init__()
        self.norm = norm
        self.dropout = dropout

    def forward(self, x_BTD: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """X after one sub-layer: (B, T, D)."""
        return self.norm(x_BTD + self.dropout(sublayer(x_BTD)))
