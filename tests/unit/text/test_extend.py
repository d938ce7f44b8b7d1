"""An extended tokenizer keeps every old id, and takes text apart as before until its new merges apply."""

import hashlib
import json
import os
import random
import subprocess
import sys
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import TextError
from headway.text.bpe import learn_bpe
from headway.text.extend import extend_tokenizer
from headway.text.subword import LEARNERS
from headway.text.tokenizer import Tokenizer

OLD = ["the house is blue", "the door of the blue house is red", "a red door"] * 5
NEW = ["das blaue Haus", "die Tür des blauen Hauses war rot", "東京に行きました", "das Haus, die Häuser"] * 5
SOME_WORDS = ["the", "house", "blue", "das", "Haus", "Tür", "東京に", "red", ",", "die", "Häuser"]


@pytest.fixture(scope="module")
def old():
    return learn_bpe(OLD, vocab_size=293, tags=["en"])


@pytest.fixture(scope="module")
def extended(old):
    return extend_tokenizer(old, NEW, new_tokens=41, tags=["en", "de"])


def merges_of(tokenizer):
    return [tuple(merge) for merge in json.loads(tokenizer.to_json())["model"]["merges"]]


def apply_one_by_one(symbols, merges):
    """Second implementation: the merge of the highest priority that applies, at its first place, until none does."""
    symbols, ranks = list(symbols), {merge: rank for rank, merge in reversed(list(enumerate(merges)))}
    while True:
        found = [(ranks[pair], place) for place, pair in enumerate(pairwise(symbols)) if pair in ranks]
        if not found:
            return symbols
        _, place = min(found)
        symbols[place : place + 2] = ["".join(symbols[place : place + 2])]


def test_old_ids_stay_and_new_ones_follow(old, extended):
    assert list(extended.names[: old.vocab_size]) == list(old.names)
    assert extended.vocab_size == old.vocab_size + 41
    assert extended.tags == {"en": 4, "de": old.vocab_size}


def test_old_merges_stay_first(old, extended):
    assert merges_of(extended)[: len(merges_of(old))] == merges_of(old)
    assert len(set(merges_of(extended))) == len(merges_of(extended))


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_every_text_survives_and_yields_no_reserved_id(old, extended, text):
    ids = extended.encode(text)
    assert extended.decode(ids) == text
    assert not {0, 1, 2, 3, 4, old.vocab_size} & set(ids)


@given(st.lists(st.sampled_from(SOME_WORDS)).map(" ".join))
def test_text_is_taken_apart_as_the_merges_in_their_order_say(extended, text):
    wanted = [name for run in extended.runs(text) for name in apply_one_by_one(run, merges_of(extended))]
    assert [extended.names[token_id] for token_id in extended.encode(text)] == wanted


def test_new_text_gets_shorter_and_text_without_new_patterns_stays(old, extended):
    for text in NEW:
        assert len(extended.encode(text)) < len(old.encode(text))
    assert extended.tokens(extended.encode("das Haus"))[-1] == " Haus"
    for text in ["the red house", "of the blue house"]:
        assert extended.encode(text) == old.encode(text)


def test_the_first_new_token_is_the_most_frequent_pair_of_old_tokens():
    # By hand: " the" is a token already; " the" + "q" and "q" + "w" come 7 times, " z" 6 times, "zz" 5 times.
    old = learn_bpe(["the the the the"], vocab_size=263)
    assert old.tokens([old.vocab_size - 1]) == [" the"]
    text = "theqw " * 7 + "z zz zz zz zz zz"
    new = extend_tokenizer(old, [text], new_tokens=2)
    assert new.tokens([263])[0] in {" theq", "qw"}
    assert new.tokens([264]) == [" theqw"]


def test_size_can_be_given_as_a_whole(old):
    assert extend_tokenizer(old, NEW, vocab_size=307).vocab_size == 307
    assert extend_tokenizer(old, NEW, vocab_size=old.vocab_size).to_json() == old.to_json()
    assert extend_tokenizer(old, [], new_tokens=101).to_json() == old.to_json()
    assert extend_tokenizer(old, NEW, new_tokens=10_007).vocab_size < 1009  # there are not so many patterns


