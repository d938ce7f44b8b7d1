"""Tokens into words: every token in one, whatever the text, and weights that go on to sum to one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.inspection.axis import axis_of, merge
from headway.text.bpe import learn_bpe
from headway.text.reserved import BOS_ID, EOS_ID

TEXTS = ["the cat sat on the mat.", "a small house on the hill, how are you?", "die Straße, der Straßenbahnhof"] * 5
BYTES = learn_bpe(TEXTS, vocab_size=290)
CHARACTERS = learn_bpe(TEXTS, vocab_size=60, byte_fallback=False)


def axis(text, tokenizer=BYTES, **around):
    return axis_of(tokenizer, tokenizer.encode(text), text, **around)


def texts_of(axis):
    return [word.text for word in axis.words]


def test_sub_words_are_merged_and_punctuation_stands_by_itself():
    found = axis("the cat, small Straßenbahnhof!", after=[EOS_ID])
    assert texts_of(found) == ["the", "cat", ",", "small", "Straßenbahnhof", "!", "⟨eos⟩"]
    assert len(found.tokens) > len(found.words)
    for word in found.words[:-1]:
        assert "".join(found.tokens[word.first : word.end]).strip() == word.text
    assert [word.is_control for word in found.words] == [False] * 6 + [True]
    assert found.control_tokens == (False,) * (len(found.tokens) - 1) + (True,)


def test_control_tokens_are_words_of_their_own():
    found = axis("a hill", before=[BOS_ID], after=[EOS_ID])
    assert texts_of(found) == ["⟨bos⟩", "a", "hill", "⟨eos⟩"]
    assert texts_of(axis("", after=[EOS_ID])) == ["⟨eos⟩"]
    assert found.token_ids[0] == BOS_ID


def test_a_token_of_two_words_makes_them_one():
    tokenizer = learn_bpe(['"?! "?! "?!'] * 9, vocab_size=280)
    found = axis('a "?!', tokenizer)
    assert any(len(token.strip()) > 1 for token in found.tokens)
    spans = [found.tokens[word.first : word.end] for word in found.words]
    assert [token for span in spans for token in span] == list(found.tokens)
    assert "".join(texts_of(found)) == 'a"?!'


def test_characters_in_bytes_are_one_word_each_where_there_are_no_spaces():
    found = axis("東京 é")
    assert texts_of(found) == ["東", "京", "é"]
    assert len(found.tokens) >= 8


def test_what_the_vocabulary_cannot_write_stays_in_its_word():
    found = axis("the caжt ψ mat", CHARACTERS)
    assert "⟨unk⟩" in found.tokens
    assert texts_of(found)[:2] == ["the", "caжt"]
    assert texts_of(found)[-1] == "mat"
    assert "ψ" in "".join(texts_of(found))


@given(st.text(max_size=40), st.booleans())
def test_every_token_is_in_exactly_one_word_and_every_word_of_the_text_is_there(text, in_bytes):
    tokenizer = BYTES if in_bytes else CHARACTERS
    found = axis(text.strip(), tokenizer, before=[BOS_ID], after=[EOS_ID])
    covered = [place for word in found.words for place in range(word.first, word.end)]
    assert covered == list(range(len(found.tokens)))
    shown = "".join("".join(word.text.split()) for word in found.words if not word.is_control)
    assert shown == "".join(text.split())


def test_weights_into_a_word_are_summed_and_out_of_it_averaged_by_hand():
    found = axis("the Straßenbahnhof", after=[EOS_ID])
    first, second, end = found.words
    size = second.end - second.first
    assert size > 1
    random = np.random.default_rng(3)
    weights_HTS = random.dirichlet(np.ones(len(found.tokens)), size=(2, len(found.tokens)))
    merged_HTS = merge(weights_HTS, found, found)
    assert merged_HTS.shape == (2, 3, 3)
    for head in range(2):
        for row, query in enumerate((first, second, end)):
            for column, key in enumerate((first, second, end)):
                cells = [
                    weights_HTS[head, q, k] for q in range(query.first, query.end) for k in range(key.first, key.end)
                ]
                assert merged_HTS[head, row, column] == pytest.approx(sum(cells) / (query.end - query.first))
    assert merged_HTS.sum(axis=2) == pytest.approx(np.ones((2, 3)))
