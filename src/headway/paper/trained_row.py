"""A row that is a training run: trained within a budget, on data that all rows share, and measured on the dev text."""

import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from headway.checkpoint.run_folder import RECIPE_FILE, RunFolder, real_model
from headway.checkpoint.state import load_state
from headway.config.load import load
from headway.config.schema import RunConfig
from headway.data.batching import plan_epoch
from headway.data.prepared import Prepared
from headway.folder.contents import TRAINING_FOLDER
from headway.metrics.perplexity import perplexity
from headway.metrics.sentence_bleu import bleu_counts, bleu_of
from headway.metrics.translation import choose_tokenizer
from headway.model.size import count_parameters
from headway.paper.work import Making, Values
from headway.train.events import Finished, Interrupted, Stage
from headway.train.run import recipe_changes, train
from headway.translate.translator import Translator

SCORED_ON = "validation"
NEVER = 10_000_000  # steps: a validation at the end alone


@dataclass(frozen=True, slots=True)
class Budget:
    """When a row's training ends: after so many steps, or so many minutes."""

    steps: int | None = None
    minutes: float | None = None

    def applied(self, config: RunConfig) -> RunConfig:
        """The run, ending there, measured at the end alone, its last step being what counts, as in Table 3."""
        ends = {"max_epochs": None, "early_stopping": "none", "max_minutes": self.minutes}
        if self.steps is not None:
            ends["max_steps"] = self.steps
        kept = {"average": "none", "keep_last": 1, "keep_best": 1, "validate_every": NEVER}
        without_test = {"test_source": "", "test_target": "", "test_tag": ""}
        return config.model_copy(
            update={
                "train": config.train.model_copy(update={**ends, **kept}),
                "data": config.data.model_copy(update=without_test),
            }
        )


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
    """Train, or go on, and measure the dev text; the values are ``Trained``'s. None when it was asked to stop.

    A run that began with another recipe or other data, or has gone beyond the budget, begins anew.
    """
    fresh = _begins_anew(config, out_dir, shared)
    _link(shared.folder, out_dir / TRAINING_FOLDER / "data")
    finished = None
    for event in train(config, data_dir, out_dir=out_dir, fresh=fresh, should_stop=should_stop):
        if isinstance(event, Finished):
            finished = event
            continue
        yield event
        if isinstance(event, Interrupted):
            return None
    assert finished is not None
    assert finished.evaluation is not None
    assert finished.evaluated_on == SCORED_ON
    yield Stage("scoring the dev text")
    return _measured(out_dir, finished.evaluation.translations)


def _begins_anew(config: RunConfig, out_dir: Path, shared: Prepared) -> bool:
    """Whether what lies in the run's folder is of another run than is wanted."""
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
    return progress.data_digest != shared.report.digest or progress.step > config.train.max_steps or is_shorter


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


def _measured(out_dir: Path, translations: tuple[str, ...]) -> Values:
    """Where the run stands, and the dev text sentence by sentence."""
    run = RunFolder.open(out_dir)
    config, prepared, progress = run.config, run.prepared, run.progress
    sources, references = prepared.texts(SCORED_ON)
    translator = Translator.from_folder(out_dir, engine="torch", threads=progress.threads)
    scores = translator.score(sources, references, tags=prepared.tags(SCORED_ON))
    tokenizer = choose_tokenizer(config.evaluate.tokenize, config.data.target_language, [])
    counts = bleu_counts(translations, references, tokenize=tokenizer, lowercase=config.evaluate.lowercase)
    source_tokens, target_tokens = tokens_seen(run)
    return {
        "steps": progress.step,
        "minutes": progress.seconds / 60,
        "parameters": parameters_of(run),
        "source_tokens": source_tokens,
        "target_tokens": target_tokens,
        "tokenize": tokenizer,
        "lowercase": config.evaluate.lowercase,
        "log_probs": [round(score.log_prob, 6) for score in scores],
        "num_tokens": [score.num_tokens for score in scores],
        "bleu_counts": counts.tolist(),
    }


def parameters_of(run: RunFolder) -> int:
    """Trained numbers of the model, with the vocabulary that the corpus gave."""
    return count_parameters(real_model(run.config, run.prepared)).total


def tokens_seen(run: RunFolder) -> tuple[int, int]:
    """Real tokens that training has read of source and target, EOS counted, from its first step on."""
    train, progress, store = run.config.train, run.progress, run.prepared.store("train")
    totals = np.zeros(2, dtype=np.int64)
    for epoch in range(progress.epoch + 1):
        steps = plan_epoch(store, batch_tokens=train.batch_tokens, seed=train.seed, epoch=epoch)
        count = progress.epoch_step if epoch == progress.epoch else len(steps)
        for step in steps[:count]:
            for rows in step:
                lengths = (store.source_lengths[rows] + 1, store.target_lengths[rows] + 1)
                totals += [int(side.sum()) for side in lengths]
    return int(totals[0]), int(totals[1])


@dataclass(frozen=True)
class Trained:
    """What was measured of a trained row; a row of each array is a sentence of the dev text."""

    steps: int
    minutes: float
    parameters: int
    source_tokens: int
    target_tokens: int
    likelihood_NC: np.ndarray  # log-probability (nats) and tokens
    bleu_NC: np.ndarray  # as bleu_counts

    @classmethod
    def read(cls, values: Mapping[str, object]) -> "Trained":
        """From a record."""
        pairs = np.stack([np.asarray(values[key], dtype=np.float64) for key in ("log_probs", "num_tokens")], axis=1)
        return cls(
            steps=_number(values, "steps"),
            minutes=float(str(values["minutes"])),
            parameters=_number(values, "parameters"),
            source_tokens=_number(values, "source_tokens"),
            target_tokens=_number(values, "target_tokens"),
            likelihood_NC=pairs,
            bleu_NC=np.asarray(values["bleu_counts"], dtype=np.int64),
        )

    @property
    def perplexity(self) -> float:
        """Of a target piece, EOS counted, without label smoothing."""
        log_prob, tokens = self.likelihood_NC.sum(axis=0)
        return perplexity(float(log_prob), int(tokens))

    @property
    def bleu(self) -> float:
        """Of the dev text, 0..100."""
        return bleu_of(self.bleu_NC.sum(axis=0))


def _number(values: Mapping[str, object], key: str) -> int:
    value = values[key]
    assert isinstance(value, int)
    return value


def nats_a_token(sums_C: np.ndarray) -> float:
    """Mean -log p of a target token: the logarithm of perplexity."""
    return float(-sums_C[0] / sums_C[1])
