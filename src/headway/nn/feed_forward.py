"""Position-wise feed-forward network (Section 3.3).

Shapes: B sentences, T positions, D d_model, F d_ff.
"""

from collections.abc import Callable
from functools import partial
from typing import Protocol

from torch import Tensor, nn
from torch.nn import functional

from headway.nn.dropout import Dropout

Activation = Callable[[Tensor], Tensor]


class FeedForward(nn.Module):
    """FFN(x) = max(0, x W1 + b1) W2 + b2, equation 2; or with another activation in the place of max."""

    def __init__(
        self, d_model: int, d_ff: int, *, activation: Activation = functional.relu, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.inner = nn.Linear(d_model, d_ff)
        self.outer = nn.Linear(d_ff, d_model)
        self.activation = activation
        self.dropout = Dropout(dropout)

    def forward(self, x_BTD: Tensor) -> Tensor:
        """The same two layers at every position: (B, T, D)."""
        inner_BTF = self.activation(self.inner(x_BTD))
        return self.outer(self.dropout(inner_BTF))


class GatedFeedForward(nn.Module):
    """FFN(x) = (activation(x W) * x V) W2 (Shazeer 2020); without biases, as there.

    Departure: three matrices in the place of two. d_ff is kept as it is given, so there are half as many numbers again;
    two thirds of it give as many as before.
    """

    def __init__(self, d_model: int, d_ff: int, *, activation: Activation, dropout: float = 0.0) -> None:
        super().__init__()
        self.gate = nn.Linear(d_model, d_ff, bias=False)
        self.inner = nn.Linear(d_model, d_ff, bias=False)
        self.outer = nn.Linear(d_ff, d_model, bias=False)
        self.activation = activation
        self.dropout = Dropout(dropout)

    def forward(self, x_BTD: Tensor) -> Tensor:
        """The same three layers at every position: (B, T, D)."""
        inner_BTF = self.activation(self.gate(x_BTD)) * self.inner(x_BTD)
        return self.outer(self.dropout(inner_BTF))


class _Build(Protocol):
    def __call__(self, d_model: int, d_ff: int, *, dropout: float) -> FeedForward | GatedFeedForward: ...


# gelu is the exact one, x Phi(x) by the error function (Hendrycks and Gimpel 2016); silu is x sigmoid(x), also called
# swish (Elfwing et al. 2017).
FEED_FORWARDS: dict[str, _Build] = {
    "relu": partial(FeedForward, activation=functional.relu),
    "gelu": partial(FeedForward, activation=functional.gelu),
    "silu": partial(FeedForward, activation=functional.silu),
    "swiglu": partial(GatedFeedForward, activation=functional.silu),
}
