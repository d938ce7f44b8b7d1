"""Searches over random tables, held to a search that tries every output."""

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from search_tables import CopyPredictor, EndTablePredictor, TablePredictor, exhaustive, plain_beam, sources

from headway.errors import ModelError, TranslationError
from headway.search import run as search_run
from headway.search.beam import beam_search
from headway.search.candidates import best_places
from headway.search.constraint import constrain
from headway.search.length import length_penalty
from headway.search.score import score_pairs
from headway.search.settings import SearchSettings
from headway.text.tokenizer import BOS_ID, EOS_ID, PAD_ID

SOURCES = ([5, 6, 7], [4], [6, 4, 4, 5, 7])
SEEDS = st.integers(min_value=0, max_value=10_000)


def search(*batch, max_output_length_B=None, prefix_B=None, **settings):
    return search_run.search(
        *batch, settings=SearchSettings(**settings), max_output_length_B=max_output_length_B, prefix_B=prefix_B
    )


def ids_of(results):
    return [[hypothesis.token_ids for hypothesis in hypotheses] for hypotheses in results]


@pytest.mark.parametrize("alpha", [0.0, 0.3, 0.6, 1.0, 2.0])
@pytest.mark.parametrize("seed", [11, 12, 13])
def test_a_beam_that_holds_every_prefix_equals_exhaustive_search(alpha, seed):
    predictor = TablePredictor(7, seed=seed)
    limits = [4, 3, 5]
    results = search(
        predictor, *sources(*SOURCES), beam_size=400, length_penalty=alpha, max_output_length_B=limits, n_best=13
    )
    for source, limit, hypotheses in zip(SOURCES, limits, results, strict=True):
        expected = exhaustive(predictor, (*source, EOS_ID), limit, alpha)[:13]
        assert [hypothesis.token_ids for hypothesis in hypotheses] == [ids for _, _, ids in expected]
        assert [hypothesis.score for hypothesis in hypotheses] == pytest.approx([s for s, _, _ in expected], abs=1e-5)
        assert [hypothesis.log_prob for hypothesis in hypotheses] == pytest.approx(
            [p for _, p, _ in expected], abs=1e-5
        )


@settings(max_examples=30, deadline=None)
@given(
    SEEDS,
    st.sampled_from([2, 3, 5]),
    st.sampled_from([0.0, 0.6, 1.0, 2.0]),
    st.sampled_from([-1.0, 0.0, 2.0]),
)
def test_a_narrow_beam_equals_the_plain_definition_that_never_stops_early(seed, beam_size, alpha, end_bonus):
    predictor = TablePredictor(7, seed=seed, end_bonus=end_bonus)
    limits = [7, 5, 11]
    results = search(
        predictor,
        *sources(*SOURCES),
        beam_size=beam_size,
        length_penalty=alpha,
        max_output_length_B=limits,
        n_best=beam_size,
    )
    for source, limit, hypotheses in zip(SOURCES, limits, results, strict=True):
        expected = plain_beam(predictor, (*source, EOS_ID), limit, beam_size=beam_size, alpha=alpha, n_best=beam_size)
        assert [hypothesis.token_ids for hypothesis in hypotheses] == [ids for _, ids in expected]
        assert [hypothesis.score for hypothesis in hypotheses] == pytest.approx([s for s, _ in expected], abs=1e-5)


def test_fewer_outputs_than_asked_for_are_all_given():
    predictor = TablePredictor(5, seed=3)
    (hypotheses,) = search(predictor, *sources([4]), beam_size=53, max_output_length_B=[3], n_best=50)
    assert len(hypotheses) == 1 + 2 + 4  # over UNK and one word: no token, one, two


@settings(max_examples=40, deadline=None)
@given(SEEDS, st.floats(min_value=-2.0, max_value=3.0))
def test_a_beam_of_one_equals_greedy_search_at_penalty_0(seed, end_bonus):
    predictor = TablePredictor(11, seed=seed, end_bonus=end_bonus)
    limits = [7, 13, 5]
    greedy = search(predictor, *sources(*SOURCES), beam_size=1, length_penalty=0.0, max_output_length_B=limits)
    beam = beam_search(
        predictor,
        *sources(*SOURCES),
        constraint=constrain(torch.tensor(limits), torch.zeros(3, 0, dtype=torch.int64)),
        settings=SearchSettings(1, length_penalty=0.0, n_best=1),
    )
    assert greedy == beam


