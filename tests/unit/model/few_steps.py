"""A model that learns a task small enough for a test."""

from collections.abc import Sequence

from headway.config.train_config import TrainConfig
from headway.data.batch import Batch
from headway.model.token_model import TokenModel
from headway.train.objective import Likelihood
from headway.train.optimizer import build_adam
from headway.train.schedule import noam
from headway.train.step import train_step


def few_steps(model: TokenModel, batches: Sequence[Batch]) -> list[float]:
    """Negative log-likelihoods (nats a token) of one step a batch, of a model of 24 numbers."""
    optimizer = build_adam(model.train(), TrainConfig())
    return [
        train_step(
            model,
            optimizer,
            batches=[batch],
            step=step,
            seed=1,
            learning_rate=noam(step, d_model=24, warmup_steps=20, peak=1e-2),
            objective=Likelihood(0.0),
            precision="float32",
        ).nll
        for step, batch in enumerate(batches, start=1)
    ]
