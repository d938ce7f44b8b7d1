"""A finished output of a search."""

from collections.abc import Sequence
from dataclasses import dataclass

from headway.errors import ModelError


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


def check_hypotheses(results: Sequence[Sequence[Hypothesis]]) -> None:
    """Refuse probabilities that are no numbers, or outputs that cannot exist. Raises ModelError."""
    for sentence, hypotheses in enumerate(results, start=1):
        if not hypotheses or not all(abs(hypothesis.log_prob) < float("inf") for hypothesis in hypotheses):
            raise ModelError(
                f"search: sentence {sentence}: no output has a finite log-probability. "
                "The weights may be damaged or not finite; take another checkpoint."
            )
