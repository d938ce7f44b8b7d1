"""Dropout (Srivastava et al. 2014), with masks cheap to draw on a CPU."""

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

LEVELS = 2**16  # a mask value is drawn from 16 random bits


class Dropout(nn.Module):
    """Zero each value with probability ``probability`` in training and scale the others so that the mean stays.

    Masks come from torch's default generator, which the training step seeds for each microbatch; on a CPU it seeds a
    stream of its own for each mask, SFC64, whose bits cost half of torch's.
    Departure: on a CPU the probability is rounded to 1/65,536, so that one 64-bit draw serves four values; drawing
    value by value took a seventh of the training time of a small model.
    """

    def __init__(self, probability: float) -> None:
        super().__init__()
        self.probability = probability
        self.num_dropped_levels = min(round(probability * LEVELS), LEVELS - 1)

    @property
    def is_active(self) -> bool:
        """Whether anything may be dropped now."""
        return self.training and self.probability > 0.0

    def forward(self, x: Tensor) -> Tensor:
        """X with values dropped, or x itself outside training."""
        if not self.is_active:
            return x
        if x.device.type != "cpu":
            return functional.dropout(x, self.probability)
        return x * self._mask(x)

    def _mask(self, x: Tensor) -> Tensor:
        """0 or 1 / (1 - probability), of the shape and type of x."""
        stream = np.random.SFC64(int(torch.randint(2**63 - 1, ())))
        words = stream.random_raw((x.numel() + 3) // 4)
        level = torch.from_numpy(words.view(np.int16))[: x.numel()].view(x.shape)
        kept = level >= self.num_dropped_levels - LEVELS // 2
        return kept.to(x.dtype).mul_(LEVELS / (LEVELS - self.num_dropped_levels))
