"""Modified Kneser-Ney: a distribution in every context, the numbers of a hand computation, and no unknown words."""

import math
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import MetricError
from headway.metrics.kneser_ney import BEGIN, END, FALLBACK, KneserNey
from headway.metrics.open_vocabulary import CHARACTERS, OpenVocabulary

TEXTS = st.lists(st.lists(st.sampled_from("abcd"), max_size=7), min_size=1, max_size=13)


@given(TEXTS, st.integers(1, 5), st.lists(st.sampled_from("abcde"), max_size=6), st.booleans())
def test_probabilities_sum_to_one_in_every_context(lines, order, history, at_begin):
    model = KneserNey.fit(lines, order=order, vocabulary="abcde")
    context = [BEGIN, *history] if at_begin else history
    values = [model.probability(token, context) for token in (*"abcde", END)]
    assert math.fsum(values) == pytest.approx(1.0, abs=1e-12)
    assert all(value > 0 for value in values)


@given(TEXTS, st.integers(1, 4))
def test_all_lines_of_up_to_some_words_have_no_more_than_one_together(lines, order):
    model = KneserNey.fit(lines, order=order, vocabulary="abcd")
    total = math.fsum(math.exp(model.log_prob(line)) for n in range(4) for line in product("abcd", repeat=n))
    assert 0 < total < 1


def test_a_bigram_model_is_that_of_a_hand_computation():
    """Two lines, `a b` and `a a`: so few n-grams that the discounts are the fallback, 0.5, 1 and 1.5."""
    model = KneserNey.fit([["a", "b"], ["a", "a"]], order=2, vocabulary="abc")
    assert model.discounts[0] == model.discounts[1] == FALLBACK
    # Bigrams: (begin, a) 2, (a, b) 1, (b, end) 1, (a, a) 1, (a, end) 1. Without a history a token counts as often as
    # different tokens stand before it: a 2 (begin, a), b 1 (a), end 2 (b, a); 5 in all.
    shared = (0.5 * 1 + 1.0 * 2) / 5  # one token with a count of 1, two with 2
    uniform = 1 / 4  # a, b, c, end
    a, b, c, end = (2 - 1.0) / 5, (1 - 0.5) / 5, 0.0, (2 - 1.0) / 5
    unigram = {token: kept + shared * uniform for token, kept in zip(("a", "b", "c", END), (a, b, c, end), strict=True)}
    for token, wanted in unigram.items():
        assert model.probability(token, []) == pytest.approx(wanted, abs=1e-15)
    after_begin = (2 - 1.0) / 2 + 1.0 / 2 * unigram["a"]
    assert model.probability("a", [BEGIN]) == pytest.approx(after_begin, abs=1e-15)
    # after a: b, a and end once each
    after_a = {token: (1 - 0.5) / 3 + 0.5 * 3 / 3 * unigram[token] for token in ("a", "b", END)}
    for token, wanted in after_a.items():
        assert model.probability(token, ["a"]) == pytest.approx(wanted, abs=1e-15)
        assert model.probability(token, ["b", "c", "a"]) == model.probability(token, ["a"])
    assert model.probability("c", ["a"]) == pytest.approx(0.5 * unigram["c"], abs=1e-15)
    assert model.probability("b", ["c"]) == pytest.approx(unigram["b"], abs=1e-15)  # c has no followers
    line = math.log(after_begin * after_a["b"] * ((1 - 0.5) + 0.5 * unigram[END]))
    assert model.log_prob(["a", "b"]) == pytest.approx(line, abs=1e-12)


def test_a_history_that_begins_a_line_keeps_its_own_counts():
    """In a trigram model (begin, a) is counted as the text has it; after a alone, as different tokens stand before."""
    model = KneserNey.fit([["a", "b"]] * 3 + [["c", "a", "b"]], order=3, vocabulary="abc")
    assert model.tables[1][(BEGIN,)].counts == {"a": 3, "c": 1}
    assert model.tables[1][("a",)].counts == {"b": 2}  # after begin and after c
    assert model.tables[2][(BEGIN, "a")].counts == {"b": 3}
    assert model.tables[0][()].counts == {"a": 2, "b": 1, "c": 1, END: 1}


def test_discounts_are_those_of_chen_and_goodman():
    """Unigrams with the counts 1, 1, 1, 2, 2, 3 and 4: n1 3, n2 2, n3 1, n4 1, so Y = 3 / 7."""
    words = "abc" + "dd" + "ee" + "fff" + "gggg"
    model = KneserNey.fit([[letter] for letter in words] + [[]] * 5, order=1, vocabulary="abcdefg")
    share = 3 / 7
    wanted = (1 - 2 * share * 2 / 3, 2 - 3 * share * 1 / 2, 3 - 4 * share * 1 / 1)
    assert model.discounts[0] == pytest.approx(wanted, abs=1e-15)


def test_a_longer_history_makes_a_regular_text_cheaper():
    lines = [list("abcab"), list("bcabc"), list("cabca")] * 5
    costs = [-sum(map(KneserNey.fit(lines, order=n, vocabulary="abc").log_prob, lines)) for n in (1, 2, 4)]
    assert costs[0] > costs[1] > costs[2]


def test_what_cannot_be_counted_is_named():
    with pytest.raises(MetricError, match="line 2: 'd' is not in the vocabulary"):
        KneserNey.fit([["a"], ["d"]], vocabulary="abc")
    with pytest.raises(MetricError, match="found 0 lines"):
        KneserNey.fit([], vocabulary="a")
    with pytest.raises(MetricError, match="the order is 0"):
        KneserNey.fit([["a"]], order=0, vocabulary="a")
    with pytest.raises(MetricError, match="'z' is not in the vocabulary"):
        KneserNey.fit([["a"]], vocabulary="a").log_prob(["z"])


def test_a_word_not_seen_twice_costs_unknown_and_its_spelling():
    lines = [["the", "cat"], ["the", "dog"], ["the", "cat", "sat"]]
    model = OpenVocabulary.fit(lines, order=3)
    assert model.words.vocabulary == {"the", "cat", " ", END}
    assert model.log_prob(["the", "cat"]) == model.words.log_prob(["the", "cat"])
    spelled = model.spelling.log_prob(list("dos"))
    assert model.log_prob(["the", "dos"]) == pytest.approx(model.words.log_prob(["the", " "]) + spelled, abs=1e-12)
    other = model.spelling.log_prob(["d", "\0 ", "s"]) - math.log(CHARACTERS)
    assert model.log_prob(["dés"]) == pytest.approx(model.words.log_prob([" "]) + other, abs=1e-12)


def test_a_text_without_rare_words_tells_no_spelling():
    with pytest.raises(MetricError, match="every one of 1 words occurs twice"):
        OpenVocabulary.fit([["a", "a"]])
