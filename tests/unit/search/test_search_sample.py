"""Samples over random tables, held to the probabilities that the tables and the cuts give."""

import itertools
import math
from collections import Counter

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from search_tables import TablePredictor, sources

from headway.errors import TranslationError
from headway.search.length import length_penalty
from headway.search.run import search
from headway.search.sample import cut, draw, uniform_numbers
from headway.search.score import score_pairs
from headway.search.settings import Sampling, SearchSettings
from headway.text.tokenizer import BOS_ID, EOS_ID, PAD_ID

SOURCES = ([5, 6, 7], [4], [6, 4, 4, 5, 7])
SEEDS = st.integers(min_value=0, max_value=10_000)
CHI_SQUARE_AT_1_IN_1000 = {6: 22.46, 5: 20.52, 4: 18.47, 3: 16.27, 2: 13.82, 1: 10.83}
KINDS = {
    "plain": Sampling(seed=11),
    "sharp": Sampling(temperature=0.6, seed=12),
    "flat": Sampling(temperature=1.7, seed=13),
    "top-k": Sampling(top_k=2, seed=14),
    "top-p": Sampling(top_p=0.7, seed=15),
    "epsilon": Sampling(epsilon=0.25, seed=16),
    "all": Sampling(temperature=1.3, top_k=2, top_p=0.9, epsilon=0.05, seed=17),
}


def distribution(log_probs, sampling):
    """The definition, for one position: a list of probabilities."""
    weights = {token: math.exp(value / sampling.temperature) for token, value in enumerate(log_probs) if value > -1e9}
    ranked = sorted(weights, key=lambda token: (-weights[token], token))

    def kept(tokens):
        total = sum(weights[token] for token in tokens)
        return {token: weights[token] / total for token in tokens}

    share = kept(ranked[: sampling.top_k])
    if sampling.top_p is not None:
        sums = [0.0, *itertools.accumulate(share.values())]
        share = kept([token for token, before in zip(share, sums, strict=False) if before < sampling.top_p])
    if sampling.epsilon is not None:
        share = kept([token for token in share if share[token] >= sampling.epsilon] or ranked[:1])
    return [share.get(token, 0.0) for token in range(len(log_probs))]


def output_probabilities(predictor, source, limit, sampling):
    """Every output of at most ``limit`` tokens with its probability of being drawn."""
    found, open_ = {}, {(): 1.0}
    for step in range(limit):
        grown = {}
        for prefix, share in open_.items():
            row = predictor.log_probs(source, prefix).clone()
            row[[PAD_ID, BOS_ID]] = -torch.inf
            chances = distribution(row.tolist(), sampling)
            if step + 1 == limit:
                chances = [float(token == EOS_ID) for token in range(len(chances))]
            for token, chance in enumerate(chances):
                if chance:
                    (found if token == EOS_ID else grown)[*prefix, token] = share * chance
        open_ = grown
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_outputs_come_as_often_as_their_probabilities_say(kind):
    predictor = TablePredictor(5, seed=21, sharpness=1.0)
    number = 4000
    (found,) = search(
        predictor,
        *sources([4]),
        settings=SearchSettings(n_best=number, sampling=KINDS[kind]),
        max_output_length_B=[3],
    )
    counts = {hypothesis.token_ids: hypothesis.count for hypothesis in found}
    expected = output_probabilities(predictor, (4, EOS_ID), 3, KINDS[kind])
    assert sum(counts.values()) == number
    assert set(counts) <= set(expected)
    assert sum(expected.values()) == pytest.approx(1.0)
    chi_square = sum((counts.get(ids, 0) - number * p) ** 2 / (number * p) for ids, p in expected.items())
    assert chi_square < CHI_SQUARE_AT_1_IN_1000[len(expected) - 1]


