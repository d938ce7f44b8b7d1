"""What training resumes from: weights, what the optimizer keeps of them, and where the run stands, in one checked file.

A state goes to a new file that is flushed, then renamed; the one before stays until the next is whole. A damaged file
is recognised by its checksum and the state before it is used.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Field, ValidationError

from headway.config.section import Section
from headway.errors import CheckpointError, FolderError
from headway.folder.atomic import SUFFIX
from headway.folder.weights import read_metadata, read_weights, write_weights

KEPT_STATES = 2
FILE = re.compile(r"state-(\d{8})\.safetensors")
Whole = Annotated[int, Field(ge=0)]


class Scores(Section):
    """Validation of one step; BLEU and chrF only of a model that translates."""

    step: Whole
    loss: float
    perplexity: float
    accuracy: float | None = None  # share of predictions that are right
    bleu: float | None = None
    chrf: float | None = None
    f1: float | None = None  # of a parser


class Progress(Section):
    """Where a run stands after ``step`` updates. ``epoch`` and ``epoch_step`` (from 0) say which batch comes next."""

    step: Whole = 0
    epoch: Whole = 0
    epoch_step: Whole = 0
    seconds: float = 0.0
    precision: str
    threads: Whole
    data_digest: str
    validations: tuple[Scores, ...] = ()
    kept_weights: tuple[Whole, ...] = ()  # steps whose weights lie on the disk
    world_size: Annotated[int, Field(ge=1)] = 1  # processes that trained when this was written
    microbatch_tokens: Annotated[int, Field(ge=1)] | None = None  # settled for them where the recipe names none


@dataclass(frozen=True)
class TrainingState:
    """Progress and arrays: ``model/NAME``, what the optimizer keeps of each weight, and ``average/NAME``."""

    progress: Progress
    tensors: Mapping[str, np.ndarray]

    def part(self, name: str) -> dict[str, np.ndarray]:
        """The arrays under ``name/``, without it."""
        return {
            key.removeprefix(f"{name}/"): value for key, value in self.tensors.items() if key.startswith(f"{name}/")
        }


def save_state(folder: Path, state: TrainingState) -> Path:
    """Write a state, then remove all but the newest two and what a kill left half written."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"state-{state.progress.step:08d}.safetensors"
    write_weights(path, state.tensors, metadata={"progress": state.progress.model_dump_json()})
    for old in (*state_files(folder)[KEPT_STATES:], *folder.glob(f"state-*.safetensors{SUFFIX}")):
        old.unlink()
    return path


def load_state(folder: Path) -> tuple[TrainingState | None, list[str]]:
    """The newest whole state, or None where there is none at all; and what is wrong with newer ones.

    CheckpointError when there are states and none is whole.
    """
    problems: list[str] = []
    files = state_files(folder)
    for path in files:
        try:
            return TrainingState(_read_progress(path), read_weights(path)), problems
        except FolderError as error:
            problems.append(str(error))
    if files:
        raise CheckpointError(
            f"checkpoint/state: none of {len(files)} training states in {folder} is whole; the newest: {problems[0]} "
            "Remedy: restore one from a backup, or start anew with --fresh"
        )
    return None, problems


def newest_progress(folder: Path) -> Progress | None:
    """Where the run stands by its newest state that says it, without its arrays; None where there is no such state."""
    for path in state_files(folder):
        with suppress(FolderError):
            return _read_progress(path)
    return None


def state_files(folder: Path) -> list[Path]:
    """Training states, the newest first."""
    return sorted((path for path in folder.glob("state-*.safetensors") if FILE.fullmatch(path.name)), reverse=True)


def _read_progress(path: Path) -> Progress:
    try:
        return Progress.model_validate_json(read_metadata(path).get("progress", ""))
    except ValidationError as error:
        raise FolderError(f"checkpoint/state: {path} has no readable progress; it is not a training state.") from error
