"""Brackets of parses: counts by hand and by a second way, what failed parses cost, and tags put on before scoring."""

import json
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import MetricError
from headway.metrics.evalb_parameters import COLLINS, NEW, Parameters
from headway.metrics.evalb_report import evalb_report
from headway.metrics.parseval import compare_trees, score_trees, with_reference_tags
from headway.trees.brackets import read_parses, read_trees
from headway.trees.linear import delinearise
from headway.trees.tree import fold, with_tags
from random_trees import PLAIN_LABELS, chain, trees

GOLD = "(TOP (S (NP (DT a) (NN dog)) (VP (VBZ sees) (NP (NNS cats)) (PP (IN in) (NP (NNS trees)))) (. .)))"
ATTACHED = "(TOP (S (NP (DT a) (NN dog)) (VP (VBZ sees) (NP (NP (NN cats)) (PP (IN in) (NP (NNS trees))))) (. .)))"
CROSSED = "(TOP (S (NP (DT a)) (X (NN dog) (VBZ sees)) (NP (NNS cats) (IN in)) (NP (NNS trees)) (. .)))"
WORDS = ["a", "b", "c", "d", "e", "f"]


def tree(text):
    (only,) = read_trees([text])
    return only


def score(parses, golds, **settings):
    return score_trees(list(read_parses(parses)), list(read_trees(golds)), **settings)


def only(parse, gold=GOLD, **settings):
    (sentence,) = score([parse], [gold], **settings).sentences
    return sentence


def counts(sentence):
    return (
        sentence.matched_brackets,
        sentence.gold_brackets,
        sentence.test_brackets,
        sentence.crossing_brackets,
        sentence.correct_tags,
        sentence.words,
    )


def spans(of):
    """Labelled spans, by counting words on the way up: a second way to brackets."""
    found = []
    position = iter(range(len(of.words())))

    def node(old, children):
        start, end = children[0][0], children[-1][1]
        if not old.is_preterminal:
            found.append((old.label, start, end))
        return start, end

    def word(_):
        start = next(position)
        return start, start + 1

    fold(of, of_word=word, of_node=node)
    return Counter(found)


@st.composite
def pairs(draw):
    """Two trees over the same words, with tags that differ here and there."""
    gold = draw(trees(PLAIN_LABELS, st.sampled_from(WORDS), bare=False))
    symbols = draw(st.lists(PLAIN_LABELS.flatmap(lambda name: st.sampled_from([name, f"/{name}", "NN"])), max_size=19))
    tags = draw(st.lists(PLAIN_LABELS, min_size=len(gold.words()), max_size=len(gold.words())))
    return delinearise(symbols, gold.words(), tags).tree, gold


def test_a_sentence_is_counted_as_by_hand():
    assert counts(only(GOLD)) == (6, 6, 6, 0, 6, 6)
    # S NP VP PP NP match, and NP over "cats"; NP over "cats in trees" is one too many; NN is a wrong tag.
    assert counts(only(ATTACHED)) == (6, 6, 7, 0, 5, 6)
    # X crosses NP and VP, NP over "cats in" crosses PP; S and NP over "trees" match.
    assert counts(only(CROSSED)) == (2, 6, 5, 2, 6, 6)


def test_figures_are_sums_over_sentences():
    scores = score([GOLD, ATTACHED, CROSSED], [GOLD] * 3)
    figures = scores.evalb.every_length
    assert (figures.matched_brackets, figures.gold_brackets, figures.test_brackets) == (14, 18, 18)
    assert figures.recall == figures.precision == figures.f1 == pytest.approx(1400 / 18)
    assert figures.complete_match == pytest.approx(100 / 3)
    assert figures.average_crossing == pytest.approx(2 / 3)
    assert figures.no_crossing == pytest.approx(200 / 3)
    assert figures.two_or_less_crossing == 100.0
    assert figures.tagging_accuracy == pytest.approx(1700 / 18)
    assert scores.all == scores.evalb


@given(st.lists(pairs(), min_size=1, max_size=5), st.booleans())
def test_brackets_are_those_that_a_second_way_counts(sentences, labeled):
    parses, golds = zip(*sentences, strict=True)
    scores = score_trees(parses, golds, parameters=Parameters(labeled=labeled), num_bootstrap=0)
    for (parse, gold), sentence in zip(sentences, scores.sentences, strict=True):
        ours, theirs = spans(gold), spans(parse)
        if not labeled:
            ours, theirs = (Counter((start, end) for _, start, end in found.elements()) for found in (ours, theirs))
        crossing = sum(
            any(i < k < j < l or k < i < l < j for *_, i, j in ours)
            for *_, k, l in theirs.elements()  # noqa: E741 - two spans
        )
        tags = sum(one == other for one, other in zip(gold.tags(), parse.tags(), strict=True))
        assert counts(sentence) == (
            (ours & theirs).total(),
            ours.total(),
            theirs.total(),
            crossing,
            tags,
            len(gold.words()),
        )
    assert scores.all == scores.evalb


