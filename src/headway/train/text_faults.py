"""What is wrong with the texts of a run: validation text that was trained on, and characters nobody can write."""

from headway.config.schema import RunConfig
from headway.corpus.finding import percent
from headway.corpus.overlap import Overlap
from headway.train.look import FEWEST_OUTPUTS, Look
from headway.train.trouble import Trouble


def overlap(look: Look) -> Trouble | None:
    """Told again beside the first scores, which it makes too good."""
    return overlap_trouble(look.overlap, config=look.config, again=not look.history.validations)


def overlap_trouble(overlap: Overlap, *, config: RunConfig, again: bool = False) -> Trouble | None:
    """One validation pair in a hundred, or one source in ten, stands in the training text too.

    Multi30k has 1 source of 1,014. Short texts of interfaces share sources by nature, so these count from a tenth on.
    """
    pairs, sources = overlap.pairs / max(overlap.num_pairs, 1), overlap.sources / max(overlap.num_pairs, 1)
    if pairs < 0.01 and sources < 0.1:
        return None
    whole = f"the training text holds {overlap.pairs:,} of {overlap.num_pairs:,} validation"
    alike = f"{overlap.sources:,} of"
    if config.reads == "labelled":
        seen = f"{whole} texts with their labels ({percent(pairs)}) and {alike} the texts ({percent(sources)})"
    elif config.reads != "pairs":
        seen = f"{whole} lines ({percent(pairs)})"
    else:
        seen = f"{whole} pairs ({percent(pairs)}) and {alike} their sources ({percent(sources)})"
    named = " (headway audit --against names them)" if config.translates else ""
    text = (
        f"{seen}: validation scores are too good to be true for new text. Take these lines out of the training text"
        f"{named}, or validate on another"
    )
    return Trouble(max(pairs, sources), text, again=again)


def unknown(look: Look) -> Trouble | None:
    """One validation source in twenty has a token that the vocabulary lacks."""
    if look.signs.unknown < FEWEST_OUTPUTS or look.signs.unknown < 0.05 * look.signs.outputs:
        return None
    share = look.signs.unknown / look.signs.outputs
    text = (
        f"{look.signs.unknown:,} of {look.signs.outputs:,} validation sources have characters that the vocabulary "
        f"lacks ({percent(share)}): the model sees <unk> in their place. Set text.byte_fallback = true, or a larger "
        "model.vocab_size, and train anew"
    )
    return Trouble(share, text)
