"""How often the most probable token is the right one, the target's earlier tokens given (teacher forcing).

Shapes: N real target tokens, D d_model, V vocabulary, C tokens of a chunk.
"""

import torch
from torch import Tensor

from headway.train.chunked import chunks


@torch.inference_mode()
def correct_tokens(hidden_ND: Tensor, weight_VD: Tensor, *, target_N: Tensor, bias_V: Tensor | None = None) -> Tensor:
    """How many of the N tokens have the highest logit of their place; logits never exist for all places at once.

    Of equal logits the lowest id counts as the highest, as in greedy search.
    """
    matrix_VD = weight_VD.to(hidden_ND.dtype)
    count = torch.zeros((), dtype=torch.int64, device=hidden_ND.device)
    for chunk in chunks(len(target_N), hidden_ND, len(weight_VD)):
        logits_CV = hidden_ND[chunk] @ matrix_VD.T
        if bias_V is not None:
            logits_CV = logits_CV + bias_V
        count += (logits_CV.argmax(dim=-1) == target_N[chunk]).sum()
    return count
