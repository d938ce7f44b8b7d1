"""BPE-dropout against a second implementation of the paper's Algorithm 1, one word and one merge at a time."""

import json
import random
import subprocess
import sys
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.errors import TextError
from headway.text import bpe_dropout
from headway.text.bpe import learn_bpe
from headway.text.bpe_dropout import BpeDropout, Sentences, pair_keys
from headway.text.extend import extend_tokenizer
from headway.text.tokenizer import Tokenizer
from headway.text.unigram import learn_unigram
from headway.text.wordpiece import learn_wordpiece

WORDS = ["lower", "lowest", "newer", "newest", "wider", "widest", "höher", "höchste", "東京大学", "東京都", "12", "…!"]
CORPUS = [" ".join(random.Random(number).choices(WORDS, k=11)) for number in range(53)]


@pytest.fixture(scope="module")
def tokenizer():
    return learn_bpe(CORPUS, vocab_size=331, tags=["de"])


@pytest.fixture(scope="module")
def characters():
    return learn_bpe(CORPUS, vocab_size=89, byte_fallback=False)


def redraw(tokenizer, texts, probability, *, seed=1, epoch=0, first=0, longest=None):
    keys = pair_keys(np.arange(first, first + len(texts)), seed=seed, epoch=epoch, side="source")
    sentences = Sentences.of(tokenizer.encode_batch(texts))
    return BpeDropout.from_tokenizer(tokenizer, probability).redraw(sentences, keys, longest=longest).lists()


def algorithm_1(symbols, ranks, probability, chance):
    """Of the merges that apply, each is dropped with a probability; the first one left is made, until none is left."""
    symbols = list(symbols)
    while True:
        pairs = enumerate(pairwise(symbols))
        left = [(ranks[pair], place) for place, pair in pairs if pair in ranks and chance.random() >= probability]
        if not left:
            return tuple(symbols)
        _, place = min(left)
        symbols[place : place + 2] = ["".join(symbols[place : place + 2])]


def ranks_of(tokenizer):
    merges = json.loads(tokenizer.to_json())["model"]["merges"]
    return {(left, right): rank for rank, (left, right) in enumerate(merges)}


@given(texts=st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=5))
def test_at_probability_0_ids_are_the_tokenizers_own(tokenizer, texts):
    assert redraw(tokenizer, texts, 0.0) == tokenizer.encode_batch(texts)


@pytest.mark.parametrize("kind", ["bytes", "characters"])
@given(texts=st.lists(st.text(st.sampled_from("lowernstid öhc東京大学都12…!\t  \u3000")), max_size=5))
def test_merging_anew_without_dropping_gives_the_tokenizers_own_ids(tokenizer, characters, kind, texts):
    """Words that lose no merge are not taken apart at all, so the merging itself is asked here."""
    one = tokenizer if kind == "bytes" else characters
    dropout = BpeDropout.from_tokenizer(one, 0.0)
    dropout._drops_any = lambda keys, _: np.ones(len(keys), np.bool_)
    sentences = Sentences.of(one.encode_batch(texts))
    drawn = dropout.redraw(sentences, pair_keys(np.arange(len(texts)), seed=1, epoch=0, side="source"))
    assert drawn.lists() == one.encode_batch(texts)


@pytest.mark.parametrize("probability", [0.1, 0.5, 0.9])
@given(texts=st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=5), epoch=st.integers(0, 5))
def test_whatever_is_dropped_the_text_is_the_same_and_no_id_is_reserved(tokenizer, probability, texts, epoch):
    for text, ids in zip(texts, redraw(tokenizer, texts, probability, epoch=epoch), strict=True):
        assert tokenizer.decode(ids) == text
        assert not {0, 1, 2, 3, 4} & set(ids)


def test_known_texts_survive_too(tokenizer, characters):
    for one in (tokenizer, characters):
        for epoch in range(7):
            assert [one.decode(ids) for ids in redraw(one, CORPUS, 0.3, epoch=epoch)] == CORPUS


@pytest.mark.parametrize("kind", ["bytes", "characters"])
@pytest.mark.parametrize("probability", [0.1, 0.4])
@pytest.mark.parametrize("word", ["lowest", "newest", "widest"])
def test_each_segmentation_is_as_frequent_as_algorithm_1_makes_it(tokenizer, characters, kind, probability, word):
    one = tokenizer if kind == "bytes" else characters
    number = 4001
    names = ["Ġ" if kind == "bytes" else " ", *word]
    ranks, chance = ranks_of(one), random.Random(5)
    wanted = Counter(algorithm_1(names, ranks, probability, chance) for _ in range(number))
    drawn = redraw(one, [word] * number, probability)
    found = Counter(tuple(one.names[token_id] for token_id in ids) for ids in drawn)
    assert len(wanted) > 3
    for segmentation in wanted | found:
        share = (wanted[segmentation] + found[segmentation]) / (2 * number)
        error = (2 * share * (1 - share) / number) ** 0.5  # of the difference of two shares
        assert abs(wanted[segmentation] - found[segmentation]) / number < 5 * error + 1e-9, segmentation


