"""Outputs that contain given phrases, held to a search that tries every output."""

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from search_tables import TablePredictor, exhaustive, sources

from headway.errors import TranslationError
from headway.search.phrase import WIDEST, Lexicon, Phrase, beam_width, byte_automaton, occurrences
from headway.search.run import search
from headway.search.score import score_pairs
from headway.search.settings import Diversity, Sampling, SearchSettings
from headway.text.tokenizer import EOS_ID

PIECES = [b"", b"\xef\xbf\xbd", b"", b"", b"a", b"b", b" ab"]
LEXICON = Lexicon(PIECES)
SOURCES = ([5, 6, 7], [4], [6, 4, 4, 5, 7])
SEEDS = st.integers(min_value=0, max_value=10_000)
PHRASES = st.lists(st.text("ab", min_size=1, max_size=3), min_size=1, max_size=2).map(
    lambda texts: tuple(Phrase(text.encode()) for text in texts)
)


def write(token_ids):
    return b"".join(PIECES[token_id] for token_id in token_ids)


def has_all(token_ids, phrases):
    text = write(token_ids)
    wanted = [phrase.content for phrase in phrases]
    starts = {content: sum(text.startswith(content, place) for place in range(len(text))) for content in wanted}
    return all(starts[content] >= wanted.count(content) for content in wanted)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text("ab ", max_size=5), max_size=9), st.text("ab ", min_size=1, max_size=6))
def test_the_table_of_a_phrase_says_what_looking_for_it_in_the_text_says(pieces, phrase):
    pieces = [b"", b"\xef\xbf\xbd", b"", b"", b"a", b"b", b" ", *(piece.encode() for piece in pieces)]
    content = phrase.encode()
    automaton = Lexicon(pieces).compile(Phrase(content))
    for state, (token_id, piece) in itertools.product(range(len(content)), enumerate(pieces)):
        text = content[:state] + piece
        longest = max(size for size in range(len(content)) if text.endswith(content[:size]))
        assert automaton.next_LV[state, token_id] == longest
        assert automaton.hits_LV[state, token_id] == occurrences(text, content)


def test_a_phrase_that_begins_as_it_ends_is_followed_through_its_repetition():
    step, hit = byte_automaton(b"aba")
    state, hits = 0, []
    for byte in b"ababa":
        hits.append(int(hit[state, byte]))
        state = int(step[state, byte])
    assert hits == [0, 0, 1, 0, 1]


@settings(max_examples=20, deadline=None)
@given(SEEDS, PHRASES, st.sampled_from([0.0, 0.6, 1.0]), st.sampled_from([-1.0, 1.0]))
def test_a_wide_beam_equals_exhaustive_search_among_the_outputs_that_have_the_phrases(seed, phrases, alpha, end_bonus):
    predictor = TablePredictor(7, seed=seed, end_bonus=end_bonus)
    limits = [4, 3, 5]
    results = search(
        predictor,
        *sources(*SOURCES),
        settings=SearchSettings(beam_size=700, length_penalty=alpha, n_best=11),
        max_output_length_B=limits,
        phrases_B=[phrases, (), phrases[:1]],
        lexicon=LEXICON,
    )
    for source, limit, wanted, found in zip(SOURCES, limits, [phrases, (), phrases[:1]], results, strict=True):
        every = exhaustive(predictor, (*source, EOS_ID), limit, alpha)
        expected = [output for output in every if has_all(output[2], wanted)][:11]
        if not expected:
            assert found
            assert not any(hypothesis.phrases_met for hypothesis in found)
            continue
        assert [hypothesis.token_ids for hypothesis in found] == [ids for _, _, ids in expected]
        assert [hypothesis.score for hypothesis in found] == pytest.approx([s for s, _, _ in expected], abs=1e-5)
        assert all(hypothesis.phrases_met for hypothesis in found)


@settings(max_examples=15, deadline=None)
@given(SEEDS, st.lists(PHRASES, min_size=3, max_size=3), st.sampled_from([1, 2, 5]), st.sampled_from([0, 1, 2, 3]))
def test_a_narrow_beam_places_every_phrase_and_scores_as_forced_decoding(seed, phrases, beam_size, no_repeat_ngram):
    predictor = TablePredictor(7, seed=seed, end_bonus=1.0)
    batch = sources(*SOURCES)
    found = search(
        predictor,
        *batch,
        settings=SearchSettings(beam_size, no_repeat_ngram=no_repeat_ngram),
        phrases_B=phrases,
        lexicon=LEXICON,
    )
    best = [hypotheses[0] for hypotheses in found]
    for hypothesis, wanted in zip(best, phrases, strict=True):
        assert hypothesis.phrases_met
        assert has_all(hypothesis.token_ids, wanted)
    forced = score_pairs(predictor, *batch, [hypothesis.token_ids for hypothesis in best])
    assert [hypothesis.log_prob for hypothesis in best] == pytest.approx([sum(values) for values in forced], abs=1e-4)


