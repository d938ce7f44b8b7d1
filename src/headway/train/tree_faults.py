"""What is wrong with the treebank of a run: labels that stand for tags of words as well as for phrases."""

import numpy as np
import numpy.typing as npt

from headway.data.store import Store
from headway.text.tokenizer import Tokenizer
from headway.train.trouble import Trouble
from headway.translate.parser import brackets_of

NUM_NAMED = 5


def label_trouble(trees: Store, tokenizer: Tokenizer) -> Trouble | None:
    """A symbol that opens phrases is a word's tag in some tree: search among trees does not find such tags.

    ``trees``: the training text, whose targets are symbols of ``tokenizer``.
    """
    brackets = brackets_of(tokenizer)
    closing = np.full(tokenizer.vocab_size, -1)
    closing[list(brackets.opening)] = brackets.closing
    with_tags = [_tags(np.asarray(trees.target(index)), closing) for index in range(len(trees))]
    num_trees = sum(bool(tags) for tags in with_tags)
    if not num_trees:
        return None
    names = sorted(tokenizer.names[token_id].removeprefix(" ") for token_id in set().union(*with_tags))
    named = ", ".join(names[:NUM_NAMED]) + (f" and {len(names) - NUM_NAMED:,} more" if len(names) > NUM_NAMED else "")
    text = (
        f"{num_trees:,} of {len(trees):,} training trees have words whose tag is the label of phrases too ({named}): "
        "search among trees takes it for a phrase, and never writes it as a tag. Correct these trees, rename tags "
        "or phrases, or set parsing.constrained = false"
    )
    return Trouble(num_trees / len(trees), text)


def _tags(ids: npt.NDArray[np.integer], closing: npt.NDArray[np.integer]) -> set[int]:
    """The opening tokens of a tree that stand for a word in it: closed at once, or not at all."""
    at_once = ids[:-1][closing[ids[:-1]] == ids[1:]]
    counts = np.bincount(ids, minlength=len(closing))
    opening = np.flatnonzero(closing >= 0)
    unclosed = opening[counts[opening] != counts[closing[opening]]]
    return {*at_once.tolist(), *unclosed.tolist()}
