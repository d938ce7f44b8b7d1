"""What a run has left on the disk, read without torch: its recipe, its data, and the weights of the steps it kept."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from headway.checkpoint.average import average_weights
from headway.checkpoint.keep import averaged_steps, best_steps, weights_path
from headway.checkpoint.state import Progress, load_state
from headway.config.load import load
from headway.config.model_config import ModelConfig
from headway.config.positions import write_bits
from headway.config.schema import RunConfig
from headway.config.train_config import TrainConfig
from headway.data.batching import plan_epoch
from headway.data.prepared import Prepared, read_prepared
from headway.data.store import Store
from headway.data.word_starts import source_word_starts, target_word_starts
from headway.errors import CheckpointError
from headway.folder.card import write_card
from headway.folder.contents import TRAINING_FOLDER, FolderConfig, ModelFolder, TrainingSummary, write_folder
from headway.model.size import count_parameters

RECIPE_FILE = "recipe.toml"
NEXT_CLASSES = 2  # of two lines: the second follows the first, or not


@dataclass(frozen=True)
class RunFolder:
    """The folder that ``headway train --out`` was given, with at least one training state in it."""

    path: Path
    config: RunConfig
    prepared: Prepared
    progress: Progress

    @classmethod
    def open(cls, path: Path) -> "RunFolder":
        """Open a run, finished or not. CheckpointError when it is none, or has no whole state or not its data."""
        folder = path / TRAINING_FOLDER
        recipe = folder / RECIPE_FILE
        if not recipe.is_file():
            raise CheckpointError(
                f"checkpoint/run_folder: {path} has no {TRAINING_FOLDER}/{RECIPE_FILE}; wanted the folder of a run. "
                "Name the folder that `headway train --out` was given."
            )
        prepared = read_prepared(folder / "data")
        if prepared is None:
            raise CheckpointError(
                f"checkpoint/run_folder: {folder / 'data'} is missing or damaged. "
                f"Prepare it again: `headway train` with the same recipe and --out {path}."
            )
        state, _ = load_state(folder / "states")
        if state is None:
            raise CheckpointError(
                f"checkpoint/run_folder: {folder / 'states'} holds no training state. Train until one is written."
            )
        if state.progress.data_digest != prepared.report.digest:
            raise CheckpointError(
                f"checkpoint/run_folder: {folder / 'data'} is not what the run was trained on until step "
                f"{state.progress.step:,}, so its vocabulary is another. Restore the training files and prepare them "
                f"again: `headway train` with the same recipe and --out {path}."
            )
        return cls(path, load(recipe), prepared, state.progress)

    @property
    def weights_folder(self) -> Path:
        """Where the weights of kept steps lie."""
        return self.path / TRAINING_FOLDER / "weights"

    def kept_steps(self) -> list[int]:
        """Steps whose weights are on the disk, in order."""
        return [step for step in sorted(self.progress.kept_weights) if weights_path(self.weights_folder, step).exists()]

    def last(self, count: int) -> list[int]:
        """The last ``count`` kept steps; raises CheckpointError when fewer are kept."""
        return self._exactly(self.kept_steps()[-count:], count, "kept", "keep_last")

    def best(self, count: int) -> list[int]:
        """The ``count`` best kept steps by the recipe's ``train.best_by``; raises CheckpointError for too few."""
        kept = self.kept_steps()
        validated = [scores for scores in self.progress.validations if scores.step in kept]
        best = best_steps(validated, self.config.train.best_by, count=count)
        return self._exactly(best, count, "kept and validated", "keep_best")

    def usual(self) -> list[int]:
        """The steps that the recipe averages, as many as there are; where it averages none, the last ones."""
        train, kept = self.config.train, self.kept_steps()
        steps = averaged_steps(kept, self.progress.validations, train)
        return steps or self.last(min(train.average_count, len(kept)))

    def _exactly(self, steps: list[int], count: int, what: str, key: str) -> list[int]:
        if len(steps) == count and steps:
            return steps
        if not self.kept_steps():
            raise CheckpointError(
                f"checkpoint/run_folder: {self.path} keeps no weights yet; wanted those of {count or 1} or more steps. "
                "Train on until the first validation, or the first step that train.checkpoint_every names."
            )
        raise CheckpointError(
            f"checkpoint/run_folder: {self.path} has the weights of {len(steps)} steps {what}; wanted {max(count, 1)}. "
            f"Ask for fewer, or train with a higher train.{key}."
        )


