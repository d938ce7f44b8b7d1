"""Schedule-Free AdamW (Defazio et al. 2024, "The Road Less Scheduled", Algorithm 1): an average in the place of a fall.

Three sequences of weights: z takes the steps, x is the mean of all z so far, y lies between and has the gradients:

    y_t     = (1 - beta1) z_t + beta1 x_t
    z_t+1   = z_t - rate_t g_t / (sqrt(v_t / (1 - beta2^t)) + epsilon) - rate_t decay y_t
    x_t+1   = (1 - c) x_t + c z_t+1      where c = rate_t^2 / (the sum of all rates^2 so far)

The model in training holds y; kept beside it are z and v, as much as Adam keeps. x follows from y and z.
"""

from collections.abc import Iterable

import torch
from torch import Tensor

from headway.train.parameters import Settings
from headway.train.sharding import own_part

BASE, SECOND = "base", "exp_avg_sq"  # z and v


class ScheduleFree(torch.optim.Optimizer):
    """The optimizer; ``rates_squared`` and ``steps`` are what it knows beside its arrays."""

    def __init__(self, groups: Iterable[Settings], *, beta1: float, beta2: float, epsilon: float) -> None:
        super().__init__([dict(group) for group in groups], {"lr": 0.0})
        self.beta1, self.beta2, self.epsilon = beta1, beta2, epsilon
        self.steps = 0
        self.rates_squared = 0.0
        for group in self.param_groups:
            for parameter in group["params"]:
                self.state[parameter] = {
                    BASE: parameter.detach().clone(),
                    SECOND: torch.zeros_like(parameter, requires_grad=False),
                }

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # pyright: ignore[reportIncompatibleMethodOverride] - nobody gives one
        """One update of y, z and v with the gradients at y; x moves with them."""
        rate: float = self.param_groups[0]["lr"]
        self.steps += 1
        self.rates_squared += rate**2
        share = rate**2 / self.rates_squared if rate else 0.0
        correction = 1.0 - self.beta2**self.steps
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                y, gradient = own_part(parameter.detach()), own_part(parameter.grad)
                z, v = (own_part(self.state[parameter][name]) for name in (BASE, SECOND))
                v.mul_(self.beta2).addcmul_(gradient, gradient, value=1.0 - self.beta2)
                way = gradient / (v / correction).sqrt_().add_(self.epsilon)
                if group["weight_decay"]:
                    way.add_(y, alpha=group["weight_decay"])
                y.lerp_(z, share).sub_(way, alpha=rate * (1.0 - self.beta1 * (1.0 - share)))
                z.sub_(way, alpha=rate)

    @torch.no_grad()
    def mean(self, parameter: Tensor) -> Tensor:
        """The x of a parameter: what is validated and kept."""
        x = self.state[parameter][BASE].clone()
        own_part(x).lerp_(own_part(parameter.detach()), 1.0 / self.beta1)
        return x
