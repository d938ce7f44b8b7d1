"""A search held to trees, against every tree that a grammar of its own writes down."""

import itertools
from functools import cache

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from search_tables import TablePredictor, sources

from headway.errors import TranslationError
from headway.search.length import length_penalty
from headway.search.run import search
from headway.search.score import score_pairs
from headway.search.settings import Diversity, Sampling, SearchSettings
from headway.search.tree_form import Brackets, TreeForm
from headway.text.tokenizer import EOS_ID

VOCAB_SIZE = 11
BRACKETS = Brackets(opening=(4, 6), closing=(9, 5), leaves=(7, 10), vocab_size=VOCAB_SIZE)  # 8 has no part in trees
CLOSING = dict(zip(BRACKETS.opening, BRACKETS.closing, strict=True))
SEEDS = st.integers(min_value=0, max_value=10_000)
SOURCES = ([5, 6, 7], [4], [6, 4, 4, 5, 7])
LIMITS = (12, 9, 17)
FREE = ((0, 0, 0), (0,), (0,) * 5)
METHODS = {
    "greedy": SearchSettings(1),
    "beam": SearchSettings(3, n_best=3),
    "groups": SearchSettings(4, n_best=4, diversity=Diversity(2)),
    "samples": SearchSettings(n_best=5, sampling=Sampling()),
}


def is_tree(token_ids, leaves):
    """Read the tokens with a stack, as the definition of a tree has it."""
    *tokens, end = token_ids
    stack, found, previous = [], [], None
    for token in tokens:
        if token in BRACKETS.opening:
            stack.append(token)
        elif token in BRACKETS.closing:
            if not stack or CLOSING[stack.pop()] != token or previous in BRACKETS.opening:
                return False
        elif token in BRACKETS.leaves:
            found.append(token)
        else:
            return False
        previous = token
    fits = len(found) == len(leaves) and all(leaf in (0, token) for leaf, token in zip(leaves, found, strict=True))
    return end == EOS_ID and not stack and fits


@cache
def forests(leaves, room):
    """Every row of trees over these leaves with at most ``room`` tokens."""
    if not leaves:
        return ((),)
    found = []
    choices = BRACKETS.leaves if leaves[0] == 0 else (leaves[0],)
    for token in choices if room else ():
        found += [(token, *rest) for rest in forests(leaves[1:], room - 1)]
    for covered in range(1, len(leaves) + 1):
        for inside in forests(leaves[:covered], room - 2) if room > 2 else ():
            for token in BRACKETS.opening:
                tree = (token, *inside, CLOSING[token])
                found += [(*tree, *rest) for rest in forests(leaves[covered:], room - len(tree))]
    return tuple(found)


def exhaustive(predictor, source, leaves, limit, alpha):
    outputs = []
    for tokens in forests(leaves, limit - 1):
        ids = (*tokens, EOS_ID)
        log_prob = sum(predictor.log_probs(source, ids[:t])[ids[t]].item() for t in range(len(ids)))
        outputs.append((log_prob / length_penalty(len(ids), alpha), ids))
    return sorted(outputs, key=lambda output: -output[0])


def run(seed, asked, *, leaves_B=FREE, limits=LIMITS, **changes):
    predictor = TablePredictor(VOCAB_SIZE, seed=seed, **changes)
    form = TreeForm(BRACKETS, leaves_B)
    return predictor, search(predictor, *sources(*SOURCES), settings=asked, max_output_length_B=limits, form=form)


def test_the_grammar_of_this_test_writes_every_tree_once():
    every = forests((0, 0), 5)
    assert len(set(every)) == len(every)
    tokens = (*BRACKETS.opening, *BRACKETS.closing, *BRACKETS.leaves)
    tried = (ids for size in range(6) for ids in itertools.product(tokens, repeat=size))
    assert {ids for ids in tried if is_tree((*ids, EOS_ID), (0, 0))} == set(every)


@settings(max_examples=25, deadline=None)
@given(SEEDS, st.sampled_from(list(METHODS)), st.sampled_from([-8.0, 0.0, 8.0]))
def test_every_output_of_every_search_is_a_tree_over_the_leaves(seed, method, end_bonus):
    _, results = run(seed, METHODS[method], end_bonus=end_bonus)
    for leaves, limit, found in zip(FREE, LIMITS, results, strict=True):
        assert found
        assert all(is_tree(hypothesis.token_ids, leaves) for hypothesis in found)
        assert all(len(hypothesis.token_ids) <= limit for hypothesis in found)


