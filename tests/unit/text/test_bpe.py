import hashlib
import json
import os
import random
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import TextError
from headway.text.bpe import learn_bpe

HAN = [chr(0x4E00 + rank) for rank in range(60)]  # 60 different characters

LEARN = """
import hashlib, json, sys
from headway.text.bpe import learn_bpe
texts, byte_fallback = json.load(sys.stdin)
learnt = learn_bpe(iter(texts), vocab_size=503, byte_fallback=byte_fallback)
print(hashlib.sha256(learnt.to_json().encode()).hexdigest())
"""


def _texts(count):
    """Give lines of made-up words, with many pairs of equal count, so that ties have to be broken."""
    chance = random.Random(7)
    words = ["".join(chance.choices("abcdeäß東京北", k=chance.randint(1, 7))) for _ in range(307)]
    return [" ".join(chance.choices(words, k=11)) for _ in range(count)]


@pytest.mark.parametrize("byte_fallback", [True, False])
def test_the_same_texts_give_the_same_bytes_on_any_number_of_threads(byte_fallback):
    texts = _texts(401)
    here = learn_bpe(texts, vocab_size=503, byte_fallback=byte_fallback)
    digests = {hashlib.sha256(here.to_json().encode()).hexdigest()}
    for threads, parallel, hash_seed in (("1", "false", "1"), ("2", "true", "2"), ("5", "true", "3")):
        settings = {"TOKENIZERS_PARALLELISM": parallel, "RAYON_NUM_THREADS": threads, "PYTHONHASHSEED": hash_seed}
        done = subprocess.run(
            [sys.executable, "-c", LEARN],
            input=json.dumps([texts, byte_fallback]),
            env=os.environ | settings,
            capture_output=True,
            text=True,
            check=True,
        )
        digests.add(done.stdout.strip())
    assert len(digests) == 1
    assert here.vocab_size > 4 + 256 + 29  # there was something to order


def test_the_first_merge_is_the_most_frequent_pair():
    # Counts by hand: "ab" 7 times, " a" 5, " x" 3, "xa" 2. Pairs never reach over a space.
    learnt = learn_bpe(["ab ab ab", "ab ab xab", "xab x"], vocab_size=261)
    assert learnt.tokens([260]) == ["ab"]
    assert learnt.vocab_size == 261


def test_60_characters_do_not_fit_into_a_vocabulary_of_20_and_the_minimum_is_stated():
    with pytest.raises(TextError, match=r"20 tokens.*minimum is 64.*60 different characters.*Remedy"):
        learn_bpe(HAN, vocab_size=20, byte_fallback=False)


def test_60_characters_fit_into_exactly_64_tokens_and_every_one_survives():
    learnt = learn_bpe(HAN, vocab_size=64, byte_fallback=False)
    assert learnt.vocab_size == 64
    ids = learnt.encode("".join(HAN))
    assert sorted(ids) == list(range(4, 64))
    assert learnt.decode(ids) == "".join(HAN)


def test_60_characters_do_not_fit_into_63_tokens():
    with pytest.raises(TextError, match="minimum is 64"):
        learn_bpe(iter(HAN), vocab_size=63, byte_fallback=False)


def test_a_space_in_the_texts_counts_as_a_character():
    with pytest.raises(TextError, match="minimum is 65"):
        learn_bpe([*HAN, "一 丁"], vocab_size=64, byte_fallback=False)
    learnt = learn_bpe([*HAN, "一 丁"], vocab_size=65, byte_fallback=False)
    assert learnt.decode(learnt.encode("一 丁")) == "一 丁"


def test_the_minimum_with_byte_fallback_is_260_whatever_the_texts():
    with pytest.raises(TextError, match=r"259 tokens.*minimum is 260.*256 bytes"):
        learn_bpe(HAN, vocab_size=259)
    learnt = learn_bpe(HAN, vocab_size=260)
    assert learnt.vocab_size == 260
    assert learnt.decode(learnt.encode("".join(HAN))) == "".join(HAN)


@pytest.mark.parametrize("vocab_size", [-5, 0, 3, 4])
def test_a_vocabulary_smaller_than_the_control_tokens_is_the_same_error(vocab_size):
    for byte_fallback, minimum in ((True, 260), (False, 6)):
        with pytest.raises(TextError, match=f"minimum is {minimum}"):
            learn_bpe(["ab"], vocab_size=vocab_size, byte_fallback=byte_fallback)


def test_a_corpus_with_few_patterns_gives_a_smaller_vocabulary_that_says_so():
    learnt = learn_bpe(["ab ab"], vocab_size=1009)
    assert learnt.vocab_size == 262  # "ab" (or " a") and " ab" are all that occurs twice
    assert learnt.tokens(learnt.encode("ab ab")) == [" ab", " ab"]


def test_no_texts_give_bytes_alone():
    learnt = learn_bpe([], vocab_size=307)
    assert learnt.vocab_size == 260
    assert learnt.decode(learnt.encode("ä 東")) == "ä 東"


def test_unseen_characters_are_unknown_one_by_one_without_byte_fallback():
    learnt = learn_bpe(["ab ab"], vocab_size=7, byte_fallback=False)
    assert learnt.vocab_size == 7
    assert learnt.encode("xya").count(1) == 2
    assert learnt.decode(learnt.encode("a☃☃b")) == "a\ufffd\ufffdb"


@given(st.text(st.sampled_from("abc dé東京に\t1.,")))
def test_texts_of_seen_characters_survive_without_byte_fallback(text):
    learnt = learn_bpe(["abc abc dé", "東京に\t1.,"], vocab_size=31, byte_fallback=False)
    ids = learnt.encode(text)
    assert 1 not in ids
    assert learnt.decode(ids) == text


def test_lines_before_the_first_space_are_learnt_like_the_others():
    # Held back until it is known whether the texts have spaces at all: the first word then gets its space too.
    learnt = learn_bpe(["", "abab", "", "abab", "x abab"], vocab_size=17, byte_fallback=False)
    assert learnt.tokens(learnt.encode("abab x abab")) == [" abab", " ", "x", " abab"]


def test_chinese_and_japanese_words_are_learnt_without_a_segmenter():
    chinese = ["我们去北京", "他在北京工作", "北京很大", "我不去北京"]
    japanese = ["東京に行きました", "京都に行きました", "奈良に行きました", "コーヒー", "コーヒー"]
    learnt = learn_bpe([f"，{text}" for text in chinese + japanese], vocab_size=353)
    assert "北京" in learnt.tokens(learnt.encode("，看北京"))
    assert "に行きました" in learnt.tokens(learnt.encode("，大阪に行きました"))
    assert learnt.tokens(learnt.encode("，コーヒー"))[-1] == "コーヒー"


@pytest.mark.parametrize(
    ("text", "runs"),
    [
        ("ab東京cd", ["ab", "東京", "cd"]),
        ("abc...", ["abc", "..."]),
        ("東京。", ["東京", "。"]),
        ("a12b", ["a", "1", "2", "b"]),
        ("ab\tcd", ["ab", "\t", "cd"]),
        ("cafe\u0301s", ["cafe\u0301s"]),
        ("コーヒー", ["コーヒー"]),
        ("❤\ufe0f!", ["❤\ufe0f!"]),
    ],
)
def test_a_token_never_crosses_from_one_kind_of_run_into_another(text, runs):
    learnt = learn_bpe([f"- {text}"] * 13, vocab_size=601)
    tokens = learnt.tokens(learnt.encode(text))
    assert [token.removeprefix(" ") for token in tokens] == runs


def test_a_run_of_any_length_is_learnt_in_parts_of_64_characters():
    learnt = learn_bpe(["a" * 100_003, "a" * 100_003], vocab_size=1009)
    longest = max(learnt.tokens(range(4, learnt.vocab_size)), key=len)
    assert len(longest.strip()) == 64
    assert learnt.decode(learnt.encode("a" * 1009)) == "a" * 1009


def test_half_a_utf16_pair_in_the_texts_is_an_error():
    for byte_fallback in (True, False):
        with pytest.raises(TextError, match=r"U\+D800 at character 2"):
            learn_bpe(["fine", "a\ud800"], vocab_size=307, byte_fallback=byte_fallback)


def test_texts_are_read_once_from_a_stream_and_its_errors_come_through():
    def stream():
        yield "ab ab"
        raise TextError("text/stream: broken.")

    with pytest.raises(TextError, match="broken"):
        learn_bpe(stream(), vocab_size=307)
