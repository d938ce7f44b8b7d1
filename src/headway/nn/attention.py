"""Scaled dot-product attention and multi-head attention (Section 3.2).

Shapes: B sentences, T query positions, S key positions, D d_model, H heads of queries, G heads of keys and values,
K d_k, V d_v (here, size of a value), J = H / G x T queries that share a head of keys.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from headway.nn.cache import KeyValue
from headway.nn.dropout import Dropout
from headway.nn.position import Span
from headway.nn.score import Score, dot_product, scaled_dot_product

Recorder = Callable[[Tensor], None]

REGISTER = 16  # float32 numbers in a processor's longest vector register
SCALES: dict[Score, float | None] = {scaled_dot_product: None, dot_product: 1.0}  # what the fused kernel computes


def attention(
    q_BHTK: Tensor,
    k_BGSK: Tensor,
    v_BGSV: Tensor,
    mask: Tensor | None,
    *,
    bias: Tensor | None = None,
    dropout: Callable[[Tensor], Tensor] | None = None,
    score: Score = scaled_dot_product,
) -> tuple[Tensor, Tensor]:
    """Attention by its definition: the mixed values (B, H, T, V) and the attention weights (B, H, T, S).

    ``mask`` is bool and broadcasts to (B, H, T, S); True may be attended. ``bias``, (H, T, S) or (B, H, T, S), is added
    to the scores. A query that may attend to nothing gets weights and values of zero, never NaN. Heads h G / H, rounded
    down, of keys and values serve query head h.
    ``dropout`` acts on the weights that mix, not on those that are given back. Products may be in bf16 or float16;
    from the scores to the weights all is in float32, which on a CPU is also four times faster.
    Departure: another ``score`` than the paper's Q K^T / sqrt(d_k) may be given.
    """
    # Section 3.2.1, equation 1: softmax(Q K^T / sqrt(d_k)) V
    scores_BHTS = score(q_BHTK, k_BGSK)
    if bias is not None:
        scores_BHTS = scores_BHTS + bias
    attention_weights_BHTS = masked_softmax(scores_BHTS, mask)
    mixing_BHTS = attention_weights_BHTS if dropout is None else dropout(attention_weights_BHTS)
    mixed_BGJV = _fold(mixing_BHTS.to(v_BGSV.dtype), k_BGSK.shape[1]) @ v_BGSV
    return mixed_BGJV.reshape(*q_BHTK.shape[:3], v_BGSV.shape[3]), attention_weights_BHTS


def masked_softmax(scores_BHTS: Tensor, mask: Tensor | None) -> Tensor:
    """Softmax over the keys that ``mask`` allows, as ``attention`` has it: zeros where there are none."""
    if mask is None:
        return _softmax(scores_BHTS)
    scores_BHTS = scores_BHTS.masked_fill(~mask, -math.inf)
    nothing = ~mask.any(dim=-1, keepdim=True)
    if not bool(nothing.any()):
        return _softmax(scores_BHTS)
    return _softmax(scores_BHTS.masked_fill(nothing, 0.0)).masked_fill(nothing, 0.0)


def _softmax(scores_BHTS: Tensor) -> Tensor:
    """Softmax over the keys. Rows shorter than a vector register are padded: on a CPU they take ten times as long."""
    num_keys = scores_BHTS.shape[-1]
    if num_keys >= REGISTER or scores_BHTS.device.type != "cpu":
        return scores_BHTS.softmax(dim=-1)
    padded_BHTR = functional.pad(scores_BHTS, (0, REGISTER - num_keys), value=-math.inf)
    return padded_BHTR.softmax(dim=-1)[..., :num_keys]


def fused_attention(
    q_BHTK: Tensor,
    k_BGSK: Tensor,
    v_BGSV: Tensor,
    mask: Tensor | None,
    *,
    bias: Tensor | None = None,
    dropout: Dropout | None = None,
    score: Score = scaled_dot_product,
) -> Tensor:
    """The values of ``attention`` by PyTorch's fused kernel, which never stores the weights.

    Mind a fully masked query: what kernels give there differs, so its values are set to zero here.
    On a CPU the definition itself runs in bf16, where on 290 sentences of 14 tokens it took a ninth of the kernel's
    time, and with dropout, which the kernel has not. So does it everywhere for a score that is no product.
    """
    probability = dropout.probability if dropout is not None and dropout.is_active else 0.0
    on_cpu = q_BHTK.device.type == "cpu" and (q_BHTK.dtype == torch.bfloat16 or probability > 0.0)
    if on_cpu or score not in SCALES:
        return attention(q_BHTK, k_BGSK, v_BGSV, mask, bias=bias, dropout=dropout, score=score)[0]
    nothing = None if mask is None else ~mask.any(dim=-1, keepdim=True)
    mixed_BGJV = functional.scaled_dot_product_attention(
        _fold(q_BHTK, k_BGSK.shape[1]),
        k_BGSK,
        v_BGSV,
        attn_mask=_fold_mask(_additive(mask, nothing, bias, q_BHTK.dtype), q_BHTK, num_groups=k_BGSK.shape[1]),
        dropout_p=probability,
        scale=SCALES[score],
    )
    mixed_BHTV = mixed_BGJV.reshape(*q_BHTK.shape[:3], v_BGSV.shape[3])
    return mixed_BHTV if nothing is None else mixed_BHTV.masked_fill(nothing, 0.0)


def _additive(mask: Tensor | None, nothing: Tensor | None, bias: Tensor | None, dtype: torch.dtype) -> Tensor | None:
    """What the kernel takes for both: a bool mask, or numbers with -inf where nothing may be attended.

    What a row of nothing but -inf gives differs between kernels, so such a query keeps its numbers.
    """
    if bias is None:
        return mask
    added_BHTS = (bias[None] if bias.dim() == 3 else bias).to(dtype)
    return added_BHTS if mask is None or nothing is None else added_BHTS.masked_fill(~(mask | nothing), -math.inf)


def _fold(x_BHTK: Tensor, num_groups: int) -> Tensor:
    """The queries of all heads that share a head of keys, one after another: (B, G, J, K)."""
    num_sentences, num_heads, num_queries, size = x_BHTK.shape
    return x_BHTK.reshape(num_sentences, num_groups, num_heads // num_groups * num_queries, size)


def _fold_mask(mask: Tensor | None, q_BHTK: Tensor, *, num_groups: int) -> Tensor | None:
    """A mask of (B, H, T, S), or one that broadcasts to it, for folded queries."""
    _, num_heads, num_queries, _ = q_BHTK.shape
    if mask is None or num_groups == num_heads or (mask.shape[-2] == 1 and (mask.dim() < 3 or mask.shape[-3] == 1)):
        return mask
    # four dimensions: with three the fused kernel of a CPU gives way to one that stores the weights
    num_rows = mask.shape[0] if mask.dim() == 4 else 1
    mask = mask.expand(num_rows, num_heads, num_queries, mask.shape[-1])
    return mask.unflatten(1, (num_groups, -1)).flatten(2, 3)


class MultiHeadAttention(nn.Module):
    """Attention in ``num_heads`` subspaces at once (Section 3.2.2). d_k and d_v need not be d_model / num_heads.

    Departure, with fewer ``num_kv_heads``: as many heads of keys and values, each shared by equally many heads of
    queries next to each other (Shazeer 2019 with one; Ainslie et al. 2023). ``dropout`` is that of the weights,
    ``score`` how a query and a key give a score. While ``gate_H`` is set, what each head of queries has mixed is
    multiplied by its number before W^O: with 0 the head is off (Michel et al. 2019). The bias of W^O belongs to no head
    and stays.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        *,
        d_k: int,
        d_v: int,
        bias: bool,
        num_kv_heads: int | None = None,
        dropout: float = 0.0,
        score: Score = scaled_dot_product,
    ) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.num_kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        self.d_k = d_k
        self.d_v = d_v
        self.query = nn.Linear(d_model, num_heads * d_k, bias=bias)
        self.key = nn.Linear(d_model, self.num_kv_heads * d_k, bias=bias)
        self.value = nn.Linear(d_model, self.num_kv_heads * d_v, bias=bias)
        self.output = nn.Linear(num_heads * d_v, d_model, bias=bias)
        self.dropout = Dropout(dropout)
        self.score = score
        self.recorder: Recorder | None = None
        self.gate_H: Tensor | None = None

    def forward(
        self,
        x_BTD: Tensor,
        memory_BSD: Tensor,
        *,
        mask: Tensor | None = None,
        span: Span | None = None,
        bias_BHTS: Tensor | None = None,
    ) -> Tensor:
        """Every position of x asks every position of memory that ``mask`` allows: (B, T, D).

        ``span`` says where both stand; without it (cross-attention) they have no positions but what ``bias_BHTS`` adds.
        """
        memory, q_BHTK = self.keys_values(memory_BSD), self.queries(x_BTD)
        if span is None:
            return self.mix(q_BHTK, memory, mask=mask, bias=bias_BHTS)
        q_BHTK, k_BGSK = span.rotate(q_BHTK, memory.key_BGSK)
        return self.mix(q_BHTK, KeyValue(k_BGSK, memory.value_BGSV), mask=mask, bias=span.bias_HTS)

    def step(self, x_BTD: Tensor, past: KeyValue | None, *, span: Span) -> tuple[Tensor, KeyValue]:
        """New positions ask the past and themselves: (B, T, D), and the past with them, as far as it can be seen."""
        newer = self.keys_values(x_BTD)
        q_BHTK, k_BGTK = span.rotate(self.queries(x_BTD), newer.key_BGSK)
        newer = KeyValue(k_BGTK, newer.value_BGSV)
        past = newer if past is None else past.last(span.num_keys - x_BTD.shape[1]).append(newer)
        return self.mix(q_BHTK, past, bias=span.bias_HTS), past

    def attend(
        self, x_BTD: Tensor, memory: KeyValue, *, mask: Tensor | None = None, bias_BHTS: Tensor | None = None
    ) -> Tensor:
        """As ``forward`` without a span, with keys and values at hand."""
        return self.mix(self.queries(x_BTD), memory, mask=mask, bias=bias_BHTS)

    def queries(self, x_BTD: Tensor) -> Tensor:
        """Queries (B, H, T, K)."""
        return _split(self.query(x_BTD), self.num_heads)

    def keys_values(self, memory_BSD: Tensor) -> KeyValue:
        """Keys (B, G, S, K) and values (B, G, S, V) of a memory; computed once, they can be kept."""
        return KeyValue(
            _split(self.key(memory_BSD), self.num_kv_heads), _split(self.value(memory_BSD), self.num_kv_heads)
        )

    def mix(
        self, q_BHTK: Tensor, memory: KeyValue, *, mask: Tensor | None = None, bias: Tensor | None = None
    ) -> Tensor:
        """What the queries take from a memory: (B, T, D). ``bias`` is (H, T, S) or (B, H, T, S)."""
        given = q_BHTK, memory.key_BGSK, memory.value_BGSV, mask
        if self.recorder is None:
            mixed_BHTV = fused_attention(*given, bias=bias, dropout=self.dropout, score=self.score)
        else:
            mixed_BHTV, attention_weights_BHTS = attention(*given, bias=bias, dropout=self.dropout, score=self.score)
            self.recorder(attention_weights_BHTS)
        if self.gate_H is not None:
            mixed_BHTV = mixed_BHTV * self.gate_H.to(mixed_BHTV.dtype)[:, None, None]
        return self.output(mixed_BHTV.transpose(1, 2).flatten(start_dim=2))


def _split(projected: Tensor, num_heads: int) -> Tensor:
    """(B, T, H x size) to (B, H, T, size)."""
    return projected.unflatten(-1, (num_heads, -1)).transpose(1, 2)


def allowed(mask: Tensor | None) -> Tensor | None:
    """``mask``, or None where it forbids nothing: then the kernels are faster."""
    if mask is None or bool(torch.all(mask)):
        return None
    return mask
