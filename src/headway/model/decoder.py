"""The decoder (Section 3.1): N layers of masked self-attention, cross-attention and feed-forward.

Shapes: B sentences or rows, S source positions, T target positions, D d_model.
"""

from collections.abc import Iterable, Iterator
from typing import cast

from torch import Tensor, nn

from headway.nn.attention import MultiHeadAttention
from headway.nn.cache import KeyValue
from headway.nn.feed_forward import FeedForward
from headway.nn.residual import PostNorm


class DecoderLayer(nn.Module):
    """Masked self-attention, attention over the source, feed-forward, each within its residual connection."""

    def __init__(
        self,
        self_attention: MultiHeadAttention,
        cross_attention: MultiHeadAttention,
        *,
        feed_forward: FeedForward,
        sublayers: tuple[PostNorm, PostNorm, PostNorm],
    ) -> None:
        super().__init__()
        self.self_attention = self_attention
        self.cross_attention = cross_attention
        self.feed_forward = feed_forward
        self.self_sublayer, self.cross_sublayer, self.feed_forward_sublayer = sublayers

    def forward(self, x_BTD: Tensor, memory_BSD: Tensor, *, self_mask: Tensor, cross_mask: Tensor | None) -> Tensor:
        """All positions at once: (B, T, D)."""
        x_BTD = self.self_sublayer(x_BTD, lambda x: self.self_attention(x, x, mask=self_mask))
        x_BTD = self.cross_sublayer(x_BTD, lambda x: self.cross_attention(x, memory_BSD, mask=cross_mask))
        return self.feed_forward_sublayer(x_BTD, self.feed_forward)

    def step(
        self, x_B1D: Tensor, past: KeyValue | None, *, memory: KeyValue, cross_mask: Tensor | None
    ) -> tuple[Tensor, KeyValue]:
        """One new position after ``past``: its vector (B, 1, D), and the past with it."""
        newer = self.self_attention.keys_values(x_B1D)
        past = newer if past is None else past.append(newer)
        x_B1D = self.self_sublayer(x_B1D, lambda x: self.self_attention.attend(x, past))
        x_B1D = self.cross_sublayer(x_B1D, lambda x: self.cross_attention.attend(x, memory, mask=cross_mask))
        return self.feed_forward_sublayer(x_B1D, self.feed_forward), past


class Decoder(nn.Module):
    """A stack of layers."""

    def __init__(self, layers: Iterable[DecoderLayer]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def each_layer(self) -> Iterator[DecoderLayer]:
        """The layers from the first to the last."""
        return (cast("DecoderLayer", layer) for layer in self.layers)

    def forward(self, x_BTD: Tensor, memory_BSD: Tensor, *, self_mask: Tensor, cross_mask: Tensor | None) -> Tensor:
        """Hidden vectors (B, T, D), from which the softmax predicts the next token."""
        for layer in self.each_layer():
            x_BTD = layer(x_BTD, memory_BSD, self_mask=self_mask, cross_mask=cross_mask)
        return x_BTD
