import json
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer as LibraryTokenizer

from headway.errors import TextError
from headway.text.bpe import learn_bpe
from headway.text.tokenizer import CONTROL_TOKENS, Tokenizer, byte_characters

CORPUS = [
    "the house is blue and the door is red",
    "the door of the blue house, number 1723, is shut",
    "東京に行きました。コーヒーを飲みました。",
    "我们昨天去了北京。北京很大。",
    "⟨eos⟩ ⟨pad⟩ <s> </s> <unk> ⟨eos⟩⟨pad⟩",
] * 3
MARKERS = [
    "Write </s> at the end, then <unk> and <pad>.",
    "<s>",
    "</s>",
    "<2de>",
    "[CLS] [SEP]",
    "⟨pad⟩⟨unk⟩⟨bos⟩⟨eos⟩",
    " ⟨eos⟩ ",
    "</s> <pad> ⟨eos⟩ [CLS] <2de>",
]
SAMPLES = [
    "",
    " ",
    "  two before and two after  ",
    "a\0b",
    "one\u2028two\u2029three\u0085four\x0b\x0c\x1c\x1d\x1e",
    "\t\r\n \u00a0\u3000",
    "👩🏽‍🚀 ❤️ 🇩🇪 1️⃣",
    "e\u0301 \u0301 \ufeff \ufffd \U0010ffff",
    "東京に行きました。コーヒー、ｶﾅ、々〇",
    "我们昨天去了北京。",
    "นี่คือประโยคภาษาไทย",
    "x" * 211 + " " * 131 + "漢" * 149,
]


@pytest.fixture(scope="module")
def tokenizer():
    return learn_bpe(CORPUS, vocab_size=401)


@pytest.fixture(scope="module")
def characters():
    return learn_bpe(CORPUS, vocab_size=211, byte_fallback=False)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_every_unicode_text_survives_encoding_and_decoding(tokenizer, text):
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert not {0, 1, 2, 3} & set(ids)


@given(st.text(st.sampled_from("the hous東京⟨⟩pad</s>1 \t\n\u2028\u3000\u0301.,👩")))
def test_texts_of_known_pieces_and_odd_space_survive(tokenizer, text):
    assert tokenizer.decode(tokenizer.encode(text)) == text


@pytest.mark.parametrize("text", [*SAMPLES, *MARKERS])
def test_a_difficult_text_survives_and_yields_no_control_id(tokenizer, text):
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert not {0, 1, 2, 3} & set(ids)


@pytest.mark.parametrize("text", MARKERS)
def test_a_marker_in_text_yields_no_control_id_but_unk_without_byte_fallback(characters, text):
    assert not {0, 2, 3} & set(characters.encode(text))


def test_no_control_token_is_looked_for_in_text_although_the_corpus_is_full_of_their_names():
    learnt = learn_bpe(["⟨pad⟩ ⟨unk⟩ ⟨bos⟩ ⟨eos⟩"] * 17, vocab_size=1009)
    description = json.loads(learnt.to_json())
    assert description["added_tokens"] == []
    assert [description["model"]["vocab"][name] for name in CONTROL_TOKENS] == [0, 1, 2, 3]
    assert min(learnt.encode("⟨pad⟩ ⟨unk⟩ ⟨bos⟩ ⟨eos⟩")) > 3


def test_the_same_without_byte_fallback_where_a_token_is_written_as_it_reads():
    learnt = learn_bpe(["⟨pad⟩⟨unk⟩⟨bos⟩⟨eos⟩"] * 17, vocab_size=1009, byte_fallback=False)
    text = "⟨pad⟩⟨unk⟩⟨bos⟩⟨eos⟩"
    assert min(learnt.encode(text)) > 3
    assert learnt.decode(learnt.encode(text)) == text


def test_a_word_is_the_same_token_at_the_start_and_inside(tokenizer):
    first, *_, last = tokenizer.encode("house of the house")
    assert first == last


def test_every_digit_is_a_token_of_its_own(tokenizer):
    assert tokenizer.tokens(tokenizer.encode("of 1723"))[-4:] == [" 1", "7", "2", "3"]


def test_a_number_never_seen_is_digits_too(tokenizer):
    tokens = tokenizer.tokens(tokenizer.encode("90210017"))
    assert "".join(tokens) == " 90210017"
    assert all(len(token.strip()) <= 1 for token in tokens)


def test_a_batch_gives_what_each_text_gives_alone(tokenizer):
    texts = [*SAMPLES, *MARKERS]
    assert tokenizer.encode_batch(texts) == [tokenizer.encode(text) for text in texts]
    assert tokenizer.encode_batch([]) == []


def test_pad_bos_and_eos_vanish_in_decoding_and_unk_is_the_replacement_character(tokenizer):
    ids = tokenizer.encode("the house")
    assert tokenizer.decode([2, *ids, 3, 0, 0]) == "the house"
    assert tokenizer.decode([*ids[:1], 1, *ids[1:]]) == "the\ufffd house"
    assert tokenizer.decode([]) == ""


def test_only_one_leading_space_is_taken_away(tokenizer):
    space, comma = (tokenizer.tokens(range(tokenizer.vocab_size)).index(token) for token in (" ", ","))
    assert tokenizer.decode([space, space, comma]) == " ,"
    assert tokenizer.decode([comma, space]) == ", "


def test_bytes_that_are_no_character_decode_to_the_replacement_character(tokenizer):
    ids = tokenizer.encode("☃")
    assert tokenizer.decode(ids) == "☃"
    assert tokenizer.decode(ids[:-1]) == "\ufffd"