@settings(max_examples=6, deadline=None)
@given(SEEDS, st.lists(PHRASES, min_size=3, max_size=3), st.sampled_from([1, 4]))
def test_batch_mates_and_their_phrases_never_change_a_sentence(seed, phrases, beam_size):
    predictor = TablePredictor(7, seed=seed)
    phrases[1] = ()
    asked = SearchSettings(beam_size, n_best=min(beam_size, 3))
    together = search(predictor, *sources(*SOURCES), settings=asked, phrases_B=phrases, lexicon=LEXICON)
    for source, wanted, found in zip(SOURCES, phrases, together, strict=True):
        assert search(predictor, *sources(source), settings=asked, phrases_B=[wanted], lexicon=LEXICON) == [found]
    assert search(predictor, *sources(SOURCES[1]), settings=asked) == [together[1]]


@settings(max_examples=9, deadline=None)
@given(SEEDS, PHRASES)
def test_n_best_with_phrases_is_sorted_without_repeats(seed, phrases):
    predictor = TablePredictor(7, seed=seed)
    (found,) = search(
        predictor, *sources([4, 5]), settings=SearchSettings(5, n_best=5), phrases_B=[phrases], lexicon=LEXICON
    )
    scores = [hypothesis.score for hypothesis in found]
    assert scores == sorted(scores, reverse=True)
    assert len({hypothesis.token_ids for hypothesis in found}) == len(found)


def test_a_phrase_written_by_any_tokens_counts_and_is_not_forced_again():
    # "ab" is one token here, after a space; this model writes it in two.
    class Fond(TablePredictor):
        def log_probs(self, source, prefix):
            row = torch.full((7,), -9.0)
            row[(5, 4, 5, EOS_ID)[min(len(prefix), 3)]] = 0.0
            return row.log_softmax(dim=0)

    ((found,),) = search(
        Fond(7), *sources([4]), settings=SearchSettings(4), phrases_B=[(Phrase(b"ab"),)], lexicon=LEXICON
    )
    assert write(found.token_ids) == b"bab"


@settings(max_examples=9, deadline=None)
@given(SEEDS, st.sampled_from([1, 4]))
def test_only_a_phrase_may_repeat_where_nothing_else_may(seed, beam_size):
    predictor = TablePredictor(7, seed=seed, end_bonus=-9.0)
    asked = SearchSettings(beam_size, no_repeat_ngram=1)
    wanted = [[Phrase(b"bb")]]
    ((found,),) = search(predictor, *sources([4]), settings=asked, phrases_B=wanted, lexicon=LEXICON)
    assert found.phrases_met
    assert max(found.token_ids.count(token) for token in (1, 4, 6)) <= 1


def test_where_an_output_has_the_phrases_none_without_them_is_given():
    class EndsAfterB(TablePredictor):
        def log_probs(self, source, prefix):
            ended = torch.tensor([-40.0, -40.0, -40.0, 0.0, -40.0, -40.0, -40.0])
            row = torch.tensor([-40.0, -1.0, -40.0, -2.0, 0.0, -torch.inf if prefix else -3.0, -1.0])
            return (ended if 5 in prefix else row).log_softmax(dim=0)

    (found,) = search(
        EndsAfterB(7),
        *sources([4]),
        settings=SearchSettings(2, n_best=2),
        phrases_B=[(Phrase(b"bb"),)],
        lexicon=Lexicon([*PIECES[:5], b"bb", PIECES[6]]),
        max_output_length_B=[5],
    )
    assert [hypothesis.token_ids for hypothesis in found] == [(5, EOS_ID)]


def test_a_prefix_may_bring_a_phrase_with_it():
    predictor = TablePredictor(7, seed=3)
    wanted = [(Phrase(b"ab"), Phrase(b"ba"))]
    ((found,),) = search(
        predictor, *sources([4]), prefix_B=[(6, 4)], phrases_B=wanted, lexicon=LEXICON, max_output_length_B=[3]
    )
    assert found.token_ids == (6, 4, EOS_ID)
    assert found.phrases_met


def test_where_the_limit_leaves_no_room_the_output_has_as_many_as_could_be_placed_and_is_flagged():
    predictor = TablePredictor(7, seed=3, end_bonus=5.0)
    wanted = [(Phrase(b"bb"), Phrase(b"ab"), Phrase(b"aba"))]
    ((found,),) = search(predictor, *sources([4]), phrases_B=wanted, lexicon=LEXICON, max_output_length_B=[2])
    assert found.token_ids == (6, EOS_ID)
    assert not found.phrases_met
    assert found.is_cut


def test_the_beam_has_room_for_every_bank():
    assert beam_width(LEXICON, [], 3) == 3
    assert beam_width(LEXICON, [Phrase(b"ab")], 1) == 2
    assert beam_width(LEXICON, [Phrase(b"bbb"), Phrase(b"ab")], 4) == 8
    assert beam_width(LEXICON, [Phrase(b"b")] * 99, 4) == WIDEST
    assert beam_width(LEXICON, [Phrase(b"b")] * 99, 61) == 61


@pytest.mark.parametrize("changes", [{"sampling": Sampling()}, {"diversity": Diversity(2)}])
def test_phrases_without_a_beam_of_their_own_are_refused(changes):
    with pytest.raises(TranslationError, match="phrases need a beam"):
        search(
            TablePredictor(7),
            *sources([4]),
            settings=SearchSettings(**changes),
            phrases_B=[(Phrase(b"b"),)],
            lexicon=LEXICON,
        )


def test_a_phrase_that_no_tokens_write_is_refused():
    with pytest.raises(TranslationError, match="no tokens write the phrase 'xyz'"):
        LEXICON.compile(Phrase(b"xyz"))
