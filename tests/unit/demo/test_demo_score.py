"""Exact match by kind, by hand."""

import pytest

from headway.demo.phrases import Phrase
from headway.demo.score import KindScore, exact_match_by_kind, over_all
from headway.errors import MetricError

PHRASES = [
    Phrase("time", "3:45 PM", "15:45"),
    Phrase("unit", "2 miles", "2 Meilen"),
    Phrase("time", "1:00 AM", "01:00"),
    Phrase("time", "noon", "12:00"),
]


def test_each_kind_counts_its_own_exact_translations():
    scores = exact_match_by_kind(PHRASES, ["15:45", "2 Meile", "1:00", "12:00"])
    assert scores == [KindScore("time", 2, 3), KindScore("unit", 0, 1)]
    assert scores[0].share == pytest.approx(2 / 3)
    assert over_all(scores) == KindScore("all", 2, 4)


@pytest.mark.parametrize("translation", ["2 meilen", "2 Meilen ", "2\u00a0Meilen", "2 Meilen.", ""])
def test_nearly_exact_is_not_exact(translation):
    assert exact_match_by_kind(PHRASES[1:2], [translation]) == [KindScore("unit", 0, 1)]


def test_a_missing_translation_is_an_error_with_both_counts():
    with pytest.raises(MetricError, match="4 phrases have 3 translations"):
        exact_match_by_kind(PHRASES, ["15:45", "2 Meilen", "01:00"])


def test_no_phrases_have_no_score():
    assert exact_match_by_kind([], []) == []
    with pytest.raises(MetricError, match="no phrase was scored"):
        over_all([])