def test_greedy_search_takes_the_most_probable_token_at_each_step():
    predictor = TablePredictor(11, seed=5)
    (hypothesis,) = search(predictor, *sources([5, 9]), beam_size=1)[0]
    prefix = ()
    for token in hypothesis.token_ids:
        row = predictor.log_probs((5, 9, EOS_ID), prefix).clone()
        row[[PAD_ID, BOS_ID]] = -torch.inf
        assert row.argmax() == token
        prefix = (*prefix, token)


@settings(max_examples=17, deadline=None)
@given(SEEDS, st.sampled_from([1, 2, 3, 5]), st.sampled_from([0.0, 0.6, 1.0]))
def test_the_printed_log_probability_is_that_of_forced_decoding(seed, beam_size, alpha):
    predictor = TablePredictor(11, seed=seed)
    batch = sources(*SOURCES)
    results = search(predictor, *batch, beam_size=beam_size, length_penalty=alpha)
    best = [hypotheses[0] for hypotheses in results]
    forced = score_pairs(predictor, *batch, [hypothesis.token_ids for hypothesis in best])
    for hypothesis, token_log_probs in zip(best, forced, strict=True):
        assert len(token_log_probs) == len(hypothesis.token_ids)
        assert hypothesis.log_prob == pytest.approx(sum(token_log_probs), abs=1e-4)
        penalty = length_penalty(len(hypothesis.token_ids), alpha)
        assert hypothesis.score == pytest.approx(hypothesis.log_prob / penalty, abs=1e-5)


@settings(max_examples=17, deadline=None)
@given(SEEDS, st.sampled_from([1, 2, 3, 5]))
def test_the_end_is_never_extended_and_control_tokens_are_never_produced(seed, beam_size):
    predictor = TablePredictor(7, seed=seed, end_bonus=1.0)
    results = search(predictor, *sources(*SOURCES), beam_size=beam_size, n_best=beam_size)
    assert set(predictor.fed[0]) == {BOS_ID}
    assert not {PAD_ID, BOS_ID, EOS_ID} & set(itertools.chain(*predictor.fed[1:]))
    for hypothesis in itertools.chain(*results):
        assert hypothesis.token_ids[-1] == EOS_ID
        assert not {PAD_ID, BOS_ID, EOS_ID} & set(hypothesis.token_ids[:-1])


@settings(max_examples=17, deadline=None)
@given(SEEDS, st.sampled_from([2, 3, 5]), st.sampled_from([0.0, 0.6, 1.0, 2.0]))
def test_n_best_is_sorted_without_repeats_and_a_shorter_list_is_its_beginning(seed, beam_size, alpha):
    predictor = TablePredictor(7, seed=seed)
    lists = [
        search(predictor, *sources(*SOURCES), beam_size=beam_size, length_penalty=alpha, n_best=n)
        for n in range(1, beam_size + 1)
    ]
    for hypotheses in lists[-1]:
        scores = [hypothesis.score for hypothesis in hypotheses]
        assert scores == sorted(scores, reverse=True)
        assert len({hypothesis.token_ids for hypothesis in hypotheses}) == beam_size
    for n, shorter in enumerate(lists, start=1):
        assert shorter == [hypotheses[:n] for hypotheses in lists[-1]]


END_PROBABILITIES = [0.51, 0.1, 0.1, 0.95, 1.0]


@pytest.mark.parametrize("beam_size", [2, 4])
@pytest.mark.parametrize("n_best", [1, 2])
def test_search_does_not_stop_at_the_first_end_when_a_longer_output_scores_better(beam_size, n_best):
    predictor = EndTablePredictor(END_PROBABILITIES)
    expected = exhaustive(predictor, (4, EOS_ID), 5, 1.0)
    expected = [output for output in expected if output[0] > -torch.inf and 1 not in output[2]]
    (hypotheses,) = search(
        predictor, *sources([4]), beam_size=beam_size, length_penalty=1.0, max_output_length_B=[5], n_best=n_best
    )
    assert [hypothesis.token_ids for hypothesis in hypotheses] == [ids for _, _, ids in expected[:n_best]]
    # by hand: ln(.49 * .9 * .9 * .95) = -0.9754; over (5 + 4)/6 = -0.6503. The empty output: ln .51 = -0.6733, over 1.
    assert hypotheses[0].token_ids == (4, 4, 4, EOS_ID)
    assert hypotheses[0].score == pytest.approx(-0.650, abs=5e-4)
    empty = search(predictor, *sources([4]), beam_size=2, length_penalty=1.0, max_output_length_B=[5], n_best=2)[0][1]
    assert empty.token_ids == (EOS_ID,)
    assert empty.score == pytest.approx(-0.673, abs=5e-4)


