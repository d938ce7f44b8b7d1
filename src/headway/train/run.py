"""The whole of a run: prepare, train or go on, average, evaluate, write the model folder."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import torch

from headway.checkpoint.lock import locked
from headway.checkpoint.run_folder import RECIPE_FILE
from headway.checkpoint.state import load_state, state_files
from headway.config.load import Change, difference, load, to_toml
from headway.config.schema import RunConfig
from headway.data.batch import Batch
from headway.data.batching import plan
from headway.data.loader import collate
from headway.data.prepare import Prepared, prepare
from headway.errors import CheckpointError, ConfigError
from headway.folder.atomic import replace_file
from headway.folder.contents import TRAINING_FOLDER, check_place
from headway.train.events import DataReady, Event, Interrupted, Notice, Saved, Stage, Started
from headway.train.finish import finish
from headway.train.loop import run_steps
from headway.train.metrics_log import MetricsLog
from headway.train.precision import settle_precision
from headway.train.session import Session, check_fit, open_session

# How long a run goes on does not change what it has done so far: these keys may change when it is resumed.
HORIZON_KEYS = {"title", "note", "train.max_steps", "train.max_epochs", "train.max_minutes", "train.patience"}


def never() -> bool:
    """Nobody asks the run to stop."""
    return False


def train(
    config: RunConfig, data_dir: Path, *, out_dir: Path, fresh: bool = False, should_stop: Callable[[], bool] = never
) -> Iterator[Event]:
    """Train, or go on where an earlier run in ``out_dir`` stopped, and write the model folder there.

    Raises ConfigError when the recipe of the earlier run differs in a key that shapes the weights; ``fresh`` removes
    the earlier run's states and begins anew, once the new data are prepared. After Interrupted the same call goes on.
    """
    check_place(out_dir)
    with locked(out_dir / TRAINING_FOLDER):
        yield from _train(config, data_dir, out_dir, fresh=fresh, should_stop=should_stop)


def _train(
    config: RunConfig, data_dir: Path, out_dir: Path, *, fresh: bool, should_stop: Callable[[], bool]
) -> Iterator[Event]:
    """All of ``train``, in a folder that is held."""
    folder = out_dir / TRAINING_FOLDER
    if not fresh and state_files(folder / "states"):
        _check_recipe(config, folder / RECIPE_FILE)
    yield Stage("preparing the data")
    prepared = prepare(config, data_dir, folder / "data", on_progress=_stop_when_asked(should_stop))
    yield DataReady(prepared)
    if not config.data.target_language:
        yield Notice(
            "data.target_language is empty, so BLEU takes the tokenizer of European languages; "
            "set it (zh, ja ...) where words have no spaces between them"
        )
    check_fit(config, prepared)
    if fresh:  # not before: where the new recipe or its text is at fault, the earlier run stays
        _forget(folder)
    with replace_file(folder / RECIPE_FILE) as file:
        file.write(to_toml(config).encode("utf-8"))
    session, notices = _open(config, folder, prepared)
    yield from notices
    progress = session.progress
    yield Started(
        step=progress.step,
        max_steps=config.train.max_steps,
        num_parameters=sum(parameter.numel() for parameter in session.model.parameters()),
        precision=progress.precision,
        device=str(session.device),
        threads=progress.threads,
    )
    if progress.step == 0:
        yield Saved(0, session.save())
    validated_steps = [scores.step for scores in progress.validations]
    log_path = folder / "metrics.jsonl"
    with closing(MetricsLog(log_path, resume_step=progress.step, validated_steps=validated_steps)) as log:
        for event in run_steps(session, should_stop):
            log.write(event)
            yield event
            if isinstance(event, Interrupted):
                return
    yield from finish(session, out_dir, should_stop)


def _stop_when_asked(should_stop: Callable[[], bool]) -> Callable[[str, int], None]:
    """While data is prepared there is no state to save: a request to stop ends the run at once."""

    def on_progress(stage: str, count: int) -> None:
        if should_stop():
            raise KeyboardInterrupt

    return on_progress


def _forget(folder: Path) -> None:
    """Remove what an earlier run left, prepared data apart: that is checked by itself."""
    for name in ("states", "weights"):
        if (folder / name).exists():
            shutil.rmtree(folder / name)
    for name in (RECIPE_FILE, "metrics.jsonl"):
        (folder / name).unlink(missing_ok=True)


def recipe_changes(config: RunConfig, path: Path) -> list[Change]:
    """Keys that shape the weights and differ from the recipe in ``path``; none where there is no such file."""
    if not path.exists():
        return []
    earlier = load(path)
    return [change for change in difference(earlier, config) if change.key not in HORIZON_KEYS]


def _check_recipe(config: RunConfig, path: Path) -> None:
    """Refuse to go on with another recipe than the run began with."""
    changes = recipe_changes(config, path)
    if changes:
        named = "; ".join(f"{change.key} was {change.old!r}, is {change.new!r}" for change in changes)
        raise ConfigError(
            f"train/run: the run in {path.parent.parent} began with another recipe: {named}. "
            "Remedy: restore these keys to go on, add --fresh to begin anew there, or take another --out"
        )


def _open(config: RunConfig, folder: Path, prepared: Prepared) -> tuple[Session, list[Notice]]:
    """The session at its first step, or as its newest whole training state has it."""
    state, problems = load_state(folder / "states")
    notices = [Notice(f"a damaged training state is passed over: {problem}") for problem in problems]
    if state is None:
        threads = config.train.threads or torch.get_num_threads()
        torch.set_num_threads(threads)
        precision = config.train.precision
        session = open_session(config, folder, prepared=prepared, precision=precision, threads=threads)
        if precision == "auto":
            settled = settle_precision(session.model, _typical_batch(session), device=session.device)
            session.progress = session.progress.model_copy(update={"precision": settled})
        return session, notices
    if state.progress.data_digest != prepared.report.digest:
        raise CheckpointError(
            f"train/run: the training files of {folder.parent} have changed since step {state.progress.step}. "
            "Remedy: restore them to go on, add --fresh to begin anew, or take another --out"
        )
    torch.set_num_threads(state.progress.threads)
    session = open_session(
        config, folder, prepared=prepared, precision=state.progress.precision, threads=state.progress.threads
    )
    session.restore(state)
    session.drop_weights()  # a kill may have come between the state and this
    return session, notices


def _typical_batch(session: Session) -> Batch:
    """A microbatch of middling length, to time the number formats with."""
    train, store = session.config.train, session.store
    steps = plan(
        store.source_lengths,
        store.target_lengths,
        batch_tokens=train.batch_tokens,
        microbatch_tokens=train.microbatch_tokens,
        seed=train.seed,
        epoch=0,
    )
    return collate(store, steps[len(steps) // 2][0])
