"""Muon for the matrices inside, Adam for all else (Jordan et al. 2024), at one learning rate (Liu et al. 2025).

A hidden matrix moves by its momentum made nearly orthogonal, five Newton-Schulz steps in bf16, times
0.2 sqrt(the longer side): the update's root mean square is then that of Adam's usual ones (Liu et al. 2025, Section
2.2), and one ``learning_rate`` serves both. Muon's own constants are those of Jordan: momentum 0.95, Nesterov.
"""

from collections.abc import Sequence

import torch

MOMENTUM = 0.95


class Together:
    """Several optimizers as one, each with parameters of its own."""

    def __init__(self, parts: Sequence[torch.optim.Optimizer]) -> None:
        self.parts = tuple(parts)
        self.param_groups = [group for part in self.parts for group in part.param_groups]

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for part in self.parts:
            part.zero_grad()

    def step(self) -> None:
        """One update of every part."""
        for part in self.parts:
            part.step()
