"""Scores of all pairs, held to sacreBLEU's sentence scores."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from headway.metrics.pairwise import UTILITIES, pairwise_bleu, pairwise_chrf

SENTENCES = [
    "The cat sat on the mat.",
    "the cat sat on the mat",
    "A cat sat on a mat, didn't it?",
    "the the the the the the the",
    "mat",
    "a mat",
    "",
    "   ",
    "Der Hund schläft; 3.5 kg & mehr …",
    "猫坐在垫子上。",
    "zzz zzz",
]
TEXT = st.lists(st.sampled_from(["the", "cat", "mat", "a", "x.", "aaaa", "é"]), max_size=9).map(" ".join)
SACREBLEU = {"chrf": CHRF(), "bleu": BLEU(effective_order=True)}


def by_sacrebleu(name, texts):
    metric = SACREBLEU[name]
    return np.array([[metric.sentence_score(one, [other]).score for other in texts] for one in texts])


@pytest.mark.parametrize("name", UTILITIES)
def test_the_scores_are_sacrebleus(name):
    assert UTILITIES[name](SENTENCES, "de") == pytest.approx(by_sacrebleu(name, SENTENCES), abs=1e-9)


@pytest.mark.parametrize("name", UTILITIES)
@settings(max_examples=40, deadline=None)
@given(texts=st.lists(TEXT, min_size=1, max_size=5))
def test_the_scores_are_sacrebleus_for_any_texts(name, texts):
    assert UTILITIES[name](texts, "") == pytest.approx(by_sacrebleu(name, texts), abs=1e-9)


def test_the_words_of_chinese_are_its_characters():
    texts = ["猫坐在垫子上。", "狗坐在垫子上。"]
    expected = BLEU(effective_order=True, tokenize="zh").sentence_score(texts[0], [texts[1]]).score
    assert pairwise_bleu(texts, "zh")[0, 1] == pytest.approx(expected)
    assert pairwise_bleu(texts, "")[0, 1] < expected


def test_a_text_is_most_like_itself():
    assert np.diag(pairwise_chrf(["the cat sat", "on", "a mat"])).tolist() == [100.0, 100.0, 100.0]