@settings(max_examples=25, deadline=None)
@given(SEEDS, st.sampled_from(list(METHODS)), st.data())
def test_given_leaves_stand_in_their_order(seed, method, data):
    leaves_B = tuple(tuple(data.draw(st.sampled_from([0, 7, 10])) for _ in leaves) for leaves in FREE)
    _, results = run(seed, METHODS[method], leaves_B=leaves_B)
    assert all(is_tree(h.token_ids, own) for own, found in zip(leaves_B, results, strict=True) for h in found)


@settings(max_examples=12, deadline=None)
@given(SEEDS, st.sampled_from([0.0, 0.3, 1.0]), st.sampled_from([((0, 0), (0,), (0, 10, 0)), ((7, 10), (10,), (7,))]))
def test_a_wide_beam_equals_exhaustive_search_among_trees(seed, alpha, leaves_B):
    limits = (7, 6, 6)
    asked = SearchSettings(700, length_penalty=alpha, n_best=13)
    predictor, results = run(seed, asked, leaves_B=leaves_B, limits=limits)
    for source, leaves, limit, found in zip(SOURCES, leaves_B, limits, results, strict=True):
        expected = exhaustive(predictor, (*source, EOS_ID), leaves, limit, alpha)[:13]
        assert [hypothesis.token_ids for hypothesis in found] == [ids for _, ids in expected]
        assert [hypothesis.score for hypothesis in found] == pytest.approx([s for s, _ in expected], abs=1e-5)


@settings(max_examples=15, deadline=None)
@given(SEEDS, st.integers(0, 7))
def test_the_tightest_limit_gives_a_tree_all_the_same(seed, spare):
    limits = tuple(len(leaves) + 1 + spare for leaves in FREE)
    for asked in METHODS.values():
        _, results = run(seed, asked, limits=limits, end_bonus=-8.0)
        for leaves, limit, found in zip(FREE, limits, results, strict=True):
            assert all(is_tree(h.token_ids, leaves) and len(h.token_ids) <= limit for h in found)


@pytest.mark.parametrize("method", METHODS)
def test_the_score_is_the_probability_that_the_model_gives_without_the_rules(method):
    predictor, results = run(3, METHODS[method])
    for source, found in zip(SOURCES, results, strict=True):
        for hypothesis in found:
            (log_probs,) = score_pairs(predictor, *sources(source), [hypothesis.token_ids])
            assert hypothesis.log_prob == pytest.approx(sum(log_probs), abs=1e-4)


@pytest.mark.parametrize("method", METHODS)
def test_the_other_sentences_of_a_batch_change_nothing(method):
    predictor, results = run(7, METHODS[method])
    for source, leaves, limit, found in zip(SOURCES, FREE, LIMITS, results, strict=True):
        (alone,) = search(
            predictor,
            *sources(source),
            settings=METHODS[method],
            max_output_length_B=[limit],
            form=TreeForm(BRACKETS, [leaves]),
        )
        assert alone == found


def test_a_model_that_writes_trees_by_itself_is_left_alone():
    tree = (4, 6, 7, 10, 5, 9, EOS_ID)

    class Writer(TablePredictor):
        def log_probs(self, source, prefix):
            row = torch.full((VOCAB_SIZE,), -30.0)
            row[tree[len(prefix)] if prefix == tree[: len(prefix)] else EOS_ID] = 0.0
            return row

    for asked in (SearchSettings(1), SearchSettings(3)):
        for form in (None, TreeForm(BRACKETS, [(0, 0)])):
            ((best, *_),) = search(Writer(VOCAB_SIZE), *sources([5, 6]), settings=asked, form=form)
            assert best.token_ids == tree
            assert best.log_prob == 0.0


@settings(max_examples=15, deadline=None)
@given(SEEDS, st.sampled_from(list(METHODS)), st.sampled_from([1, 2]))
def test_no_more_nodes_open_in_a_row_than_are_allowed(seed, method, most):
    form = TreeForm(BRACKETS, FREE, max_openings=most)
    predictor = TablePredictor(VOCAB_SIZE, seed=seed, end_bonus=-8.0)
    results = search(predictor, *sources(*SOURCES), settings=METHODS[method], max_output_length_B=LIMITS, form=form)
    for leaves, found in zip(FREE, results, strict=True):
        for hypothesis in found:
            assert is_tree(hypothesis.token_ids, leaves)
            assert _longest_run(hypothesis.token_ids) <= most


