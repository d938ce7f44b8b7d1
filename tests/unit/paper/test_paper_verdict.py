"""paper/verdict.py: every place where an interval can lie, by hand."""

import pytest

from headway.paper.verdict import Claim, Difference, Part, Verdict, judge, together

HOLDS, FAILS, OPEN = Verdict.HOLDS, Verdict.DOES_NOT_HOLD, Verdict.NOT_SETTLED


@pytest.mark.parametrize(
    ("low", "high", "above", "below"),
    [
        (0.1, 0.7, HOLDS, FAILS),
        (-0.7, -0.1, FAILS, HOLDS),
        (-0.1, 0.7, OPEN, OPEN),
        (0.0, 0.7, OPEN, OPEN),  # an end at 0 is no side of it
        (-0.7, 0.0, OPEN, OPEN),
        (0.0, 0.0, OPEN, OPEN),
        (float("nan"), float("nan"), OPEN, OPEN),
    ],
)
def test_a_claim_of_a_side_holds_when_the_whole_interval_lies_there(low, high, above, below):
    difference = Difference((low + high) / 2, low, high)
    assert judge(difference, claimed="above") == above
    assert judge(difference, claimed="below") == below


@pytest.mark.parametrize(
    ("low", "high", "wanted"),
    [
        (-0.2, 0.3, HOLDS),
        (-0.3, 0.3, HOLDS),  # margin counted in
        (0.1, 0.2, HOLDS),  # different from 0, and near it
        (-0.2, 0.31, OPEN),
        (0.31, 0.9, FAILS),
        (-0.9, -0.31, FAILS),
        (-9.0, 9.0, OPEN),
    ],
)
def test_a_claim_of_equality_holds_when_the_whole_interval_is_within_the_margin(low, high, wanted):
    assert judge(Difference(0.0, low, high), claimed="near", margin=0.3) == wanted


@pytest.mark.parametrize(
    ("parts", "wanted"),
    [
        ([HOLDS, HOLDS], HOLDS),
        ([HOLDS, OPEN], OPEN),
        ([HOLDS, OPEN, FAILS], FAILS),
        ([FAILS, FAILS], FAILS),
        ([], OPEN),
    ],
)
def test_a_claim_of_several_parts_holds_when_all_of_them_do(parts, wanted):
    assert together(parts) == wanted


def test_the_verdicts_have_the_words_that_the_documents_promise():
    assert [str(verdict) for verdict in Verdict] == ["holds", "does not hold", "not settled at this scale"]


def test_a_part_whose_rows_were_not_made_settles_nothing():
    there, absent = Part("x", Difference(1.0, 0.5, 1.5), "above"), Part("y", None, "above")
    assert (there.verdict, absent.verdict) == (HOLDS, OPEN)
    assert Claim("A", "text", (there, absent)).verdict == OPEN
    assert Claim("A", "text", (there,)).verdict == HOLDS
