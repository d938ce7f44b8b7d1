"""A head in numbers: each by hand, and labels that chance does not get."""

import math

import numpy as np
import pytest

from headway.inspection.ground import Ground
from headway.inspection.look import DEVIATIONS, MOSTLY, look


def ground(size, *, causal=False):
    """Self-attention over so many words, the last of which is the end unless it is causal."""
    visible = np.ones((size, size), dtype=bool)
    visible = np.tril(visible) if causal else visible
    first, end = np.zeros((size, size), dtype=bool), np.zeros((size, size), dtype=bool)
    first[:, 0], end[:, -1] = True, not causal
    places = {"previous": np.eye(size, k=-1), "next": np.eye(size, k=1), "same": np.eye(size), "end": end}
    places |= {"first": first}
    distance = np.abs(np.subtract.outer(np.arange(size), np.arange(size))).astype(float)
    return Ground(visible, distance, {name: place.astype(bool) & visible for name, place in places.items()})


def hard(columns, size):
    """All the weight of each query on one key."""
    return np.eye(size)[list(columns)]


def test_entropy_and_distance_are_means_over_queries_by_hand():
    weights = np.array([[0.5, 0.5, 0.0], [0.0, 1.0, 0.0], [0.25, 0.25, 0.5]])
    found = look(weights, ground(3))
    entropies = [math.log(2), 0.0, 0.25 * math.log(4) * 2 + 0.5 * math.log(2)]
    assert found.entropy.value == pytest.approx(sum(entropies) / 3)
    assert found.entropy.chance == pytest.approx(math.log(3))
    assert found.distance.value == pytest.approx((0.5 + 0.0 + 0.75) / 3)
    assert found.distance.chance == pytest.approx((3 / 3 + 2 / 3 + 3 / 3) / 3)


def test_shares_are_means_over_the_queries_that_have_such_a_word():
    weights = np.array([[0.1, 0.2, 0.7], [0.5, 0.2, 0.3], [0.0, 0.6, 0.4]])
    shares = look(weights, ground(3)).shares
    assert shares["previous"].value == pytest.approx((0.5 + 0.6) / 2)
    assert shares["next"].value == pytest.approx((0.2 + 0.3) / 2)
    assert shares["same"].value == pytest.approx((0.1 + 0.2 + 0.4) / 3)
    assert shares["end"].value == pytest.approx((0.7 + 0.3 + 0.4) / 3)
    assert shares["first"].value == pytest.approx((0.1 + 0.5 + 0.0) / 3)
    assert {name: share.chance for name, share in shares.items()} == pytest.approx(dict.fromkeys(shares, 1 / 3))
    assert [shares[name].queries for name in ("previous", "next", "same")] == [2, 2, 3]


def test_in_the_decoder_chance_counts_what_may_be_seen_and_the_first_query_has_no_choice():
    weights = np.tril(np.ones((4, 4)))
    weights /= weights.sum(axis=1, keepdims=True)
    found = look(weights, ground(4, causal=True))
    assert "next" not in found.shares
    assert "end" not in found.shares
    for name in ("previous", "same", "first"):
        assert found.shares[name].value == pytest.approx((1 / 2 + 1 / 3 + 1 / 4) / 3)
        assert found.shares[name].chance == pytest.approx(found.shares[name].value)
        assert found.shares[name].queries == 3
    assert found.entropy.value == pytest.approx(found.entropy.chance)
    assert found.looks_at is None  # equal attention is chance


def test_the_deviations_are_those_of_shuffled_weights():
    """The oracle shuffles, many times."""
    random = np.random.default_rng(7)
    size = 7
    weights = random.dirichlet(np.full(size, 0.3), size=size)
    place = np.eye(size, dtype=bool) | np.eye(size, k=2, dtype=bool)  # of one word or of two
    given = Ground(np.ones((size, size), dtype=bool), np.zeros((size, size)), {"same": place})
    share = look(weights, given).shares["same"]
    shuffled = [(random.permuted(weights, axis=1) * place).sum(axis=1).mean() for _ in range(20_000)]
    assert share.chance == pytest.approx(np.mean(shuffled), abs=0.005)
    assert share.deviations == pytest.approx((share.value - np.mean(shuffled)) / np.std(shuffled), abs=0.05)


@pytest.mark.parametrize(
    ("columns", "wanted"),
    [
        ([0, 0, 1, 2, 3, 4, 5], "previous"),
        ([1, 2, 3, 4, 5, 6, 6], "next"),
        ([0, 1, 2, 3, 4, 5, 6], "same"),
        ([6, 6, 6, 6, 6, 6, 6], "end"),
        ([0, 0, 0, 0, 0, 0, 0], "first"),
    ],
)
def test_a_head_that_does_one_thing_is_labelled_so(columns, wanted):
    found = look(hard(columns, 7), ground(7))
    assert found.looks_at == wanted
    assert found.shares[wanted].value == 1.0
    assert found.entropy.value == 0.0


def test_a_head_that_mostly_does_is_labelled_from_the_threshold_on():
    def with_share(part):
        weights = np.full((9, 9), 0.0)
        for row in range(9):
            weights[row] = (1 - part) / 8
            weights[row, max(row - 1, 0)] = part
        return look(weights, ground(9))

    limit = MOSTLY + (1 - MOSTLY) / 9  # so that MOSTLY of what equal attention gives elsewhere has moved
    assert with_share(limit + 0.001).looks_at == "previous"
    assert with_share(limit - 0.001).looks_at is None


def test_one_hit_or_two_in_a_short_sentence_are_no_label():
    """With three words, one in nine heads that look at random words hit two previous ones."""
    found = look(hard([2, 0, 1], 3), ground(3))
    assert found.shares["previous"].value == 1.0
    assert found.shares["previous"].deviations < DEVIATIONS
    assert found.looks_at is None
    assert look(hard([2, 0, 1, 2, 3, 4], 6), ground(6)).looks_at == "previous"


def test_heads_that_look_at_random_words_are_labelled_next_to_never():
    random = np.random.default_rng(5)
    labelled = 0
    for _ in range(2_000):
        size = int(random.integers(2, 12))
        labelled += look(hard(random.integers(0, size, size), size), ground(size)).looks_at is not None
    assert labelled < 20  # of 2,000 heads with five places each


def test_a_place_that_few_queries_have_is_no_label():
    visible = np.ones((9, 7), dtype=bool)
    same = np.zeros((9, 7), dtype=bool)
    same[:4, :4] = np.eye(4)
    given = Ground(visible, np.zeros((9, 7)), {"same": same})
    weights = np.full((9, 7), 1 / 7)
    weights[:4] = hard(range(4), 7)
    found = look(weights, given)
    assert found.shares["same"].value == 1.0
    assert found.shares["same"].deviations >= DEVIATIONS
    assert found.looks_at is None


def test_one_word_that_can_see_itself_only_has_no_numbers():
    found = look(np.ones((1, 1)), ground(1))
    assert (found.entropy, found.distance, dict(found.shares), found.looks_at) == (None, None, {}, None)
