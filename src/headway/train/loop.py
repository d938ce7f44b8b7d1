"""Step after step: update, validate, keep, stop."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from headway.checkpoint.keep import HIGHER_IS_BETTER
from headway.checkpoint.state import Progress, Scores
from headway.config.train_config import TrainConfig
from headway.data.loader import Position, batches
from headway.data.segmentation import Segmentation
from headway.train.events import Event, Interrupted, Saved, StepDone, Validated
from headway.train.objectives import training_objective
from headway.train.schedule import learning_rate
from headway.train.session import Session
from headway.train.step import StepResult, train_step
from headway.train.validate import validate
from headway.train.watchdog import Watchdog

ShouldStop = Callable[[], bool]


@dataclass
class Clock:
    """Seconds of training, those of earlier sessions counted."""

    earlier: float
    begin: float

    def seconds(self) -> float:
        """Until now."""
        return self.earlier + time.monotonic() - self.begin


def run_steps(session: Session, should_stop: ShouldStop) -> Iterator[Event]:
    """Train until the recipe's end, or until asked to stop: then the state is saved and Interrupted comes last."""
    train, group = session.config.train, session.group
    clock = Clock(session.progress.seconds, time.monotonic())
    epoch_steps = None if train.max_epochs is None else len(session.first_epoch())
    objective = training_objective(train, session.prepared.source_tokenizer)
    watchdog = Watchdog(session)
    yield from watchdog.begin()
    session.model.train()
    for position, step_batches in batches(
        session.store,
        batch_tokens=train.batch_tokens,
        microbatch_tokens=session.microbatch_tokens,
        seed=train.seed,
        start_epoch=session.progress.epoch,
        start_step=session.progress.epoch_step,
        rank=group.rank,
        world_size=group.world_size,
        segmentation=Segmentation.of(session.config, session.prepared),
    ):
        if group.any(is_finished(session)):  # each has a clock of its own
            break
        step = session.progress.step + 1
        rate = learning_rate(step, train, d_model=session.model_config.d_model)
        begin = time.monotonic()
        result = train_step(
            session.model,
            session.optimizer,
            batches=step_batches,
            step=step,
            seed=train.seed,
            learning_rate=rate,
            objective=objective,
            precision=session.progress.precision,
            clip_norm=train.clip_norm,
            group=group,
        )
        if session.average is not None:
            session.average.update(step)
        _advance(session, step, position=position, seconds=clock.seconds())
        left = seconds_left(session.progress, train, epoch_steps=epoch_steps)
        done = _step_done(session, result, rate=rate, step_seconds=time.monotonic() - begin, left=left)
        watchdog.step(done)
        yield done
        yield from _after_step(session, clock, watchdog)
        if group.any(should_stop()):
            session.check_finite()
            yield Saved(step, session.save())
            yield Interrupted(step)
            return
    yield from _last(session, clock, watchdog)


def is_finished(session: Session) -> bool:
    """The recipe's end is reached: steps, epochs, minutes, or no better validation for too long."""
    train, progress = session.config.train, session.progress
    return (
        _is_stale(progress.validations, train)  # asked anew: a resumed run may have more patience
        or progress.step >= train.max_steps
        or (train.max_epochs is not None and progress.epoch >= train.max_epochs)
        or (train.max_minutes is not None and progress.seconds >= 60 * train.max_minutes)
    )


def _advance(session: Session, step: int, *, position: Position, seconds: float) -> None:
    session.progress = session.progress.model_copy(
        update={"step": step, "epoch": position.epoch, "epoch_step": position.step, "seconds": seconds}
    )


def _after_step(session: Session, clock: Clock, watchdog: Watchdog) -> Iterator[Event]:
    """Validate and checkpoint where they fall due."""
    step, train = session.progress.step, session.config.train
    validates = step % train.validate_every == 0
    checkpoints = step % train.checkpoint_every == 0
    if validates or checkpoints:
        session.check_finite()
    if validates:
        yield from _validate(session, clock, watchdog)
    if checkpoints or validates:
        yield from _checkpoint(session, clock)


def _last(session: Session, clock: Clock, watchdog: Watchdog) -> Iterator[Event]:
    """The last step is always validated and kept."""
    step = session.progress.step
    if not any(scores.step == step for scores in session.progress.validations):
        session.check_finite()
        yield from _validate(session, clock, watchdog)
        yield from _checkpoint(session, clock)


def _validate(session: Session, clock: Clock, watchdog: Watchdog) -> Iterator[Event]:
    found = validate(session)
    signs, warnings = watchdog.look(found)
    scores = found.scores
    earlier = session.progress.validations
    best_by = session.config.train.best_by
    is_best = all(_is_better(scores, other, best_by) for other in earlier)
    session.progress = session.progress.model_copy(update={"validations": (*earlier, scores)})
    session.model.train()
    yield Validated(
        step=scores.step,
        loss=scores.loss,
        perplexity=scores.perplexity,
        bleu=scores.bleu,
        chrf=scores.chrf,
        f1=scores.f1,
        accuracy=scores.accuracy,
        seconds=clock.seconds(),
        is_best=is_best,
        samples=found.samples,
        signs=signs,
    )
    yield from warnings


def _checkpoint(session: Session, clock: Clock) -> Iterator[Event]:
    session.keep_weights()
    session.progress = session.progress.model_copy(update={"seconds": clock.seconds()})
    path = session.save()
    session.drop_weights()
    yield Saved(session.progress.step, path)


def _is_better(scores: Scores, other: Scores, by: str) -> bool:
    new, old = getattr(scores, by), getattr(other, by)
    return new > old if HIGHER_IS_BETTER[by] else new < old


def _is_stale(validations: tuple[Scores, ...], train: TrainConfig) -> bool:
    """No value better than the best for ``patience`` validations, of which those up to the end of the warm-up are none.

    Until then a run may be worse by chance for long, while its rate still rises.
    """
    if train.early_stopping == "none" or not validations:
        return False
    best = validations[0]
    for scores in validations[1:]:
        if _is_better(scores, best, train.early_stopping):
            best = scores
    since = validations[validations.index(best) + 1 :]
    return sum(scores.step > train.warmup_steps for scores in since) >= train.patience


def _step_done(session: Session, result: StepResult, *, rate: float, step_seconds: float, left: float) -> StepDone:
    progress = session.progress
    return StepDone(
        step=progress.step,
        epoch=progress.epoch,
        loss=result.loss,
        nll=result.nll,
        learning_rate=rate,
        gradient_norm=result.gradient_norm,
        tokens_per_second=result.num_tokens / step_seconds,
        padding=1.0 - result.num_tokens / result.num_padded_tokens,
        seconds=progress.seconds,
        seconds_left=left,
    )


def seconds_left(progress: Progress, train: TrainConfig, *, epoch_steps: int | None = None) -> float:
    """Until the first of the recipe's ends, at the speed so far (validations counted), after a step at least.

    ``epoch_steps``: the steps of an epoch, wanted where the recipe has ``max_epochs``.
    """
    last = train.max_steps
    if train.max_epochs is not None and epoch_steps is not None:
        last = min(last, train.max_epochs * epoch_steps)
    left = (last - progress.step) * progress.seconds / progress.step
    if train.max_minutes is not None:
        left = min(left, 60 * train.max_minutes - progress.seconds)
    return max(0.0, left)
