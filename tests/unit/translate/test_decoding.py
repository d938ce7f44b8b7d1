"""Requests of every kind, through the translator."""

from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sacrebleu.metrics.chrf import CHRF
from test_translate_folder import SENTENCES, folder
from translate_copies import TEXTS, copying_translator

from headway.config.model_config import ModelConfig
from headway.config.schema import SearchConfig
from headway.errors import TranslationError
from headway.folder.contents import FolderConfig, write_folder
from headway.model.build import build_transformer, export_weights
from headway.search.hypothesis import Hypothesis
from headway.search.settings import Diversity, Sampling, SearchSettings
from headway.text.bpe import learn_bpe
from headway.translate.decoding import Decoding, decoding_with
from headway.translate.evaluate import evaluate
from headway.translate.phrases import PhraseEncoder, has_phrases
from headway.translate.pieces import Piece
from headway.translate.risk import MOST_SAMPLES, Risk, by_expected_utility
from headway.translate.translator import Translator

ROTATED = str.maketrans("aeiou", "eioua")
WORDS = st.sampled_from(["the", "cat", "mat", "hill", "one,", "{x}", "%1$s", "Ñ", "dog!", "猫"])
PHRASE = st.lists(WORDS, min_size=1, max_size=3).map(" ".join) | st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"]), min_size=1, max_size=5
).filter(lambda text: text == text.strip())


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return folder(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def translator(path):
    return Translator.from_folder(path, device="cpu", engine="torch")


def test_what_a_request_leaves_open_is_the_models():
    model = SearchConfig(beam_size=7, length_penalty=0.2, no_repeat_ngram=3)
    assert Decoding().settings(model) == SearchSettings(7, length_penalty=0.2, no_repeat_ngram=3)
    asked = Decoding(beam_size=2, length_penalty=0.0, n_best=2, no_repeat_ngram=0, diversity=Diversity(2))
    assert asked.settings(model) == SearchSettings(2, length_penalty=0.0, n_best=2, diversity=Diversity(2))
    assert decoding_with(asked, beam_size=5, length_penalty=None, n_best=1) == Decoding(
        beam_size=5, length_penalty=0.0, n_best=1, no_repeat_ngram=0, diversity=Diversity(2)
    )


def test_the_models_own_rule_against_repeats_holds_where_nothing_else_is_asked_for(translator):
    text = SENTENCES[2]
    ruled = Translator(
        translator.backend,
        translator.source_tokenizer,
        translator.target_tokenizer,
        max_source_tokens=300,
        search=SearchConfig(no_repeat_ngram=1, max_extra_tokens=30),
    )
    for decoding in (None, Decoding(beam_size=1), Decoding(sampling=Sampling())):
        tokens = ruled.translate([text], decoding=decoding)[0].tokens
        assert len(set(tokens)) == len(tokens)
    free = ruled.translate([text], decoding=Decoding(beam_size=1, no_repeat_ngram=0))[0].tokens
    assert len(set(free)) < len(free)


@pytest.mark.parametrize(
    "decoding",
    [
        Decoding(sampling=Sampling(seed=3), n_best=5),
        Decoding(diversity=Diversity(2), n_best=4),
        Decoding(risk=Risk(samples=7), n_best=3),
        Decoding(no_repeat_ngram=2, n_best=2),
    ],
)
def test_batch_mates_order_batch_size_and_threads_never_change_an_output(translator, decoding):
    alone = [translator.translate([text], decoding=decoding)[0] for text in SENTENCES[:3]]
    for texts, batch_tokens in ((SENTENCES, 8192), (SENTENCES, 100), (SENTENCES[::-1], 8192)):
        found = dict(zip(texts, translator.translate(texts, decoding=decoding, batch_tokens=batch_tokens), strict=True))
        assert [found[text].text for text in SENTENCES[:3]] == [translation.text for translation in alone]
        for text, expected in zip(SENTENCES[:3], alone, strict=True):
            assert [other.tokens for other in found[text].alternatives] == [o.tokens for o in expected.alternatives]
    threads = torch.get_num_threads()
    torch.set_num_threads(threads + 1)
    try:
        assert [t.text for t in translator.translate(SENTENCES[:3], decoding=decoding)] == [t.text for t in alone]
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize("decoding", [Decoding(sampling=Sampling(top_k=3)), Decoding(risk=Risk(samples=5))])
def test_the_log_probability_of_a_sample_is_the_score_of_its_tokens(translator, decoding):
    for text in SENTENCES[:3]:
        (translation,) = translator.translate([text], decoding=decoding)
        source = (*translator.source_tokenizer.encode(text), 3)
        names = translator.target_tokenizer.tokens(range(translator.target_tokenizer.vocab_size))
        ids = [names.index(token) for token in translation.tokens]
        (values,) = translator.backend.score([source], [(*ids, 3)])
        assert translation.log_prob == pytest.approx(sum(values), abs=1e-3)


def test_two_models_translate_together_and_one_twice_is_that_model(tmp_path, path, translator):
    tokenizer = learn_bpe(TEXTS, vocab_size=300)
    config = ModelConfig(
        vocab_size=tokenizer.vocab_size, d_model=16, d_ff=24, num_heads=2, num_encoder_layers=1, num_decoder_layers=1,
        positions="learned", max_positions=41,
    )  # fmt: skip
    write_folder(
        tmp_path / "other",
        config=FolderConfig(source_language="en", target_language="de", model=config, max_source_tokens=37),
        weights=export_weights(build_transformer(config, seed=5)),
        source_tokenizer=tokenizer,
        target_tokenizer=tokenizer,
        card="",
    )
    twice = Translator.from_folders([path, path], device="cpu")
    expected = translator.translate(SENTENCES, n_best=2, with_alignment=True)
    assert twice.translate(SENTENCES, n_best=2, with_alignment=True) == expected
    both = Translator.from_folders([path, tmp_path / "other"], device="cpu")
    assert (both.max_output_tokens, both.search.max_extra_tokens) == (41, 7)
    (translation,) = both.translate(["the cat sat on the mat"], with_alignment=True)
    assert translation.text != translator.translate(["the cat sat on the mat"])[0].text
    assert translation.alignment is not None
    assert both.score(["the cat"], ["a mat"])[0].log_prob == pytest.approx(
        sum(
            np.log((np.exp(one) + np.exp(other)) / 2)
            for one, other in zip(
                *(
                    Translator.from_folder(place, device="cpu", engine="torch")
                    .score(["the cat"], ["a mat"])[0]
                    .token_log_probs
                    for place in (path, tmp_path / "other")
                ),
                strict=True,
            )
        ),
        abs=1e-4,
    )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"vocab_size": 263}, r"another source tokenizer .*: 263 tokens against \d{3}\."),
        ({"texts": [text.translate(ROTATED) for text in TEXTS]}, r"token \d+ is '.*' against '.*'"),
        ({"target_language": "fr"}, r"another target language .*'fr' against 'de'"),
    ],
)
def test_models_that_do_not_fit_together_are_refused_by_name(tmp_path, path, changes, words):
    tokenizer = learn_bpe(changes.get("texts", TEXTS), vocab_size=changes.get("vocab_size", 300))
    config = ModelConfig(
        vocab_size=tokenizer.vocab_size, d_model=8, d_ff=12, num_heads=2, num_encoder_layers=1, num_decoder_layers=1
    )
    write_folder(
        tmp_path / "other",
        config=FolderConfig(
            source_language="en",
            target_language=changes.get("target_language", "de"),
            model=config,
            max_source_tokens=300,
        ),
        weights=export_weights(build_transformer(config)),
        source_tokenizer=tokenizer,
        target_tokenizer=tokenizer,
        card="",
    )
    with pytest.raises(TranslationError, match=words) as error:
        Translator.from_folders([path, tmp_path / "other"], device="cpu")
    assert str(tmp_path / "other") in str(error.value)
    assert "\n" not in str(error.value)


