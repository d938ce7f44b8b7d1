"""metrics/paper_bleu.py: five cases by hand, and sacreBLEU on the same tokenised, split lines."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU

from headway.errors import MetricError
from headway.metrics.paper_bleu import SIGNATURE, paper_bleu, split_compounds

# hypothesis, reference, right and all n-grams of 1 to 4, brevity penalty
HAND = {
    "one word replaced": ("a b c d e f", "a b c d e x", (5, 6), (4, 5), (3, 4), (2, 3), 1.0),
    "too short": ("a b c d", "a b c d e f", (4, 4), (3, 3), (2, 2), (1, 1), math.exp(1 - 6 / 4)),
    "longer: no penalty": ("a b c d e f g", "a b c d e", (5, 7), (4, 6), (3, 5), (2, 4), 1.0),
    "a word counts as often as the reference has it": (
        "a a a a b c d e",
        "a a b c d e",
        (6, 8),
        (5, 7),
        (4, 6),
        (3, 5),
        1.0,
    ),
    # eight words: der Ost - West - Konflikt endet hier
    "a compound counts as its parts": (
        "der Ost-West-Konflikt endet hier",
        "der Ost-West-Konflikt endet dort",
        (7, 8),
        (6, 7),
        (5, 6),
        (4, 5),
        1.0,
    ),
}


@pytest.mark.parametrize("name", HAND)
def test_five_cases_by_hand(name):
    hypothesis, reference, *grams, penalty = HAND[name]
    found = paper_bleu([hypothesis], [reference])
    assert found.precisions == pytest.approx([100 * right / count for right, count in grams])
    assert found.brevity_penalty == pytest.approx(penalty)
    product = math.prod(right / count for right, count in grams)
    assert found.value == pytest.approx(100 * penalty * product**0.25)


def test_grams_are_summed_over_the_text_and_not_averaged_over_lines():
    found = paper_bleu(["a b c d e", "x y"], ["a b c d e", "y x z"])
    # right 5 + 2, 4 + 0, 3, 2; all 5 + 2, 4 + 1, 3, 2; words 7 against 8
    assert found.precisions == pytest.approx([100, 80, 100, 100])
    assert found.value == pytest.approx(100 * math.exp(1 - 8 / 7) * 0.8**0.25)
    assert (found.hypothesis_words, found.reference_words) == (7, 8)


def test_without_a_right_4_gram_the_score_is_0_as_multi_bleu_has_it():
    assert paper_bleu(["a b c d"], ["d c b a"]).value == 0.0
    assert paper_bleu([""], ["a b"]).value == 0.0
    assert paper_bleu([""], ["a b"]).brevity_penalty == 0.0


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("a-b", "a ##AT##-##AT## b"),
        ("a - b", "a - b"),
        ("-a b-", "-a b-"),
        ("a--b", "a ##AT##-##AT## -b"),
        ("a-b-c", "a ##AT##-##AT## b-c"),  # the b is consumed
        ("ab-cd-ef", "ab ##AT##-##AT## cd ##AT##-##AT## ef"),
        ("a-b c-d", "a ##AT##-##AT## b c ##AT##-##AT## d"),
        ("", ""),
    ],
)
def test_hyphens_are_parted_as_the_script_parts_them(line, wanted):
    assert split_compounds(line) == wanted


LINES = st.lists(
    st.lists(st.sampled_from(["a", "b", "a-b", "Ab-cd-ef", ".", "-"]), max_size=9).map(" ".join), min_size=1, max_size=7
)


@given(LINES, LINES)
def test_it_is_sacrebleu_without_tokenizer_or_smoothing_on_the_same_tokenised_split_lines(hypotheses, references):
    count = min(len(hypotheses), len(references))
    hypotheses, references = hypotheses[:count], references[:count]
    metric = BLEU(tokenize="none", smooth_method="none", force=True)
    wanted = metric.corpus_score(
        [split_compounds(line) for line in hypotheses], [[split_compounds(line) for line in references]]
    )
    found = paper_bleu(hypotheses, references)
    assert found.value == pytest.approx(wanted.score, abs=1e-9)
    assert found.precisions == pytest.approx(wanted.precisions, abs=1e-9)


def test_where_something_is_right_of_every_order_sacrebleu_s_usual_smoothing_changes_nothing():
    hypotheses = ["ein Test-Lauf auf dem grünen Rasen .", "zwei Männer gehen in einen Park ."]
    references = ["ein Test-Lauf auf dem roten Rasen .", "zwei Männer gehen in den Park ."]
    split = [[split_compounds(line) for line in side] for side in (hypotheses, references)]
    wanted = BLEU(tokenize="none", force=True).corpus_score(split[0], [split[1]]).score
    assert paper_bleu(hypotheses, references).value == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize(("hypotheses", "references"), [(["a"], ["a", "b"]), ([], [])])
def test_unequal_and_empty_files_are_refused(hypotheses, references):
    with pytest.raises(MetricError, match="equal counts are wanted, and one line at least"):
        paper_bleu(hypotheses, references)


def test_the_signature_says_what_was_done():
    assert paper_bleu(["a"], ["a"]).signature == SIGNATURE
    assert "split:compounds" in SIGNATURE
