"""What a run tells while it goes on. The command line draws these; nothing below it prints."""

from dataclasses import dataclass, field
from pathlib import Path

from headway.data.prepare import Prepared
from headway.translate.evaluate import Evaluation


@dataclass(frozen=True, slots=True)
class Stage:
    """A part of the run begins or goes on: ``done`` of ``total`` units where they are known."""

    name: str
    done: int = 0
    total: int = 0


@dataclass(frozen=True, slots=True)
class DataReady:
    """The corpus is read, cleaned, encoded and stored; or was, and is used again."""

    prepared: Prepared


@dataclass(frozen=True, slots=True)
class Started:
    """Training begins, or goes on after ``step``."""

    step: int
    max_steps: int
    num_parameters: int
    precision: str
    device: str
    threads: int  # of each process
    processes: int = 1
    patience: int | None = None  # validations without a better value after which the run ends; None: it does not


@dataclass(frozen=True, slots=True)
class StepDone:
    """One update. ``loss`` is smoothed, ``nll`` is not (nats a target token)."""

    step: int
    epoch: int
    loss: float
    nll: float
    learning_rate: float
    gradient_norm: float
    tokens_per_second: float  # real tokens, both sides
    padding: float  # share of all positions
    seconds: float  # since training began, earlier sessions counted
    seconds_left: float


@dataclass(frozen=True, slots=True)
class Sample:
    """One sentence of the validation text, its reference and what the model makes of it."""

    source: str
    reference: str
    translation: str


@dataclass(frozen=True, slots=True)
class Validated:
    """Scores on the validation text; perplexity is without smoothing."""

    step: int
    loss: float
    perplexity: float
    bleu: float
    chrf: float
    seconds: float
    is_best: bool
    samples: tuple[Sample, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class Saved:
    """A training state is on the disk."""

    step: int
    path: Path


@dataclass(frozen=True, slots=True)
class Notice:
    """Something the user should read."""

    text: str


@dataclass(frozen=True, slots=True)
class Interrupted:
    """The run was asked to stop, and has saved its state."""

    step: int


@dataclass(frozen=True, slots=True)
class Finished:
    """The model folder is written."""

    folder: Path
    evaluation: Evaluation | None
    evaluated_on: str


Event = Stage | DataReady | Started | StepDone | Validated | Saved | Notice | Interrupted | Finished