def test_near_probability_1_text_becomes_its_symbols(tokenizer, characters):
    text = "lowest höher 東京"
    (ids,) = redraw(characters, [text], 0.999999)
    assert characters.tokens(ids) == list(f" {text}")
    (ids,) = redraw(tokenizer, ["lowest newer"], 0.999999)
    assert tokenizer.tokens(ids) == list(" lowest newer")


def test_a_character_with_a_token_of_its_own_never_becomes_bytes():
    # Between marks each letter is a run of its own, so its bytes are merged with each other first.
    learnt = learn_bpe([*CORPUS, "、".join("öäü東京大学都") * 211], vocab_size=331)
    text = "lowest höher 東京"
    (ids,) = redraw(learnt, [text], 0.999999)
    assert learnt.tokens(ids) == list(f" {text}")
    for ids in redraw(learnt, ["höchste höher 東京大学 東京都"] * 101, 0.5):
        assert "".join(learnt.tokens(ids)) == " höchste höher 東京大学 東京都"  # and no byte in hex


def test_epochs_pairs_sides_and_seeds_are_drawn_apart(tokenizer):
    texts = [CORPUS[0]] * 5
    by_pair = redraw(tokenizer, texts, 0.3)
    assert len({tuple(ids) for ids in by_pair}) > 3
    assert redraw(tokenizer, texts, 0.3, epoch=1) != by_pair
    assert redraw(tokenizer, texts, 0.3, seed=2) != by_pair
    assert (
        pair_keys(np.arange(3), seed=1, epoch=0, side="source")
        != pair_keys(np.arange(3), seed=1, epoch=0, side="target")
    ).all()


def test_equal_words_of_a_sentence_are_drawn_apart(tokenizer):
    (ids,) = redraw(tokenizer, ["lowest " * 101], 0.3)
    segmentations = Counter("|".join(tokenizer.tokens(ids)).replace("| ", "\n").split("\n"))
    assert len(segmentations) > 5


@settings(max_examples=17)
@given(st.integers(0, 52), st.integers(0, 52), st.randoms(use_true_random=False))
def test_what_a_pair_becomes_depends_on_nothing_around_it(tokenizer, begin, end, chance):
    whole = redraw(tokenizer, CORPUS, 0.2)
    begin, end = min(begin, end), max(begin, end)
    assert redraw(tokenizer, CORPUS[begin:end], 0.2, first=begin) == whole[begin:end]
    order = list(range(len(CORPUS)))
    chance.shuffle(order)
    keys = pair_keys(np.asarray(order), seed=1, epoch=0, side="source")
    sentences = Sentences.of([tokenizer.encode(CORPUS[number]) for number in order])
    drawn = BpeDropout.from_tokenizer(tokenizer, 0.2).redraw(sentences, keys).lists()
    assert drawn == [whole[number] for number in order]


DIGEST = """
import hashlib, json, sys
import numpy as np
from headway.text.bpe_dropout import BpeDropout, Sentences, pair_keys
from headway.text.tokenizer import Tokenizer
description, texts = json.load(sys.stdin)
tokenizer = Tokenizer.from_json(description)
keys = pair_keys(np.arange(len(texts)), seed=1, epoch=0, side="source")
drawn = BpeDropout.from_tokenizer(tokenizer, 0.2).redraw(Sentences.of(tokenizer.encode_batch(texts)), keys)
print(json.dumps(drawn.lists()))
"""


