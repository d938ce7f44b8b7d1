"""Random numbers that are the same in every call, and leave torch's own stream as it was."""

from collections.abc import Generator
from contextlib import contextmanager

import torch

SEED = 5


@contextmanager
def seeded(seed: int = SEED) -> Generator[None]:
    """Within the block torch draws from ``seed``; afterwards it goes on where it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield
