"""Attention of a convolutional decoder, a step of it in each layer (Gehring et al. 2017, Section 3.3).

Shapes: B sentences or rows, T target positions, S source positions, D d_model.
"""

import math

from torch import Tensor, nn

from headway.nn.attention import Recorder, attention, fused_attention
from headway.nn.cache import KeyValue

ROOT_HALF = math.sqrt(0.5)  # keeps the variance of a sum of two parts of equal variance


class MultiStepAttention(nn.Module):
    """d_i = W h_i + b + g_i; a_ij the softmax of d_i z_j over j; c_i = sum_j a_ij (z_j + e_j).

    g is what the decoder's first layer read (the previous token's embedding), z the encoder's output, e what its first
    layer read.
    Departure: d_i and z_j + e_j are scaled by sqrt(0.5) as other sums are, and products by d_model^-0.5, as embeddings
    have variance 1. c_i is not multiplied by the root of the source's length: that keeps its variance where all weights
    are equal, which between vectors of variance 1 they never are.
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
        return mixed_B1TD[:, 0]
