"""The mean of several checkpoints' weights (Section 6.1)."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from headway.errors import CheckpointError
from headway.folder.weights import read_weights


def average_weights(paths: Sequence[Path]) -> dict[str, np.ndarray]:
    """The arithmetic mean of every array over all files, summed in float64, as float32.

    CheckpointError when there is no file, or when the files are not of one model.
    """
    if not paths:
        raise CheckpointError("checkpoint/average: no weights to average. Remedy: train until a checkpoint is written")
    first = read_weights(paths[0])
    total = {name: array.astype(np.float64) for name, array in first.items()}
    for path in paths[1:]:
        weights = read_weights(path)
        different = [name for name in total if name not in weights or weights[name].shape != total[name].shape]
        if different or len(weights) != len(total):
            raise CheckpointError(
                f"checkpoint/average: {path} and {paths[0]} are not of one model; first difference: "
                f"{(different or sorted(weights.keys() - total.keys()))[0]}. Remedy: average checkpoints of one run"
            )
        for name in total:
            total[name] += weights[name]
    return {name: (array / len(paths)).astype(np.float32) for name, array in total.items()}
