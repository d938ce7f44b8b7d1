"""The laws that every kind of vocabulary keeps, and what is particular to WordPiece and Unigram."""

import hashlib
import json
import os
import random
import subprocess
import sys
from itertools import accumulate
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.config.data_config import TextConfig
from headway.errors import TextError
from headway.text.subword import LEARNERS
from headway.text.tokenizer import Tokenizer

CORPUS = [
    "the house is blue and the door is red",
    "the door of the blue house, number 1723, is shut",
    "東京に行きました。コーヒーを飲みました。",
    "我们昨天去了北京。北京很大。",
    "⟨eos⟩ ⟨pad⟩ <s> </s> <unk> ⟨eos⟩⟨pad⟩ ##house ##, ⟨tag:de⟩",
] * 3
DIFFICULT = [
    "",
    " ",
    "  two before and two after  ",
    "a\0b",
    "one\u2028two\u2029three\u0085four\x0b\x0c\x1c\x1d\x1e",
    "\t\r\n \u00a0\u3000",
    "👩🏽‍🚀 ❤️ 🇩🇪 1️⃣",
    "e\u0301 \u0301 \ufeff \ufffd \U0010ffff",
    "नमस्ते दुनिया",
    "x" * 211 + " " * 131 + "漢" * 149,
    "Write </s> at the end, then <unk> and <pad>.",
    "⟨pad⟩⟨unk⟩⟨bos⟩⟨eos⟩ ⟨tag:de⟩ [CLS] <2de>",
    "##house ##, h##ouse ####",
]
HAN = [chr(0x4E00 + rank) for rank in range(60)]

LEARN = """
import hashlib, json, sys
from headway.text.subword import LEARNERS
kind, texts, byte_fallback = json.load(sys.stdin)
learnt = LEARNERS[kind](iter(texts), vocab_size=503, byte_fallback=byte_fallback)
print(hashlib.sha256(learnt.to_json().encode()).hexdigest())
"""

KINDS = pytest.mark.parametrize("kind", LEARNERS)


@pytest.fixture(scope="module")
def tokenizers():
    return {kind: learn(CORPUS, vocab_size=401, tags=["de", "en"]) for kind, learn in LEARNERS.items()}


def texts_with_ties(count):
    """Lines of made-up words, with many substrings of equal count, so that ties have to be broken."""
    chance = random.Random(7)
    words = ["".join(chance.choices("abcdeäß東京北", k=chance.randint(1, 7))) for _ in range(307)]
    return [" ".join(chance.choices(words, k=11)) for _ in range(count)]


def test_the_kinds_that_can_be_learnt_are_those_that_a_recipe_may_name():
    assert tuple(LEARNERS) == get_args(TextConfig.model_fields["model"].annotation)


@KINDS
@given(text=st.text(st.characters(exclude_categories=["Cs"])))
def test_every_unicode_text_survives_and_yields_no_reserved_id(tokenizers, kind, text):
    ids = tokenizers[kind].encode(text)
    assert tokenizers[kind].decode(ids) == text
    assert not {0, 1, 2, 3, 4, 5} & set(ids)


@KINDS
@given(text=st.text(st.sampled_from("the hous東京⟨⟩pad</s>1#: \t\n\u2028\u3000\u0301.,👩")))
def test_texts_of_known_pieces_and_odd_space_survive(tokenizers, kind, text):
    assert tokenizers[kind].decode(tokenizers[kind].encode(text)) == text


@KINDS
@pytest.mark.parametrize("text", DIFFICULT)
def test_a_difficult_text_survives_and_yields_no_reserved_id(tokenizers, kind, text):
    ids = tokenizers[kind].encode(text)
    assert tokenizers[kind].decode(ids) == text
    assert not {0, 1, 2, 3, 4, 5} & set(ids)


@KINDS
@pytest.mark.parametrize("text", DIFFICULT)
def test_without_byte_fallback_no_text_yields_a_reserved_id_but_unk(kind, text):
    learnt = LEARNERS[kind](CORPUS, vocab_size=211, byte_fallback=False, tags=["de", "en"])
    assert not {0, 2, 3, 4, 5} & set(learnt.encode(text))


@KINDS
def test_without_byte_fallback_texts_of_known_characters_survive(kind):
    learnt = LEARNERS[kind](CORPUS, vocab_size=211, byte_fallback=False)
    for text in [*CORPUS, "the red 京東 door###house", "⟨pad⟩ ⟨eos⟩ ⟨tag:de⟩", "e" * 997]:
        assert learnt.decode(learnt.encode(text)) == text
        assert 1 not in learnt.encode(text)


@KINDS
def test_unknown_characters_are_unknown_one_by_one_and_take_nothing_with_them(kind):
    learnt = LEARNERS[kind](["ab ab abc"], vocab_size=11, byte_fallback=False)
    assert learnt.encode("abxyab cz").count(1) == 3
    assert learnt.decode(learnt.encode("a☃☃b \u3000abc☃")) == "a\ufffd\ufffdb \ufffdabc\ufffd"


