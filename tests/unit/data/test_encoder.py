"""Promises of headway.data.encoder: what it gives is what the tokenizer gives."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.data import encoder as encoder_module
from headway.data.encoder import Encoder, Ragged
from headway.errors import TextError
from headway.text.subword import LEARNERS
from headway.text.tokenizer import Tokenizer

LINES = ["red house, blue house.", "the 23 trees are red", "a tree  and\ta river", "猫が好き です", "über den Fluß"]
PARTS = [
    "red",
    "house",
    "tree",
    "x",
    ",",
    ".",
    "23",
    "猫が",
    "ß",
    " ",
    " ",
    " ",
    "\t",
    "\u3000",
    "\x1c",
    "\n",
    "é",
    "é",
]
TEXTS = st.lists(st.one_of(st.lists(st.sampled_from(PARTS), max_size=9).map("".join), st.text(max_size=5)), max_size=7)
KINDS = [(model, byte_fallback) for model in sorted(LEARNERS) for byte_fallback in (True, False)]


def _learnt(model: str, lines: list[str], *, byte_fallback: bool) -> Tokenizer:
    return LEARNERS[model](lines * 5, vocab_size=301 if byte_fallback else 67, byte_fallback=byte_fallback)


@pytest.fixture(scope="module")
def tokenizers() -> dict[tuple[str, bool], Tokenizer]:
    return {kind: _learnt(kind[0], LINES, byte_fallback=kind[1]) for kind in KINDS}


def _lists(texts: Ragged) -> list[list[int]]:
    ends = np.cumsum(texts.lengths)
    return [texts.ids[end - length : end].tolist() for end, length in zip(ends, texts.lengths, strict=True)]


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None, max_examples=40)
@given(parts=st.lists(TEXTS, max_size=5), most_words=st.sampled_from([0, 3, 1000]))
def test_texts_are_encoded_as_the_tokenizer_does_it(
    tokenizers: dict[tuple[str, bool], Tokenizer], kind: tuple[str, bool], parts: list[list[str]], most_words: int
):
    tokenizer = tokenizers[kind]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoder_module, "MOST_WORDS", most_words)
        encoder = Encoder(tokenizer)
        for texts in parts:
            try:
                expected = tokenizer.encode_batch(texts)
            except TextError:  # a lone surrogate
                with pytest.raises(TextError):
                    encoder.encode(texts)
                return
            assert _lists(encoder.encode(texts)) == expected


def test_a_vocabulary_without_a_space_is_asked_for_whole_texts():
    tokenizer = _learnt("bpe", ["猫が好き", "犬が好き"], byte_fallback=False)
    assert not tokenizer.parts_at_spaces
    texts = ["猫が 好き", "犬", "", " 猫"]
    assert _lists(Encoder(tokenizer).encode(texts)) == tokenizer.encode_batch(texts)


def test_each_word_is_encoded_once(monkeypatch: pytest.MonkeyPatch):
    tokenizer = _learnt("bpe", LINES, byte_fallback=True)
    asked: list[str] = []
    encode_batch = tokenizer.encode_batch
    monkeypatch.setattr(tokenizer, "encode_batch", lambda words: asked.extend(words) or encode_batch(words))
    encoder = Encoder(tokenizer)
    for _ in range(3):
        encoder.encode(["red house red", "house tree", "two  spaces"])
    assert asked == ["red", "house", "tree", "two  spaces"]


def test_what_is_remembered_is_bounded_by_characters(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(encoder_module, "MOST_CHARACTERS", 11)
    tokenizer = _learnt("bpe", LINES, byte_fallback=True)
    encoder = Encoder(tokenizer)
    for number in range(7):
        texts = [f"word{number} red", "red"]
        assert _lists(encoder.encode(texts)) == tokenizer.encode_batch(texts)
        assert len(encoder._numbers) <= 5


def test_a_token_before_every_text_and_some_of_them_by_hand():
    texts = Ragged(np.array([5, 6, 7, 8], np.uint32), np.array([2, 0, 1, 1]))
    assert _lists(texts.after(4)) == [[4, 5, 6], [4], [4, 7], [4, 8]]
    assert _lists(texts.some(np.array([True, True, False, True]))) == [[5, 6], [], [8]]
