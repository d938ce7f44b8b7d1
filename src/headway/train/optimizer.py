"""The optimizers, and what they keep as named arrays: Adam (Kingma and Ba 2015) is the paper's."""

from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from typing import Protocol

import numpy as np
import torch
from torch import Tensor, nn

from headway.config.train_config import TrainConfig
from headway.errors import CheckpointError
from headway.train.muon import MOMENTUM, Together
from headway.train.parameters import decay_groups, hidden_matrices, trained_parameters
from headway.train.schedule_free import BASE, SECOND, ScheduleFree
from headway.train.sharding import part_of, whole

RATES = "schedule_free/rates_squared"
# class of optimizer -> what it keeps of a parameter: its name there, and its name in a training state
KEPT: dict[type[torch.optim.Optimizer], dict[str, str]] = {
    torch.optim.Adam: {"exp_avg": "first", "exp_avg_sq": "second"},
    torch.optim.Muon: {"momentum_buffer": "momentum"},
    ScheduleFree: {BASE: "base", SECOND: "second"},
}


class Optimizer(Protocol):
    """What a step asks of it. The learning rate is set at each step, in every group."""

    @property
    def param_groups(self) -> Sequence[MutableMapping[str, object]]:
        """Parameters with their settings."""
        ...

    def zero_grad(self) -> None:
        """Forget the gradients."""
        ...

    def step(self) -> object:
        """Move every parameter that has a gradient."""
        ...


def build_adam(model: nn.Module, config: TrainConfig) -> torch.optim.Adam:
    """Adam over every parameter that is trained, with decoupled weight decay; each shared matrix is in it once."""
    return _adam([parameter for _, parameter in trained_parameters(model)], config)


def build_schedule_free(model: nn.Module, config: TrainConfig) -> ScheduleFree:
    """Schedule-Free AdamW over every parameter that is trained."""
    groups = decay_groups([parameter for _, parameter in trained_parameters(model)], config.weight_decay)
    return ScheduleFree(groups, beta1=config.beta1, beta2=config.beta2, epsilon=config.epsilon)


def build_muon(model: nn.Module, config: TrainConfig) -> Together:
    """Muon over the matrices of attention and feed-forward networks that are trained, Adam over all else."""
    hidden = hidden_matrices(model)
    taken = {id(parameter) for parameter in hidden}
    others = [parameter for _, parameter in trained_parameters(model) if id(parameter) not in taken]
    parts: list[torch.optim.Optimizer] = []
    if hidden:
        parts.append(
            torch.optim.Muon(
                hidden,
                lr=0.0,
                weight_decay=config.weight_decay,
                momentum=MOMENTUM,
                nesterov=True,
                adjust_lr_fn="match_rms_adamw",
            )
        )
    if others:
        parts.append(_adam(others, config))
    return Together(parts)


OPTIMIZERS: dict[str, Callable[[nn.Module, TrainConfig], Optimizer]] = {
    "adam": build_adam,
    "schedule_free": build_schedule_free,
    "muon": build_muon,
}


def build_optimizer(model: nn.Module, config: TrainConfig) -> Optimizer:
    """The optimizer that the recipe names."""
    return OPTIMIZERS[config.optimizer](model, config)


def counted_weights(model: nn.Module, optimizer: Optimizer) -> dict[str, Tensor]:
    """The weights that count, by name, where the optimizer has an average of its own; else nothing."""
    if not isinstance(optimizer, ScheduleFree):
        return {}
    return {name: optimizer.mean(parameter) for name, parameter in trained_parameters(model)}


def export_moments(model: nn.Module, optimizer: Optimizer) -> dict[str, np.ndarray]:
    """All that the optimizer keeps, as ``KIND/NAME``: ``first/NAME`` and ``second/NAME`` of Adam; zeros before a step.

    Of a sharded model the arrays are whole, and all ranks call this.
    """
    moments: dict[str, np.ndarray] = {}
    for name, parameter, part in _owned(model, optimizer):
        for key, kind in _kept(part).items():
            value = part.state.get(parameter, {}).get(key, torch.zeros_like(parameter))
            moments[f"{kind}/{name}"] = whole(value.detach()).to("cpu", copy=True).numpy()
    if isinstance(optimizer, ScheduleFree):
        moments[RATES] = np.array([optimizer.rates_squared])
    return moments


def load_moments(model: nn.Module, optimizer: Optimizer, *, moments: Mapping[str, np.ndarray], step: int) -> None:
    """Put back what ``export_moments`` gave, as it was after ``step``. CheckpointError for an array that is missing."""
    for name, parameter, part in _owned(model, optimizer):
        arrays = {key: _array(moments, f"{kind}/{name}", shape=parameter.shape) for key, kind in _kept(part).items()}
        part.state[parameter] = {key: part_of(array, parameter.detach()) for key, array in arrays.items()}
        if isinstance(part, torch.optim.Adam):
            part.state[parameter]["step"] = torch.tensor(float(step), device=parameter.device)
    if isinstance(optimizer, ScheduleFree):
        optimizer.steps = step
        optimizer.rates_squared = float(_array(moments, RATES, shape=(1,))[0])


def _adam(parameters: Sequence[nn.Parameter], config: TrainConfig) -> torch.optim.Adam:
    return torch.optim.Adam(
        [dict(group) for group in decay_groups(parameters, config.weight_decay)],
        lr=0.0,
        betas=(config.beta1, config.beta2),
        eps=config.epsilon,
        decoupled_weight_decay=config.weight_decay > 0,
        fused=True,
    )


def _owned(model: nn.Module, optimizer: Optimizer) -> Iterator[tuple[str, nn.Parameter, torch.optim.Optimizer]]:
    """Every trained parameter, with its name and the optimizer that has it."""
    parts = optimizer.parts if isinstance(optimizer, Together) else (optimizer,)
    owners = {
        id(parameter): part
        for part in parts
        if isinstance(part, torch.optim.Optimizer)
        for group in part.param_groups
        for parameter in group["params"]
    }
    for name, parameter in trained_parameters(model):
        yield name, parameter, owners[id(parameter)]


def _kept(part: torch.optim.Optimizer) -> dict[str, str]:
    return KEPT[type(part)]


def _array(moments: Mapping[str, np.ndarray], key: str, *, shape: Sequence[int]) -> np.ndarray:
    if key not in moments or moments[key].shape != tuple(shape):
        found = f"it has shape {moments[key].shape}" if key in moments else "there is none"
        raise CheckpointError(
            f"train/optimizer: the training state wants an array {key} of shape {tuple(shape)}; {found}. "
            "Remedy: restore the state, or start anew with --fresh"
        )
    return moments[key]
