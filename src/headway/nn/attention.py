"""Scaled dot-product attention and multi-head attention (Section 3.2).

Shapes: B sentences, T query positions, S key positions, D d_model, H heads, K d_k, V d_v (here, size of a value).
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from headway.nn.cache import KeyValue

Recorder = Callable[[Tensor], None]


def attention(q_BHTK: Tensor, k_BHSK: Tensor, v_BHSV: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """Attention by its definition: the mixed values (B, H, T, V) and the attention weights (B, H, T, S).

    ``mask`` is bool and broadcasts to (B, H, T, S); True may be attended. A query that may attend to nothing
    gets weights and values of zero, never NaN.
    """
    # Section 3.2.1, equation 1: softmax(Q K^T / sqrt(d_k)) V
    scores_BHTS = q_BHTK @ k_BHSK.transpose(-2, -1)
    scores_BHTS = scores_BHTS / math.sqrt(q_BHTK.shape[-1])
    if mask is None:
        attention_weights_BHTS = scores_BHTS.softmax(dim=-1)
        return attention_weights_BHTS @ v_BHSV, attention_weights_BHTS
    scores_BHTS = scores_BHTS.masked_fill(~mask, -math.inf)
    nothing = ~mask.any(dim=-1, keepdim=True)
    if bool(nothing.any()):
        scores_BHTS = scores_BHTS.masked_fill(nothing, 0.0)
        attention_weights_BHTS = scores_BHTS.softmax(dim=-1).masked_fill(nothing, 0.0)
    else:
        attention_weights_BHTS = scores_BHTS.softmax(dim=-1)
    return attention_weights_BHTS @ v_BHSV, attention_weights_BHTS


def fused_attention(q_BHTK: Tensor, k_BHSK: Tensor, v_BHSV: Tensor, mask: Tensor | None) -> Tensor:
    """The values of ``attention`` by PyTorch's fused kernel, which never stores the weights.

    Mind a fully masked query: what kernels give there differs, so its values are set to zero here.
    In bf16 on a CPU the definition itself runs: on 290 sentences of 14 tokens it took a ninth of the kernel's time.
    """
    if q_BHTK.dtype == torch.bfloat16 and q_BHTK.device.type == "cpu":
        return attention(q_BHTK, k_BHSK, v_BHSV, mask)[0]
    mixed_BHTV = functional.scaled_dot_product_attention(q_BHTK, k_BHSK, v_BHSV, attn_mask=mask)
    if mask is None:
        return mixed_BHTV
    nothing = ~mask.any(dim=-1, keepdim=True)
    return mixed_BHTV.masked_fill(nothing, 0.0)


class MultiHeadAttention(nn.Module):
    """Attention in ``num_heads`` subspaces at once (Section 3.2.2). d_k and d_v need not be d_model / num_heads."""

    def __init__(self, d_model: int, num_heads: int, *, d_k: int, d_v: int, bias: bool) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.d_k = d_k
        self.d_v = d_v
        self.query = nn.Linear(d_model, num_heads * d_k, bias=bias)
        self.key = nn.Linear(d_model, num_heads * d_k, bias=bias)
        self.value = nn.Linear(d_model, num_heads * d_v, bias=bias)
        self.output = nn.Linear(num_heads * d_v, d_model, bias=bias)
        self.recorder: Recorder | None = None

    def forward(self, x_BTD: Tensor, memory_BSD: Tensor, *, mask: Tensor | None = None) -> Tensor:
        """Every position of x asks every position of memory that ``mask`` allows: (B, T, D)."""
        return self.attend(x_BTD, self.keys_values(memory_BSD), mask=mask)

    def keys_values(self, memory_BSD: Tensor) -> KeyValue:
        """Keys (B, H, S, K) and values (B, H, S, V) of a memory; computed once, they can be kept."""
        return KeyValue(self._split(self.key(memory_BSD)), self._split(self.value(memory_BSD)))

    def attend(self, x_BTD: Tensor, memory: KeyValue, *, mask: Tensor | None = None) -> Tensor:
        """As ``forward``, with keys and values at hand."""
        q_BHTK = self._split(self.query(x_BTD))
        if self.recorder is None:
            mixed_BHTV = fused_attention(q_BHTK, memory.key_BHSK, memory.value_BHSV, mask)
        else:
            mixed_BHTV, attention_weights_BHTS = attention(q_BHTK, memory.key_BHSK, memory.value_BHSV, mask)
            self.recorder(attention_weights_BHTS)
        return self.output(mixed_BHTV.transpose(1, 2).flatten(start_dim=2))

    def _split(self, projected: Tensor) -> Tensor:
        """(B, T, H x size) to (B, H, T, size)."""
        return projected.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)


def allowed(mask: Tensor | None) -> Tensor | None:
    """``mask``, or None where it forbids nothing: then the kernels are faster."""
    if mask is None or bool(torch.all(mask)):
        return None
    return mask