@KINDS
def test_a_vocabulary_of_no_texts_makes_every_character_unknown(kind):
    learnt = LEARNERS[kind]([], vocab_size=7, byte_fallback=False)
    assert learnt.vocab_size == 4
    assert learnt.encode("ab c") == [1, 1, 1, 1]
    assert LEARNERS[kind]([], vocab_size=307).decode(LEARNERS[kind]([""], vocab_size=307).encode("ä 東")) == "ä 東"


@KINDS
@pytest.mark.parametrize("byte_fallback", [True, False])
def test_the_same_texts_give_the_same_bytes_on_any_number_of_threads(kind, byte_fallback):
    texts = texts_with_ties(211)
    here = LEARNERS[kind](texts, vocab_size=503, byte_fallback=byte_fallback)
    digests = {hashlib.sha256(here.to_json().encode()).hexdigest()}
    for threads, hash_seed in (("1", "1"), ("5", "3")):
        done = subprocess.run(
            [sys.executable, "-c", LEARN],
            input=json.dumps([kind, texts, byte_fallback]),
            env=os.environ | {"RAYON_NUM_THREADS": threads, "OMP_NUM_THREADS": threads, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        )
        digests.add(done.stdout.strip())
    assert len(digests) == 1
    assert here.vocab_size > 4 + (256 if byte_fallback else 10) + 29  # there was something to order


@KINDS
def test_60_characters_and_a_tag_need_65_tokens(kind):
    learn = LEARNERS[kind]
    with pytest.raises(TextError, match=r"64 tokens.*minimum is 65.*4 control tokens, 1 tags and 60 different char"):
        learn(iter(HAN), vocab_size=64, byte_fallback=False, tags=["de"])
    learnt = learn(iter(HAN), vocab_size=65, byte_fallback=False, tags=["de"])
    assert learnt.vocab_size == 65
    assert sorted(learnt.encode("".join(HAN))) == list(range(5, 65))


@KINDS
def test_the_minimum_with_byte_fallback_is_260_whatever_the_texts(kind):
    with pytest.raises(TextError, match=r"259 tokens.*minimum is 260.*256 bytes"):
        LEARNERS[kind](HAN, vocab_size=259)
    learnt = LEARNERS[kind](HAN, vocab_size=260)
    assert learnt.vocab_size == 260
    assert learnt.decode(learnt.encode("".join(HAN))) == "".join(HAN)


@KINDS
def test_a_vocabulary_never_has_more_tokens_than_asked_for(kind):
    for vocab_size in (263, 277, 293, 331):
        assert LEARNERS[kind](texts_with_ties(31), vocab_size=vocab_size).vocab_size == vocab_size


@KINDS
def test_json_gives_back_the_same_tokenizer(tokenizers, kind):
    again = Tokenizer.from_json(tokenizers[kind].to_json())
    assert again.to_json() == tokenizers[kind].to_json()
    assert again.model == kind
    assert again.tags == {"de": 4, "en": 5}
    for text in DIFFICULT:
        assert again.encode(text) == tokenizers[kind].encode(text)


@KINDS
def test_a_batch_gives_what_each_text_gives_alone(tokenizers, kind):
    assert tokenizers[kind].encode_batch(DIFFICULT) == [tokenizers[kind].encode(text) for text in DIFFICULT]


@KINDS
def test_a_word_is_one_token_at_the_start_and_inside(tokenizers, kind):
    first, *_, last = tokenizers[kind].encode("the door of the")
    assert first == last


@KINDS
def test_no_token_crosses_from_one_kind_of_run_into_another(kind):
    learnt = LEARNERS[kind](["- ab東京cd12..."] * 13, vocab_size=601)
    tokens = [token.removeprefix(" ") for token in learnt.tokens(learnt.encode("ab東京cd12..."))]
    ends = set(accumulate(map(len, tokens)))
    assert ends >= set(accumulate(map(len, ["ab", "東京", "cd", "1", "2", "..."])))


@KINDS
def test_half_a_utf16_pair_in_the_texts_is_an_error(kind):
    with pytest.raises(TextError, match=r"U\+D800 at character 2"):
        LEARNERS[kind](["fine", "a\ud800"], vocab_size=307)


# WordPiece


def longest_first(word, vocabulary):
    """A second implementation of WordPiece's way: the longest piece that starts the rest of the word."""
    pieces = []
    while word:
        length = next(size for size in range(len(word), 0, -1) if word[:size] in vocabulary)
        pieces.append(word[:length])
        word = word[length:]
    return pieces


@pytest.fixture(scope="module")
def wordpiece():
    return LEARNERS["wordpiece"](texts_with_ties(101), vocab_size=401)


@given(text=st.text(st.sampled_from("abcdeß")))
def test_wordpiece_takes_a_word_apart_from_the_left_longest_piece_first(wordpiece, text):
    wanted = longest_first(f" {text}".encode() if text else b"", frozenset(wordpiece.pieces[4:]))
    assert [wordpiece.pieces[token_id] for token_id in wordpiece.encode(text)] == wanted


@pytest.mark.parametrize("byte_fallback", [True, False])
def test_a_word_of_any_length_is_no_unk_in_wordpiece(byte_fallback):
    learnt = LEARNERS["wordpiece"](["ab ba"], vocab_size=307, byte_fallback=byte_fallback)
    text = "ab" * 10_007
    assert learnt.decode(learnt.encode(text)) == text