def test_tokens_are_readable_and_join_to_the_text_after_one_space(tokenizer):
    text = "the blue house 東京"
    tokens = tokenizer.tokens(tokenizer.encode(text))
    assert tokens[:3] == [" the", " blue", " house"]
    assert "".join(tokens) == f" {text}"


def test_tokens_show_control_names_and_half_characters_in_hex(tokenizer):
    assert tokenizer.tokens([0, 1, 2, 3]) == ["⟨pad⟩", "⟨unk⟩", "⟨bos⟩", "⟨eos⟩"]
    assert tokenizer.tokens(tokenizer.encode("☃")) == [" ", "⟨E2⟩", "⟨98⟩", "⟨83⟩"]


@given(st.text(st.sampled_from("the house東京☃ \0")))
def test_there_is_one_token_string_for_each_id(tokenizer, text):
    ids = tokenizer.encode(text)
    assert len(tokenizer.tokens(ids)) == len(ids)


@pytest.mark.parametrize("token_id", [-1, 401, 70001])
def test_an_id_outside_the_vocabulary_is_an_error_that_states_the_range(tokenizer, token_id):
    assert tokenizer.vocab_size <= 401
    for call in (tokenizer.decode, tokenizer.tokens):
        with pytest.raises(TextError, match=f"id {token_id} .* ids 0 to {tokenizer.vocab_size - 1}"):
            call([5, token_id])


def test_half_a_utf16_pair_is_an_error_that_says_where(tokenizer):
    with pytest.raises(TextError, match=r"lone surrogate U\+D83D at character 3 of a text of 4"):
        tokenizer.encode("ab\ud83dc")
    with pytest.raises(TextError, match=r"U\+DC00"):
        tokenizer.encode_batch(["fine", "\udc00"])


def test_json_gives_back_the_same_tokenizer(tokenizer, characters):
    for one in (tokenizer, characters):
        again = Tokenizer.from_json(one.to_json())
        assert again.to_json() == one.to_json()
        assert again.vocab_size == one.vocab_size
        for text in [*SAMPLES, *MARKERS]:
            assert again.encode(text) == one.encode(text)
            assert again.decode(one.encode(text)) == one.decode(one.encode(text))


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_the_library_alone_reads_the_json_and_agrees(tokenizer, text):
    library = LibraryTokenizer.from_str(tokenizer.to_json())
    ids = library.encode(text).ids
    assert ids == tokenizer.encode(text)
    assert library.decode(ids) == text


@given(st.data())
def test_damaged_json_is_a_text_error(tokenizer, data):
    whole = tokenizer.to_json()
    cut = data.draw(st.integers(min_value=0, max_value=len(whole) - 1))
    with pytest.raises(TextError, match="Remedy"):
        Tokenizer.from_json(whole[:cut])


ADDED = {"id": 3, "content": "</s>", "single_word": False, "lstrip": False, "rstrip": False}
TRUNCATION = {"direction": "Right", "max_length": 7, "strategy": "LongestFirst", "stride": 0}
FOREIGN = {
    "added_tokens": [ADDED | {"normalized": False, "special": True}],
    "normalizer": {"type": "Lowercase"},
    "truncation": TRUNCATION,
}


@pytest.mark.parametrize("part", FOREIGN)
def test_json_that_would_change_cut_or_act_on_text_is_refused(tokenizer, part):
    description = json.loads(tokenizer.to_json()) | {part: FOREIGN[part]}
    with pytest.raises(TextError, match=part):
        Tokenizer.from_json(json.dumps(description))


def test_json_with_dropout_other_control_tokens_or_gaps_is_refused(tokenizer):
    for change, found in (
        (lambda model: model.update(dropout=0.1), "dropout"),
        (lambda model: model["vocab"].update({"⟨pad⟩": 1, "⟨unk⟩": 0}), "ids 0 to 3"),
        (lambda model: model["vocab"].update({"a": 5003}), "gaps"),
        (lambda model: model["vocab"].update({"東": len(model["vocab"])}), "byte-level"),
    ):
        description = json.loads(tokenizer.to_json())
        change(description["model"])
        with pytest.raises(TextError, match=found):
            Tokenizer.from_json(json.dumps(description))


def test_json_of_a_byte_level_vocabulary_whose_text_never_becomes_bytes_is_refused(tokenizer):
    # The library would drop every character outside ASCII without a word.
    for pre_tokenizer in (None, json.loads(tokenizer.to_json())["pre_tokenizer"]["pretokenizers"][0]):
        description = json.loads(tokenizer.to_json()) | {"pre_tokenizer": pre_tokenizer}
        with pytest.raises(TextError, match="no unknown token and no step from text to bytes"):
            Tokenizer.from_json(json.dumps(description))


def test_json_of_another_kind_of_model_is_refused():
    model = {"type": "CharLevel", "vocab": {"a": 0}, "unk_token": "a"}
    layout = {"version": "1.0", "added_tokens": [], "model": model}
    with pytest.raises(TextError, match="a CharLevel model"):
        Tokenizer.from_json(json.dumps(layout))


def test_the_256_byte_characters_are_those_of_the_library():
    from tokenizers.pre_tokenizers import ByteLevel

    table = byte_characters()
    assert sorted(table) == sorted(ByteLevel.alphabet())
    assert sorted(table.values()) == list(range(256))
    for character, byte in table.items():
        if byte < 0x80:  # a single byte that is a character of its own
            (piece, _), *rest = ByteLevel(add_prefix_space=False, use_regex=False).pre_tokenize_str(chr(byte))
            assert (piece, rest) == (character, [])


def test_importing_the_room_loads_no_heavy_library():
    program = (
        "import sys, headway.text.tokenizer, headway.text.bpe, headway.text.segment; "
        "print(sorted({'tokenizers', 'sentencex', 'torch', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
