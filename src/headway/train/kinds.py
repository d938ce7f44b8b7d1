"""The kinds of trouble that a run is looked at for, by name. Names are stable: they stand in ``metrics.jsonl``."""

from collections.abc import Callable
from dataclasses import dataclass

from headway.train.course import attention, gradients_grow, loss_rises, overfitting, spikes, stuck
from headway.train.look import Look
from headway.train.output_faults import copies, cut, empty, length, repeats, same_output
from headway.train.score_faults import scores
from headway.train.text_faults import overlap, unknown
from headway.train.trouble import Trouble


@dataclass(frozen=True, slots=True)
class Kind:
    """What finds it, and whether it shows in outputs; of a run that is ``lost``, outputs show nothing of their own."""

    find: Callable[[Look], Trouble | None]
    of_outputs: bool = False
    is_lost: bool = False


# In the order in which they are told.
KINDS: dict[str, Kind] = {
    "overlap": Kind(overlap),
    "loss-rises": Kind(loss_rises, is_lost=True),
    "stuck": Kind(stuck, is_lost=True),
    "gradients-grow": Kind(gradients_grow, is_lost=True),
    "loss-spike": Kind(spikes),
    "attention": Kind(attention),
    "scores": Kind(scores, of_outputs=True),
    "empty": Kind(empty, of_outputs=True),
    "repeats": Kind(repeats, of_outputs=True),
    "same-output": Kind(same_output, of_outputs=True),
    "copies": Kind(copies, of_outputs=True),
    "length": Kind(length, of_outputs=True),
    "cut": Kind(cut, of_outputs=True),
    "unknown": Kind(unknown),
    "overfitting": Kind(overfitting),
}
AT_START = ("overlap", "labels")  # told before the first step; labels there alone
NAMES = (*AT_START, *(name for name in KINDS if name not in AT_START))


def find(look: Look) -> dict[str, Trouble]:
    """What a validation shows, in the order in which it is told.

    Outputs of a parser are rows of a few symbols, which repeat and resemble each other as no text does; models of one
    text have none.
    """
    looked_for = {name: kind for name, kind in KINDS.items() if look.config.translates or not kind.of_outputs}
    found = {name: trouble for name, kind in looked_for.items() if (trouble := kind.find(look)) is not None}
    if any(KINDS[name].is_lost for name in found):
        return {name: trouble for name, trouble in found.items() if not KINDS[name].of_outputs}
    return found
