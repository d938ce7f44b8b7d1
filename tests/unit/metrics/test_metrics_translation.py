"""Scores equal sacreBLEU's, their inputs are checked, and what could mislead is said."""

import json
import logging
import math

import pytest
import sacrebleu
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER
from sacrebleu.significance import PairedTest

from headway.errors import MetricError
from headway.metrics import translation
from headway.metrics.translation import compare_translations, score_translations

REFERENCES = [
    "The cat sat on the mat, quietly.",
    "It's 5-6 degrees colder today than yesterday.",
    "Nobody knew where the old road led.",
    "She bought 3,000 apples; he ate two.",
    "Why do rivers bend?",
]
HYPOTHESES = [
    "The cat sat on a mat quietly.",
    "It is 5-6 degrees colder than yesterday.",
    "Nobody knew where the old road led.",
    "she bought 3,000 pears; he ate two of them.",
    "Why do the rivers bend so?",
]
BASELINE = ["The cat.", "It is cold.", "Nobody knew it.", "She bought apples.", "Why rivers?"]


def test_bleu_equals_a_hand_computation():
    # Tokens: a b c d e against a b c d f e. Matches: 5 of 5 unigrams, 3 of 4 bigrams (ab bc cd), 2 of 3, 1 of 2.
    # The output is shorter by one: brevity penalty exp(1 - 6/5).
    scores = score_translations(["a b c d e"], ["a b c d f e"], confidence=False)
    wanted = 100.0 * math.exp(1.0 - 6.0 / 5.0) * (5 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** 0.25
    assert scores.bleu.value == pytest.approx(wanted, rel=1e-12)
    assert scores.length_ratio == 5 / 6
    assert scores.ter is not None
    assert scores.ter.value == pytest.approx(100 / 6)  # one word to insert, six in the reference


@pytest.mark.parametrize("lowercase", [False, True])
@pytest.mark.parametrize(
    ("tokenize", "theirs"), [("auto", "13a"), ("none", "none"), ("intl", "intl"), ("char", "char")]
)
def test_scores_and_signatures_equal_sacrebleu_on_the_same_text(tokenize, theirs, lowercase):
    scores = score_translations(
        HYPOTHESES, REFERENCES, target_language="en", tokenize=tokenize, lowercase=lowercase, num_bootstrap=101
    )
    for ours, metric in (
        (scores.bleu, BLEU(tokenize=theirs, lowercase=lowercase)),
        (scores.chrf, CHRF(lowercase=lowercase)),
        (scores.ter, TER()),
    ):
        wanted = metric.corpus_score(HYPOTHESES, [REFERENCES], n_bootstrap=101)
        assert ours is not None
        assert ours.value == wanted.score
        assert ours.signature == str(metric.get_signature())
        assert (ours.low, ours.high) == pytest.approx((wanted._mean - wanted._ci, wanted._mean + wanted._ci))
        assert ours.low < ours.high


def test_the_default_is_what_the_sacrebleu_functions_give():
    scores = score_translations(HYPOTHESES, REFERENCES, target_language="de", confidence=False)
    assert scores.bleu.value == sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES]).score
    assert scores.chrf.value == sacrebleu.corpus_chrf(HYPOTHESES, [REFERENCES]).score
    assert scores.ter is not None
    assert scores.ter.value == sacrebleu.corpus_ter(HYPOTHESES, [REFERENCES]).score
    assert (scores.bleu.low, scores.bleu.high) == (None, None)


def test_two_calls_give_the_same_intervals():
    first = score_translations(HYPOTHESES, REFERENCES, num_bootstrap=103)
    assert first == score_translations(HYPOTHESES, REFERENCES, num_bootstrap=103)


def test_ter_can_be_left_out():
    assert score_translations(HYPOTHESES, REFERENCES, include_ter=False, confidence=False).ter is None


@pytest.mark.parametrize(
    ("language", "name"), [("zh", "zh"), ("zh-TW", "zh"), ("ZH_hans", "zh"), ("th", "char"), ("fr", "13a"), ("", "13a")]
)
def test_the_tokenizer_follows_the_target_language(language, name):
    scores = score_translations(["猫坐在垫子上。"], ["猫坐在垫子上。"], target_language=language, confidence=False)
    assert f"tok:{name}|" in scores.bleu.signature


def test_chinese_equals_sacrebleu_with_its_chinese_tokenizer():
    hypotheses, references = ["猫坐在垫子上面。", "我们走吧"], ["那只猫坐在垫子上。", "我们走吧！"]
    scores = score_translations(hypotheses, references, target_language="zh", confidence=False)
    assert scores.bleu.value == sacrebleu.corpus_bleu(hypotheses, [references], tokenize="zh").score
    assert scores.bleu.value > 10.0  # as one word a sentence it would be 0


@pytest.mark.parametrize("language", ["ja", "ko"])
def test_an_absent_tokenizer_is_replaced_aloud_or_used(language):
    scores = score_translations(["猫"], ["猫"], target_language=language, confidence=False)
    try:
        BLEU(tokenize=f"{language}-mecab")
    except RuntimeError:
        assert "tok:char|" in scores.bleu.signature
        assert any(f"sacrebleu[{language}]" in warning for warning in scores.warnings)
    else:
        assert f"tok:{language}-mecab" in scores.bleu.signature
        assert scores.warnings == ()


