"""The encoder (Section 3.1): N layers of self-attention and feed-forward.

Under a causal mask the same stack is the decoder of a language model, which adds a position at a time (``step``).

Shapes: B sentences, S source positions, D d_model.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import cast

from torch import Tensor, nn

from headway.nn.attention import MultiHeadAttention
from headway.nn.cache import KeyValue
from headway.nn.feed_forward import FeedForward, GatedFeedForward
from headway.nn.position import Position, Span
from headway.nn.residual import Sublayer


class EncoderLayer(nn.Module):
    """Self-attention, then the feed-forward network, each within its residual connection."""

    def __init__(
        self,
        self_attention: MultiHeadAttention,
        feed_forward: FeedForward | GatedFeedForward,
        *,
        sublayers: tuple[Sublayer, Sublayer],
    ) -> None:
        super().__init__()
        self.self_attention = self_attention
        self.feed_forward = feed_forward
        self.attention_sublayer, self.feed_forward_sublayer = sublayers

    def forward(self, x_BSD: Tensor, mask: Tensor | None, *, span: Span) -> Tensor:
        """One layer: (B, S, D)."""
        x_BSD = self.attention_sublayer(x_BSD, lambda x: self.self_attention(x, x, mask=mask, span=span))
        return self.feed_forward_sublayer(x_BSD, self.feed_forward)

    def step(self, x_B1D: Tensor, past: KeyValue | None, *, span: Span) -> tuple[Tensor, KeyValue]:
        """One new position after ``past``, under a causal mask: its vector (B, 1, D), and the past with it."""
        kept: list[KeyValue] = []

        def attend(x: Tensor) -> Tensor:
            mixed_B1D, newer = self.self_attention.step(x, past, span=span)
            kept.append(newer)
            return mixed_B1D

        x_B1D = self.attention_sublayer(x_B1D, attend)
        return self.feed_forward_sublayer(x_B1D, self.feed_forward), kept[0]


class Encoder(nn.Module):
    """A stack of layers, and a norm where the layers do not end in one."""

    def __init__(self, layers: Iterable[EncoderLayer], *, norm: nn.Module) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.norm = norm

    def each_layer(self) -> Iterator[EncoderLayer]:
        """The layers from the first to the last."""
        return (cast("EncoderLayer", layer) for layer in self.layers)

    def forward(self, x_BSD: Tensor, mask: Tensor | None, *, position: Position) -> Tensor:
        """The memory that the decoder reads: (B, S, D)."""
        span = position.span(x_BSD.shape[1], x_BSD.shape[1], 0)
        for layer in self.each_layer():
            x_BSD = layer(x_BSD, mask, span=span)
        return self.norm(x_BSD)

    def step(self, x_B1D: Tensor, past: Sequence[KeyValue], *, span: Span) -> tuple[Tensor, tuple[KeyValue, ...]]:
        """One new position: its vector (B, 1, D), and what to keep of each layer. ``past`` is empty at first."""
        kept: list[KeyValue] = []
        for index, layer in enumerate(self.each_layer()):
            x_B1D, newer = layer.step(x_B1D, past[index] if past else None, span=span)
            kept.append(newer)
        return self.norm(x_B1D), tuple(kept)
