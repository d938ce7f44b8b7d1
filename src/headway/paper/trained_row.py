"""A row that is a training run: trained within a budget, and measured sentence by sentence on text held out."""

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from headway.checkpoint.run_folder import RECIPE_FILE, RunFolder, epochs_done, real_model
from headway.checkpoint.state import load_state
from headway.config.load import load
from headway.config.schema import RunConfig
from headway.data.batching import plan_epoch
from headway.data.prepared import Prepared
from headway.folder.contents import TRAINING_FOLDER
from headway.metrics.paper_bleu import paper_bleu
from headway.metrics.perplexity import perplexity
from headway.metrics.sentence_bleu import bleu_counts, bleu_of
from headway.metrics.translation import choose_tokenizer
from headway.model.size import count_multiply_adds, count_parameters
from headway.paper.work import Making, Values
from headway.train.events import Finished, Interrupted, Stage
from headway.train.metrics_log import METRICS_FILE, read_validations
from headway.train.run import recipe_changes, train
from headway.translate.evaluate import Evaluation
from headway.translate.translator import Translator

NEVER = 10_000_000  # steps: a validation at the end alone
FLOP = 6  # of a multiply-add of the forward pass: two operations, and twice as many backward


@dataclass(frozen=True, slots=True)
class Budget:
    """When a row's training ends: after so many steps, or so many minutes."""

    steps: int | None = None
    minutes: float | None = None

    def applied(self, config: RunConfig) -> RunConfig:
        """The run, ending there and nowhere else."""
        ends = {"max_epochs": None, "early_stopping": "none", "max_minutes": self.minutes}
        if self.steps is not None:
            ends["max_steps"] = self.steps
        return config.model_copy(update={"train": config.train.model_copy(update=ends)})

    @property
    def equal(self) -> str:
        """What runs of this budget have in common."""
        return "time" if self.steps is None else "steps"

    @property
    def text(self) -> str:
        """As a reader is told of it."""
        return f"{self.steps:,} steps" if self.steps is not None else f"{self.minutes:g} minutes"


def single_checkpoint(config: RunConfig) -> RunConfig:
    """The run, measured at the end alone, on the validation text, by its last step's weights: as in Table 3."""
    kept = {"average": "last", "average_count": 1, "keep_last": 1, "keep_best": 1, "validate_every": NEVER}
    return without_test(config.model_copy(update={"train": config.train.model_copy(update=kept)}))


def without_test(config: RunConfig) -> RunConfig:
    """The run, ending in an evaluation of the validation text."""
    data = config.data.model_copy(update={"test_source": "", "test_target": "", "test_tag": ""})
    return config.model_copy(update={"data": data})


def run_settings(config: RunConfig, prepared: Prepared) -> Values:
    """What a record of a trained row depends on: every key that is not the default's, and the data's digest.

    Defaults are left out, so that a key which Headway gets later does not make old rows anew.
    """
    table = config.model_dump(mode="json", exclude_defaults=True, exclude={"title", "note"})
    flat = {f"{section}.{key}": value for section, keys in table.items() for key, value in keys.items()}
    return {**flat, "data": prepared.report.digest}


def train_row(
    config: RunConfig, data_dir: Path, *, out_dir: Path, shared: Prepared, should_stop: Callable[[], bool]
) -> Making:
    """Train, or go on, and measure; the values are ``Trained``'s. None when it was asked to stop.

    The text is the test text, or the validation text of a run without one. ``shared`` are data prepared for this run,
    in its own folder or in another. A run that began with another recipe or other data, or has gone beyond the
    budget, begins anew.
    """
    fresh = begins_anew(config, out_dir, digest=shared.report.digest)
    own = out_dir / TRAINING_FOLDER / "data"
    if shared.folder != own:
        _link(shared.folder, own)
    finished = None
    for event in train(config, data_dir, out_dir=out_dir, fresh=fresh, should_stop=should_stop):
        if isinstance(event, Finished):
            finished = event
            continue
        yield event
        if isinstance(event, Interrupted):
            return None
    assert finished is not None
    assert isinstance(finished.evaluation, Evaluation), "a row of Table 3 translates"
    yield Stage(f"scoring the {finished.evaluated_on} text")
    return _measured(out_dir, finished.evaluation.translations, part=finished.evaluated_on)


def begins_anew(config: RunConfig, out_dir: Path, *, digest: str) -> bool:
    """Whether what lies in the run's folder is of another run than is wanted, with other data or a longer budget.

    ``digest``: of the data that are wanted.
    """
    folder = out_dir / TRAINING_FOLDER
    if not (folder / RECIPE_FILE).exists():
        return False
    if recipe_changes(config, folder / RECIPE_FILE):
        return True
    state, _ = load_state(folder / "states")
    if state is None:
        return False
    progress, limit, before = state.progress, config.train.max_minutes, load(folder / RECIPE_FILE).train.max_minutes
    is_shorter = limit is not None and (before is None or limit < before) and progress.seconds > 60 * limit
    return progress.data_digest != digest or progress.step > config.train.max_steps or is_shorter


def _link(shared: Path, folder: Path) -> None:
    """The shared data in the run's own place, without a copy where the disk can."""
    if folder.exists():
        shutil.rmtree(folder)
    shutil.copytree(shared, folder, copy_function=_link_file)


def _link_file(source: str, target: str) -> None:
    with suppress(OSError):
        os.link(source, target)
        return
    shutil.copy2(source, target)


