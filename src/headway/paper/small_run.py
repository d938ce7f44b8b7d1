"""A small model trained on symbols, by the very step that trains on text, and measured on sentences held out.

Shapes: B sentences, T target positions, V vocabulary.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass

import torch

from headway.config.model_config import ModelConfig
from headway.config.train_config import TrainConfig
from headway.data.batch import Batch
from headway.errors import TrainingError
from headway.model.build import build_transformer
from headway.model.transformer import Transformer
from headway.paper.study import Planned, at_once
from headway.paper.symbols import SymbolTask
from headway.paper.work import Values
from headway.train.objective import build_objective
from headway.train.optimizer import build_optimizer
from headway.train.schedule import learning_rate
from headway.train.step import microbatch_seed, train_step

ShouldStop = Callable[[], bool]
HELD_OUT = 0  # the step whose sentences are never trained on; steps begin at 1


@dataclass(frozen=True, slots=True)
class SmallRun:
    """What a small model is, what it learns, and for how long. Equal seeds draw equal sentences, whatever the model."""

    task: SymbolTask
    model: ModelConfig
    train: TrainConfig
    sentences: int  # a step
    seed: int

    @property
    def settings(self) -> dict[str, object]:
        """All of it as plain values; of model and training what differs from the paper's base model."""
        return {
            "task": asdict(self.task),
            "model": self.model.model_dump(exclude_defaults=True),
            "train": self.train.model_dump(exclude_defaults=True),
            "sentences": self.sentences,
            "seed": self.seed,
        }

    def generator(self, step: int) -> torch.Generator:
        """What the sentences of a step are drawn by."""
        return torch.Generator().manual_seed(microbatch_seed(self.seed, step, 0))

    def held_out(self, num_sentences: int, *, length: int | None = None) -> Batch:
        """Sentences of no step."""
        return self.task.draw(num_sentences, self.generator(HELD_OUT), length=length)


@dataclass(frozen=True, slots=True)
class Measured:
    """Means over held-out text: -log p (nats a token), tokens that are the most probable, sentences with all such."""

    nll: float
    accuracy: float
    exact: float  # greedy search writes just these sentences without a fault


def train_small(model: Transformer, run: SmallRun, should_stop: ShouldStop) -> int | None:
    """Train; the steps done: fewer than asked for where a loss was not finite, None where the user asked to stop."""
    train = run.train
    optimizer, objective = build_optimizer(model, train), build_objective(train)
    model.train()
    for step in range(1, train.max_steps + 1):
        if should_stop():
            return None
        try:
            train_step(
                model,
                optimizer,
                batches=[run.task.draw(run.sentences, run.generator(step))],
                step=step,
                seed=run.seed,
                learning_rate=learning_rate(step, train, d_model=run.model.d_model),
                objective=objective,
                precision="float32",
                clip_norm=train.clip_norm,
            )
        except TrainingError:
            return step - 1
    return train.max_steps


def first_model(run: SmallRun) -> Transformer:
    """The model of a run before its first step."""
    return build_transformer(run.model, seed=run.seed)


def train_and_measure(model: Transformer, run: SmallRun, should_stop: ShouldStop, *, num_tested: int) -> Values | None:
    """Train, and give the values of a row: what is measured on sentences held out; None where asked to stop."""
    steps = train_small(model, run, should_stop)
    if steps is None:
        return None
    measured = measure(model, run.held_out(num_tested))
    return {"loss": measured.nll, "accuracy": measured.accuracy, "steps": steps}


def plan_run(
    name: str,
    run: SmallRun,
    should_stop: ShouldStop,
    *,
    num_tested: int,
    build: Callable[[SmallRun], Transformer] = first_model,
) -> Planned:
    """The row of a run that is trained, and then measured."""

    def compute() -> Values | None:
        return train_and_measure(build(run), run, should_stop, num_tested=num_tested)

    return at_once(name, {**run.settings, "tested": num_tested}, compute)


@torch.inference_mode()
def measure(model: Transformer, batch: Batch) -> Measured:
    """Measure a model, which is left in evaluation mode."""
    logits_BTV = model.eval()(batch.source_BS, batch.source_mask_BS, batch.target_in_BT)
    real_BT = batch.target_out_BT != 0
    log_probs_BT = logits_BTV.log_softmax(dim=-1).gather(-1, batch.target_out_BT[..., None])[..., 0]
    right_BT = logits_BTV.argmax(dim=-1) == batch.target_out_BT
    return Measured(
        nll=-log_probs_BT[real_BT].double().mean().item(),
        accuracy=right_BT[real_BT].double().mean().item(),
        exact=(right_BT | ~real_BT).all(dim=1).double().mean().item(),
    )
