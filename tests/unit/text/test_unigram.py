"""Unigram's learner against enumeration, and against the library's learner by likelihood."""

import json
import math
import random
from collections import Counter

import numpy as np
import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st

from headway.text import unigram
from headway.text.alphabet import Alphabet
from headway.text.lattice import Lattice, alternatives, first_edges, substrings
from headway.text.unigram import learn_unigram

WORDS = st.dictionaries(
    st.text(st.sampled_from("ab東"), min_size=1, max_size=7), st.integers(1, 5), min_size=1, max_size=5
)


def ways(word, pieces):
    """All ways to take a word apart."""
    if not word:
        yield ()
    for size in range(1, len(word) + 1):
        if word[:size] in pieces:
            for rest in ways(word[size:], pieces):
                yield (word[:size], *rest)


def scores_for(names, seed):
    chance = random.Random(seed)
    return np.asarray([-chance.uniform(0.1, 5) for _ in names])


@given(WORDS, st.integers(0, 99))
def test_expected_counts_are_those_of_all_ways_enumerated(counts, seed):
    found = substrings(counts, longest=4, most=13)
    scores = scores_for(found.names, seed)
    score_of = dict(zip(found.names, scores, strict=True))
    wanted = Counter()
    for word, count in counts.items():
        weighed = {way: math.exp(sum(score_of[piece] for piece in way)) for way in set(ways(word, score_of))}
        total = sum(weighed.values())
        for way, weight in weighed.items():
            for piece in way:
                wanted[piece] += count * weight / total
    got = Lattice(found.edges, found.offsets).expected(scores, found.weight_W)
    np.testing.assert_allclose(got, [wanted[name] for name in found.names], rtol=1e-9, atol=1e-12)


@given(WORDS, st.integers(0, 99))
def test_the_best_way_is_the_best_of_all_ways_enumerated(counts, seed):
    found = substrings(counts, longest=4, most=13)
    scores = scores_for(found.names, seed)
    score_of = dict(zip(found.names, scores, strict=True))
    got = Lattice(found.edges, found.offsets).best(scores)
    wanted = [max(sum(score_of[piece] for piece in way) for way in ways(word, score_of)) for word in sorted(counts)]
    np.testing.assert_allclose(got, wanted)


@given(WORDS, st.integers(0, 99))
def test_the_best_way_without_a_piece_is_the_best_of_the_ways_that_lack_it(counts, seed):
    found = substrings(counts, longest=4, most=13)
    scores = scores_for(found.names, seed)
    score_of = dict(zip(found.names, scores, strict=True))
    longer = np.arange(found.num_characters, len(found.names))
    got = alternatives(found.edges, longer, scores)
    wanted = [
        max(sum(score_of[piece] for piece in way) for way in ways(found.names[number], score_of) if len(way) > 1)
        for number in longer
    ]
    np.testing.assert_allclose(got, wanted)


@given(WORDS)
def test_substrings_are_those_seen_twice_that_no_longer_one_always_covers(counts):
    found = substrings(counts, longest=4, most=1009)
    seen = Counter()
    for word, count in counts.items():
        for start in range(len(word)):
            for end in range(start + 1, min(start + 4, len(word)) + 1):
                seen[word[start:end]] += count
    characters = {name for name in seen if len(name) == 1}
    longer = {
        name
        for name, count in seen.items()
        if len(name) > 1
        and count > 1
        and not any(len(more) == len(name) + 1 and more[:-1] == name and seen[more] == count for more in seen)
    }
    assert set(found.names) == characters | longer
    assert found.num_characters == len(characters)
    assert dict(zip(found.names, found.count_M, strict=True)) == {name: seen[name] for name in found.names}


def test_the_substrings_kept_are_those_that_cover_most_characters():
    found = substrings({"abcabc": 3, "xy": 5, "uvw": 2}, longest=4, most=2)
    # By hand: abc 6 x 3 = 18, bc 6 x 2 = 12 like abca and bcab, but shorter; xy 5 x 2 = 10; ab is always followed by c.
    assert found.names[found.num_characters :] == ["bc", "abc"]


