"""The encoder (Section 3.1): N layers of self-attention and feed-forward.

Shapes: B sentences, S source positions, D d_model.
"""

from collections.abc import Iterable
from typing import cast

from torch import Tensor, nn

from headway.nn.attention import MultiHeadAttention
from headway.nn.feed_forward import FeedForward
from headway.nn.residual import PostNorm


class EncoderLayer(nn.Module):
    """Self-attention, then the feed-forward network, each within its residual connection."""

    def __init__(
        self, self_attention: MultiHeadAttention, feed_forward: FeedForward, *, sublayers: tuple[PostNorm, PostNorm]
    ) -> None:
        super().__init__()
        self.self_attention = self_attention
        self.feed_forward = feed_forward
        self.attention_sublayer, self.feed_forward_sublayer = sublayers

    def forward(self, x_BSD: Tensor, mask_B11S: Tensor | None) -> Tensor:
        """One layer: (B, S, D)."""
        x_BSD = self.attention_sublayer(x_BSD, lambda x: self.self_attention(x, x, mask=mask_B11S))
        return self.feed_forward_sublayer(x_BSD, self.feed_forward)


class Encoder(nn.Module):
    """A stack of layers."""

    def __init__(self, layers: Iterable[EncoderLayer]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, x_BSD: Tensor, mask_B11S: Tensor | None) -> Tensor:
        """The memory that the decoder reads: (B, S, D)."""
        for layer in self.layers:
            x_BSD = cast("EncoderLayer", layer)(x_BSD, mask_B11S)
        return x_BSD