@pytest.mark.parametrize("beam_size", [1, 2, 4])
def test_at_penalty_0_the_empty_output_wins_where_it_is_most_probable(beam_size):
    predictor = EndTablePredictor(END_PROBABILITIES)
    (hypotheses,) = search(predictor, *sources([4]), beam_size=beam_size, length_penalty=0.0, max_output_length_B=[5])
    assert hypotheses[0].token_ids == (EOS_ID,)


LENGTHS = (1, 3, 9, 27, 60)


@pytest.mark.parametrize("beam_size", [1, 4])
def test_batch_mates_order_and_padding_never_change_a_sentence(beam_size):
    sentences = [[4 + (7 * place + length) % 9 for place in range(length)] for length in LENGTHS]
    limits = dict(zip(LENGTHS, [7, 11, 13, 17, 19], strict=True))
    predictor = TablePredictor(13, seed=2)

    def run(chosen):
        results = search(
            predictor,
            *sources(*chosen),
            beam_size=beam_size,
            n_best=min(beam_size, 3),
            max_output_length_B=[limits.get(len(sentence), 23) for sentence in chosen],
        )
        return dict(zip([len(sentence) for sentence in chosen], results, strict=True))

    alone = {length: run([sentence])[length] for length, sentence in zip(LENGTHS, sentences, strict=True)}
    neighbour = [4 + place % 5 for place in range(200)]
    assert run(sentences) == alone
    assert run(sentences[::-1]) == alone
    with_neighbour = run([neighbour, *sentences])
    assert {length: with_neighbour[length] for length in LENGTHS} == alone


@pytest.mark.parametrize("beam_size", [1, 4])
def test_finished_sentences_leave_the_batch(beam_size):
    predictor = CopyPredictor(7)
    search(predictor, *sources([4, 5], [4, 5, 6, 4, 5], [6]), beam_size=beam_size, length_penalty=0.0)
    live = beam_size
    assert predictor.num_rows == [3, 3 * live, 2 * live, 1 * live, 1 * live, 1 * live]


@pytest.mark.parametrize("beam_size", [1, 4])
def test_an_output_of_400_tokens_is_not_cut_by_default(beam_size):
    sentence = [4 + place % 3 for place in range(400)]
    (hypotheses,) = search(CopyPredictor(7), *sources(sentence), beam_size=beam_size)
    assert hypotheses[0].token_ids == (*sentence, EOS_ID)
    assert not hypotheses[0].is_cut


@pytest.mark.parametrize("beam_size", [1, 2, 5])
def test_a_hypothesis_that_had_to_end_at_the_limit_is_flagged(beam_size):
    predictor = TablePredictor(13, seed=4, end_bonus=-300.0)
    results = search(predictor, *sources([4, 5], [6]), beam_size=beam_size, length_penalty=0.0)
    assert [len(hypotheses[0].token_ids) for hypotheses in results] == [3 + 50, 2 + 50]  # source with EOS, + 50
    for hypotheses in results:
        assert hypotheses[0].is_cut
        assert hypotheses[0].token_ids[-1] == EOS_ID


@pytest.mark.parametrize("beam_size", [1, 3])
def test_a_limit_of_one_token_gives_the_empty_output(beam_size):
    (hypotheses,) = search(TablePredictor(7, seed=4), *sources([4, 5]), beam_size=beam_size, max_output_length_B=[1])
    assert ids_of([hypotheses]) == [[(EOS_ID,)]]
    assert hypotheses[0].is_cut


@pytest.mark.parametrize("alpha", [0.0, 0.6])
def test_a_forced_prefix_is_kept_and_the_rest_is_searched_fully(alpha):
    predictor = TablePredictor(7, seed=8)
    prefixes = [[5, 4], [], [6]]
    limits = [5, 4, 4]
    results = search(
        predictor,
        *sources(*SOURCES),
        beam_size=400,
        length_penalty=alpha,
        max_output_length_B=limits,
        n_best=3,
        prefix_B=prefixes,
    )
    for source, limit, prefix, hypotheses in zip(SOURCES, limits, prefixes, results, strict=True):
        expected = exhaustive(predictor, (*source, EOS_ID), limit, alpha, prefix)[:3]
        assert [hypothesis.token_ids for hypothesis in hypotheses] == [ids for _, _, ids in expected]
        assert hypotheses[0].log_prob == pytest.approx(expected[0][1], abs=1e-5)


