import pytest
import sentencex
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import TextError
from headway.text import segment
from headway.text.bpe import learn_bpe
from headway.text.segment import split_long, split_sentences

TOKENIZER = learn_bpe(["one two three, the blue house. 你好，世界。"] * 5, vocab_size=307)
ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]))
SENTENCE_LIKE = st.text(st.sampled_from('abCD .!?。、,"”()\n\r\t\u2028\u3000é\u0301🇩🇪1'))
LANGUAGES = st.sampled_from(["en", "de", "fr", "zh", "ja", "hy", "my", "pt-BR", "zh_Hans", "xx", ""])


def _tokens(text):
    return len(TOKENIZER.encode(text))


@given(st.one_of(ANY_TEXT, SENTENCE_LIKE), LANGUAGES)
def test_sentences_join_to_the_text_and_none_is_empty(text, language):
    sentences = split_sentences(text, language)
    assert "".join(sentences) == text
    assert "" not in sentences


@given(st.one_of(ANY_TEXT, SENTENCE_LIKE), LANGUAGES)
def test_only_a_text_without_words_gives_a_sentence_without_words(text, language):
    if text.strip():
        assert all(sentence.strip() for sentence in split_sentences(text, language))


def test_sentences_keep_the_space_after_them_and_abbreviations_end_none():
    text = "Mr. Smith came.  Did he? Yes!\n\nThen he left. "
    assert split_sentences(text, "en") == ["Mr. Smith came.  ", "Did he? ", "Yes!\n\n", "Then he left. "]


def test_an_abbreviation_follows_the_language_and_its_code_may_carry_a_region():
    text = "Er kommt z.B. Montag. Danach nicht."
    assert split_sentences(text, "de") == ["Er kommt z.B. Montag. ", "Danach nicht."]
    assert split_sentences(text, "de-AT") == split_sentences(text, "DE_ch") == split_sentences(text, "de")


def test_chinese_and_japanese_sentences_are_split_without_spaces():
    assert split_sentences("你好。我很好！你呢？", "zh") == ["你好。", "我很好！", "你呢？"]
    assert split_sentences("東京です。はい。", "ja") == ["東京です。", "はい。"]


def test_a_language_without_rules_is_split_as_english():
    text = "Mr. Smith came. He left."
    for language in ("xx", "", "tlh-Latn"):
        assert split_sentences(text, language) == split_sentences(text, "en")


@pytest.mark.parametrize("text", ["\n" * 100_003, "a.\n\n\n b.\r\n\r\nc" * 1009, "x" + "\n \t" * 5003 + "y"])
def test_blank_lines_are_not_lost(text):
    assert "".join(split_sentences(text, "en")) == text


@pytest.mark.parametrize("blank", ["\n\n\n", "\n\n\n\n\n", "\n \n\n", "\r\n\r\n\r\n", " \n\n\n\n "])
def test_blank_lines_hinder_no_split(blank):
    assert split_sentences(f"One. Two.{blank}Three. Four.", "en") == ["One. ", f"Two.{blank}", "Three. ", "Four."]


def test_sentences_over_many_windows_are_those_of_one_window():
    text = "One of them came here at 3.14 with Mr. Smith. " * 1009
    assert split_sentences(text, "en") == ["One of them came here at 3.14 with Mr. Smith. "] * 1009
    assert split_sentences("你好吗。" * 5003, "zh") == ["你好吗。"] * 5003


def test_a_sentence_longer_than_a_window_stays_one():
    sentence = "word " * 2003 + "end. "
    assert split_sentences(f"{sentence}One more. Two.", "en") == [sentence, "One more. ", "Two."]


@pytest.mark.parametrize("faulty", [lambda _, text: [text[:-1]], lambda _, text: [], lambda _, text: ["", text, "a"]])
def test_text_that_the_library_loses_or_invents_stays_one_sentence(monkeypatch, faulty):
    monkeypatch.setattr(sentencex, "segment", faulty)
    assert split_sentences("One. Two. \nThree.", "en") == ["One. Two. \n", "Three."]


@pytest.mark.parametrize("space", ["\u3000", "\u2028", "\u00a0", "\u202f", "\u0085"])
def test_a_wide_space_is_split_at_like_a_plain_one_and_kept(space):
    text = f"He saw D{space}. Then{space}this.{space}And that."
    lengths = [len(part) for part in split_sentences(text.replace(space, " "), "en")]
    parts = split_sentences(text, "en")
    assert "".join(parts) == text
    assert [len(part) for part in parts] == lengths


def test_a_failure_inside_the_library_leaves_the_text_one_sentence(monkeypatch):
    class PanicException(BaseException):
        pass

    def fail(code, text):
        raise PanicException

    monkeypatch.setattr(sentencex, "segment", fail)
    assert split_sentences("One. Two.", "en") == ["One. Two."]


