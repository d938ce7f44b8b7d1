"""Outputs that are trees, as a search is told of them; no torch.

A tree is written depth first: a token opens a node, another closes it, and a leaf stands for one word.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from headway.errors import TranslationError
from headway.search.settings import SearchSettings


@dataclass(frozen=True, slots=True)
class Brackets:
    """Which tokens, of so many, write trees. The n-th of ``closing`` closes what the n-th of ``opening`` opens."""

    opening: tuple[int, ...]
    closing: tuple[int, ...]
    leaves: tuple[int, ...]
    vocab_size: int

    def __post_init__(self) -> None:
        tokens = (*self.opening, *self.closing, *self.leaves)
        assert len(self.opening) == len(self.closing), "each bracket has its other half"
        assert len(set(tokens)) == len(tokens), "a token has one meaning"


@dataclass(frozen=True, slots=True)
class TreeForm:
    """What every output must be: nodes that are closed, none of them empty, and exactly these leaves.

    ``leaves_B`` has a token for each leaf of each sentence, 0 (PAD) where any leaf may stand. ``max_openings``: so many
    nodes may open in a row. Without such a rule a search that finds every leaf improbable puts it off, opening
    one node in another, up to the limit. ``leaf_reward``: nats that a hypothesis under way gains for each leaf that it
    has, where a beam ranks it. All whole trees have as many leaves, so nothing changes between them; without it a
    hypothesis that has come further has paid for more, and those that put a leaf off take its place.
    """

    brackets: Brackets
    leaves_B: Sequence[Sequence[int]]
    max_openings: int | None = None
    leaf_reward: float = 0.0


def check_form(form: TreeForm, limits: Sequence[int], settings: SearchSettings, *, has_others: bool) -> None:
    """Refuse what no tree can meet. ``has_others``: outputs are to begin with or contain something too.

    Raises TranslationError.
    """
    if len(form.leaves_B) != len(limits):
        raise TranslationError(
            f"search/tree_form: the form has leaves for {len(form.leaves_B):,} sentences, and there are "
            f"{len(limits):,}; wanted equal counts. Give the leaves of each sentence."
        )
    if has_others or settings.no_repeat_ngram:
        raise TranslationError(
            "search/tree_form: outputs that must be trees cannot also be led to prefixes or phrases, or kept from "
            "repeating. Leave the prefixes and phrases out, and set search.no_repeat_ngram to 0."
        )
    if not 0.0 <= form.leaf_reward < float("inf"):
        raise TranslationError(
            f"search/tree_form: the reward of a leaf is {form.leaf_reward}; wanted a number of nats from 0 up."
        )
    if form.leaf_reward and (settings.sampling is not None or settings.diversity is not None):
        raise TranslationError(
            "search/tree_form: a reward of leaves ranks the hypotheses of a plain beam; found sampling or diversity "
            "groups. Leave one of the two out."
        )
    if not form.brackets.leaves or not form.brackets.opening:
        raise TranslationError(
            f"search/tree_form: the vocabulary has {len(form.brackets.opening)} labels and "
            f"{len(form.brackets.leaves)} leaves; wanted 1 or more of each to write trees. Train on a treebank."
        )
    for sentence, (leaves, limit) in enumerate(zip(form.leaves_B, limits, strict=True), start=1):
        if limit < len(leaves) + 1:
            raise TranslationError(
                f"search/tree_form: sentence {sentence}: {len(leaves):,} words, and an output may have {limit:,} "
                f"tokens, end of sentence counted; its tree needs {len(leaves) + 1:,} or more. "
                "Raise search.max_extra_tokens, or take a model with more positions."
            )
