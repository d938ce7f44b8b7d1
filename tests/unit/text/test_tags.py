"""Tags are tokens that a program puts before a sentence; no text yields one, and they leave no trace in a text."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import TextError
from headway.text.bpe import learn_bpe
from headway.text.subword import LEARNERS
from headway.text.tokenizer import Tokenizer

CORPUS = ["the house ⟨tag:de⟩ tag:de ⟨tag:medical-2.0⟩", "⟨ tag:de ⟩ the house"] * 7
TAGS = ["de", "medical-2.0", "x_y"]


@pytest.fixture(scope="module", params=list(LEARNERS))
def tokenizer(request):
    return LEARNERS[request.param](CORPUS, vocab_size=331, tags=TAGS)


def test_tags_come_after_the_control_tokens_in_the_order_given(tokenizer):
    assert tokenizer.tags == {"de": 4, "medical-2.0": 5, "x_y": 6}
    assert [tokenizer.tag_id(name) for name in TAGS] == [4, 5, 6]


@given(text=st.lists(st.sampled_from(["⟨", "tag:", "de", "⟩", " ", "⟨tag:de⟩", "medical-2.0", "⟨pad⟩"])).map("".join))
def test_no_text_yields_a_tag(tokenizer, text):
    assert min(tokenizer.encode(text), default=7) > 6
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_a_tag_leaves_no_trace_in_a_text_and_is_shown_among_tokens(tokenizer):
    ids = [5, *tokenizer.encode("the house")]
    assert tokenizer.decode(ids) == "the house"
    assert tokenizer.decode([*ids, 4]) == "the house"
    assert tokenizer.tokens(ids)[0] == "⟨tag:medical-2.0⟩"
    assert "".join(tokenizer.tokens(ids)[1:]) == " the house"


def test_tags_are_in_the_json(tokenizer):
    assert Tokenizer.from_json(tokenizer.to_json()).tags == tokenizer.tags


def test_a_tokenizer_without_tags_has_none_and_says_so():
    learnt = learn_bpe(CORPUS, vocab_size=307)
    assert learnt.tags == {}
    with pytest.raises(TextError, match=r"no tag 'de'; found no tags\. Remedy"):
        learnt.tag_id("de")


def test_an_unknown_tag_is_an_error_that_names_those_there_are(tokenizer):
    with pytest.raises(TextError, match=r"no tag 'fr'; found de, medical-2\.0, x_y"):
        tokenizer.tag_id("fr")


@pytest.mark.parametrize("name", ["", " ", "a b", "-a", "a⟩", "ä", "a\n", "tag:x", "<2de>"])
def test_a_name_that_cannot_be_a_tag_is_an_error(name):
    with pytest.raises(TextError, match=r"cannot be a tag.*Remedy"):
        learn_bpe(CORPUS, vocab_size=307, tags=["de", name])


def test_a_tag_named_twice_is_an_error():
    with pytest.raises(TextError, match="tag 'de' is named twice"):
        learn_bpe(CORPUS, vocab_size=307, tags=["de", "en", "de"])


def test_tags_count_among_the_tokens_asked_for():
    assert learn_bpe(CORPUS, vocab_size=271, tags=TAGS).vocab_size == 271
    with pytest.raises(TextError, match="262 tokens is too small; the minimum is 263: 4 control tokens, 3 tags"):
        learn_bpe(CORPUS, vocab_size=262, tags=TAGS)


# Tokenizers of SentencePiece, as the `tokenizers` library describes them

PIECES = [
    ("⟨ pad ⟩", 0.0),
    ("⟨ unk ⟩", 0.0),
    ("⟨ bos ⟩", 0.0),
    ("⟨ eos ⟩", 0.0),
    *[
        ("▁the", -1.5),
        ("▁house", -2.5),
        ("▁", -3.0),
        ("s", -3.5),
        ("⟨", -4.0),
        ("⟩", -4.0),
        ("pad", -4.5),
        ("fi", -5.0),
    ],
]
METASPACE = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
IMPORTED = {
    "version": "1.0",
    "truncation": None,
    "padding": None,
    "added_tokens": [],
    "normalizer": {
        "type": "Sequence",
        "normalizers": [{"type": "NFKC"}, {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}],
    },
    "pre_tokenizer": METASPACE,
    "post_processor": None,
    "decoder": METASPACE,
    "model": {"type": "Unigram", "unk_id": 1, "vocab": PIECES, "byte_fallback": False},
}


def imported(**changes):
    description = json.loads(json.dumps(IMPORTED | changes))
    return Tokenizer.from_json(json.dumps(description))


def test_an_imported_vocabulary_encodes_as_sentencepiece_would():
    tokenizer = imported()
    assert tokenizer.imported
    assert tokenizer.model == "unigram"
    assert tokenizer.encode("the  houses") == [4, 5, 7]
    assert tokenizer.decode([4, 5, 7]) == "the houses"
    assert tokenizer.encode("\ufb01") == [6, 11]  # the ligature becomes two letters
    assert tokenizer.decode([2, 4, 1, 3, 0]) == "the\ufffd"
    assert Tokenizer.from_json(tokenizer.to_json()).to_json() == tokenizer.to_json()


@given(st.lists(st.sampled_from([name for name, _ in PIECES] + [" ", "⟨pad⟩", "\u00a0", "▁", "x"])).map("".join))
def test_no_text_yields_a_control_id_of_an_imported_vocabulary(text):
    assert not {0, 2, 3} & set(imported().encode(text))


def test_an_imported_vocabulary_may_have_bytes_and_tags():
    bytes_ = [(f"<0x{byte:02X}>", -9.0) for byte in range(256)]
    model = {"type": "Unigram", "unk_id": 1, "vocab": [*PIECES, ("⟨ tag:fr ⟩", 0.0), *bytes_], "byte_fallback": True}
    tokenizer = imported(model=model)
    assert tokenizer.tags == {"fr": 12}
    ids = tokenizer.encode("the ☃ ⟨ tag:fr ⟩")
    assert 12 not in ids
    assert tokenizer.decode([12, *ids]) == "the ☃ ⟨ tag:fr ⟩"


def test_a_panic_of_the_library_is_a_text_error():
    class PanicException(BaseException):
        pass

    class Panics:
        def encode_batch_fast(self, texts, **_):
            raise PanicException("start byte index 2133 is out of bounds")

    tokenizer = imported()
    tokenizer._inner = Panics()
    with pytest.raises(TextError, match=r"normaliser is damaged: start byte index 2133.*Remedy"):
        tokenizer.encode("the house")


@pytest.mark.parametrize("name", ["⟨pad⟩", "<pad>", "</s>"])
def test_an_imported_vocabulary_whose_control_tokens_text_could_name_is_refused(name):
    model = {"type": "Unigram", "unk_id": 1, "vocab": [(name, 0.0), *PIECES[1:]], "byte_fallback": False}
    with pytest.raises(TextError, match="ids 0 to 3 as"):
        imported(model=model)
    vocab = [*PIECES, ("⟨tag:fr⟩", 0.0)]
    with pytest.raises(TextError, match="a tag that text can name"):
        imported(model={"type": "Unigram", "unk_id": 1, "vocab": vocab, "byte_fallback": False})


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"model": IMPORTED["model"] | {"unk_id": None}}, "no unknown token"),
        ({"model": IMPORTED["model"] | {"unk_id": 5}}, "unknown token 5"),
        ({"model": IMPORTED["model"] | {"vocab": [*PIECES, ("s", -1.0)]}}, "tokens twice"),
        ({"pre_tokenizer": None}, "ids 0 to 3 as"),
        ({"post_processor": {"type": "BertProcessing", "sep": ["s", 7], "cls": ["▁", 6]}}, "post_processor"),
    ],
)
def test_an_imported_vocabulary_that_would_act_on_text_or_lose_it_is_refused(changes, found):
    with pytest.raises(TextError, match=found):
        imported(**changes)


LEARNT = {
    "bpe": [
        ({"ignore_merges": True}, "ignore_merges"),
        ({"end_of_word_suffix": "x"}, "end_of_word_suffix"),
        ({"unk_token": "⟨pad⟩"}, "unknown token ⟨pad⟩"),
    ],
    "wordpiece": [
        ({"continuing_subword_prefix": "##"}, "continuing_subword_prefix"),
        ({"max_input_chars_per_word": 100}, "max_input_chars_per_word"),
        ({"unk_token": "⟨pad⟩"}, "unknown token ⟨pad⟩"),
    ],
    "unigram": [({"unk_id": 0}, "unknown token 0")],
}


@pytest.mark.parametrize(
    ("kind", "change", "found"), [(kind, *case) for kind, cases in LEARNT.items() for case in cases]
)
def test_json_of_a_model_that_could_lose_text_or_yield_other_ids_is_refused(kind, change, found):
    description = json.loads(LEARNERS[kind](CORPUS, vocab_size=67, byte_fallback=False).to_json())
    description["model"] |= change
    with pytest.raises(TextError, match=found):
        Tokenizer.from_json(json.dumps(description))


@pytest.mark.parametrize("kind", ["bpe", "wordpiece", "unigram"])
def test_json_of_a_byte_level_vocabulary_that_lacks_a_byte_is_refused(kind):
    description = json.loads(LEARNERS[kind]([], vocab_size=307).to_json())
    vocab = description["model"]["vocab"]
    if isinstance(vocab, list):
        vocab.pop()
    else:
        del vocab[max(vocab, key=vocab.get)]
    with pytest.raises(TextError, match="without byte 173"):
        Tokenizer.from_json(json.dumps(description))
