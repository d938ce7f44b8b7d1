"""Adam (Kingma and Ba 2015) with the paper's constants, and its moments as named arrays."""

from collections.abc import Mapping

import numpy as np
import torch
from torch import nn

from headway.config.schema import TrainConfig
from headway.train.parameters import trained_parameters
from headway.train.sharding import part_of, whole

FIRST, SECOND = "exp_avg", "exp_avg_sq"


def build_adam(model: nn.Module, config: TrainConfig) -> torch.optim.Adam:
    """One group over every parameter that is trained; each shared matrix is in it once.

    The learning rate is set at each step.
    """
    trained = [parameter for _, parameter in trained_parameters(model)]
    return torch.optim.Adam(trained, lr=0.0, betas=(config.beta1, config.beta2), eps=config.epsilon, fused=True)


def export_moments(model: nn.Module, optimizer: torch.optim.Adam) -> dict[str, np.ndarray]:
    """Both moments of every trained parameter as ``first/NAME`` and ``second/NAME``; zeros before the first step.

    Of a sharded model they are whole, and all ranks call this.
    """
    moments: dict[str, np.ndarray] = {}
    for name, parameter in trained_parameters(model):
        state = optimizer.state.get(parameter, {})
        for key, kind in (("first", FIRST), ("second", SECOND)):
            value = state.get(kind, torch.zeros_like(parameter))
            moments[f"{key}/{name}"] = whole(value.detach()).to("cpu", copy=True).numpy()
    return moments


def load_moments(
    model: nn.Module, optimizer: torch.optim.Adam, *, moments: Mapping[str, np.ndarray], step: int
) -> None:
    """Put the moments of ``export_moments`` back, as they were after ``step``."""
    for name, parameter in trained_parameters(model):
        optimizer.state[parameter] = {
            "step": torch.tensor(float(step), device=parameter.device),
            FIRST: part_of(moments[f"first/{name}"], parameter),
            SECOND: part_of(moments[f"second/{name}"], parameter),
        }
