"""The Translator around a model that copies."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from translate_copies import copying_translator

from headway.config.schema import SearchConfig
from headway.errors import TextError, TranslationError
from headway.translate.decoding import Decoding
from headway.translate.translator import plan_batches

# No lone surrogates, which are no text; no "\r", which the translator writes as a space when a model writes it.
TEXT = st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\r"), max_size=60)


@pytest.fixture(scope="module")
def translator():
    return copying_translator()


@settings(max_examples=60, deadline=None)
@given(st.lists(TEXT, max_size=7), st.sampled_from([1, 3]), st.sampled_from([1, 97, 8192]))
def test_n_texts_in_give_n_out_in_order_and_nothing_is_lost(texts, beam_size, batch_tokens):
    translator = copying_translator(max_source_tokens=11)
    translations = translator.translate(texts, beam_size=beam_size, batch_tokens=batch_tokens)
    assert [translation.text for translation in translations] == texts


def test_short_and_long_texts_come_back_in_the_order_given(translator):
    texts = ["the cat " * count + "sat" for count in (3, 1, 4, 1, 5, 0, 2)]
    assert [translation.text for translation in translator.translate(texts)] == texts


@pytest.mark.parametrize("blank", ["", " ", "\t", "\u3000", "\u2028", "\n", " \n\n"])
def test_blank_text_comes_back_as_it_is_and_never_reaches_the_model(blank):
    translator = copying_translator()
    assert [translation.text for translation in translator.translate([blank, blank])] == [blank, blank]
    assert translator.backend.predictor.shapes == []


@pytest.mark.parametrize(
    "odd", ["one\u2028two", "one\u2029two", "one\x85two", "one\x0b\x0c\x1c\x1d\x1etwo", "nul\x00 x"]
)
def test_a_character_that_others_take_for_a_line_end_stays_inside_its_text(translator, odd):
    before, middle, after = translator.translate(["a cat", odd, "a mat"])
    assert [before.text, middle.text, after.text] == ["a cat", odd, "a mat"]


def test_a_text_of_several_lines_keeps_its_lines_blank_ones_and_indentation_too(translator):
    text = "the cat\n\n  - one\n  - two  \n"
    (translation,) = translator.translate([text])
    assert translation.text == text
    assert translation.num_pieces == 3


def test_a_marker_in_ordinary_text_does_not_cut_the_translation(translator):
    text = "at the end </s> then <unk> <pad>"
    assert translator.translate([text])[0].text == text


def test_a_line_longer_than_the_model_was_trained_on_is_split_and_rejoined():
    translator = copying_translator(max_source_tokens=23)
    text = "the cat sat on the mat.  how are you? " * 17 + "x" * 101
    (translation,) = translator.translate([text], with_alignment=True)
    assert translation.text == text
    assert translation.num_pieces > 17
    assert max(length for _, length in translator.backend.predictor.shapes) <= 23
    assert translation.alignment == tuple((place, place) for place in range(len(translation.tokens)))
    assert translation.source_tokens == translation.tokens
    assert not translation.is_cut


def test_a_line_within_the_limit_is_not_split():
    translator = copying_translator(max_source_tokens=23)
    text = "how are you? how are you?"
    assert len(translator.source_tokenizer.encode(text)) + 1 <= 23
    assert translator.translate([text])[0].num_pieces == 1


@pytest.mark.parametrize(
    ("asked", "own", "pieces"), [(True, False, 3), (None, True, 3), (False, True, 2), (None, False, 2)]
)
def test_sentences_are_translated_alone_where_that_is_asked_for(asked, own, pieces):
    translator = copying_translator(max_source_tokens=43)
    translator.search = SearchConfig(split_sentences=own)
    text = " the cat sat.  how are you?\nhi "
    (translation,) = translator.translate([text], decoding=Decoding(split_sentences=asked), with_alignment=True)
    assert (translation.text, translation.num_pieces, translation.is_long) == (text, pieces, False)
    assert translation.alignment == tuple((place, place) for place in range(len(translation.tokens)))
    lengths = {length for _, length in translator.backend.predictor.shapes}
    whole = len(translator.source_tokenizer.encode("the cat sat.  how are you?")) + 1
    assert (whole in lengths) == (pieces == 2)


def test_a_sentence_that_is_too_long_is_split_further_and_told():
    translator = copying_translator(max_source_tokens=23)
    text = "how are you? " + "the cat sat on the mat, " * 9 + "ok. how are you?"
    (translation,) = translator.translate([text], decoding=Decoding(split_sentences=True))
    assert (translation.text, translation.is_long) == (text, True)
    assert max(length for _, length in translator.backend.predictor.shapes) <= 23


def test_the_parts_of_a_text_are_those_that_are_translated():
    translator = copying_translator(max_source_tokens=43)
    assert translator.parts("the cat sat.  how are you?") == ["the cat sat.  how are you?"]
    translator.search = SearchConfig(split_sentences=True)
    assert translator.parts("the cat sat.  how are you?") == ["the cat sat.", "how are you?"]


def test_a_model_trained_on_the_shortest_texts_still_takes_every_character():
    translator = copying_translator(max_source_tokens=1)
    text = "\U0001f600\U0001f600 漢字 ab"
    assert translator.translate([text])[0].text == text


@pytest.mark.parametrize(
    ("languages", "text", "expected"),
    [
        (("en", "zh"), "the cat sat. the cat sat. the cat sat.", "the cat sat.the cat sat.the cat sat."),
        (("zh-Hans", "en"), "猫坐。猫坐。猫坐。", "猫坐。 猫坐。 猫坐。"),
        (("zh", "ja"), "猫坐。猫坐。猫坐。", "猫坐。猫坐。猫坐。"),
        (("en", "de"), "the cat sat.  the cat sat. the cat sat.", "the cat sat.  the cat sat. the cat sat."),
        (
            ("en", "zh"),
            "the cat sat.\u3000the cat sat.\u3000the cat sat.",
            "the cat sat.\u3000the cat sat.\u3000the cat sat.",
        ),
    ],
)
def test_pieces_are_joined_as_the_target_language_writes(languages, text, expected):
    source_language, target_language = languages
    translator = copying_translator(
        source_language=source_language, target_language=target_language, max_source_tokens=11
    )
    (translation,) = translator.translate([text])
    assert translation.num_pieces == 3
    assert translation.text == expected


def test_a_line_end_that_the_model_writes_becomes_a_space(translator):
    newline_ids = translator.target_tokenizer.encode("a\nb\r\nc")
    translator = copying_translator()
    translator.backend.search, search = (
        lambda sources, **options: [
            [type(best)((*newline_ids, 3), log_prob=-1.0, score=-1.0) for best in hypotheses]
            for hypotheses in search(sources, **options)
        ],
        translator.backend.search,
    )
    assert translator.translate(["x"])[0].text == "a b  c"


def test_an_output_at_the_length_limit_is_flagged():
    texts = ["cat", "the cat sat on the mat"]
    endless = copying_translator(end_bonus=-1000.0, max_extra_tokens=5)
    for translation in endless.translate(texts, beam_size=1):
        assert translation.is_cut
        assert len(translation.tokens) + 1 == len(translation.source_tokens) + 1 + 5  # EOS counted on both sides
    assert not any(translation.is_cut for translation in copying_translator().translate(texts))


def test_a_text_of_400_tokens_is_translated_whole_by_a_model_that_knows_such_texts():
    translator = copying_translator(max_source_tokens=500)
    text = " ".join(["cat", "mat", "hill", "house"] * 100)
    (translation,) = translator.translate([text])
    assert len(translation.source_tokens) >= 400
    assert translation.num_pieces == 1
    assert translation.text == text
    assert not translation.is_cut


def test_no_batch_is_over_its_budget_and_every_place_is_in_one():
    lengths = [3, 31, 1, 7, 7, 2, 13, 50, 0]
    batches = list(plan_batches(lengths, batch_tokens=41))
    assert sorted(place for batch in batches for place in batch) == list(range(len(lengths)))
    for batch in batches:
        longest = max(lengths[place] for place in batch)
        assert len(batch) == 1 or len(batch) * longest <= 41
    assert list(plan_batches([], batch_tokens=41)) == []


def test_the_beam_counts_in_the_budget_of_a_batch():
    translator = copying_translator()
    translator.translate(["the cat sat"] * 29, beam_size=4, batch_tokens=100)
    for rows, length in translator.backend.predictor.shapes:
        assert rows * length * 4 <= 100


def test_alternatives_are_the_next_best_and_end_with_a_lower_score(translator):
    (translation,) = translator.translate(["the cat"], n_best=3, beam_size=4)
    (best,) = translator.translate(["the cat"], beam_size=4)
    assert len(translation.alternatives) == 2
    assert best.text == translation.text == "the cat"
    scores = [translation.score, *(alternative.score for alternative in translation.alternatives)]
    assert scores == sorted(scores, reverse=True)
    assert len({translation.tokens, *(alternative.tokens for alternative in translation.alternatives)}) == 3


def test_alternatives_of_a_split_text_have_no_higher_score_than_the_best():
    (translation,) = copying_translator().translate(["the cat sat. " * 11], n_best=3)
    scores = [translation.score, *(alternative.score for alternative in translation.alternatives)]
    assert scores == sorted(scores, reverse=True)


def test_a_forced_prefix_begins_the_translation():
    translator = copying_translator()
    texts = ["the cat", "a mat", "", "the hill"]
    translations = translator.translate(texts, target_prefixes=["my dog", "", "my", "one"])
    assert translations[0].text.startswith("my dog")
    assert translations[1].text == "a mat"
    assert translations[2].text == ""
    assert translations[3].text.startswith("one")


def test_a_prefix_longer_than_the_source_has_room_to_go_on():
    prefix = "one, two; three! " * 29
    (translation,) = copying_translator(max_extra_tokens=5).translate(["cat"], target_prefixes=[prefix])
    assert translation.text.startswith(prefix)


def test_the_printed_log_probability_is_the_score_of_the_pair(translator):
    texts = ["the cat sat", "a small house", "", "one, two"]
    translations = translator.translate(texts)
    scores = translator.score(texts, [translation.text for translation in translations])
    for text, translation, score in zip(texts, translations, scores, strict=True):
        assert score.num_tokens == len(score.tokens) + 1
        assert score.log_prob == pytest.approx(sum(score.token_log_probs))
        if text:
            assert score.log_prob == pytest.approx(translation.log_prob, abs=1e-4)
            assert score.tokens == translation.tokens


def test_scores_come_in_order_and_a_wrong_target_scores_lower(translator):
    right = translator.score(["the cat", "one two three"], ["the cat", "one two three"], batch_tokens=1)
    wrong = translator.score(["the cat", "one two three"], ["one two three", "the cat"])
    assert all(r.log_prob > w.log_prob for r, w in zip(right, wrong, strict=True))
    assert "".join(right[1].tokens) == " one two three"


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda t: t.translate("one string"), TranslationError, r"wanted a list of texts"),
        (lambda t: t.translate(["a"], n_best=5, beam_size=2), TranslationError, "n-best is 5, beam size is 2"),
        (lambda t: t.translate(["a"], target_prefixes=["b", "c"]), TranslationError, "2 target prefixes for 1 texts"),
        (lambda t: t.translate(["a"], target_prefixes=["b\nc"]), TranslationError, "holds a line end"),
        (lambda t: t.score(["a"], []), TranslationError, "1 sources and 0 targets"),
        (lambda t: t.translate(["half \ud83d"]), TextError, "surrogate"),
    ],
)
def test_a_request_that_cannot_be_met_is_refused(translator, call, error, words):
    with pytest.raises(error, match=words):
        call(translator)
