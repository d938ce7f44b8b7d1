"""Outputs written otherwise than their references: spacing and capitals, by hand; scripts without case say nothing."""

import pytest

from headway.metrics.tokenised import differs
from headway.metrics.writing import CAPITALS, Mismatch, count_capitals, mismatch

SPACED, PLAIN = "er kommt .", "er kommt."
SPACES = "spaces before full stops or commas"


def test_texts_without_case_are_not_counted():
    counted = count_capitals(["12", "…", "haus", "Haus", "汉字", "한국", "DNA 检测"])
    assert (counted.cased, counted.with_capitals) == (3, 2)
    assert counted.share == pytest.approx(2 / 3)
    assert count_capitals(["12", "汉字"]).share == 0.0


def test_two_texts_differ_where_one_has_three_times_the_traces_of_the_other():
    assert differs([SPACED] * 10, [PLAIN] * 10) == (SPACES, 10, 0)
    assert differs([PLAIN] * 10, [SPACED] * 3 + [PLAIN] * 7) == (SPACES, 0, 3)
    assert differs([SPACED] * 6 + [PLAIN] * 4, [SPACED] * 2 + [PLAIN] * 8) is None
    assert differs([PLAIN] * 20, [SPACED] + [PLAIN] * 19) is None


def test_spacing_that_differs_is_a_mismatch_of_lines():
    found = mismatch([PLAIN] * 11, [SPACED] * 7 + [PLAIN] * 4)
    assert found == Mismatch(SPACES, 0, 11, 7, 11)
    assert found.share == pytest.approx(7 / 11)


def test_capitals_that_one_side_lacks_are_a_mismatch_of_the_lines_with_case():
    found = mismatch(["Ein Haus"] * 9 + ["12"] * 2, ["ein haus"] * 7 + ["汉"] * 4)
    assert found == Mismatch(CAPITALS, 9, 9, 0, 7)
    assert found.share == 1.0
    assert mismatch(["Ein Haus"] * 9, ["ein haus"] * 9, is_cased=False) is None


@pytest.mark.parametrize("text", ["我们昨天去了公园。", "우리는 어제 공원에 갔다."])
def test_a_script_without_case_has_no_mismatch_though_its_references_name_dna(text):
    assert mismatch([text] * 98 + ["DNA 2", "PC 3"], [text] * 100) is None
    assert mismatch([text] * 98 + ["DNA 2", "PC 3"], [text] * 98 + ["dna 2", "pc 3"]) is None


@pytest.mark.parametrize(("cased", "differ"), [(5, False), (6, True)])
def test_capitals_are_compared_where_half_of_both_sides_have_case(cased, differ):
    def side(text):
        return [text] * cased + ["汉"] * (11 - cased)

    assert (mismatch(side("Ja"), side("ja")) is not None) is differ
    assert (mismatch(side("Ja"), ["ja"] * 11) is not None) is differ
    assert (mismatch(["Ja"] * 11, side("ja")) is not None) is differ


@pytest.mark.parametrize(("num", "differ"), [(2, False), (3, True)])
def test_capitals_of_fewer_than_three_lines_are_not_compared(num, differ):
    assert (mismatch(["Ja"] * num, ["ja"] * num) is not None) is differ
