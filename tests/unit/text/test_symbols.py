"""A closed vocabulary: a symbol is a token, whatever characters it has."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import TextError
from headway.text.extend import extend_tokenizer
from headway.text.symbols import learn_symbols
from headway.text.tokenizer import UNK_ID, Tokenizer

TEXTS = ["S NP NNP /NP VP VBZ /VP /S", "(NP XX )NP", "`` '' -LRB- PRP$ , . : S NP /NP /S", "⟨pad⟩ NP 名詞"]
SYMBOLS = sorted({symbol for text in TEXTS for symbol in text.split()})
ROWS = st.lists(st.sampled_from(SYMBOLS)).map(" ".join)


@pytest.fixture(scope="module")
def tokenizer():
    return learn_symbols(TEXTS, vocab_size=53, tags=["wsj"])


@given(ROWS)
def test_a_row_of_symbols_is_as_many_tokens_and_comes_back(tokenizer, text):
    ids = tokenizer.encode(text)
    assert len(ids) == len(text.split())
    assert min(ids, default=5) >= 5  # after four control tokens and a tag
    assert tokenizer.decode(ids) == text


def test_the_most_frequent_symbol_comes_first_and_equals_by_their_names(tokenizer):
    assert tokenizer.names[4:7] == ["⟨tag:wsj⟩", " NP", " /NP"]
    assert tokenizer.names[7:10] == [" /S", " S", " ''"]
    assert tokenizer.vocab_size == 5 + len(SYMBOLS)


@given(st.lists(st.text(alphabet="NPS/⟨pad⟩⟨unk⟩", min_size=1, max_size=7)))
def test_what_is_no_symbol_is_unknown_and_never_a_control_token(tokenizer, symbols):
    ids = tokenizer.encode(" ".join(symbols))
    assert not {0, 2, 3, 4} & set(ids)
    assert [token_id != UNK_ID for token_id in ids] == [symbol in SYMBOLS for symbol in symbols]


def test_it_survives_being_written_and_read(tokenizer):
    again = Tokenizer.from_json(tokenizer.to_json())
    assert again.names == tokenizer.names
    assert again.model == "wordlevel"
    assert [again.encode(text) for text in TEXTS] == [tokenizer.encode(text) for text in TEXTS]


def test_other_steps_from_text_to_symbols_are_refused(tokenizer):
    description = json.loads(tokenizer.to_json())
    for part, value in (("normalizer", None), ("pre_tokenizer", {"type": "WhitespaceSplit"})):
        with pytest.raises(TextError, match="was not written by Headway"):
            Tokenizer.from_json(json.dumps(description | {part: value}))


def test_no_symbol_is_left_out_in_silence():
    with pytest.raises(TextError, match=r"found 17 symbols that need 21 tokens, wanted 20.*model\.vocab_size to 21"):
        learn_symbols(TEXTS[2:] + TEXTS[:1], vocab_size=20)


def test_new_symbols_come_after_the_old_ones_which_keep_their_ids(tokenizer):
    longer = extend_tokenizer(tokenizer, ["SBARQ NP /SBARQ", "/SBARQ"], new_tokens=2)
    assert longer.names == [*tokenizer.names, " /SBARQ", " SBARQ"]
    assert longer.decode(longer.encode("SBARQ NP /SBARQ")) == "SBARQ NP /SBARQ"
    with pytest.raises(TextError, match=r"found 2 symbols.*wanted 1 at most.*train\.extend_vocabulary to 2"):
        extend_tokenizer(tokenizer, ["SBARQ NP /SBARQ"], new_tokens=1)