@settings(max_examples=40, deadline=None)
@given(
    SEEDS,
    st.sampled_from([0.3, 1.0, 2.0]),
    st.sampled_from([None, 1, 3, 50]),
    st.sampled_from([None, 0.01, 0.5, 0.9, 1.0]),
    st.sampled_from([None, 0.0, 0.1, 0.9]),
)
def test_the_cuts_are_those_of_the_definition(seed, temperature, top_k, top_p, epsilon):
    sampling = Sampling(temperature, top_k=top_k, top_p=top_p, epsilon=epsilon)
    generator = torch.Generator().manual_seed(seed)
    log_probs = torch.randn(3, 13, generator=generator).mul(2).log_softmax(dim=1)
    log_probs[:, seed % 13] = -torch.inf
    found = cut(log_probs, sampling)
    for row, expected in zip(found, log_probs, strict=True):
        assert row.tolist() == pytest.approx(distribution(expected.tolist(), sampling), abs=1e-6)


@pytest.mark.parametrize("top_p", [0.05, 0.5, 0.97, 1.0])
def test_rows_that_need_few_tokens_and_rows_that_need_most_are_cut_alike(top_p):
    sharpness = torch.tensor([[0.0], [0.1], [1.0], [9.0]])
    log_probs = (torch.randn(4, 601, generator=torch.Generator().manual_seed(1)) * sharpness).log_softmax(dim=1)
    assert 256 < (cut(log_probs, Sampling(top_p=0.5)) > 0).sum(dim=1)[0] < 601
    for row, expected in zip(cut(log_probs, Sampling(top_p=top_p)), log_probs, strict=True):
        assert row.tolist() == pytest.approx(distribution(expected.tolist(), Sampling(top_p=top_p)), abs=1e-6)


def test_of_equally_probable_tokens_the_lower_ids_stay():
    assert cut(torch.zeros(1, 7), Sampling(top_k=3)).tolist() == [[pytest.approx(1 / 3)] * 3 + [0.0] * 4]


@pytest.mark.parametrize("number", [0.0, 0.25, 0.999, 1.0 - 2**-53])
def test_a_token_that_cannot_be_is_never_drawn(number):
    log_probs = torch.tensor([[-torch.inf, 0.0, -torch.inf, 0.0, -torch.inf]]).log_softmax(dim=1)
    token = draw(log_probs, torch.tensor([number], dtype=torch.float64), Sampling()).item()
    assert token == (1 if number < 0.5 else 3)


@settings(max_examples=30, deadline=None)
@given(SEEDS, st.sampled_from([0, 1, 3]), st.sampled_from([Sampling(temperature=0.0), Sampling(top_k=1)]))
def test_temperature_0_and_one_token_are_greedy_search(seed, no_repeat_ngram, sampling):
    predictor = TablePredictor(11, seed=seed)
    batch = sources(*SOURCES)
    sampled = search(
        predictor, *batch, settings=SearchSettings(n_best=5, no_repeat_ngram=no_repeat_ngram, sampling=sampling)
    )
    greedy = search(predictor, *batch, settings=SearchSettings(1, no_repeat_ngram=no_repeat_ngram))
    for (drawn,), (best,) in zip(sampled, greedy, strict=True):
        assert (drawn.token_ids, drawn.log_prob, drawn.score) == (best.token_ids, best.log_prob, best.score)
        assert drawn.count == 5


def test_a_temperature_near_0_draws_what_greedy_search_finds():
    predictor = TablePredictor(11, seed=5)
    batch = sources(*SOURCES)
    sampled = search(predictor, *batch, settings=SearchSettings(n_best=3, sampling=Sampling(temperature=1e-4)))
    greedy = search(predictor, *batch, settings=SearchSettings(1))
    assert [h.token_ids for (h,) in sampled] == [h.token_ids for (h,) in greedy]


