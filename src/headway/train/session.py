"""A run under way: the model, its optimizer, where the run stands, and its files."""

import math
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils import get_total_norm

from headway.checkpoint.keep import remove_others, save_weights, steps_to_keep
from headway.checkpoint.run_folder import longest_source, real_model
from headway.checkpoint.state import Progress, TrainingState, save_state
from headway.config.model_config import ModelConfig
from headway.config.schema import RunConfig
from headway.data.batching import Step, plan_epoch
from headway.data.prepare import Prepared
from headway.data.segmentation import Segmentation
from headway.data.store import Store
from headway.errors import ConfigError, TrainingError
from headway.model.build import build_model, export_weights, load_weights
from headway.model.token_model import TokenModel
from headway.train.adapt import with_own_classes
from headway.train.distributed import ALONE, Group, is_sharded
from headway.train.division import longest_pair
from headway.train.freeze import freeze
from headway.train.low_rank import add_low_rank, has_low_rank, merged_weights
from headway.train.moving_average import MovingAverage
from headway.train.optimizer import Optimizer, build_optimizer, counted_weights, export_moments, load_moments
from headway.train.schedule_free import ScheduleFree
from headway.train.sharding import shard, whole, whole_weights
from headway.translate.backend import choose_device


@dataclass
class Session:
    """Everything a run has in its hands. ``progress`` is replaced while it goes on, and the model once it is over."""

    config: RunConfig
    folder: Path  # of the training files, inside the model folder
    prepared: Prepared
    store: Store
    model_config: ModelConfig  # with the real vocabulary sizes
    model: TokenModel
    optimizer: Optimizer
    device: torch.device
    progress: Progress
    group: Group = ALONE
    average: MovingAverage | None = None
    is_settled: bool = False  # training is over, and the model is the one that counts
    frozen: tuple[str, ...] = ()  # what there is to tell of weights that are not trained

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

    @property
    def microbatch_tokens(self) -> int | None:
        """The most that one forward and backward holds: the recipe's, or what the number of processes asks for."""
        return self.config.train.microbatch_tokens or self.progress.microbatch_tokens

    def first_epoch(self) -> Sequence[Step]:
        """The steps of the first epoch; others have about as many."""
        train = self.config.train
        return plan_epoch(
            self.store,
            batch_tokens=train.batch_tokens,
            microbatch_tokens=self.microbatch_tokens,
            seed=train.seed,
            epoch=0,
        )

    @property
    def is_sharded(self) -> bool:
        """Whether each rank holds a part of every parameter only."""
        return any(is_sharded(parameter) for parameter in self.model.parameters())

    @property
    def _gathers(self) -> bool:
        """Whether this rank has a hand in what is written."""
        return self.group.is_first or self.is_sharded

    def _counted(self) -> Mapping[str, Tensor]:
        """The weights that count where they are others than those in training: what is validated, kept and written."""
        if self.is_settled:
            return {}
        return counted_weights(self.model, self.optimizer) if self.average is None else self.average.values

    def whole_model(self) -> TokenModel:
        """The model that counts: itself, or a plain copy where it is sharded, averaged or has low-rank additions."""
        is_averaged = self.average is not None or isinstance(self.optimizer, ScheduleFree)
        if self.is_settled or not (is_averaged or self.is_sharded or has_low_rank(self.model)):
            return self.model
        model = build_model(self.model_config)
        load_weights(model, self._plain_weights())
        return model.to(self.device)

    def _plain_weights(self) -> dict[str, np.ndarray]:
        """The weights that count, of a whole, plain model; of a sharded one all ranks ask."""
        with in_place(self.model, self._counted()):
            return merged_weights(self.model) if has_low_rank(self.model) else whole_weights(self.model)

    def settle(self) -> None:
        """Training is over: the model becomes the one that counts."""
        self.model = self.whole_model()
        self.is_settled = True

    def check_finite(self) -> None:
        """Raise TrainingError where the last update has left weights that are not finite: such a state is not kept."""
        norm = whole(get_total_norm(self.model.parameters())).item()
        if not math.isfinite(norm):
            raise TrainingError(
                f"train/session: after step {self.progress.step:,} the norm of all weights is {norm}, though loss and "
                "gradient were finite: the update was too large. The last training state is good. Remedy: lower "
                "train.learning_rate or raise train.warmup_steps; or set train.clip_norm = 1.0"
            )

    def save(self) -> Path:
        """Write the training state of this moment: all ranks call this, the first one writes."""
        if not self._gathers:
            return self.states_folder
        tensors = {f"model/{name}": array for name, array in whole_weights(self.model).items()}
        tensors.update(export_moments(self.model, self.optimizer))
        if self.average is not None:
            tensors.update(self.average.export())
        state = TrainingState(self.progress, tensors)
        return save_state(self.states_folder, state) if self.group.is_first else self.states_folder

    def keep_weights(self) -> None:
        """Write the weights of this step and delete those that are neither among the last nor among the best.

        All ranks call this, the first one writes.
        """
        train = self.config.train
        step = self.progress.step
        if self._gathers:
            weights = self._plain_weights()
            if self.group.is_first:
                save_weights(self.weights_folder, step, weights=weights)
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
        if self.group.is_first:
            remove_others(self.weights_folder, self.progress.kept_weights)