@given(st.lists(pairs(), min_size=1, max_size=5))
def test_a_treebank_against_itself_is_without_fault(sentences):
    golds = [gold for _, gold in sentences]
    figures = score_trees(golds, golds, parameters=Parameters(), num_bootstrap=0).all.every_length
    assert figures.complete_match == figures.no_crossing == figures.tagging_accuracy == 100.0
    assert figures.f1 == (100.0 if figures.gold_brackets else 0.0)


def test_labels_count_without_their_functions_and_equal_ones_as_the_same():
    assert counts(only("(S (NP-SBJ=2 (X a)) (PRT (X b)))", "(S-1 (NP (X a)) (ADVP-TMP (X b)))")) == (3, 3, 3, 0, 2, 2)


def test_deleted_labels_take_punctuation_with_them_and_roots_alone():
    gold = "(TOP (S (`` ``) (NP (NN a)) ('' '') (NP (. .))))"
    assert counts(only("(TOP (S (NP (NN a) (, ,))))", gold)) == (2, 2, 2, 0, 1, 1)


def test_length_counts_punctuation_but_not_traces():
    parses = ["(S (NP (-NONE- *)) (VP (VB go)) (. .))", "(S (VP (VB go) (RB on)) (. .))"]
    scores = score(parses, parses, parameters=replace(COLLINS, cutoff_length=2))
    assert [sentence.length for sentence in scores.sentences] == [2, 3]
    assert (scores.all.every_length.num_sentences, scores.all.up_to_cutoff.num_sentences) == (2, 1)


@pytest.mark.parametrize(
    ("parse", "status", "failure"),
    [
        ("", 2, "no parse"),
        ("(TOP (. .))", 2, "no words"),
        ("(S (DT a) (NN dog))", 1, "2 words, wanted 6"),
        (GOLD.replace("cats", "Cats"), 1, "the word 'Cats', wanted 'cats'"),
        (GOLD.replace("(NP (NNS cats))", "cats"), 1, "the word 'cats' has no tag"),
    ],
)
def test_a_failed_parse_is_left_out_by_evalb_and_missed_in_all(parse, status, failure):
    scores = score([GOLD, parse], [GOLD] * 2)
    assert scores.sentences[1].failure == failure
    evalb, whole = scores.evalb.every_length, scores.all.every_length
    assert (evalb.num_errors, evalb.num_skipped, evalb.num_scored) == (int(status == 1), int(status == 2), 1)
    assert (evalb.recall, evalb.precision, evalb.f1, evalb.complete_match) == (100.0, 100.0, 100.0, 100.0)
    assert (whole.recall, whole.precision, whole.f1) == (50.0, 100.0, pytest.approx(200 / 3))
    assert (whole.complete_match, whole.no_crossing, whole.two_or_less_crossing) == (50.0, 50.0, 50.0)
    assert (whole.tagging_accuracy, whole.average_crossing) == (50.0, 0.0)
    assert scores.num_missing == int(parse == "")


def test_a_sentence_of_punctuation_alone_is_skipped_by_evalb_and_no_fault_in_all():
    scores = score([GOLD, "(S (. .))"], [GOLD, "(FRAG (. .))"])
    assert scores.evalb.every_length.num_skipped == 1
    assert (scores.all.every_length.f1, scores.all.every_length.complete_match) == (100.0, 100.0)


@pytest.mark.parametrize("num_failed", [4, 5])
def test_where_evalb_would_have_stopped_is_said(num_failed):
    parses = [GOLD, *["(S (DT a))"] * num_failed]
    scores = score(parses, [GOLD] * (1 + num_failed), parameters=replace(COLLINS, max_errors=3))
    assert scores.evalb_stops_at == (None if num_failed == 4 else 6)
    assert scores.evalb.every_length.num_errors == num_failed


def test_quotation_marks_of_another_tag_are_put_back():
    gold = "(S (NP (DT a) (`` \") (NN dog) ('' \")) (VP (VBZ sees)))"
    parse = '(S (NP (DT a) (CD ") (NN dog)) (NN ") (VP (VBZ sees)))'
    assert only(parse, gold, parameters=COLLINS).failure == "5 words, wanted 3"
    # NP holds the second mark in the reference alone; the marks' tags are wrong.
    assert counts(only(parse, gold, parameters=NEW)) == (2, 3, 3, 0, 3, 5)
    assert counts(only(gold, parse, parameters=NEW)) == (2, 3, 3, 0, 3, 5)


