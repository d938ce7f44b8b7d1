"""The whole of a run: prepare, train or go on, average, evaluate, write the model folder."""

import shutil
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, nullcontext
from functools import partial
from pathlib import Path

import torch

from headway.checkpoint.lock import locked
from headway.checkpoint.run_folder import RECIPE_FILE
from headway.checkpoint.state import Progress, TrainingState, load_state, newest_progress, state_files
from headway.config.learning_rate import FALLING
from headway.config.load import Change, difference, load
from headway.config.schema import RunConfig
from headway.config.toml import to_toml
from headway.data.batch import Batch
from headway.data.loader import collate
from headway.data.prepare import prepare
from headway.data.prepared import Prepared, read_prepared
from headway.errors import CheckpointError, ConfigError, DataError
from headway.folder.atomic import replace_file
from headway.folder.contents import TRAINING_FOLDER, ModelFolder, check_place
from headway.train.adapt import adapted, initial_weights, open_parent, overruled_sizes, vocabulary_of
from headway.train.distributed import ALONE, Group
from headway.train.division import divide, idle_notice, longest_pair
from headway.train.events import DataReady, Event, Interrupted, Notice, Saved, Stage, Started
from headway.train.finish import finish
from headway.train.loop import run_steps
from headway.train.memory import settle_memory
from headway.train.metrics_log import METRICS_FILE, MetricsLog
from headway.train.objectives import training_objective
from headway.train.precision import settle_precision
from headway.train.schedule import early_end
from headway.train.session import Session, check_fit, open_session
from headway.train.threads import settle_threads

# How long a run goes on, and what it keeps, does not change what it has done so far: these keys, and those of a whole
# section, may change when it is resumed. But max_steps shapes the rates of a schedule that falls to 0 there.
HORIZON_KEYS = {
    *("title", "note", "search", "evaluate"),
    *("train.max_steps", "train.max_epochs", "train.max_minutes", "train.patience"),
    *("train.keep_last", "train.keep_best", "train.sharding", "train.init"),
    *("parsing.constrained", "parsing.max_openings", "parsing.word_reward"),
}
FORGET_FILE = "forget"  # lies there until what ``fresh`` asked for is done
MEASURING = ("search", "evaluate", "parsing")  # sections that shape what a validation measures


def never() -> bool:
    """Nobody asks the run to stop."""
    return False


def train(
    config: RunConfig,
    data_dir: Path,
    *,
    out_dir: Path,
    fresh: bool = False,
    should_stop: Callable[[], bool] = never,
    group: Group = ALONE,
) -> Iterator[Event]:
    """Train, or go on where an earlier run in ``out_dir`` stopped, and write the model folder there.

    Raises ConfigError when the recipe of the earlier run differs in a key that shapes the weights; ``fresh`` removes
    the earlier run's states and begins anew, once the new data are prepared. After Interrupted the same call goes on.

    Each process of ``group`` makes this call, on a disk that all of them see. The first one prepares and writes, and
    its events are those of the run; the others' tell of themselves.
    """
    check_place(out_dir)
    settle_memory()
    with group.connected(), locked(out_dir / TRAINING_FOLDER) if group.is_first else nullcontext():
        yield from _train(config, data_dir, out_dir, fresh=fresh, should_stop=should_stop, group=group)


def _train(
    config: RunConfig, data_dir: Path, out_dir: Path, *, fresh: bool, should_stop: Callable[[], bool], group: Group
) -> Iterator[Event]:
    """All of ``train``, in a folder that is held."""
    folder = out_dir / TRAINING_FOLDER
    prepared = None
    parent = open_parent(config, out_dir)
    if parent is not None:
        told = overruled_sizes(config, parent)
        config = adapted(config, parent)
        if told and group.is_first:
            yield Notice(told)
    if group.is_first:
        fresh = fresh and _is_to_forget(folder, group)
        prepared = yield from _begin(config, data_dir, folder, parent=parent, fresh=fresh, should_stop=should_stop)
    group.barrier()  # the others wait here while the first prepares
    session, notices = _open(config, folder, prepared or _prepared(folder), parent=parent, group=group)
    yield from notices
    progress = session.progress
    yield Started(
        step=progress.step,
        max_steps=config.train.max_steps,
        num_parameters=sum(parameter.numel() for parameter in session.model.parameters()),
        precision=progress.precision,
        device=str(session.device),
        threads=progress.threads,
        processes=group.world_size,
        patience=config.train.patience if config.train.early_stopping != "none" else None,
    )
    if progress.step == 0:
        yield Saved(0, session.save())
    for event in _logged(session, run_steps(session, should_stop)):
        yield event
        if isinstance(event, Interrupted):
            return
    yield from finish(session, out_dir, should_stop=should_stop)


