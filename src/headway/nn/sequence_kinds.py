"""The kinds of layers that Table 1 of the paper sets side by side, each made from the table's own letters."""

from collections.abc import Callable
from dataclasses import dataclass

from headway.nn.attention import MultiHeadAttention
from headway.nn.convolution import Convolution, SeparableConvolution
from headway.nn.linear_attention import LinearAttention
from headway.nn.recurrent import Recurrent
from headway.nn.self_attention import SelfAttention

Kind = SelfAttention | Recurrent | Convolution | SeparableConvolution | LinearAttention


@dataclass(frozen=True, slots=True)
class Sizes:
    """d, k and r of the table, and how a layer reads; k^level is the dilation of a layer of a dilated stack."""

    d_model: int
    kernel_size: int = 3
    neighbourhood: int = 64  # r: positions that restricted self-attention sees, its own counted
    num_heads: int = 1
    causal: bool = False
    level: int = 1

    @property
    def window(self) -> int:
        """Positions to a side: (r - 1) / 2 rounded up, or the r - 1 before where it is causal."""
        return self.neighbourhood - 1 if self.causal else self.neighbourhood // 2


def _self_attention(sizes: Sizes, window: int | None) -> SelfAttention:
    size = sizes.d_model // sizes.num_heads
    attention = MultiHeadAttention(sizes.d_model, sizes.num_heads, d_k=size, d_v=size, bias=False)
    return SelfAttention(attention, causal=sizes.causal, window=window)


def _dilated(sizes: Sizes) -> Convolution:
    dilation = sizes.kernel_size**sizes.level
    return Convolution(sizes.d_model, sizes.kernel_size, causal=sizes.causal, dilation=dilation)


SEQUENCE_LAYERS: dict[str, Callable[[Sizes], Kind]] = {
    "self-attention": lambda sizes: _self_attention(sizes, None),
    "restricted": lambda sizes: _self_attention(sizes, sizes.window),
    "lstm": lambda sizes: Recurrent(sizes.d_model, "lstm", causal=sizes.causal),
    "gru": lambda sizes: Recurrent(sizes.d_model, "gru", causal=sizes.causal),
    "convolution": lambda sizes: Convolution(sizes.d_model, sizes.kernel_size, causal=sizes.causal),
    "dilated": _dilated,
    "separable": lambda sizes: SeparableConvolution(sizes.d_model, sizes.kernel_size, causal=sizes.causal),
    "linear-attention": lambda sizes: LinearAttention(sizes.d_model, sizes.num_heads, causal=sizes.causal),
}
