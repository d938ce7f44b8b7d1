"""Where a token stands in words, for a source and a target over the same words: a sentence and its tree.

Shapes: B sentences, T target positions, S source positions, H heads, V vocabulary.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from headway.config.positions import word_slopes


class WordCounter(nn.Module):
    """Counts the words of a row of tokens; ``starts`` are the tokens with which one begins.

    A token is at the word that has begun last; the first is 1.
    """

    is_start_V: Tensor

    def __init__(self, starts: Sequence[int], vocab_size: int) -> None:
        super().__init__()
        is_start_V = torch.zeros(vocab_size, dtype=torch.int64)
        is_start_V[list(starts)] = 1
        self.register_buffer("is_start_V", is_start_V, persistent=False)

    def forward(self, token_BT: Tensor, before_B: Tensor | None = None) -> Tensor:
        """Which word each token is at (B, T); ``before_B`` words have begun before the first of them."""
        word_BT = self.is_start_V[token_BT].cumsum(dim=1)
        return word_BT if before_B is None else word_BT + before_B[:, None]


class WordDistance(nn.Module):
    """What a score of cross-attention loses: slope x distance in words, with a slope a head that is not trained.

    Departure: the paper's cross-attention has no positions. The form is that of ALiBi (Press et al. 2021) in
    self-attention; slopes are four times as steep, for here they have to find a word and not a neighbourhood.
    """

    slope_H: Tensor

    def __init__(self, num_heads: int) -> None:
        super().__init__()
        self.register_buffer("slope_H", torch.tensor(word_slopes(num_heads)), persistent=False)

    def forward(self, target_word_BT: Tensor, source_word_BS: Tensor) -> Tensor:
        """What is added to the scores: -slope |i - j|, float32, (B, H, T, S)."""
        distance_BTS = (target_word_BT[:, :, None] - source_word_BS[:, None, :]).abs()
        return -self.slope_H.float()[:, None, None] * distance_BTS[:, None]
