"""Differences of runs on text: over the same sentences, and over seeds where there are enough of these."""

import numpy as np
import pytest

from headway.paper.averaging import AGAINST
from headway.paper.comparison import _claim
from headway.paper.text_counts import token_perplexity
from headway.paper.verdict import Verdict

NAMES = {("base", "average"): "mean", ("base", "last"): "last"}


def counts(log_prob, *, matched=3, num_sentences=37):
    """Sentences of 5 words and 6 tokens, some longer, so that not all are alike."""
    row = [5, 5, matched + 1, matched, 2, 1, 5, 4, 3, 2, log_prob, 6, 4, 6]
    return [[value * (1 + place % 3) for value in row] for place in range(num_sentences)]


GOOD, BAD = counts(-6.0), counts(-6.6, matched=2)


def rows(seeds, average, last):
    return {f"text-base-seed{seed}": {"average": average, "last": last} for seed in seeds}


@pytest.mark.parametrize(("num_seeds", "over"), [(1, "37 sentences"), (2, "37 sentences, 2 seeds"), (3, "3 seeds")])
def test_one_or_two_seeds_are_compared_by_sentences_and_more_by_seeds(num_seeds, over):
    seeds = range(1, num_seeds + 1)
    claim = _claim(AGAINST, NAMES, rows(seeds, GOOD, BAD), seeds)
    assert [part.difference.over for part in claim.parts] == [over, over]
    bleu, perplexity = (part.difference.value for part in claim.parts)
    assert bleu > 0
    assert perplexity == pytest.approx(np.exp(1.0) - np.exp(1.1))
    assert claim.verdict == Verdict.HOLDS


def test_worse_weights_are_told_to_be_worse_in_both():
    claim = _claim(AGAINST, NAMES, rows([1], BAD, GOOD), range(1, 2))
    assert [part.verdict for part in claim.parts] == [Verdict.DOES_NOT_HOLD] * 2
    assert token_perplexity(np.array(BAD).sum(axis=0)) == pytest.approx(np.exp(1.1))