def test_hidden_tags_fail_until_those_of_the_references_are_put_on():
    gold = tree(GOLD)
    hidden = with_tags(gold, ["XX"] * len(gold.words()))
    other = tree("(S (DT a))")
    assert score_trees([hidden], [gold]).evalb.every_length.num_errors == 1
    assert with_reference_tags([hidden, None, other], [gold] * 3) == [gold, None, other]


def test_tags_of_references_are_put_on_past_their_traces():
    gold = tree("(TOP (S (NP (-NONE- *-1)) (NP (DT the) (NN dog)) (VP (VBZ barks)) (. .)))")
    hidden = tree("(TOP (S (NP (XX the) (XX dog)) (VP (XX barks)) (XX .)))")
    (tagged,) = with_reference_tags([hidden], [gold])
    assert tagged == tree("(TOP (S (NP (DT the) (NN dog)) (VP (VBZ barks)) (. .)))")
    assert score_trees([hidden], [gold], reference_tags=True).all.every_length.f1 == 100.0


def test_with_the_references_tags_on_it_a_parser_is_still_told_how_many_of_its_own_are_right():
    """Of the words that count: the full stop is none, whatever its tag."""
    gold = [tree(GOLD), tree("(TOP (S (NP (DT the) (NN dog)) (VP (VBZ barks)) (. .)))")]
    own = [tree(GOLD), tree("(TOP (S (NP (DT the) (JJ dog)) (VP (VBZ barks)) (NN .)))")]
    scores = score_trees(own, gold, reference_tags=True)
    words = sum(sentence.words for sentence in scores.sentences)
    assert scores.all.every_length.f1 == 100.0
    assert scores.sentences[1].words == 3
    assert scores.all.every_length.tagging_accuracy == pytest.approx(100 * (words - 1) / words)
    assert score_trees(own, gold).all.every_length.num_errors == 1  # with a full stop that is a word
    compared = compare_trees(own, gold, gold, reference_tags=True).every_length
    assert (compared.baseline, compared.system) == (100.0, 100.0)


def test_unequal_counts_no_trees_and_references_without_tags_are_refused():
    with pytest.raises(MetricError, match=r"^metrics/parseval: 2 parses against 1 reference trees; equal counts"):
        score([GOLD, ""], [GOLD])
    with pytest.raises(MetricError, match=r"^metrics/parseval: 0 parses against 1 reference"):
        with_reference_tags([], [tree(GOLD)])
    with pytest.raises(MetricError, match=r"^metrics/parseval: 0 trees to score"):
        score([], [])
    with pytest.raises(MetricError, match=r"^metrics/parseval: reference 2: the word 'b' has no tag of its own"):
        score([GOLD, ""], [GOLD, "(A b (C c))"])


def test_scores_are_plain_values_for_json():
    scores = score([GOLD, ""], [GOLD] * 2)
    plain = json.loads(json.dumps(scores.to_dict()))
    assert plain["all"]["every_length"]["f1"] == scores.all.every_length.f1
    assert plain["sentences"][1]["failure"] == "no parse"
    assert plain["parameters"]["delete_labels"] == list(COLLINS.delete_labels)
    compared = compare_trees([tree(GOLD)], [None], [tree(GOLD)])
    assert json.loads(json.dumps(compared.to_dict()))["every_length"]["baseline"] == 100.0


def test_two_parsers_are_compared_by_length():
    golds = [tree(GOLD), tree("(S (NN a))")] * 7
    worse = [tree(ATTACHED), golds[1]] * 7
    compared = compare_trees(worse, golds, golds, parameters=replace(COLLINS, cutoff_length=2))
    assert (compared.every_length.system, compared.every_length.num_sentences) == (100.0, 14)
    assert compared.every_length.baseline == pytest.approx(200 * 7 * 7 / (7 * 7 + 7 * 8))
    assert compared.every_length.p_value == pytest.approx(1 / 1001)
    assert (compared.up_to_cutoff.p_value, compared.up_to_cutoff.num_sentences) == (1.0, 7)


def test_a_parse_of_great_depth_meets_no_limit():
    deep = chain(3000, "S")
    figures = score_trees([deep], [deep]).all.every_length
    assert (figures.matched_brackets, figures.f1) == (3000, 100.0)


def test_a_report_of_nothing_right_has_zeros():
    report = evalb_report(score([""], [GOLD]))
    assert "Number of Skip  sentence  =      1" in report
    assert "Bracketing FMeasure       =   0.00" in report


def test_a_node_of_one_parse_matches_one_of_the_reference_only():
    assert counts(only("(S (S (S (X a))))", "(S (S (X a)))")) == (2, 2, 3, 0, 1, 1)
