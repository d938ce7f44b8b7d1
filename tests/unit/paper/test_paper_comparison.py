"""Differences of runs on text: over the same sentences, and over seeds where there are enough of these."""

import numpy as np
import pytest
from studies import make_study

from headway.paper import averaging, comparison, smoothing, subwords
from headway.paper.comparison import _claim, _row
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
    claim = _claim(averaging.AGAINST[0], NAMES, rows(seeds, GOOD, BAD), seeds)
    assert [part.difference.over for part in claim.parts] == [over, over]
    bleu, perplexity = (part.difference.value for part in claim.parts)
    assert bleu > 0
    assert perplexity == pytest.approx(np.exp(1.0) - np.exp(1.1))
    assert claim.verdict == Verdict.HOLDS


def test_worse_weights_are_told_to_be_worse_in_both():
    claim = _claim(averaging.AGAINST[0], NAMES, rows([1], BAD, GOOD), range(1, 2))
    assert [part.verdict for part in claim.parts] == [Verdict.DOES_NOT_HOLD] * 2
    assert token_perplexity(np.array(BAD).sum(axis=0)) == pytest.approx(np.exp(1.1))


def of_variants(**given):
    """Rows of one seed: what the mean of each variant's weights made of the text."""
    return {f"text-{name}-seed1": {"average": counts, "last": counts} for name, counts in given.items()}


def verdicts(study, made):
    """The verdict of each part of a study's claims, with what it says."""
    names = {side: side[0] for claim in study.AGAINST for side in (claim.these, claim.those)}
    claims = [_claim(against, names, made, range(1, 2)) for against in study.AGAINST]
    return {f"{claim.name}: {part.what}": part.verdict.value for claim in claims for part in claim.parts}


# The mean over sentences hides nothing: a side is better in all of them, or worse.
BETTER = counts(-6.0, matched=3)
UNSURE = counts(-6.6, matched=3)  # as BETTER, but less probable
WORSE = counts(-6.6, matched=2)


def test_smoothing_is_claimed_to_hurt_perplexity_and_to_help_accuracy_and_bleu():
    smoothed = [[*row[:12], row[12] + 1, row[13]] for row in UNSURE]  # one more token right a sentence
    plain = [[*row[:10], row[10], *row[11:]] for row in counts(-6.0, matched=2)]
    found = verdicts(smoothing, of_variants(base=smoothed, unsmoothed=plain))
    assert found == {
        "smoothing: perplexity, base against unsmoothed": "holds",
        "smoothing: tokens right, base against unsmoothed": "holds",
        "smoothing: BLEU, base against unsmoothed": "holds",
    }
    turned = verdicts(smoothing, of_variants(base=plain, unsmoothed=smoothed))
    assert set(turned.values()) == {"does not hold"}


def test_sharing_is_claimed_to_help_in_bleu_and_in_perplexity_a_word_against_each_of_the_others():
    found = verdicts(subwords, of_variants(base=BETTER, unshared=WORSE, separate=WORSE))
    assert found == {
        "matrix: BLEU, base against unshared": "holds",
        "matrix: perplexity a word, base against unshared": "holds",
        "vocabulary: BLEU, base against separate": "holds",
        "vocabulary: perplexity a word, base against separate": "holds",
    }
    mixed = verdicts(subwords, of_variants(base=BETTER, unshared=WORSE, separate=counts(-5.0, matched=4)))
    assert [verdict for name, verdict in mixed.items() if name.startswith("matrix")] == ["holds"] * 2
    assert [verdict for name, verdict in mixed.items() if name.startswith("vocabulary")] == ["does not hold"] * 2


@pytest.mark.parametrize("name", ["averaging", "smoothing", "subwords"])
def test_a_study_asks_for_just_the_variants_that_its_claims_compare(name, tmp_path):
    asked = []

    def refuse(workshop, variants):
        asked.extend(variants)
        return []

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(comparison, "plan", refuse)
        with pytest.raises(KeyError):  # no rows were made
            make_study(name, tmp_path)
    study = {"averaging": averaging, "smoothing": smoothing, "subwords": subwords}[name]
    assert set(asked) == {variant for claim in study.AGAINST for variant, _ in (claim.these, claim.those)}


def test_what_the_paper_prints_of_a_row_stands_beside_what_is_measured():
    weights = ("base", "average")
    assert smoothing.PUBLISHED[weights] == {"perplexity": 4.92, "BLEU": 25.8}
    assert smoothing.PUBLISHED["unsmoothed", "average"] == {"perplexity": 4.67, "BLEU": 25.3}
    row = _row("smoothing 0.1", rows([1], GOOD, BAD), weights, range(1, 2), smoothing.PUBLISHED[weights])
    assert row.cells["perplexity"].published == 4.92
    assert row.cells["perplexity"].measured == pytest.approx(np.exp(1.0))
    assert row.cells["tokens right"].published is None