def test_an_unknown_tokenizer_is_refused_with_the_list():
    with pytest.raises(MetricError, match=r"'13b'.*auto.*none.*13a.*intl"):
        score_translations(HYPOTHESES, REFERENCES, tokenize="13b")


def test_unequal_counts_are_refused_with_both_counts():
    # Trap 9: an extra line in position 2 would shift everything after it.
    with pytest.raises(MetricError, match=r"6 hypothesis lines against 5 reference lines"):
        score_translations([HYPOTHESES[0], "", *HYPOTHESES[1:]], REFERENCES)
    with pytest.raises(MetricError, match=r"4 hypothesis lines against 5"):
        score_translations(HYPOTHESES[:-1], REFERENCES)
    with pytest.raises(MetricError, match=r"4 baseline lines against 5"):
        compare_translations(BASELINE[:-1], HYPOTHESES, REFERENCES)


def test_no_sentences_are_refused():
    with pytest.raises(MetricError, match="0 sentences"):
        score_translations([], [])


def test_empty_lines_are_scored_as_they_are():
    scores = score_translations(["", "a b c d"], ["", "a b c d"], confidence=False)
    assert scores.num_sentences == 2
    assert scores.bleu.value == pytest.approx(100.0)
    assert score_translations([""], [""], num_bootstrap=101).length_ratio == 0.0


def test_resamples_without_a_word_do_not_stop_the_interval():
    # sacreBLEU's own corpus_score stops with a TypeError here, when it averages Python's and NumPy's floats.
    scores = score_translations(["", "a b c d"], ["", "a b c e"], num_bootstrap=101)
    assert scores.chrf.low is not None
    assert scores.chrf.low < scores.chrf.value


def test_tokenised_text_on_either_side_is_warned_of_and_scored_as_sacrebleu_scores_it():
    # Trap 17.
    tokenised, plain = ["It &apos;s 5 @-@ 6 ."], ["It's 5-6."]
    scores = score_translations(tokenised, plain, target_language="en", confidence=False)
    assert scores.bleu.value == sacrebleu.corpus_bleu(tokenised, [plain], tokenize="13a").score
    assert len(scores.warnings) == 1
    assert "hypothesis text looks tokenised" in scores.warnings[0]
    clean = score_translations(plain, plain, target_language="en", confidence=False)
    assert clean.warnings == ()
    assert clean.bleu.value > scores.bleu.value
    other = score_translations(plain, tokenised, target_language="en", confidence=False)
    assert "reference text looks tokenised" in other.warnings[0]


def test_nothing_is_logged_past_the_warnings(caplog):
    lines = ["a b c ."] * 101  # sacreBLEU logs from 100 such lines on
    with caplog.at_level(logging.INFO):
        scores = score_translations(lines, lines, target_language="zh", tokenize="13a", confidence=False)
    assert caplog.records == []
    assert any("'zh' or 'spm' tokenizer" in warning for warning in scores.warnings)
    assert logging.getLogger("sacrebleu").propagate


def test_a_paired_test_equals_sacrebleu():
    ours = compare_translations(BASELINE, HYPOTHESES, REFERENCES, target_language="en", num_bootstrap=107)
    metrics = {"BLEU": BLEU(), "chrF": CHRF(), "TER": TER()}
    signatures, results = PairedTest(
        [("a", BASELINE), ("b", HYPOTHESES)], metrics, [REFERENCES], test_type="bs", n_samples=107
    )()
    assert [metric.name for metric in ours.metrics] == ["BLEU", "chrF", "TER"]
    for metric, key in zip(ours.metrics, ["BLEU", "chrF2", "TER"], strict=True):
        baseline, system = results[key]
        assert (metric.baseline, metric.system) == (baseline.score, system.score)
        assert metric.p_value == system.p_value
        assert metric.signature == str(signatures[key])
    assert ours.num_bootstrap == 107


def test_equal_outputs_do_not_differ():
    comparison = compare_translations(HYPOTHESES, HYPOTHESES, REFERENCES, num_bootstrap=101)
    assert {metric.p_value for metric in comparison.metrics} == {1.0}


def test_fewer_resamples_than_asked_for_are_said(monkeypatch):
    monkeypatch.setattr(translation, "MAX_RESAMPLED_LINES", 5 * 113)
    scores = score_translations(HYPOTHESES, REFERENCES, num_bootstrap=1000)
    assert "|bs:113|" in scores.bleu.signature
    assert "113 bootstrap resamples instead of 1,000" in scores.warnings[0]
    monkeypatch.setattr(translation, "MAX_RESAMPLED_LINES", 5 * 97)
    scores = score_translations(HYPOTHESES, REFERENCES, num_bootstrap=1000)
    assert scores.bleu.low is None
    assert "No 95 % intervals" in scores.warnings[0]
    with pytest.raises(MetricError, match="5 sentences does not fit"):
        compare_translations(BASELINE, HYPOTHESES, REFERENCES)


def test_scores_become_json():
    scores = score_translations(HYPOTHESES, REFERENCES, num_bootstrap=101)
    table = json.loads(json.dumps(scores.to_dict()))
    assert table["bleu"]["value"] == scores.bleu.value
    assert table["num_sentences"] == 5
    comparison = compare_translations(BASELINE, HYPOTHESES, REFERENCES, num_bootstrap=101)
    assert json.loads(json.dumps(comparison.to_dict()))["metrics"][0]["name"] == "BLEU"
