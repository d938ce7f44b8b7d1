"""metrics/sentence_bleu.py: counts by hand, and sums that give sacreBLEU's own corpus score."""

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU

from headway.errors import MetricError
from headway.metrics.sentence_bleu import bleu_counts, bleu_of

REFERENCES = [
    "the cat sat on the mat .",
    "a dog runs in the park today .",
    "two men talk",
    "nothing here is alike at all , is it ?",
    "The END .",
]
HYPOTHESES = ["the cat sat on a mat .", "a dog runs in the park .", "two men are talking", "", "the end ."]


def test_the_counts_of_one_sentence_by_hand():
    # the cat sat on a mat . / the cat sat on the mat .
    (row,) = bleu_counts(HYPOTHESES[:1], REFERENCES[:1], tokenize="none")
    assert row.tolist() == [7, 7, 6, 4, 2, 1, 7, 6, 5, 4]


@pytest.mark.parametrize("lowercase", [False, True])
@pytest.mark.parametrize("tokenize", ["none", "13a", "char"])
def test_sums_give_the_corpus_score_of_any_selection(tokenize, lowercase):
    counts = bleu_counts(HYPOTHESES, REFERENCES, tokenize=tokenize, lowercase=lowercase)
    metric = BLEU(tokenize=tokenize, lowercase=lowercase, force=True)
    for chosen in ([0, 1, 2, 3, 4], [0, 0, 1], [1, 4, 4, 2], [2, 4], [3]):
        wanted = metric.corpus_score([HYPOTHESES[i] for i in chosen], [[REFERENCES[i] for i in chosen]]).score
        assert bleu_of(counts[chosen].sum(axis=0)) == pytest.approx(wanted, abs=1e-9)


def test_a_corpus_without_a_word_has_no_bleu():
    assert bleu_of(np.zeros(10)) == 0.0


def test_unequal_counts_are_refused():
    with pytest.raises(MetricError, match="2 hypotheses against 1 references"):
        bleu_counts(["a", "b"], ["a"])