@pytest.mark.parametrize("beam_size", [1, 4])
def test_a_long_forced_prefix_still_has_room_for_50_tokens(beam_size):
    predictor = TablePredictor(13, seed=8, end_bonus=-300.0)
    prefix = [4 + place % 3 for place in range(61)]
    (hypotheses,) = search(predictor, *sources([4]), beam_size=beam_size, length_penalty=0.0, prefix_B=[prefix])
    assert list(hypotheses[0].token_ids[:61]) == prefix
    assert len(hypotheses[0].token_ids) == 61 + 50


class EqualPredictor(TablePredictor):
    """Every token is as probable as every other."""

    def log_probs(self, source, prefix):
        return torch.full((self.vocab_size,), -torch.tensor(float(self.vocab_size)).log().item())


@settings(max_examples=40, deadline=None)
@given(SEEDS, st.sampled_from([1, 2, 5, 13]), st.sampled_from([7, 101, 1009]), st.sampled_from([1, 2, 5]))
def test_the_best_places_are_in_order_and_among_equals_the_lowest(seed, size, width, num_values):
    torch.manual_seed(seed)
    scores = -torch.randint(num_values, (3, width)).float()
    values, places = best_places(scores, size)
    for row, row_values, row_places in zip(scores.tolist(), values.tolist(), places.tolist(), strict=True):
        expected = sorted(range(width), key=lambda place: (-row[place], place))[:size]
        assert row_places == expected
        assert row_values == [row[place] for place in expected]


def test_among_equals_the_lower_token_id_comes_first():
    (hypotheses,) = search(
        EqualPredictor(1009), *sources([4]), beam_size=3, length_penalty=0.0, max_output_length_B=[2], n_best=3
    )
    assert [hypothesis.token_ids for hypothesis in hypotheses] == [(EOS_ID,), (1, EOS_ID), (4, EOS_ID)]
    (greedy,) = search(EqualPredictor(1009), *sources([4]), beam_size=1, max_output_length_B=[5])
    assert greedy[0].token_ids == (1, 1, 1, 1, EOS_ID)


def test_no_sentences_give_no_results_without_asking_the_model():
    source_BS = torch.zeros(0, 3, dtype=torch.int64)
    predictor = TablePredictor(7)
    assert search(predictor, source_BS, source_BS != 0) == []
    assert score_pairs(predictor, source_BS, source_BS != 0, []) == []
    assert predictor.fed == []


@pytest.mark.parametrize("beam_size", [1, 2])
def test_a_model_that_gives_no_number_is_an_error_and_not_a_hang(beam_size):
    class Broken(TablePredictor):
        def log_probs(self, source, prefix):
            return torch.full((self.vocab_size,), torch.nan)

    with pytest.raises(ModelError, match="no output has a finite log-probability"):
        search(Broken(7), *sources([4]), beam_size=beam_size, max_output_length_B=[5])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"beam_size": 0}, "beam size is 0"),
        ({"beam_size": 3, "n_best": 5}, "n-best is 5, beam size is 3"),
        ({"n_best": 0}, "n-best is 0"),
        ({"length_penalty": -0.5}, "length penalty is -0.5"),
        ({"length_penalty": float("nan")}, "length penalty is nan"),
        ({"max_output_length_B": [2], "prefix_B": [[4, 4]]}, "prefix has 2. Allow 3 or more"),
        ({"max_output_length_B": [0]}, "may have 0 tokens"),
        ({"prefix_B": [[4, EOS_ID]]}, "holds a control token"),
    ],
)
def test_settings_that_cannot_be_met_are_refused(options, words):
    with pytest.raises(TranslationError, match=words):
        search(TablePredictor(7), *sources([4]), **options)


def test_scores_of_given_targets_are_those_of_the_table_whatever_their_lengths():
    predictor = TablePredictor(7, seed=1)
    targets = [[5, 6, EOS_ID], [EOS_ID], [4, 4, 4, 6, EOS_ID]]
    scores = score_pairs(predictor, *sources(*SOURCES), targets)
    for source, target, values in zip(SOURCES, targets, scores, strict=True):
        rows = [predictor.log_probs((*source, EOS_ID), target[:t]) for t in range(len(target))]
        assert values == pytest.approx([row[token].item() for row, token in zip(rows, target, strict=True)], abs=1e-6)