def test_each_new_merge_makes_a_new_token():
    chance = random.Random(3)
    old = learn_bpe(["".join(chance.choices("abc", k=7)) for _ in range(101)], vocab_size=331)
    texts = [" ".join("".join(chance.choices("abc", k=9)) for _ in range(7)) for _ in range(211)]
    new = extend_tokenizer(old, texts, new_tokens=103)
    assert new.vocab_size == old.vocab_size + 103
    added = merges_of(new)[len(merges_of(old)) :]
    assert list(new.names[old.vocab_size :]) == [left + right for left, right in added]


LEARN = """
import hashlib, json, sys
from headway.text.extend import extend_tokenizer
from headway.text.tokenizer import Tokenizer
description, texts = json.load(sys.stdin)
extended = extend_tokenizer(Tokenizer.from_json(description), iter(texts), new_tokens=101)
print(hashlib.sha256(extended.to_json().encode()).hexdigest())
"""


def test_the_same_texts_give_the_same_bytes_on_any_number_of_threads(old):
    chance = random.Random(7)
    words = ["".join(chance.choices("abcdeäß東京北", k=chance.randint(1, 7))) for _ in range(307)]
    texts = [" ".join(chance.choices(words, k=11)) for _ in range(101)]
    digests = {hashlib.sha256(extend_tokenizer(old, texts, new_tokens=101).to_json().encode()).hexdigest()}
    for threads, hash_seed in (("1", "1"), ("5", "3")):
        done = subprocess.run(
            [sys.executable, "-c", LEARN],
            input=json.dumps([old.to_json(), texts]),
            env=os.environ | {"RAYON_NUM_THREADS": threads, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        )
        digests.add(done.stdout.strip())
    assert len(digests) == 1


def test_characters_that_a_vocabulary_lacks_are_added_and_survive():
    old = learn_bpe(OLD, vocab_size=47, byte_fallback=False)
    assert 1 in old.encode("Häuser in 東京")
    new = extend_tokenizer(old, NEW, vocab_size=83)
    lacked = sorted(set("".join(NEW)) - set("".join(OLD)))
    assert list(new.names[old.vocab_size :][: len(lacked)]) == lacked
    assert new.vocab_size == 83
    for text in [*OLD, *NEW, "Häuser in 東京 des"]:
        assert new.decode(new.encode(text)) == text
        assert 1 not in new.encode(text)
    assert new.decode(new.encode("☃")) == "\ufffd"


def test_too_little_room_is_an_error_with_the_minimum(old):
    small = learn_bpe(OLD, vocab_size=31, byte_fallback=False)
    lacked = len(set("".join(NEW)) - set("".join(OLD)))
    wanted = rf"vocabulary of 33 tokens.*minimum is {32 + lacked}: 31 old tokens, 1 new tags and {lacked} characters"
    with pytest.raises(TextError, match=wanted):
        extend_tokenizer(small, NEW, vocab_size=33, tags=["de"])
    with pytest.raises(TextError, match=f"minimum is {32 + lacked}"):
        extend_tokenizer(small, NEW, vocab_size=31 + lacked, tags=["de"])
    assert extend_tokenizer(small, NEW, vocab_size=32 + lacked, tags=["de"]).vocab_size == 32 + lacked
    with pytest.raises(TextError, match=r"vocabulary of 281 tokens is too small; the minimum is 285"):
        extend_tokenizer(old, NEW, vocab_size=281)


def test_half_a_utf16_pair_in_the_texts_is_an_error(old):
    with pytest.raises(TextError, match=r"U\+D800 at character 2"):
        extend_tokenizer(old, ["fine", "a\ud800"], new_tokens=7)


@pytest.mark.parametrize("kind", ["wordpiece", "unigram"])
def test_another_kind_of_vocabulary_is_an_error_with_a_remedy(kind):
    with pytest.raises(TextError, match=f"the vocabulary is {kind}; only a BPE.*Remedy"):
        extend_tokenizer(LEARNERS[kind](OLD, vocab_size=277), NEW, new_tokens=7)


def test_json_gives_back_the_same_tokenizer_and_it_can_be_extended_again(old, extended):
    again = Tokenizer.from_json(extended.to_json())
    assert again.to_json() == extended.to_json()
    more = extend_tokenizer(again, ["zwölf zwanzig zwei"] * 5, new_tokens=13, tags=["de", "fr"])
    assert list(more.names[: extended.vocab_size]) == list(extended.names)
    assert more.tags == {"en": 4, "de": old.vocab_size, "fr": extended.vocab_size}
