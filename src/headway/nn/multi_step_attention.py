"""Attention of a convolutional decoder, a step of it in each layer (Gehring et al. 2017, Section 3.3).

Shapes: B sentences or rows, T target positions, S source positions, D d_model.
"""

import math

import torch
from torch import Tensor, nn

from headway.nn.attention import Recorder, attention, fused_attention
from headway.nn.cache import KeyValue

ROOT_HALF = math.sqrt(0.5)  # keeps the variance of a sum of two parts of equal variance


class MultiStepAttention(nn.Module):
    """d_i = W h_i + b + g_i; a_ij the softmax of d_i z_j over j; c_i = m sqrt(1/m) sum_j a_ij (z_j + e_j).

    g is what the decoder's first layer read (the previous token's embedding), z the encoder's output, e what its first
    layer read, m the number of source tokens: with equal weights c has the variance of a value.
    Departure: d_i and z_j + e_j are scaled by sqrt(0.5) as other sums are, and products by d_model^-0.5, as embeddings
    have variance 1.
    """

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.query = nn.Linear(d_model, d_model)
        self.recorder: Recorder | None = None

    def forward(self, x_BTD: Tensor, target_BTD: Tensor, *, memory: KeyValue, mask_B11S: Tensor | None) -> Tensor:
        """What each target position takes from the source: (B, T, D). ``memory`` has z and (z + e) sqrt(0.5)."""
        query_BTD = (self.query(x_BTD) + target_BTD) * ROOT_HALF
        given = query_BTD[:, None], memory.key_BGSK, memory.value_BGSV, mask_B11S
        if self.recorder is None:
            mixed_B1TD = fused_attention(*given)
        else:
            mixed_B1TD, attention_weights_B1TS = attention(*given)
            self.recorder(attention_weights_B1TS)
        return mixed_B1TD[:, 0] * self._scale(memory, mask_B11S)

    @staticmethod
    def _scale(memory: KeyValue, mask_B11S: Tensor | None) -> Tensor | float:
        if mask_B11S is None:
            return math.sqrt(memory.key_BGSK.shape[2])
        length_B11 = mask_B11S[:, 0].sum(dim=-1, keepdim=True)
        return length_B11.to(torch.float64).sqrt().to(memory.value_BGSV.dtype)