def _measured(out_dir: Path, translations: tuple[str, ...], *, part: str) -> Values:
    """Where the run stands, what its validations gave on the way, and the text sentence by sentence."""
    run = RunFolder.open(out_dir)
    config, prepared, progress = run.config, run.prepared, run.progress
    sources, references = prepared.texts(part)
    translator = Translator.from_folder(out_dir, engine="torch", threads=progress.threads)
    scores = translator.score(sources, references, tags=prepared.tags(part))
    tokenizer = choose_tokenizer(config.evaluate.tokenize, config.data.target_language, [])
    counts = bleu_counts(translations, references, tokenize=tokenizer, lowercase=config.evaluate.lowercase)
    tokens_N2 = tokens_by_step(run)
    return {
        "scored_on": part,
        "steps": progress.step,
        "epochs": epochs_done(config.train, progress, prepared.store("train")),
        "minutes": progress.seconds / 60,
        "threads": progress.threads,
        "precision": progress.precision,
        "parameters": count_parameters(real_model(config, prepared)).total,
        "source_tokens": int(tokens_N2[-1, 0]),
        "target_tokens": int(tokens_N2[-1, 1]),
        "flop": flop(run, tokens_N2[-1]),
        "curve": _curve(run, tokens_N2),
        "tokenize": tokenizer,
        "lowercase": config.evaluate.lowercase,
        "log_probs": [round(score.log_prob, 6) for score in scores],
        "num_tokens": [score.num_tokens for score in scores],
        "paper_bleu": paper_bleu(translations, references).value if tokenizer == "none" else None,
        "bleu_counts": counts.tolist(),
    }


def tokens_by_step(run: RunFolder) -> np.ndarray:
    """Real tokens read before each step and after the last: (steps + 1, 2), of source and target, EOS counted."""
    train, progress, store = run.config.train, run.progress, run.prepared.store("train")
    rows: list[tuple[int, int]] = [(0, 0)]
    for epoch in range(progress.epoch + 1):
        steps = plan_epoch(store, batch_tokens=train.batch_tokens, seed=train.seed, epoch=epoch)
        for step in steps[: progress.step + 1 - len(rows)]:
            pairs = np.concatenate(step)
            rows.append((int((store.source_lengths[pairs] + 1).sum()), int((store.target_lengths[pairs] + 1).sum())))
    return np.cumsum(rows, axis=0)


def flop(run: RunFolder, tokens: Sequence[float] | np.ndarray) -> float:
    """Operations of the matrix products, forward and backward, for so many source and target tokens.

    Counted for sentences of the mean length of the training text (``model/size.py``), without the optimizer.
    """
    store = run.prepared.store("train")
    source_length, target_length = (
        round(float(each.mean())) + 1 for each in (store.source_lengths, store.target_lengths)
    )
    model = real_model(run.config, run.prepared)
    counts = count_multiply_adds(model, source_length=source_length, target_length=target_length)
    return float(FLOP * (tokens[0] * counts.source_token + tokens[1] * counts.target_token))


def _curve(run: RunFolder, tokens_N2: np.ndarray) -> list[list[float]]:
    """Each validation: its step, minutes and operations until then, BLEU and perplexity."""
    found = read_validations(run.path / TRAINING_FOLDER / METRICS_FILE)
    return [
        [each["step"], each["seconds"] / 60, flop(run, tokens_N2[each["step"]]), each["bleu"], each["perplexity"]]
        for each in found
    ]


class Milestone(NamedTuple):
    """A validation on the way."""

    step: int
    minutes: float
    flop: float
    bleu: float
    perplexity: float


@dataclass(frozen=True)
class Trained:
    """What was measured of a trained row; a row of each array is a sentence of the text."""

    steps: int
    epochs: float
    minutes: float
    threads: int
    precision: str
    parameters: int
    source_tokens: int
    target_tokens: int
    flop: float
    curve: tuple[Milestone, ...]
    likelihood_NC: np.ndarray  # log-probability (nats) and tokens
    bleu_NC: np.ndarray  # as bleu_counts
    paper_bleu: float | None = None  # by the paper's protocol, of text that is tokenised already

    @classmethod
    def read(cls, values: Mapping[str, object]) -> "Trained":
        """From a record."""
        pairs = np.stack([np.asarray(values[key], dtype=np.float64) for key in ("log_probs", "num_tokens")], axis=1)
        return cls(
            steps=_number(values, "steps"),
            epochs=float(str(values["epochs"])),
            minutes=float(str(values["minutes"])),
            threads=_number(values, "threads"),
            precision=str(values["precision"]),
            parameters=_number(values, "parameters"),
            source_tokens=_number(values, "source_tokens"),
            target_tokens=_number(values, "target_tokens"),
            flop=float(str(values["flop"])),
            curve=_milestones(values["curve"]),
            likelihood_NC=pairs,
            bleu_NC=np.asarray(values["bleu_counts"], dtype=np.int64),
            paper_bleu=None if values["paper_bleu"] is None else float(str(values["paper_bleu"])),
        )

    @property
    def perplexity(self) -> float:
        """Of a target piece, EOS counted, without label smoothing."""
        log_prob, tokens = self.likelihood_NC.sum(axis=0)
        return perplexity(float(log_prob), int(tokens))

    @property
    def bleu(self) -> float:
        """0..100, by the tokenizer of the recipe."""
        return bleu_of(self.bleu_NC.sum(axis=0))


def _milestones(rows: object) -> tuple[Milestone, ...]:
    assert isinstance(rows, list)
    return tuple(Milestone(*row) for row in rows)


def _number(values: Mapping[str, object], key: str) -> int:
    value = values[key]
    assert isinstance(value, int)
    return value


def nats_a_token(sums_C: np.ndarray) -> float:
    """Mean -log p of a target token: the logarithm of perplexity."""
    return float(-sums_C[0] / sums_C[1])