@settings(max_examples=17, deadline=None)
@given(SEEDS, st.sampled_from(list(KINDS.values())), st.sampled_from([0.0, 0.6]))
def test_the_log_probability_is_the_models_own_and_samples_are_sorted_and_distinct(seed, sampling, alpha):
    predictor = TablePredictor(11, seed=seed)
    batch = sources(*SOURCES)
    results = search(predictor, *batch, settings=SearchSettings(length_penalty=alpha, n_best=7, sampling=sampling))
    for source, hypotheses in zip(SOURCES, results, strict=True):
        forced = score_pairs(predictor, *sources(*[source] * len(hypotheses)), [h.token_ids for h in hypotheses])
        assert [h.log_prob for h in hypotheses] == pytest.approx([sum(values) for values in forced], abs=1e-4)
        penalties = [length_penalty(len(h.token_ids), alpha) for h in hypotheses]
        assert [h.score for h in hypotheses] == pytest.approx(
            [h.log_prob / penalty for h, penalty in zip(hypotheses, penalties, strict=True)], abs=1e-6
        )
        assert [h.score for h in hypotheses] == sorted((h.score for h in hypotheses), reverse=True)
        assert len({h.token_ids for h in hypotheses}) == len(hypotheses)
        assert sum(h.count for h in hypotheses) == 7
        assert all(h.token_ids[-1] == EOS_ID for h in hypotheses)
        assert not {PAD_ID, BOS_ID, EOS_ID} & set(itertools.chain(*(h.token_ids[:-1] for h in hypotheses)))


@settings(max_examples=17, deadline=None)
@given(SEEDS, st.integers(0, 2**64 - 1))
def test_a_sample_depends_on_seed_source_and_its_number_alone(seed, sampling_seed):
    predictor = TablePredictor(11, seed=seed)

    def run(*chosen, number=5):
        asked = SearchSettings(n_best=number, sampling=Sampling(seed=sampling_seed))
        return search(predictor, *sources(*chosen), settings=asked)

    together = run(*SOURCES, [8] * 17)
    assert [run(source)[0] for source in SOURCES] == together[:3]
    assert run(*SOURCES[::-1]) == together[2::-1]
    fewer, more = (Counter({h.token_ids: h.count for h in run(SOURCES[0], number=number)[0]}) for number in (3, 8))
    assert fewer <= more


def test_another_seed_gives_other_samples():
    predictor = TablePredictor(101, seed=1)
    found = [
        search(predictor, *sources([5, 6]), settings=SearchSettings(n_best=5, sampling=Sampling(seed=seed)))
        for seed in (1, 2)
    ]
    assert found[0] != found[1]


def test_the_stream_of_numbers_is_the_documented_one():
    """By hand: Philox keyed by blake2b of seed, number of the sample and token ids, as little-endian words."""
    import hashlib

    import numpy as np

    content = b"".join(number.to_bytes(8, "little") for number in (7, 2, 4, 5, 3))
    key = int.from_bytes(hashlib.blake2b(content, digest_size=16).digest(), "little")
    expected = np.random.Generator(np.random.Philox(key=key)).random(11)
    assert uniform_numbers([4, 5, 3], 11, seed=7, place=2).tolist() == expected.tolist()
    assert uniform_numbers([4, 5, 3], 5, seed=7, place=2).tolist() == expected[:5].tolist()


@pytest.mark.parametrize(
    ("sampling", "words"),
    [
        (Sampling(temperature=-0.1), "temperature"),
        (Sampling(temperature=math.nan), "temperature"),
        (Sampling(top_k=0), "top-k"),
        (Sampling(top_p=0.0), "top-p"),
        (Sampling(top_p=1.1), "top-p"),
        (Sampling(epsilon=1.0), "epsilon"),
        (Sampling(seed=-1), "seed"),
        (Sampling(seed=2**64), "seed"),
    ],
)
def test_a_sampling_without_a_meaning_is_refused(sampling, words):
    with pytest.raises(TranslationError, match=words):
        search(TablePredictor(5), *sources([4]), settings=SearchSettings(sampling=sampling))


def test_a_prefix_and_the_limit_hold_for_samples():
    predictor = TablePredictor(11, seed=3, end_bonus=-5.0)
    (found,) = search(
        predictor,
        *sources([4]),
        settings=SearchSettings(n_best=5, sampling=Sampling()),
        prefix_B=[(7, 8)],
        max_output_length_B=[5],
    )
    assert all(h.token_ids[:2] == (7, 8) and len(h.token_ids) <= 5 for h in found)
    assert any(h.is_cut for h in found)
