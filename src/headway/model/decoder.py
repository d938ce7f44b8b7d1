"""The decoder (Section 3.1): N layers of masked self-attention, cross-attention and feed-forward.

Shapes: B sentences or rows, S source positions, T target positions, D d_model, H heads.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import cast

from torch import Tensor, nn

from headway.nn.attention import MultiHeadAttention
from headway.nn.cache import KeyValue
from headway.nn.feed_forward import FeedForward, GatedFeedForward
from headway.nn.position import Position, Span
from headway.nn.residual import Sublayer


class DecoderLayer(nn.Module):
    """Masked self-attention, attention over the source, feed-forward, each within its residual connection."""

    def __init__(
        self,
        self_attention: MultiHeadAttention,
        cross_attention: MultiHeadAttention,
        *,
        feed_forward: FeedForward | GatedFeedForward,
        sublayers: tuple[Sublayer, Sublayer, Sublayer],
    ) -> None:
        super().__init__()
        self.self_attention = self_attention
        self.cross_attention = cross_attention
        self.feed_forward = feed_forward
        self.self_sublayer, self.cross_sublayer, self.feed_forward_sublayer = sublayers

    def forward(
        self,
        x_BTD: Tensor,
        memory_BSD: Tensor,
        *,
        self_mask: Tensor,
        cross_mask: Tensor | None,
        span: Span,
        cross_bias_BHTS: Tensor | None = None,
    ) -> Tensor:
        """All positions at once: (B, T, D)."""
        x_BTD = self.self_sublayer(x_BTD, lambda x: self.self_attention(x, x, mask=self_mask, span=span))
        x_BTD = self.cross_sublayer(
            x_BTD, lambda x: self.cross_attention(x, memory_BSD, mask=cross_mask, bias_BHTS=cross_bias_BHTS)
        )
        return self.feed_forward_sublayer(x_BTD, self.feed_forward)

    def step(
        self,
        x_B1D: Tensor,
        past: KeyValue | None,
        *,
        memory: KeyValue,
        cross_mask: Tensor | None,
        span: Span,
        cross_bias_BHTS: Tensor | None = None,
    ) -> tuple[Tensor, KeyValue]:
        """One new position after ``past``: its vector (B, 1, D), and the past with it."""
        kept: list[KeyValue] = []

        def attend_self(x: Tensor) -> Tensor:
            mixed_B1D, newer = self.self_attention.step(x, past, span=span)
            kept.append(newer)
            return mixed_B1D

        x_B1D = self.self_sublayer(x_B1D, attend_self)
        x_B1D = self.cross_sublayer(
            x_B1D, lambda x: self.cross_attention.attend(x, memory, mask=cross_mask, bias_BHTS=cross_bias_BHTS)
        )
        return self.feed_forward_sublayer(x_B1D, self.feed_forward), kept[0]


class Decoder(nn.Module):
    """A stack of layers, and a norm where the layers do not end in one."""

    def __init__(self, layers: Iterable[DecoderLayer], *, norm: nn.Module) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.norm = norm

    def each_layer(self) -> Iterator[DecoderLayer]:
        """The layers from the first to the last."""
        return (cast("DecoderLayer", layer) for layer in self.layers)

    def forward(
        self,
        x_BTD: Tensor,
        memory_BSD: Tensor,
        *,
        self_mask: Tensor,
        cross_mask: Tensor | None,
        position: Position,
        cross_bias_BHTS: Tensor | None = None,
    ) -> Tensor:
        """Hidden vectors (B, T, D), from which the softmax predicts the next token."""
        span = position.span(x_BTD.shape[1], x_BTD.shape[1], 0)
        for layer in self.each_layer():
            x_BTD = layer(
                x_BTD,
                memory_BSD,
                self_mask=self_mask,
                cross_mask=cross_mask,
                span=span,
                cross_bias_BHTS=cross_bias_BHTS,
            )
        return self.norm(x_BTD)

    def step(
        self,
        x_B1D: Tensor,
        past: Sequence[KeyValue],
        *,
        memory: Sequence[KeyValue],
        cross_mask: Tensor | None,
        span: Span,
        cross_bias_BHTS: Tensor | None = None,
    ) -> tuple[Tensor, tuple[KeyValue, ...]]:
        """One new position: its hidden vector (B, 1, D), and what to keep of each layer. ``past`` is empty at first."""
        kept: list[KeyValue] = []
        for index, layer in enumerate(self.each_layer()):
            before = past[index] if past else None
            x_B1D, newer = layer.step(
                x_B1D,
                before,
                memory=memory[index],
                cross_mask=cross_mask,
                span=span,
                cross_bias_BHTS=cross_bias_BHTS,
            )
            kept.append(newer)
        return self.norm(x_B1D), tuple(kept)
