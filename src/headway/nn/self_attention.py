"""Self-attention by itself, as one of the layers that mix positions (Section 4); the models have theirs in stacks.

Shapes: B sentences, T positions, D d_model.
"""

from torch import Tensor

from headway.nn.attention import MultiHeadAttention, allowed
from headway.nn.cache import KeyValue
from headway.nn.masks import causal_mask, key_mask
from headway.nn.position import NoPosition
from headway.nn.restricted_attention import blocked_attention
from headway.nn.sequence import SequenceLayer


class SelfAttention(SequenceLayer[KeyValue]):
    """Multi-head attention of a sequence to itself, without positions; ``window`` positions to a side, absent all."""

    def __init__(self, attention: MultiHeadAttention, *, causal: bool, window: int | None = None) -> None:
        super().__init__()
        assert attention.num_kv_heads == attention.num_heads
        self.attention = attention
        self.causal = causal
        self.window = window
        self.position = NoPosition()

    def forward(self, x_BTD: Tensor, /, mask_BT: Tensor | None = None) -> Tensor:
        """All positions: (B, T, D)."""
        if self.window is not None and self.window < x_BTD.shape[1] - 1:
            return self._restricted(x_BTD, mask_BT, self.window)
        mask = None if mask_BT is None else allowed(key_mask(mask_BT))
        if self.causal:
            earlier_TT = causal_mask(x_BTD.shape[1], device=x_BTD.device)
            mask = earlier_TT if mask is None else mask & earlier_TT
        return self.attention(x_BTD, x_BTD, mask=mask)

    def step(self, x_B1D: Tensor, past: KeyValue | None, /) -> tuple[Tensor, KeyValue]:
        """One new position: (B, 1, D), and its key and value behind those of the past that can still be seen."""
        assert self.causal
        num_past = 0 if past is None else past.key_BGSK.shape[2]
        num_seen = num_past if self.window is None else min(num_past, self.window)
        return self.attention.step(x_B1D, past, span=self.position.span(1, num_seen + 1, num_past))

    def _restricted(self, x_BTD: Tensor, mask_BT: Tensor | None, window: int) -> Tensor:
        memory = self.attention.keys_values(x_BTD)
        mixed_BHTV = blocked_attention(
            self.attention.queries(x_BTD),
            memory.key_BGSK,
            memory.value_BGSV,
            mask_BT,
            window=window,
            causal=self.causal,
        )
        return self.attention.output(mixed_BHTV.transpose(1, 2).flatten(start_dim=2))
