"""A finished output of a search."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """``token_ids`` has no BOS and ends in EOS; ``log_prob`` is their sum of natural logs, ``score`` that by length.

    ``is_cut``: it ends at the last allowed position, where only EOS may stand, so the text may be incomplete.
    ``count``: how many samples gave it; 1 from a search. ``phrases_met``: every phrase asked for is in it.
    """

    token_ids: tuple[int, ...]
    log_prob: float
    score: float
    is_cut: bool = False
    count: int = 1
    phrases_met: bool = True
