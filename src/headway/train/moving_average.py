"""The moving average of the weights in training (Polyak and Juditsky 1992; its warm-up as TensorFlow has it)."""

from collections.abc import Mapping

import numpy as np
import torch
from torch import nn

from headway.errors import CheckpointError
from headway.train.parameters import trained_parameters
from headway.train.sharding import own_part, part_of, whole


class MovingAverage:
    """A float32 copy of every trained parameter, a shared matrix once, that follows it: a += (1 - decay) (w - a).

    In the first steps the decay is (1 + step) / (10 + step), so that the weights a run begins with are soon forgotten.
    Of a sharded model each rank holds its own part.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self._parameters = dict(trained_parameters(model))
        self.values = {name: parameter.detach().float().clone() for name, parameter in self._parameters.items()}

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Follow the weights as they are after ``step``."""
        share = 1.0 - decay_of(step, self.decay)
        for name, parameter in self._parameters.items():
            own_part(self.values[name]).lerp_(own_part(parameter.detach()).float(), share)

    def export(self) -> dict[str, np.ndarray]:
        """The values as ``average/NAME``; of a sharded model they are whole, and all ranks call this."""
        return {f"average/{name}": whole(value).to("cpu", copy=True).numpy() for name, value in self.values.items()}

    def load(self, tensors: Mapping[str, np.ndarray]) -> None:
        """Put the values of ``export`` back. Raises CheckpointError for one that is not there."""
        for name, parameter in self._parameters.items():
            key = f"average/{name}"
            if key not in tensors or tensors[key].shape != tuple(parameter.shape):
                raise CheckpointError(
                    f"train/moving_average: the training state has no array {key} of shape {tuple(parameter.shape)}, "
                    "which train.moving_average needs. Remedy: restore the state, or start anew with --fresh"
                )
            self.values[name] = part_of(tensors[key], parameter.detach())


def decay_of(step: int, decay: float) -> float:
    """How much of the average stays at a step, the first is 1."""
    return min(decay, (1 + step) / (10 + step))
