"""Tokens as vectors (Section 3.4).

Shapes: B sentences, T positions, D d_model, V vocabulary.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional


class TokenEmbedding(nn.Module):
    """A row a token, multiplied by sqrt(d_model) unless ``scaled`` is false. The matrix may be shared with others."""

    def __init__(self, vocab_size: int, d_model: int, *, scaled: bool = True) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(vocab_size, d_model))
        self.scale = math.sqrt(d_model) if scaled else 1.0

    def forward(self, token_BT: Tensor) -> Tensor:
        """Vectors (B, T, D) of token ids (B, T)."""
        return functional.embedding(token_BT, self.weight) * self.scale


class OutputProjection(nn.Module):
    """Logits by the (unscaled) embedding matrix; the paper's has no bias.

    Departure, with ``bias``: a trained number a token is added, as Marian has it.
    """

    def __init__(self, vocab_size: int, d_model: int, *, bias: bool = False) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(vocab_size, d_model))
        self.bias = nn.Parameter(torch.empty(vocab_size)) if bias else None

    def forward(self, hidden: Tensor) -> Tensor:
        """Logits (..., V) of hidden vectors (..., D)."""
        return functional.linear(hidden, self.weight, self.bias)