@settings(max_examples=7, deadline=None)
@given(SEEDS)
def test_a_wide_beam_with_few_openings_in_a_row_equals_exhaustive_search_among_such_trees(seed):
    predictor = TablePredictor(VOCAB_SIZE, seed=seed)
    form = TreeForm(BRACKETS, [(0, 0)], max_openings=1)
    asked = SearchSettings(700, n_best=11)
    (found,) = search(predictor, *sources([4]), settings=asked, max_output_length_B=[9], form=form)
    every = exhaustive(predictor, (4, EOS_ID), (0, 0), 9, 0.6)
    expected = [ids for _, ids in every if _longest_run(ids) <= 1][:11]
    assert [hypothesis.token_ids for hypothesis in found] == expected


def _longest_run(token_ids):
    runs = itertools.groupby(token_ids, lambda token: token in BRACKETS.opening)
    return max((len(list(run)) for opens, run in runs if opens), default=0)


@settings(max_examples=7, deadline=None)
@given(SEEDS, st.sampled_from([0.5, 3.0]))
def test_no_reward_of_leaves_changes_what_is_best_or_its_score(seed, reward):
    predictor = TablePredictor(VOCAB_SIZE, seed=seed)
    form = TreeForm(BRACKETS, [(0, 0)], max_openings=None, leaf_reward=reward)
    asked = SearchSettings(700, n_best=11)
    (found,) = search(predictor, *sources([4]), settings=asked, max_output_length_B=[7], form=form)
    every = exhaustive(predictor, (4, EOS_ID), (0, 0), 7, 0.6)[:11]
    assert [hypothesis.token_ids for hypothesis in found] == [ids for _, ids in every]
    assert [hypothesis.score for hypothesis in found] == pytest.approx([score for score, _ in every], abs=1e-5)


class Dear(TablePredictor):
    """A leaf costs 2 nats, inside a node of 6 it costs 4; such a node costs 0.5 to open, one of 4 costs 9."""

    def log_probs(self, source, prefix):
        inside = prefix.count(6) > prefix.count(CLOSING[6])
        row = torch.full((VOCAB_SIZE,), -0.01)
        row[list(BRACKETS.leaves)] = -4.0 if inside else -2.0
        row[6], row[4] = -0.5, -9.0
        return row


@pytest.mark.parametrize("beam_size", [1, 2])
def test_a_reward_keeps_what_has_come_further_than_those_that_put_a_leaf_off(beam_size):
    for reward, tree in ((0.0, False), (3.0, True)):
        form = TreeForm(BRACKETS, [(7, 7, 7)], leaf_reward=reward)
        ((best, *_),) = search(
            Dear(VOCAB_SIZE), *sources([4]), settings=SearchSettings(beam_size), max_output_length_B=[40], form=form
        )
        assert (best.token_ids == (7, 7, 7, EOS_ID)) is tree
        if tree:
            assert best.log_prob == pytest.approx(-6.01)  # the model's own, without the reward


@pytest.mark.parametrize("method", ["groups", "samples"])
def test_a_reward_is_of_a_plain_beam(method):
    form = TreeForm(BRACKETS, [(0,)], leaf_reward=1.0)
    with pytest.raises(TranslationError, match="ranks the hypotheses of a plain beam"):
        search(TablePredictor(VOCAB_SIZE), *sources([4]), settings=METHODS[method], form=form)


def test_a_limit_below_the_leaves_is_refused_with_the_sentence_and_the_numbers():
    with pytest.raises(TranslationError, match=r"sentence 3: 5 words.* 5 tokens.*needs 6"):
        run(3, SearchSettings(), limits=(12, 9, 5))


@pytest.mark.parametrize("change", [{"prefix_B": [[7]]}, {"settings": SearchSettings(no_repeat_ngram=2)}])
def test_rules_that_no_tree_may_meet_are_refused_together_with_trees(change):
    with pytest.raises(TranslationError, match="must be trees cannot also"):
        search(TablePredictor(VOCAB_SIZE), *sources([4]), form=TreeForm(BRACKETS, [(0,)]), **change)


def test_a_vocabulary_without_brackets_is_refused():
    form = TreeForm(Brackets((), (), leaves=(7,), vocab_size=VOCAB_SIZE), [(0,)])
    with pytest.raises(TranslationError, match="0 labels and 1 leaves"):
        search(TablePredictor(VOCAB_SIZE), *sources([4]), form=form)