def test_another_process_draws_the_same(tokenizer):
    done = subprocess.run(
        [sys.executable, "-c", DIGEST],
        input=json.dumps([tokenizer.to_json(), CORPUS]),
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == redraw(tokenizer, CORPUS, 0.2)


def test_draws_are_those_of_splitmix64():
    # The first outputs for seed 1234567, as the generator's authors and other implementations give them.
    seed = np.full(3, 1234567, np.uint64)
    draws = bpe_dropout._draws(seed, np.arange(3))
    assert draws.tolist() == [6457827717110365317, 3203168211198807973, 9817491932198370423]


def test_a_sentence_that_would_be_too_long_stays_as_it_is(tokenizer):
    stored = tokenizer.encode_batch(CORPUS)
    free = redraw(tokenizer, CORPUS, 0.3)
    longest = sorted(map(len, free))[len(free) // 2]
    held = redraw(tokenizer, CORPUS, 0.3, longest=longest)
    for ids, before, alone in zip(held, stored, free, strict=True):
        assert ids == (alone if len(alone) <= longest else before)
    assert any(ids != before for ids, before in zip(held, stored, strict=True))


def test_tags_and_unknown_characters_stay(tokenizer, characters):
    ids = [tokenizer.tag_id("de"), *tokenizer.encode("lowest newest")]
    keys = pair_keys(np.arange(101), seed=1, epoch=0, side="source")
    for drawn in BpeDropout(tokenizer, 0.3).redraw(Sentences.of([ids] * 101), keys).lists():
        assert drawn[0] == tokenizer.tag_id("de")
        assert tokenizer.decode(drawn) == "lowest newest"
    (drawn,) = redraw(characters, ["low☃est ☃"], 0.999)
    assert characters.tokens(drawn) == [" ", "l", "o", "w", "⟨unk⟩", "e", "s", "t", " ", "⟨unk⟩"]


def test_a_tag_is_no_row_of_letters_where_the_vocabulary_has_them():
    learnt = learn_bpe([*CORPUS, "⟨tag:de⟩"], vocab_size=101, byte_fallback=False, tags=["de"])
    sentences = Sentences.of([[4, *learnt.encode("lowest newest")], [4]])
    first, second = BpeDropout(learnt, 0.999).redraw(sentences, np.arange(2, dtype=np.uint64)).lists()
    assert learnt.tokens(first) == ["⟨tag:de⟩", *" lowest newest"]
    assert second == [4]


def test_sentences_without_text_keep_to_themselves(tokenizer):
    alone = tokenizer.encode("lowest")
    sentences = Sentences.of([[4], alone, [4], [], [4, 4], alone])
    keys = pair_keys(np.arange(6), seed=1, epoch=0, side="source")
    drawn = BpeDropout(tokenizer, 0.5).redraw(sentences, keys).lists()
    assert [drawn[place] for place in (0, 2, 3, 4)] == [[4], [4], [], [4, 4]]
    assert [drawn[1]] == redraw(tokenizer, ["lowest"], 0.5, first=1)
    assert [drawn[5]] == redraw(tokenizer, ["lowest"], 0.5, first=5)


def test_no_sentences_and_empty_ones_are_no_trouble(tokenizer):
    assert redraw(tokenizer, [], 0.3) == []
    assert redraw(tokenizer, ["", "", ""], 0.3) == [[], [], []]
    assert redraw(tokenizer, ["", "a", ""], 0.999)[::2] == [[], []]
    no_merges = learn_bpe([], vocab_size=263)
    assert redraw(no_merges, ["ab", ""], 0.5) == [no_merges.encode("ab"), []]


def test_ids_that_are_no_text_stay(tokenizer):
    half = tokenizer.encode("☃")[:-1]
    keys = pair_keys(np.arange(1), seed=1, epoch=0, side="source")
    (ids,) = BpeDropout(tokenizer, 0.9).redraw(Sentences.of([half]), keys).lists()
    assert tokenizer.decode(ids) == tokenizer.decode(half)


def test_a_run_of_64_characters_of_four_bytes_is_taken_apart_too():
    learnt = learn_bpe(["😀😁" * 64] * 3, vocab_size=293)
    for epoch in range(5):
        (ids,) = redraw(learnt, ["😀😁" * 64], 0.3, epoch=epoch)
        assert learnt.decode(ids) == "😀😁" * 64
        assert ids != learnt.encode("😀😁" * 64)


def test_an_extended_tokenizer_drops_its_new_merges_too(tokenizer):
    extended = extend_tokenizer(tokenizer, ["zwölf zwanzig"] * 7, new_tokens=13, tags=["zz"])
    assert [extended.decode(ids) for ids in redraw(extended, ["zwölf zwanzig"] * 31, 0.5)] == ["zwölf zwanzig"] * 31
    assert len({tuple(ids) for ids in redraw(extended, ["zwölf zwanzig"] * 31, 0.5)}) > 5


@pytest.mark.parametrize("learn", [learn_wordpiece, learn_unigram])
def test_another_kind_of_vocabulary_is_an_error_with_a_remedy(learn):
    with pytest.raises(TextError, match=r"needs the merges of a BPE.*Remedy: set text.bpe_dropout to 0"):
        BpeDropout.from_tokenizer(learn(CORPUS, vocab_size=307), 0.1)


def test_the_tokenizer_itself_is_not_changed(tokenizer):
    before = tokenizer.to_json()
    redraw(tokenizer, CORPUS, 0.5)
    assert Tokenizer.from_json(before).encode(CORPUS[0]) == tokenizer.encode(CORPUS[0])
    assert tokenizer.to_json() == before
