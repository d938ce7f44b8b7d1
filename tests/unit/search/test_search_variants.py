"""Ensembles, groups and runs that do not repeat, over random tables."""

import itertools
import math
from dataclasses import replace

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from search_tables import TablePredictor, exhaustive, sources

from headway.errors import TranslationError
from headway.search.ensemble import EnsemblePredictor
from headway.search.length import length_penalty
from headway.search.run import search
from headway.search.score import score_pairs
from headway.search.settings import Diversity, Sampling, SearchSettings
from headway.text.tokenizer import BOS_ID, EOS_ID, PAD_ID

SOURCES = ([5, 6, 7], [4], [6, 4, 4, 5, 7])
SEEDS = st.integers(min_value=0, max_value=10_000)
METHODS = {
    "greedy": SearchSettings(1),
    "beam": SearchSettings(4, n_best=3),
    "groups": SearchSettings(4, n_best=3, diversity=Diversity(2)),
    "samples": SearchSettings(n_best=5, sampling=Sampling(top_k=5)),
}


class MeanPredictor(TablePredictor):
    """The mean of tables, by its definition."""

    def __init__(self, tables, *, geometric):
        super().__init__(tables[0].vocab_size)
        self.tables, self.geometric = tables, geometric

    def log_probs(self, source, prefix):
        rows = torch.stack([table.log_probs(source, prefix).double() for table in self.tables])
        mean = rows.mean(dim=0).exp() if self.geometric else rows.exp().mean(dim=0)
        return (mean / mean.sum()).log().float()


def same(found, expected):
    for ours, theirs in zip(found, expected, strict=True):
        assert [h.token_ids for h in ours] == [h.token_ids for h in theirs]
        assert [h.score for h in ours] == pytest.approx([h.score for h in theirs], abs=1e-4)