def test_each_piece_has_its_first_edge():
    found = substrings({"abab": 2}, longest=2, most=7)
    first = first_edges(found.edges, len(found.names))
    assert found.edges.piece_E[first].tolist() == list(range(len(found.names)))
    assert found.edges.start_E[first].tolist() == [0, 1, 0, 1]  # a, b, ab, ba


def _texts():
    chance = random.Random(3)
    stems = ["".join(chance.choices("abcdefgh", k=chance.randint(2, 5))) for _ in range(97)]
    return [
        " ".join(chance.choice(stems) + chance.choice(["", "en", "er", "ung"]) for _ in range(13)) for _ in range(401)
    ]


def _log_likelihood(inner, texts):
    """Of texts under a model of the library: the best ways, with scores that sum to one."""
    scores = [score for _, score in json.loads(inner.to_str())["model"]["vocab"]]
    total = math.log(sum(math.exp(score) for score in scores if score))
    counts = Counter(token_id for encoding in inner.encode_batch(texts) for token_id in encoding.ids)
    return sum(count * (scores[token_id] - total) for token_id, count in counts.items())


def test_what_is_learnt_makes_the_text_more_probable_than_what_the_library_learns():
    texts = _texts()
    ours = tokenizers.Tokenizer.from_str(learn_unigram(texts, vocab_size=211, byte_fallback=False).to_json())
    library = tokenizers.Tokenizer(tokenizers.models.Unigram())
    library.pre_tokenizer = Alphabet(byte_fallback=False).runs()
    trainer = tokenizers.trainers.UnigramTrainer(
        vocab_size=208, show_progress=False, special_tokens=["<unk>"], unk_token="<unk>"
    )
    library.train_from_iterator([f" {text}" for text in texts], trainer)
    assert ours.get_vocab_size() == 211
    assert _log_likelihood(ours, texts) > _log_likelihood(library, [f" {text}" for text in texts])


def test_endings_become_pieces():
    names = set(learn_unigram(_texts(), vocab_size=397).names)
    assert {"en", "er", "ung"} <= names


def test_scores_are_logarithms_of_probabilities():
    vocabulary = json.loads(learn_unigram(_texts(), vocab_size=211, byte_fallback=False).to_json())["model"]["vocab"]
    assert sum(math.exp(score) for _, score in vocabulary[4:]) == pytest.approx(1, abs=1e-3)
    assert [score for _, score in vocabulary[:4]] == [0, 0, 0, 0]


def test_where_there_is_room_a_character_seen_is_a_piece_and_not_bytes():
    learnt = learn_unigram(["東京北東京 äöü äöü 東北"] * 7, vocab_size=307)
    assert learnt.tokens(learnt.encode("北ö東"))[-3:] == ["北", "ö", "東"]


def test_pieces_come_by_score_and_those_of_equal_score_by_name():
    learnt = learn_unigram(["zz zz yy yy aa aa mm mm bb bb kk kk"] * 3, vocab_size=307)
    longer = json.loads(learnt.to_json())["model"]["vocab"][260:]
    assert longer == sorted(longer, key=lambda piece: (-piece[1], piece[0]))
    assert len({score for _, score in longer}) < len(longer) > 5


def test_no_piece_begins_or_ends_within_a_character():
    learnt = learn_unigram(["東京北東京 äöü äöü 東北"] * 7, vocab_size=307)
    assert len(learnt.pieces) > 266  # there are pieces
    for piece in learnt.pieces[260:]:
        assert piece.decode("utf-8", errors="replace").encode() == piece


def test_words_beyond_the_limit_are_still_encoded(monkeypatch):
    monkeypatch.setattr(unigram, "MOST_CHARACTERS", 11)
    texts = ["abab abab abab", "cdcd cdcd", "東東東東"]
    learnt = learn_unigram(texts, vocab_size=67, byte_fallback=False)
    for text in texts:
        assert learnt.decode(learnt.encode(text)) == text
        assert 1 not in learnt.encode(text)
    assert " abab" in learnt.names
    assert not any("東東" in name for name in learnt.names)
