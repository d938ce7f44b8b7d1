"""Additive attention (Bahdanau et al. 2015, Appendix A.1.2).

Shapes: B sentences or rows, T query positions, S key positions, D numbers of a query and of a memory, A numbers inside,
R rows.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from headway.nn.attention import Recorder, masked_softmax


@dataclass(frozen=True, slots=True)
class AdditiveMemory:
    """What queries look at: the memory, and U_a of it, computed once; the mask is None where all is real."""

    key_BSA: Tensor
    value_BSD: Tensor
    mask_BS: Tensor | None

    def select(self, rows_R: Tensor) -> "AdditiveMemory":
        """The given rows in the given order."""
        mask = None if self.mask_BS is None else self.mask_BS.index_select(0, rows_R)
        return AdditiveMemory(self.key_BSA.index_select(0, rows_R), self.value_BSD.index_select(0, rows_R), mask)


class AdditiveAttention(nn.Module):
    """e_ij = v_a tanh(W_a s_i + U_a h_j), a_ij their softmax over j, c_i = sum_j a_ij h_j.

    Departure: W_a s_i + U_a h_j has a bias. ``d_inner`` is A.
    """

    def __init__(self, d_model: int, d_inner: int) -> None:
        super().__init__()
        self.query = nn.Linear(d_model, d_inner, bias=False)
        self.key = nn.Linear(d_model, d_inner)
        self.score = nn.Linear(d_inner, 1, bias=False)
        self.recorder: Recorder | None = None

    def memory(self, memory_BSD: Tensor, mask_BS: Tensor | None) -> AdditiveMemory:
        """A memory made ready to be looked at by any number of queries."""
        return AdditiveMemory(self.key(memory_BSD), memory_BSD, mask_BS)

    def forward(self, x_BTD: Tensor, memory: AdditiveMemory) -> Tensor:
        """What every position of x takes from the memory: (B, T, D); zeros where all of it is masked."""
        inner_BTSA = torch.tanh(self.query(x_BTD)[:, :, None] + memory.key_BSA[:, None])
        scores_BTS = self.score(inner_BTSA)[..., 0]
        scores_BTS = scores_BTS.to(torch.promote_types(scores_BTS.dtype, torch.float32))
        mask = None if memory.mask_BS is None else memory.mask_BS[:, None, None, :]
        attention_weights_B1TS = masked_softmax(scores_BTS[:, None], mask)
        if self.recorder is not None:
            self.recorder(attention_weights_B1TS)
        return attention_weights_B1TS[:, 0].to(memory.value_BSD.dtype) @ memory.value_BSD