@pytest.mark.parametrize("geometric", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_an_ensemble_searches_the_mean_of_its_models(method, geometric):
    tables = [TablePredictor(11, seed=seed) for seed in (1, 2, 3)]
    batch = sources(*SOURCES)
    found = search(EnsemblePredictor(tables, geometric=geometric), *batch, settings=METHODS[method])
    same(found, search(MeanPredictor(tables, geometric=geometric), *batch, settings=METHODS[method]))
    ids = [hypotheses[0].token_ids for hypotheses in found]
    forced = score_pairs(EnsemblePredictor(tables, geometric=geometric), *batch, ids)
    assert [h[0].log_prob for h in found] == pytest.approx([sum(values) for values in forced], abs=1e-4)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_an_ensemble_of_one_model_however_often_is_that_model_bit_for_bit(method, count):
    batch = sources(*SOURCES)
    alone = search(TablePredictor(11, seed=7), *batch, settings=METHODS[method])
    ensemble = EnsemblePredictor([TablePredictor(11, seed=7) for _ in range(count)])
    assert search(ensemble, *batch, settings=METHODS[method]) == alone


def test_a_token_that_no_model_allows_stays_impossible_and_one_that_one_allows_gets_its_share():
    class Row(TablePredictor):
        def __init__(self, *values):
            super().__init__(len(values))
            self.values = values

        def log_probs(self, source, prefix):
            return torch.tensor(self.values).log()

    ensemble = EnsemblePredictor([Row(0.0, 0.5, 0.5, 0.0), Row(0.0, 0.0, 0.5, 0.5)])
    state = ensemble.start(*sources([4]))
    row, _ = ensemble.predict(torch.tensor([BOS_ID]), state)
    assert row.exp()[0].tolist() == pytest.approx([0.0, 0.25, 0.5, 0.25])


@pytest.mark.parametrize("strength", [0.0, 0.5, 7.0])
@settings(max_examples=10, deadline=None)
@given(seed=SEEDS, alpha=st.sampled_from([0.0, 0.6]))
def test_one_group_is_plain_beam_search(seed, alpha, strength):
    predictor = TablePredictor(7, seed=seed)
    batch = sources(*SOURCES)
    asked = SearchSettings(4, length_penalty=alpha, n_best=3)
    one_group = SearchSettings(4, length_penalty=alpha, n_best=3, diversity=Diversity(1, strength))
    assert search(predictor, *batch, settings=one_group) == search(predictor, *batch, settings=asked)


def test_groups_without_a_cost_all_find_the_same():
    predictor = TablePredictor(7, seed=5)
    found = search(predictor, *sources(*SOURCES), settings=SearchSettings(4, n_best=4, diversity=Diversity(2, 0.0)))
    plain = search(predictor, *sources(*SOURCES), settings=SearchSettings(2, n_best=2))
    assert found == plain


def plain_groups(predictor, source, limit, *, beam_size, groups, strength, n_best, alpha=0.6):
    """Diverse beam search by its definition, one list at a time: the finished outputs of each group, best first.

    A group leaves, and costs the others nothing more, when nothing under way can still be among its kept outputs.
    """
    size = beam_size // groups
    kept = min(size, n_best)
    live = [[((), 0.0)] for _ in range(groups)]
    finished = [[] for _ in range(groups)]
    for step in range(limit):
        words = [EOS_ID] if step + 1 == limit else [1, EOS_ID, *range(4, predictor.vocab_size)]
        chosen = dict.fromkeys(range(predictor.vocab_size), 0)
        for group in range(groups):
            candidates = []
            for place, (prefix, log_prob) in enumerate(live[group]):
                row = predictor.log_probs(source, prefix)
                for word in words:
                    total = torch.tensor(log_prob) + row[word]
                    candidates.append((-(total - strength * chosen[word]).item(), place, word, total.item()))
            candidates = sorted(candidates)[: 2 * size]
            finished[group] += [
                (total / length_penalty(step + 1, alpha), (*live[group][place][0], word))
                for _, place, word, total in candidates[:size]
                if word == EOS_ID
            ]
            finished[group] = sorted(finished[group], key=lambda output: -output[0])[:kept]
            going_on = [candidate for candidate in candidates if candidate[2] != EOS_ID][:size]
            live[group] = [((*live[group][place][0], word), total) for _, place, word, total in going_on]
            for _, _, word, _ in going_on:
                chosen[word] += 1
            reachable = max((total for _, total in live[group]), default=-math.inf) / length_penalty(limit, alpha)
            if len(finished[group]) == kept and finished[group][-1][0] >= reachable:
                live[group] = []
    return finished


@settings(max_examples=40, deadline=None)
@given(
    SEEDS,
    st.sampled_from([(4, 2), (3, 3), (6, 2), (6, 3)]),
    st.sampled_from([0.3, 2.0, 50.0]),
    st.sampled_from([1, 3]),
    st.sampled_from([-1.0, 1.0]),
)
@example(23, (6, 3), 2.0, 3, 1.0)  # where the most probable hypothesis of a group is not its first
def test_groups_find_what_their_definition_finds(seed, sizes, strength, n_best, end_bonus):
    beam_size, groups = sizes
    predictor = TablePredictor(7, seed=seed, end_bonus=end_bonus)
    limits = [6, 3, 7]
    asked = SearchSettings(beam_size, n_best=n_best, diversity=Diversity(groups, strength))
    results = search(predictor, *sources(*SOURCES), settings=asked, max_output_length_B=limits)
    for source, limit, found in zip(SOURCES, limits, results, strict=True):
        by_group = plain_groups(
            predictor,
            (*source, EOS_ID),
            limit,
            beam_size=beam_size,
            groups=groups,
            strength=strength,
            n_best=n_best,
        )
        by_place = [output for row in itertools.zip_longest(*by_group) for output in row if output is not None]
        different = list({ids: score for score, ids in by_place}.items())[:n_best]
        expected = sorted(different, key=lambda output: -output[1])
        assert [h.token_ids for h in found] == [ids for ids, _ in expected]
        assert [h.score for h in found] == pytest.approx([score for _, score in expected], abs=1e-5)


@settings(max_examples=10, deadline=None)
@given(SEEDS, st.sampled_from([(4, 2), (6, 3), (5, 5)]), st.sampled_from([0.0, 0.5, 5.0]))
def test_groups_give_sorted_distinct_outputs_scored_by_the_model_whatever_the_batch(seed, sizes, strength):
    predictor = TablePredictor(11, seed=seed)
    asked = SearchSettings(sizes[0], n_best=sizes[0], diversity=Diversity(sizes[1], strength))
    batch = sources(*SOURCES)
    results = search(predictor, *batch, settings=asked)
    for source, found in zip(SOURCES, results, strict=True):
        assert search(predictor, *sources(source), settings=asked) == [found]
        assert [h.score for h in found] == sorted((h.score for h in found), reverse=True)
        assert len({h.token_ids for h in found}) == len(found)
        forced = score_pairs(predictor, *sources(*[source] * len(found)), [h.token_ids for h in found])
        assert [h.log_prob for h in found] == pytest.approx([sum(values) for values in forced], abs=1e-4)


def test_a_high_cost_gives_every_group_another_first_token():
    predictor = TablePredictor(11, seed=3, end_bonus=-3.0)
    for found in search(
        predictor, *sources(*SOURCES), settings=SearchSettings(3, n_best=3, diversity=Diversity(3, 99.0))
    ):
        assert len({h.token_ids[0] for h in found}) == 3


@pytest.mark.parametrize("diversity", [Diversity(3), Diversity(0), Diversity(2, -1.0), Diversity(2, math.inf)])
def test_groups_that_do_not_divide_the_beam_are_refused(diversity):
    with pytest.raises(TranslationError, match="diversity"):
        search(TablePredictor(7), *sources([4]), settings=SearchSettings(4, diversity=diversity))


def repeats(token_ids, size):
    runs = [token_ids[start : start + size] for start in range(len(token_ids) - size + 1)]
    return len(set(runs)) < len(runs)


@settings(max_examples=8, deadline=None)
@given(SEEDS, st.sampled_from([1, 2, 3]))
def test_a_wide_beam_without_repeats_equals_exhaustive_search_among_outputs_without(seed, size):
    predictor = TablePredictor(6, seed=seed)
    limits = [6, 4, 5]
    results = search(
        predictor,
        *sources(*SOURCES),
        settings=SearchSettings(400, n_best=11, no_repeat_ngram=size),
        max_output_length_B=limits,
    )
    for source, limit, found in zip(SOURCES, limits, results, strict=True):
        every = exhaustive(predictor, (*source, EOS_ID), limit, 0.6)
        expected = [output for output in every if not repeats(output[2], size)][:11]
        assert [h.token_ids for h in found] == [ids for _, _, ids in expected]
        assert [h.score for h in found] == pytest.approx([score for score, _, _ in expected], abs=1e-5)


@settings(max_examples=20, deadline=None)
@given(SEEDS, st.sampled_from(list(METHODS)), st.sampled_from([1, 2, 3]))
def test_no_method_repeats_a_run(seed, method, size):
    predictor = TablePredictor(7, seed=seed, end_bonus=-2.0)
    asked = replace(METHODS[method], no_repeat_ngram=size)
    results = search(predictor, *sources(*SOURCES), settings=asked)
    assert not any(repeats(h.token_ids, size) for h in itertools.chain(*results))
    assert [search(predictor, *sources(source), settings=asked)[0] for source in SOURCES] == results


@pytest.mark.parametrize("method", METHODS)
def test_when_every_token_would_repeat_the_output_ends(method):
    predictor = TablePredictor(6, seed=2, end_bonus=-30.0)  # UNK and two words
    results = search(predictor, *sources([4]), settings=replace(METHODS[method], no_repeat_ngram=1))
    assert {tuple(sorted(h.token_ids[:-1])) for h in results[0]} == {(1, 4, 5)}
    assert not any(h.is_cut for h in results[0])


@pytest.mark.parametrize("method", METHODS)
def test_a_forced_prefix_may_repeat_and_what_follows_may_not_repeat_it(method):
    predictor = TablePredictor(7, seed=2, end_bonus=-4.0)
    prefix = (4, 5, 4, 5, 4)
    asked = replace(METHODS[method], no_repeat_ngram=2)
    (found,) = search(predictor, *sources([4]), settings=asked, prefix_B=[prefix], max_output_length_B=[11])
    for hypothesis in found:
        assert hypothesis.token_ids[:5] == prefix
        assert hypothesis.token_ids[5] != 5
        assert not repeats(hypothesis.token_ids[4:], 2)
        assert not {PAD_ID, BOS_ID} & set(hypothesis.token_ids)


def test_a_negative_length_of_runs_is_refused():
    with pytest.raises(TranslationError, match="no-repeat n-gram is -1"):
        search(TablePredictor(7), *sources([4]), settings=SearchSettings(no_repeat_ngram=-1))


@pytest.mark.parametrize("method", METHODS)
def test_reserved_ids_are_in_no_output(method):
    reserved = (4, 5, 9)
    predictor, batch = TablePredictor(11, seed=2), sources(*SOURCES, *([word] for word in range(6, 11)))
    asked = METHODS[method]
    free = [h for hypotheses in search(predictor, *batch, settings=asked) for h in hypotheses]
    assert any(set(reserved) & set(h.token_ids) for h in free)
    held = [h for own in search(predictor, *batch, settings=replace(asked, reserved=reserved)) for h in own]
    assert not any({PAD_ID, BOS_ID, *reserved} & set(h.token_ids) for h in held)


def test_a_prefix_with_a_reserved_id_is_refused():
    with pytest.raises(TranslationError, match="control token"):
        search(TablePredictor(7), *sources([4]), settings=SearchSettings(reserved=(5,)), prefix_B=[[5]])
