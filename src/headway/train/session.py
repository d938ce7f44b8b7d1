"""A run under way: the model, its optimizer, where the run stands, and its files."""

from dataclasses import dataclass
from pathlib import Path

import torch

from headway.checkpoint.keep import remove_others, save_weights, steps_to_keep
from headway.checkpoint.run_folder import longest_source, real_model
from headway.checkpoint.state import Progress, TrainingState, save_state
from headway.config.schema import ModelConfig, RunConfig
from headway.data.prepare import Prepared
from headway.data.store import Store
from headway.errors import ConfigError
from headway.model.build import build_transformer, export_weights, load_weights
from headway.model.transformer import Transformer
from headway.train.optimizer import build_adam, export_moments, load_moments
from headway.translate.backend import choose_device


@dataclass
class Session:
    """Everything a run has in its hands. Only ``progress`` is replaced while it goes on."""

    config: RunConfig
    folder: Path  # of the training files, inside the model folder
    prepared: Prepared
    store: Store
    model_config: ModelConfig  # with the real vocabulary sizes
    model: Transformer
    optimizer: torch.optim.Adam
    device: torch.device
    progress: Progress

    @property
    def max_source_tokens(self) -> int:
        """The longest source trained on, EOS counted."""
        return longest_source(self.store)

    @property
    def states_folder(self) -> Path:
        """Where the training states lie."""
        return self.folder / "states"

    @property
    def weights_folder(self) -> Path:
        """Where the weights of kept steps lie."""
        return self.folder / "weights"

    def restore(self, state: TrainingState) -> None:
        """Take weights, moments and progress from a training state."""
        load_weights(self.model, state.part("model"))
        if state.progress.step > 0:
            load_moments(self.model, self.optimizer, moments=state.tensors, step=state.progress.step)
        self.progress = state.progress

    def save(self) -> Path:
        """Write the training state of this moment."""
        tensors = {f"model/{name}": array for name, array in export_weights(self.model).items()}
        tensors.update(export_moments(self.model, self.optimizer))
        return save_state(self.states_folder, TrainingState(self.progress, tensors))

    def keep_weights(self) -> None:
        """Write the weights of this step and delete those that are neither among the last nor among the best."""
        train = self.config.train
        step = self.progress.step
        save_weights(self.weights_folder, step, weights=export_weights(self.model))
        kept = steps_to_keep(
            [*(kept for kept in self.progress.kept_weights if kept != step), step],
            self.progress.validations,
            keep_last=max(train.keep_last, train.average_count if train.average == "last" else 1),
            keep_best=max(train.keep_best, train.average_count if train.average == "best" else 1),
            by=train.best_by,
        )
        self.progress = self.progress.model_copy(update={"kept_weights": tuple(kept)})

    def drop_weights(self) -> None:
        """Delete weight files that are not kept: after the state that no longer names them is on the disk."""
        remove_others(self.weights_folder, self.progress.kept_weights)


def open_session(config: RunConfig, folder: Path, *, prepared: Prepared, precision: str, threads: int) -> Session:
    """A run before its first step: the model drawn from the seed."""
    device = choose_device(config.train.device)
    model_config = real_model(config, prepared)
    model = build_transformer(model_config, seed=config.train.seed).to(device)
    return Session(
        config=config,
        folder=folder,
        prepared=prepared,
        store=prepared.store("train"),
        model_config=model_config,
        model=model,
        optimizer=build_adam(model, config.train),
        device=device,
        progress=Progress(precision=precision, threads=threads, data_digest=prepared.report.digest),
    )


def check_fit(config: RunConfig, prepared: Prepared) -> None:
    """Refuse what would fail only after a run has begun.

    Raises TranslationError for a device that is not there, ConfigError for a sentence longer than a learned table.
    """
    choose_device(config.train.device)
    model = config.model
    if model.positions != "learned":
        return
    stores = [prepared.store(part) for part in ("train", "validation")]
    longest = 1 + max(
        int(lengths.max()) for store in stores for lengths in (store.source_lengths, store.target_lengths)
    )
    if longest > model.max_positions:
        raise ConfigError(
            f"train/session: the longest sentence has {longest:,} tokens, EOS counted; model.max_positions is "
            f"{model.max_positions:,} and model.positions learned. Set model.max_positions to {longest} or more, or "
            f"data.max_tokens to {model.max_positions} or less."
        )