def write_average(run: RunFolder, out_dir: Path, *, steps: Sequence[int]) -> ModelFolder:
    """Write a model folder with the mean of the weights of some kept steps; its quality is not measured."""
    weights = average_weights([weights_path(run.weights_folder, step) for step in steps])
    report, progress, config = run.prepared.report, run.progress, run.config
    is_last = max(steps) == progress.step
    folder_config = describe_folder(
        config,
        run.prepared,
        TrainingSummary(
            steps=max(steps),
            epochs=epochs_done(config.train, progress, run.prepared.store("train")) if is_last else 0.0,
            seconds=progress.seconds if is_last else 0.0,
            precision=progress.precision,
            seed=config.train.seed,
            pairs=report.train.pairs,
            parent=config.train.init,
        ),
    )
    card = write_card(
        folder_config, config, num_parameters=count_parameters(folder_config.model).total, folder_name=str(out_dir)
    )
    return write_folder(
        out_dir,
        config=folder_config,
        weights=weights,
        source_tokenizer=run.prepared.source_tokenizer,
        target_tokenizer=run.prepared.target_tokenizer,
        card=card,
    )


def describe_folder(config: RunConfig, prepared: Prepared, training: TrainingSummary) -> FolderConfig:
    """What ``config.json`` of a run's model folder says."""
    return FolderConfig(
        source_language=config.data.source_language,
        target_language=config.data.target_language,
        model=real_model(config, prepared),
        search=config.search,
        text=config.text,
        max_source_tokens=_longest_read(config, prepared),
        tags=prepared.known_tags(),
        parsing=config.parsing if config.is_parser else None,
        labels=prepared.report.labels,
        training=training,
    )


def _longest_read(config: RunConfig, prepared: Prepared) -> int:
    """Tokens of the longest text that the model was given to read, EOS counted."""
    store = prepared.store("train")
    return int(store.target_lengths.max()) + 1 if config.reads == "text" else longest_source(store)


def longest_source(store: Store) -> int:
    """Tokens of the longest source, EOS counted."""
    return int(store.source_lengths.max()) + 1


def epochs_done(train: TrainConfig, progress: Progress, store: Store) -> float:
    """Passes over the training text so far, the part of the last one counted."""
    steps = plan_epoch(store, batch_tokens=train.batch_tokens, seed=train.seed, epoch=progress.epoch)
    return progress.epoch + progress.epoch_step / len(steps)


def real_model(config: RunConfig, prepared: Prepared) -> ModelConfig:
    """The recipe's model with what the corpus gave: the vocabulary sizes, and what else it says of its tokens."""
    one_table = config.text.shared_vocabulary or config.model.embedding_sharing == "all"
    found: dict[str, int | str | None] = {
        "vocab_size": prepared.report.target_vocab_size,
        "source_vocab_size": None if one_table else prepared.report.source_vocab_size,
    }
    if config.model.architecture == "encoder_only":
        found["num_classes"] = NEXT_CLASSES if config.train.next_sentence else len(prepared.report.labels) or None
    if config.model.counts_words:
        found["source_word_starts"] = write_bits(source_word_starts(prepared.source_tokenizer, config.parsing))
        found["target_word_starts"] = write_bits(target_word_starts(prepared.target_tokenizer))
    return config.model.model_copy(update=found)
