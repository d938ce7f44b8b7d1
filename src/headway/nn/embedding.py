"""Tokens as vectors (Section 3.4).

Shapes: B sentences, T positions, D d_model, V vocabulary.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional


class TokenEmbedding(nn.Module):
    """A row a token, multiplied by sqrt(d_model). The matrix may be shared with others."""

    def __init__(self, vocab_size: int, d_model: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(vocab_size, d_model))
        self.scale = math.sqrt(d_model)

    def forward(self, token_BT: Tensor) -> Tensor:
        """Vectors (B, T, D) of token ids (B, T)."""
        return functional.embedding(token_BT, self.weight) * self.scale


class OutputProjection(nn.Module):
    """Logits by the (unscaled) embedding matrix; no bias."""

    def __init__(self, vocab_size: int, d_model: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(vocab_size, d_model))

    def forward(self, hidden: Tensor) -> Tensor:
        """Logits (..., V) of hidden vectors (..., D)."""
        return functional.linear(hidden, self.weight)