@contextmanager
def in_place(model: nn.Module, weights: Mapping[str, Tensor]) -> Generator[None]:
    """Within the block these parameters of the model have other values; then their own again, to the bit."""
    parameters = {name: parameter for name, parameter in model.named_parameters() if name in weights}
    own = {name: parameter.detach().clone() for name, parameter in parameters.items()}
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(weights[name])
    try:
        yield
    finally:
        with torch.no_grad():
            for name, parameter in parameters.items():
                parameter.copy_(own[name])


def open_session(
    config: RunConfig,
    folder: Path,
    *,
    prepared: Prepared,
    progress: Progress,
    state: TrainingState | None = None,
    initial: Mapping[str, np.ndarray] | None = None,
    group: Group = ALONE,
) -> Session:
    """A run at ``progress``: weights and moments of ``state``; before the first step those of ``initial``, or drawn."""
    device = rank_device(config.train.device, group)
    model_config = real_model(config, prepared)
    model = build_model(model_config, seed=config.train.seed).to(device)
    if initial is not None and state is None:
        load_weights(model, with_own_classes(initial, export_weights(model)))
    if config.train.lora_rank is not None:
        add_low_rank(model, config.train.lora_rank, alpha=config.train.lora_alpha, seed=config.train.seed)
    told = freeze(model, config.train.freeze)
    if state is not None:
        load_weights(model, state.part("model"))
    if config.train.sharding == "fsdp" and group.world_size > 1:
        shard(model)
    optimizer = build_optimizer(model, config.train)
    if state is not None and state.progress.step > 0:
        load_moments(model, optimizer, moments=state.tensors, step=state.progress.step)
    average = None
    if config.train.moving_average is not None:
        average = MovingAverage(model, config.train.moving_average)
        if state is not None:
            average.load(state.tensors)
    return Session(
        config=config,
        folder=folder,
        prepared=prepared,
        store=prepared.store("train"),
        model_config=model_config,
        model=model,
        optimizer=optimizer,
        device=device,
        progress=progress,
        group=group,
        average=average,
        frozen=tuple(told),
    )


def rank_device(name: str, group: Group) -> torch.device:
    """The device of this process: of several on a machine with GPUs each takes its own.

    Raises TranslationError for a device that is not there, TrainingError where there are too few.
    """
    device = choose_device(name)
    if group.world_size == 1 or device.type == "cpu":
        return device
    count = torch.cuda.device_count() if device.type == "cuda" else 1
    if device.type != "cuda" or group.local_rank >= count:
        raise TrainingError(
            f"train/session: process {group.local_rank + 1} of this machine finds {count} device(s) of kind "
            f"{device.type}; wanted one each. Remedy: start as many processes as there are GPUs "
            "(torchrun --nproc-per-node), or set train.device = cpu"
        )
    torch.cuda.set_device(group.local_rank)
    return torch.device("cuda", group.local_rank)


def _longest_input(store: Store, config: RunConfig) -> int:
    """The most tokens that the model reads at once, BOS and EOS counted."""
    source, target = store.source_lengths, store.target_lengths
    if config.model.architecture != "encoder_only":
        return 1 + max(int(source.max()), int(target.max()))
    if config.reads == "consecutive":
        return 3 + int((source + target).max())
    return 2 + int((source if config.reads == "labelled" else target).max())


def check_fit(config: RunConfig, prepared: Prepared) -> None:
    """Refuse what would fail only after a run has begun.

    Raises TranslationError for a device that is not there, TextError for BPE-dropout with a vocabulary (of train.init)
    that has no merges, ConfigError for a sentence longer than a learned table, or than a step or microbatch may be.
    """
    choose_device(config.train.device)
    Segmentation.of(config, prepared)
    _check_budgets(config, longest_pair(prepared.store("train")))
    model = config.model
    if model.positions != "learned":
        return
    longest = max(_longest_input(prepared.store(part), config) for part in ("train", "validation"))
    if longest > model.max_positions:
        raise ConfigError(
            f"train/session: the longest sentence has {longest:,} tokens, EOS counted; model.max_positions is "
            f"{model.max_positions:,} and model.positions learned. Set model.max_positions to {longest} or more, or "
            f"data.max_tokens to {model.max_positions} or less."
        )


def _check_budgets(config: RunConfig, longest: int) -> None:
    train = config.train
    budgets = {"train.batch_tokens": train.batch_tokens, "train.microbatch_tokens": train.microbatch_tokens}
    for name, budget in budgets.items():
        if budget is not None and longest > budget:
            raise ConfigError(
                f"train/session: the longest sentence of the training text has {longest:,} tokens, EOS counted; "
                f"{name} is {budget:,}. Set {name} to {longest} or more, or data.max_tokens to {budget} or less."
            )
