"""A sub-layer within its residual connection (Sections 3.1 and 5.4).

Shapes: B sentences, T positions, D d_model.
"""

from collections.abc import Callable

from torch import Tensor, nn


class PostNorm(nn.Module):
    """LayerNorm(x + Dropout(Sublayer(x))), as the paper has it."""

    ends_in_norm = True

    def __init__(self, norm: nn.Module, dropout: nn.Module) -> None:
        super().__init__()
        self.norm = norm
        self.dropout = dropout

    def forward(self, x_BTD: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """X after one sub-layer: (B, T, D)."""
        return self.norm(x_BTD + self.dropout(sublayer(x_BTD)))


class PreNorm(nn.Module):
    """x + Dropout(Sublayer(LayerNorm(x))) (Xiong et al. 2020); the stack ends in a norm of its own.

    Departure: the norm stands before the sub-layer, so that x itself reaches the end of the stack.
    """

    ends_in_norm = False

    def __init__(self, norm: nn.Module, dropout: nn.Module) -> None:
        super().__init__()
        self.norm = norm
        self.dropout = dropout

    def forward(self, x_BTD: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """X after one sub-layer: (B, T, D)."""
        return x_BTD + self.dropout(sublayer(self.norm(x_BTD)))


class DeepNorm(nn.Module):
    """LayerNorm(alpha x + Dropout(Sublayer(x))) (Wang et al. 2022, DeepNet).

    Departure: x weighs more than the sub-layer's output, by the depth of the model.
    """

    ends_in_norm = True

    def __init__(self, norm: nn.Module, dropout: nn.Module, *, alpha: float) -> None:
        super().__init__()
        self.norm = norm
        self.dropout = dropout
        self.alpha = alpha

    def forward(self, x_BTD: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """X after one sub-layer: (B, T, D)."""
        return self.norm(self.alpha * x_BTD + self.dropout(sublayer(x_BTD)))


Sublayer = PostNorm | PreNorm | DeepNorm
SUBLAYERS: dict[str, type[PostNorm] | type[PreNorm]] = {"post": PostNorm, "pre": PreNorm}
