"""What a run tells while it goes on. The command line draws these; nothing below it prints."""

from dataclasses import dataclass, field
from pathlib import Path

from headway.data.prepare import Prepared
from headway.metrics.accuracy import Accuracy
from headway.metrics.perplexity import HiddenTokens, WordPerplexity
from headway.translate.evaluate import Evaluation
from headway.translate.evaluate_parser import ParserEvaluation

Result = (
    Evaluation | ParserEvaluation | WordPerplexity | Accuracy | HiddenTokens
)  # how good a model is, by what it is for


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
class Signs:
    """What a validation saw beside its scores, in numbers: the watchdog judges by these (``train/watchdog.py``).

    ``empty`` to ``unknown`` are counts of ``outputs``: empty, with a loop, answers of the most frequent output,
    copies of the source, cut at the length limit, of a source with unknown tokens. nll: nats a token, not smoothed.
    """

    step: int
    nll: float  # of the validation text
    token_accuracy: float  # share of its tokens that are the most probable, the earlier ones given
    outputs: int
    empty: int
    looping: int
    same: int
    copied: int
    cut: int
    unknown: int
    length_ratio: float  # tokens of the outputs by those of the references, as BLEU counts
    mismatch: float  # share of lines in which outputs and references are written differently: spacing, or capitals
    focus: float | None  # attention on one source position, of the head that gathers least; None: no text that tells
    training_nll: float | None  # median of the latest steps; None: too few
    gradient_norm: float | None  # median of the same
    peak_rate: float  # the highest learning rate so far
    spikes: int  # since the validation before
    bleu_shortfall: float = 0.0  # BLEU that the accuracy lets expect, by BLEU; 0 where it lets expect little


@dataclass(frozen=True, slots=True)
class Validated:
    """Scores on the validation text; perplexity is without smoothing. BLEU and chrF only of a model that translates."""

    step: int
    loss: float
    perplexity: float
    bleu: float | None
    chrf: float | None
    seconds: float
    is_best: bool
    samples: tuple[Sample, ...] = field(default=())
    accuracy: float | None = None  # share of predictions that are right
    signs: Signs | None = None
    f1: float | None = None  # of a parser: labelled, of all sentences (metrics/parseval.py, "all")


@dataclass(frozen=True, slots=True)
class Warned:
    """Something looks wrong: one line with what was seen, what it means and what to do.

    ``kind`` is a row of ``KINDS`` (``train/kinds.py``); ``value`` says how grave it is, on a scale of its kind.
    ``step``: of the validation that showed it, 0 before the first step.
    """

    step: int
    kind: str
    text: str
    value: float


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
    evaluation: Result | None
    evaluated_on: str


Event = Stage | DataReady | Started | StepDone | Validated | Warned | Saved | Notice | Interrupted | Finished