def test_no_folder_at_all_is_refused():
    with pytest.raises(TranslationError, match="found no model folder"):
        Translator.from_folders([])


@settings(max_examples=9, deadline=None)
@given(st.lists(st.lists(PHRASE, max_size=3), min_size=3, max_size=3), st.sampled_from([1, 3]))
def test_every_phrase_stands_in_its_own_output_verbatim(phrases, beam_size):
    texts = ["the cat sat", "a small house", "one, two"]
    translations = copying_translator().translate(texts, phrases=phrases, beam_size=beam_size)
    for translation, wanted in zip(translations, phrases, strict=True):
        assert translation.phrases_met
        for phrase, count in Counter(wanted).items():
            starts = [place for place in range(len(translation.text)) if translation.text.startswith(phrase, place)]
            assert len(starts) >= count


@settings(max_examples=10, deadline=None)
@given(PHRASE)
@example("the cat")  # its last letter could begin it again, by more tokens than beginning anew takes
@example("that t")
def test_a_model_that_was_not_trained_on_them_writes_phrases_all_the_same(translator, phrase):
    (translation,) = translator.translate(["the cat sat"], phrases=[[phrase, phrase]])
    assert translation.phrases_met
    assert has_phrases(translation.text, [phrase, phrase])


def test_what_the_output_has_anyway_is_not_written_again():
    text = "the cat sat on the mat"
    phrases = ["cat sat", "the", "the", "mat", "at"]
    (translation,) = copying_translator().translate([text], phrases=[phrases])
    assert translation.text == text
    assert translation == copying_translator().translate([text])[0]


def test_a_text_in_pieces_has_each_phrase_in_the_piece_whose_source_has_it():
    translator = copying_translator(max_source_tokens=11)
    text = "the cat sat. " * 3 + "a mat sat. " * 3
    (translation,) = translator.translate([text], phrases=[["mat", "mat", "mat", "cat", "zzz"]])
    assert translation.num_pieces > 3
    assert translation.phrases_met
    assert translation.text.count("mat") == 3
    assert translation.text.replace("zzz", "").count("cat") == 3


