"""A finished output of a search."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """``token_ids`` has no BOS and ends in EOS; ``log_prob`` is their sum of natural logs, ``score`` that by length.

    ``is_cut``: it ends at the last allowed position, where only EOS may stand, so the text may be incomplete.
    """

    token_ids: tuple[int, ...]
    log_prob: float
    score: float
    is_cut: bool = False