def _begin(
    config: RunConfig,
    data_dir: Path,
    folder: Path,
    *,
    parent: ModelFolder | None,
    fresh: bool,
    should_stop: Callable[[], bool],
) -> Generator[Event, None, Prepared]:
    """What comes before the first step and is done once, whatever the number of processes."""
    if not fresh and state_files(folder / "states"):
        yield from _check_recipe(config, folder / RECIPE_FILE)
    yield Stage("preparing the data")
    vocabulary = None if parent is None else vocabulary_of(parent, config.train.extend_vocabulary)
    prepared = prepare(
        config,
        data_dir,
        folder / "data",
        vocabulary=vocabulary,
        on_progress=_stop_when_asked(should_stop),
        check=partial(_check_data, config, None if fresh else folder),
    )
    yield DataReady(prepared)
    if not config.data.target_language and config.translates:
        yield Notice(
            "data.target_language is empty, so BLEU takes the tokenizer of European languages; "
            "set it (zh, ja ...) where words have no spaces between them"
        )
    if fresh:  # not before: where the new recipe or its text is at fault, the earlier run stays
        _forget(folder)
    with replace_file(folder / RECIPE_FILE) as file:
        file.write(to_toml(config).encode("utf-8"))
    return prepared


def _check_data(config: RunConfig, folder: Path | None, prepared: Prepared) -> None:
    """Refuse data that training would fail on, or that are not those of the run in ``folder``, before they are there.

    ConfigError and TextError as ``check_fit``, CheckpointError for training files that have changed.
    """
    check_fit(config, prepared)
    progress = None if folder is None else newest_progress(folder / "states")
    if folder is not None and progress is not None:
        _check_digest(progress, folder, digest=prepared.report.digest)


def _prepared(folder: Path) -> Prepared:
    """The data that ``_begin`` has prepared, as every process sees them."""
    prepared = read_prepared(folder / "data")
    if prepared is None:
        raise DataError(
            f"train/run: {folder / 'data'} holds no whole prepared data, though they have just been written there. "
            "Remedy: put --out on a disk that all processes see alike"
        )
    return prepared


def _logged(session: Session, events: Iterator[Event]) -> Iterator[Event]:
    """The events, each written to ``metrics.jsonl`` by the first process as it passes."""
    if not session.group.is_first:
        yield from events
        return
    progress = session.progress
    validated_steps = [scores.step for scores in progress.validations]
    log_path = session.folder / METRICS_FILE
    with closing(MetricsLog(log_path, resume_step=progress.step, validated_steps=validated_steps)) as log:
        for event in events:
            log.write(event)
            yield event


def _stop_when_asked(should_stop: Callable[[], bool]) -> Callable[[str, int], None]:
    """While data is prepared there is no state to save: a request to stop ends the run at once."""

    def on_progress(stage: str, count: int) -> None:
        if should_stop():
            raise KeyboardInterrupt

    return on_progress


def _is_to_forget(folder: Path, group: Group) -> bool:
    """Whether the earlier run is still there to be forgotten, where torchrun repeats the command with ``--fresh``."""
    if group is ALONE:  # nobody repeats it
        return True
    marker = folder / FORGET_FILE
    if group.attempt == 0:
        marker.touch()
    return marker.exists()


def _forget(folder: Path) -> None:
    """Remove what an earlier run left, prepared data apart: that is checked by itself."""
    for name in ("states", "weights"):
        if (folder / name).exists():
            shutil.rmtree(folder / name)
    for name in (RECIPE_FILE, METRICS_FILE, FORGET_FILE):
        (folder / name).unlink(missing_ok=True)


def recipe_changes(config: RunConfig, path: Path) -> list[Change]:
    """Keys that shape the weights and differ from the recipe in ``path``; none where there is no such file."""
    free = HORIZON_KEYS - ({"train.max_steps"} if config.train.schedule in FALLING else set())
    return [change for change in _differences(config, path) if not {change.key, _section(change)} & free]


def _differences(config: RunConfig, path: Path) -> list[Change]:
    return difference(load(path), config) if path.exists() else []


def _section(change: Change) -> str:
    return change.key.partition(".")[0]


def _check_recipe(config: RunConfig, path: Path) -> Iterator[Event]:
    """Refuse to go on with another recipe than the run began with; say what its validations measure otherwise.

    Another ``train.init`` is told too: its folder may have moved, or hold another model, which is not begun with.
    """
    changes = recipe_changes(config, path)
    if changes:
        named = "; ".join(f"{change.key} was {change.old!r}, is {change.new!r}" for change in changes)
        if any(change.key == "train.max_steps" for change in changes):
            named += f" (where the rate of train.schedule {config.train.schedule} reaches 0)"
        raise ConfigError(
            f"train/run: the run in {path.parent.parent} began with another recipe: {named}. "
            "Remedy: restore these keys to go on, add --fresh to begin anew there, or take another --out"
        )
    differences = _differences(config, path)
    for change in differences:
        if change.key == "train.init":
            yield Notice(
                f"train.init was {change.old}, is {change.new}: the run goes on with its own weights, whatever those "
                "there are now"
            )
    measured = [change for change in differences if _section(change) in MEASURING]
    if measured:
        named = "; ".join(f"{change.key} was {change.old!r}, is {change.new!r}" for change in measured)
        yield Notice(f"validations from here on are measured otherwise than the earlier ones: {named}")


def _open(
    config: RunConfig, folder: Path, prepared: Prepared, *, parent: ModelFolder | None, group: Group
) -> tuple[Session, list[Notice]]:
    """The session at its first step, or as its newest whole training state has it."""
    state, problems = load_state(folder / "states")
    notices = [f"a damaged training state is passed over: {problem}" for problem in problems]
    digest = prepared.report.digest
    _check_state(state, folder, digest=digest, group=group)
    threads = config.train.threads or torch.get_num_threads()
    progress = (
        state.progress if state else Progress(precision=config.train.precision, threads=threads, data_digest=digest)
    )
    if progress.world_size != group.world_size:  # then no bit depends on the threads any more, and cores may
        progress = progress.model_copy(update={"threads": threads})
    progress, told = divide(progress, config.train, longest=longest_pair(prepared.store("train")), group=group)
    torch.set_num_threads(progress.threads)
    initial = None
    if parent is not None and state is None:
        initial = initial_weights(parent, prepared.source_tokenizer, prepared.target_tokenizer)
    session = open_session(
        config, folder, prepared=prepared, progress=progress, state=state, initial=initial, group=group
    )
    told += _settle(session, is_new=state is None, group=group)
    if config.train.microbatch_tokens and group.world_size > 1:
        told += idle_notice(session.first_epoch(), group.world_size)
    told += early_end(config.train, epoch_steps=lambda: len(session.first_epoch()))
    if state is not None:
        session.drop_weights()  # a kill may have come between the state and this
    return session, [Notice(text) for text in (*notices, *told, *session.frozen)]


def _settle(session: Session, *, is_new: bool, group: Group) -> list[str]:
    """Threads and number format, tried on a batch where the recipe leaves them open; what was settled, and why."""
    told: list[str] = []
    train, precision = session.config.train, session.progress.precision
    objective = training_objective(train, session.prepared.source_tokenizer)
    if is_new and train.threads is None and group.world_size == 1 and session.device.type == "cpu":
        fewer = settle_threads(
            session.model,
            _typical_batch(session),
            objective=objective,
            threads=session.progress.threads,
            precision="float32" if precision == "auto" else precision,
        )
        if fewer is not None:
            torch.set_num_threads(fewer.threads)
            session.progress = session.progress.model_copy(update={"threads": fewer.threads})
            told.append(f"train.threads is {fewer.threads}: {fewer.reason}")
    if precision == "auto":
        settled = settle_precision(session.model, _typical_batch(session), objective=objective, device=session.device)
        settled = group.share(settled)
        session.progress = session.progress.model_copy(update={"precision": settled.precision})
        told.append(f"train.precision is {settled.precision}: {settled.reason}")
    return told


def _check_state(state: TrainingState | None, folder: Path, *, digest: str, group: Group) -> None:
    """Refuse a state of other data, and states that are not the same on all ranks. No rank goes on before all ask."""
    steps = group.gather(-1 if state is None else state.progress.step)
    if len(set(steps)) > 1:
        raise CheckpointError(
            f"train/run: the newest training states in {folder / 'states'}, as the ranks see them, are of the steps "
            f"{', '.join(map(str, steps))} (-1: none); wanted the same. Put --out on a disk that all see alike"
        )
    if state is not None:
        _check_digest(state.progress, folder, digest=digest)


def _check_digest(progress: Progress, folder: Path, *, digest: str) -> None:
    if progress.data_digest != digest:
        raise CheckpointError(
            f"train/run: the training files of {folder.parent} have changed since step {progress.step}. "
            "Remedy: restore them to go on, add --fresh to begin anew, or take another --out"
        )


def _typical_batch(session: Session) -> Batch:
    """A microbatch of middling length, to time the number formats with."""
    steps = session.first_epoch()
    return collate(session.store, steps[len(steps) // 2][0])
