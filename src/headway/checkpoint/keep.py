"""Which steps' weights stay on the disk: the last k and the best k."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from headway.checkpoint.state import Scores
from headway.config.train_config import TrainConfig
from headway.folder.atomic import SUFFIX
from headway.folder.weights import write_weights

HIGHER_IS_BETTER = {"loss": False, "perplexity": False, "accuracy": True, "bleu": True, "chrf": True, "f1": True}


def weights_path(folder: Path, step: int) -> Path:
    """The file that holds the weights after ``step``."""
    return folder / f"weights-{step:08d}.safetensors"


def save_weights(folder: Path, step: int, *, weights: dict[str, np.ndarray]) -> None:
    """Write the weights of a step, whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    write_weights(weights_path(folder, step), weights)


def best_steps(validations: Sequence[Scores], by: str, *, count: int) -> list[int]:
    """The steps with the best scores, the best first; of equals that with the lower loss, then the earlier.

    While a model learns its first words, BLEU is 0 for all steps, and the loss alone tells them apart.
    """
    sign = -1.0 if HIGHER_IS_BETTER[by] else 1.0
    ranked = sorted(validations, key=lambda scores: (sign * getattr(scores, by), scores.loss, scores.step))
    return [scores.step for scores in ranked[:count]]


def steps_to_keep(
    written: Sequence[int], validations: Sequence[Scores], *, keep_last: int, keep_best: int, by: str
) -> list[int]:
    """Of the steps whose weights are written: the last ``keep_last`` and the best ``keep_best``, in order."""
    best = best_steps([scores for scores in validations if scores.step in written], by, count=keep_best)
    return sorted({*sorted(written)[-keep_last:], *best})


def averaged_steps(kept: Sequence[int], validations: Sequence[Scores], train: TrainConfig) -> list[int]:
    """Of the steps whose weights are kept: those that the recipe averages, as many of them as there are."""
    if train.average == "last":
        return sorted(kept)[-train.average_count :]
    if train.average == "best":
        validated = [scores for scores in validations if scores.step in kept]
        return best_steps(validated, train.best_by, count=train.average_count)
    return []


def remove_others(folder: Path, kept: Sequence[int]) -> None:
    """Delete weights of steps that are not kept."""
    wanted = {weights_path(folder, step) for step in kept}
    for path in folder.glob(f"weights-*.safetensors{SUFFIX}"):
        path.unlink()  # what a kill left half written
    for path in folder.glob("weights-*.safetensors"):
        if path not in wanted:
            path.unlink()
