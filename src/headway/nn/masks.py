"""Who may attend to whom. A mask is bool and True means: may be attended.

Shapes: B sentences, T query positions, S key positions.
"""

import torch
from torch import Tensor


def key_mask(mask_BS: Tensor) -> Tensor:
    """Every head and every query sees the real keys of its sentence: (B, S) to (B, 1, 1, S)."""
    return mask_BS[:, None, None, :]


def causal_mask(num_queries: int, *, device: torch.device | None = None) -> Tensor:
    """Position i sees positions up to i (Section 3.2.3): mask_TT, True on and below the diagonal."""
    return torch.ones(num_queries, num_queries, dtype=torch.bool, device=device).tril()
