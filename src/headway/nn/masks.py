"""Who may attend to whom. A mask is bool and True means: may be attended.

Shapes: B sentences, T query positions, S key positions.
"""

import torch
from torch import Tensor


def key_mask(mask_BS: Tensor) -> Tensor:
    """Every head and every query sees the real keys of its sentence: (B, S) to (B, 1, 1, S)."""
    return mask_BS[:, None, None, :]


def causal_mask(num_queries: int, *, window: int | None = None, device: torch.device | None = None) -> Tensor:
    """Position i sees positions up to i (Section 3.2.3): mask_TT, True on and below the diagonal.

    With a window it sees only itself and the ``window`` positions before it.
    """
    mask_TT = torch.ones(num_queries, num_queries, dtype=torch.bool, device=device).tril()
    return mask_TT if window is None else mask_TT.triu(-window)


def local_mask(num_positions: int, *, window: int, device: torch.device | None = None) -> Tensor:
    """Position i sees position j where |i - j| <= window: mask_TT, a band around the diagonal."""
    ones_TT = torch.ones(num_positions, num_positions, dtype=torch.bool, device=device)
    return ones_TT.tril(window).triu(-window)


def windowed(mask: Tensor | None, num_positions: int, *, window: int | None, device: torch.device) -> Tensor | None:
    """The positions that ``mask`` allows, and of them those within the window; None where all are allowed."""
    if window is None or window >= num_positions - 1:
        return mask
    local_TT = local_mask(num_positions, window=window, device=device)
    return local_TT if mask is None else mask & local_TT