def test_phrases_go_to_pieces_by_their_sources():
    tokenizer = copying_translator().source_tokenizer
    pieces = [Piece("", (*tokenizer.encode(text), 3) if text else (), "") for text in ("a {x}", "", "{x} {x} b", "c")]
    dealt = PhraseEncoder(tokenizer, tokenizer).deal(["{x}", "{x}", "c", "{x}", "{x}", "d"], pieces)
    written = [[phrase.content.decode() for phrase in own] for own in dealt]
    assert written == [["{x}", "{x}", "d"], ["{x}", "{x}"], ["c"]]


def test_a_phrase_has_its_spellings_after_a_space_and_without():
    tokenizer = copying_translator().target_tokenizer
    encoder = PhraseEncoder(tokenizer, tokenizer)
    spellings = [tokenizer.tokens(ids) for ids in encoder.encode("the cat").spellings]
    assert [" the", " cat"] in spellings
    assert any("".join(tokens) == "the cat" for tokens in spellings)


def test_blank_text_with_a_phrase_comes_back_flagged():
    blank, other = copying_translator().translate([" ", "cat"], phrases=[["x"], []])
    assert (blank.text, blank.phrases_met) == (" ", False)
    assert other.phrases_met


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda t: t.translate(["a"], phrases=[]), "phrases for 0 texts, and 1 texts"),
        (lambda t: t.translate(["a"], phrases=["cat"]), "wanted a list of phrases"),
        (lambda t: t.translate(["a"], phrases=[["a\nb"]]), r"'a\\nb' has a line end"),
        (lambda t: t.translate(["a"], phrases=[[" "]]), "has no characters but white space"),
        (lambda t: t.translate(["a"], decoding=Decoding(sampling=Sampling()), phrases=[["b"]]), "need a beam"),
        (lambda t: t.translate(["a"], decoding=Decoding(risk=Risk(samples=0))), "0 samples"),
        (lambda t: t.translate(["a"], decoding=Decoding(risk=Risk(samples=MOST_SAMPLES + 1))), "1,001 samples"),
        (lambda t: t.translate(["a"], decoding=Decoding(risk=Risk(samples=2), n_best=3)), "2 samples for the 3 best"),
        (lambda t: t.translate(["a"], decoding=Decoding(risk=Risk(utility="ter"))), "wanted one of chrf, bleu"),
        (lambda t: t.translate(["a"], decoding=Decoding(n_best=0)), "n-best is 0"),
    ],
)
def test_a_request_that_cannot_be_met_is_refused_in_one_line(call, words):
    with pytest.raises(TranslationError, match=words) as error:
        call(copying_translator())
    assert "\n" not in str(error.value)


def test_least_risk_is_the_highest_mean_utility_over_all_samples_by_hand():
    texts = ["the cat sat", "the cat sits", "a dog", "the cat sat"]
    counts = [3, 2, 4, 1]
    samples = [
        Hypothesis((4 + place, 3), log_prob=-float(place), score=-float(place), count=count)
        for place, count in enumerate(counts)
    ]
    found = by_expected_utility(samples, texts, utility="chrf", target_language="")
    chrf = CHRF()
    expected = {
        text: sum(n * chrf.sentence_score(text, [other]).score for other, n in zip(texts, counts, strict=True)) / 10
        for text in texts
    }
    ranked = sorted(expected, key=lambda text: -expected[text])
    assert [texts[h.token_ids[0] - 4] for h in found] == ranked
    assert [h.score for h in found] == pytest.approx([expected[text] for text in ranked])
    assert {texts[h.token_ids[0] - 4]: h.count for h in found} == {"the cat sat": 4, "the cat sits": 2, "a dog": 4}
    assert found[0].log_prob == 0.0  # of equal texts the first stands for all


@pytest.mark.parametrize("utility", ["chrf", "bleu"])
def test_outputs_of_least_risk_are_sorted_and_distinct_and_counted(translator, utility):
    decoding = Decoding(risk=Risk(samples=11, utility=utility), n_best=11)
    for translation in translator.translate(SENTENCES[:3], decoding=decoding):
        all_ = [translation, *translation.alternatives]
        assert [one.score for one in all_] == sorted((one.score for one in all_), reverse=True)
        assert len({one.text for one in all_}) == len(all_)
        assert sum(one.count for one in all_) == 11
        assert 0.0 <= all_[-1].score <= all_[0].score <= 100.0


def test_an_evaluation_takes_any_decoding(translator):
    decoding = Decoding(risk=Risk(samples=3))
    result = evaluate(translator, SENTENCES[:2], SENTENCES[:2], decoding=decoding, quick=True)
    expected = translator.translate(SENTENCES[:2], decoding=decoding)
    assert result.translations == tuple(translation.text for translation in expected)
