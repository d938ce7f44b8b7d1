"""bench/equality.py: what it counts as equal, as good, and a fault."""

import pytest

from headway.search.hypothesis import Hypothesis

pytest.importorskip("headway_native", reason="headway-native is not built here")

MODULES = ("equality",)


@pytest.fixture
def equality(scripts):
    return scripts["equality"]


def found(*pairs):
    return [Hypothesis(token_ids, score, score) for token_ids, score in pairs]


def counts(result):
    return result.sentences, result.equal, len(result.as_good), len(result.faults)


def test_other_tokens_are_as_good_within_the_tolerance_and_a_fault_beyond(equality):
    ours = [found(((5, 3), -1.0)), found(((7, 3), -2.0)), found(((11, 3), -3.0)), found(((13, 3), float("nan")))]
    theirs = [found(((5, 3), -1.0)), found(((17, 3), -2.00009)), found(((19, 3), -3.00011)), found(((13, 3), -1.0))]
    result = equality.compare("greedy", ours, theirs)
    assert counts(result) == (4, 1, 1, 2)
    assert [row["sentence"] for row in (*result.as_good, *result.faults)] == [2, 3, 4]


def test_every_hypothesis_counts_and_a_missing_one_is_a_fault(equality):
    best, second = ((5, 3), -1.0), ((7, 3), -2.0)
    result = equality.compare(
        "two best", [found(best, second)] * 3, [found(best, second), found(best), found(best, ((7, 3), -2.5))]
    )
    assert counts(result) == (3, 1, 0, 2)


def test_the_engine_beside_itself_may_not_differ_in_the_last_bit(equality):
    result = equality.exact(
        "alone", [found(((5, 3), -1.0))] * 2, [found(((5, 3), -1.0)), found(((5, 3), -1.0 - 2.0**-52))]
    )
    assert counts(result) == (2, 1, 0, 1)


def test_a_score_that_is_no_number_is_a_fault_of_any_hypothesis(equality):
    best, second = ((5, 3), -1.0), ((7, 3), -2.0)
    result = equality.compare("two best", [found(best, ((7, 3), float("nan")))], [found(best, second)])
    assert counts(result) == (1, 0, 0, 1)
