"""Position-wise feed-forward network (Section 3.3).

Shapes: B sentences, T positions, D d_model, F d_ff.
"""

from torch import Tensor, nn
from torch.nn import functional


class FeedForward(nn.Module):
    """FFN(x) = max(0, x W1 + b1) W2 + b2, equation 2."""

    def __init__(self, d_model: int, d_ff: int) -> None:
        super().__init__()
        self.inner = nn.Linear(d_model, d_ff)
        self.outer = nn.Linear(d_ff, d_model)

    def forward(self, x_BTD: Tensor) -> Tensor:
        """The same two layers at every position: (B, T, D)."""
        inner_BTF = functional.relu(self.inner(x_BTD))
        return self.outer(inner_BTF)