def test_half_a_utf16_pair_is_a_text_error():
    with pytest.raises(TextError, match=r"U\+D800"):
        split_sentences("a\ud800", "en")


@given(st.one_of(ANY_TEXT, SENTENCE_LIKE), LANGUAGES, st.integers(min_value=9, max_value=31))
def test_pieces_fit_and_join_to_the_text(text, language, max_length):
    pieces = split_long(text, language, max_length=max_length, length_of=_tokens)
    assert "".join(pieces) == text
    assert all(0 < _tokens(piece) <= max_length for piece in pieces)


@given(st.text(st.sampled_from("ab, .")), st.integers(min_value=1, max_value=13))
def test_pieces_fit_whatever_the_measure_is(text, max_length):
    def odd_length(piece):  # longer texts may be shorter by this measure, as merges can make them in tokens
        return len(piece) - 2 * piece.count("ab")

    pieces = split_long(text, "en", max_length=max_length, length_of=odd_length)
    assert "".join(pieces) == text
    assert all(odd_length(piece) <= max_length for piece in pieces)


def test_a_good_boundary_is_passed_over_when_less_text_measures_more():
    def odd_length(piece):
        return len(piece) - 5 * piece.count("ab")

    # By hand: "aaaa, abc" measures 4 and fits; cut after its clause, "aaaa, " would measure 6.
    pieces = split_long("aaaa, abcccc", "en", max_length=4, length_of=odd_length)
    assert pieces == ["aaaa, abc", "ccc"]


def test_a_text_that_fits_stays_whole_and_an_empty_one_has_no_pieces():
    assert split_long("One. Two.", "en", max_length=9, length_of=len) == ["One. Two."]
    assert split_long("", "en", max_length=9, length_of=len) == []


def test_a_long_text_is_split_into_sentences_first():
    assert split_long("One, two. Three.", "en", max_length=13, length_of=len) == ["One, two. ", "Three."]


def test_a_long_sentence_is_cut_after_clauses_then_words_then_anywhere():
    assert split_long("one two, three four", "en", max_length=13, length_of=len) == ["one two, ", "three four"]
    assert split_long("one two three four", "en", max_length=13, length_of=len) == ["one two ", "three four"]
    assert split_long("onetwothreefour", "en", max_length=7, length_of=len) == ["onetwot", "hreefou", "r"]
    assert split_long("今天天气很好，我们去公园。", "zh", max_length=11, length_of=len) == [
        "今天天气很好，",
        "我们去公园。",
    ]


@pytest.mark.parametrize("max_length", [17, 18, 19])
@pytest.mark.parametrize(
    ("character", "size"),
    [("e\u0301\u0302", 3), ("👩🏽\u200d🚀", 4), ("🇩🇪", 2), ("\u1112\u1161\u11ab", 3), ("❤\ufe0f", 2)],
)
def test_no_cut_goes_through_what_a_reader_sees_as_one_character(character, size, max_length):
    assert len(character) == size
    pieces = split_long(character * 101, "en", max_length=max_length, length_of=len)
    assert "".join(pieces) == character * 101
    assert all(len(piece) % size == 0 for piece in pieces)


def test_more_marks_than_a_piece_holds_are_cut_rather_than_kept_too_long():
    text = "e" + "\u0301" * 101
    pieces = split_long(text, "en", max_length=13, length_of=len)
    assert "".join(pieces) == text
    assert max(map(len, pieces)) <= 13


def test_a_character_that_never_fits_is_an_error_with_both_lengths():
    with pytest.raises(TextError, match=r"U\+2603 alone has length 4, pieces may have 3"):
        split_long("☃☃", "en", max_length=3, length_of=_tokens)


@pytest.mark.parametrize("word", ["word ", "word, ", "Word. ", "字", "字。", "x"])
def test_a_line_of_100000_words_is_measured_in_a_few_times_its_length(word):
    text = word * 100_000
    measured = 0

    def length_of(piece):
        nonlocal measured
        measured += len(piece)
        return len(piece)

    pieces = split_long(text, "en", max_length=251, length_of=length_of)
    assert "".join(pieces) == text
    assert max(map(len, pieces)) <= 251
    assert measured < 20 * len(text)  # the work asked of the tokenizer grows with the text, not with its square


def test_the_splitter_of_sentences_never_sees_more_than_a_window(monkeypatch):
    sizes = []

    def recorded(_, text):
        sizes.append(len(text))
        return [text]

    monkeypatch.setattr(sentencex, "segment", recorded)
    split_sentences("word " * 100_000, "en")
    assert max(sizes) <= segment.WINDOW
    assert sum(sizes) <= 500_000
