"""A model is measured by the translations that users get, with nothing cut, left out or mended in silence."""

import json
import math

import pytest
import sacrebleu

from headway.errors import MetricError
from headway.text.bpe import learn_bpe
from headway.translate.decoding import Decoding
from headway.translate.evaluate import evaluate
from headway.translate.marked import translate_marked
from headway.translate.translation import PairScore, Translation

SOURCES = ["eins zwei", "", "drei vier fünf"]
REFERENCES = ["One, two.", "", "Three, four, five."]
OUTPUTS = ["One, two.", "", "Three, four and five."]
LOG_HALF = -math.log(2)


class TableTranslator:
    """Answers from a table; each target token has probability 1/2. It stands in for a trained model."""

    def __init__(self, outputs, *, max_output_tokens=None, log_prob=LOG_HALF, cut=()):
        self.outputs = dict(zip(SOURCES, outputs, strict=True))
        self.log_prob = log_prob
        self.cut = cut
        self.max_output_tokens = max_output_tokens
        self.tag = ""
        self.source_tokenizer = self.target_tokenizer = learn_bpe(REFERENCES, vocab_size=260)
        self.asked = []
        self.scored = []

    def translate(self, texts, **settings):
        self.asked.append((list(texts), settings))
        return [Translation(self.outputs[text], is_cut=text in self.cut) for text in texts]

    def score(self, sources, targets, *, tags):
        assert list(tags) == [""] * len(sources)
        self.scored.append(list(targets))
        counts = [len(self.target_tokenizer.encode(target)) + 1 for target in targets]
        return [PairScore(count * self.log_prob, (self.log_prob,) * count, ("x",) * (count - 1)) for count in counts]


def test_scores_equal_sacrebleu_on_the_translations():
    result = evaluate(TableTranslator(OUTPUTS), SOURCES, REFERENCES, target_language="en")
    assert result.translations == tuple(OUTPUTS)
    assert result.scores.bleu.value == sacrebleu.corpus_bleu(OUTPUTS, [REFERENCES]).score
    assert result.scores.ter is not None
    assert result.scores.bleu.low is not None
    assert result.warnings == ()


class Forgetful(TableTranslator):
    """Loses every placeholder, whatever it is asked for."""

    leads_to_phrases = True

    def translate(self, texts, *, with_alignment=False, **settings):
        self.asked.append((list(texts), settings))
        alignment = () if with_alignment else None
        return [Translation("Open it.", alignment=alignment) for _ in texts]


def test_what_is_scored_is_what_users_get_and_mended_outputs_are_counted():
    translator = Forgetful(OUTPUTS)
    result = evaluate(
        translator, ["öffne {file}.", "öffne."], ["Open {file}.", "Open it."], tags=["a", "b"], quick=True
    )
    users = translate_marked(translator, ["öffne {file}.", "öffne."])
    assert result.translations == tuple(each.text for each in users)
    assert "{file}" in result.translations[0]
    assert result.translations[1] == "Open it."
    assert any("1 of 2 translations lost or invented placeholders" in warning for warning in result.warnings)
    again = [settings["tags"] for texts, settings in translator.asked if settings.get("tags") and len(texts) == 1]
    assert again
    assert all(tags == ["a"] for tags in again)  # each text keeps its own


def test_perplexity_is_over_all_tokens_with_eos_counted():
    result = evaluate(TableTranslator(OUTPUTS), SOURCES, REFERENCES)
    assert result.perplexity == pytest.approx(2.0)
    # 256 bytes and no merges: one token a byte, a space before each text that is not empty, and an EOS each.
    assert result.num_tokens == sum(len(text.encode()) + 1 for text in REFERENCES if text) + len(REFERENCES)


def test_settings_reach_the_search():
    translator = TableTranslator(OUTPUTS)
    decoding = Decoding(beam_size=5, length_penalty=0.0)
    evaluate(translator, SOURCES, REFERENCES, decoding=decoding, batch_tokens=97, quick=True)
    ((texts, settings),) = translator.asked
    assert texts == SOURCES
    assert {name: value for name, value in settings.items() if value} == {"decoding": decoding, "batch_tokens": 97}


def test_quick_gives_the_same_bleu_and_chrf_and_leaves_out_the_rest():
    full = evaluate(TableTranslator(OUTPUTS), SOURCES, REFERENCES)
    quick = evaluate(TableTranslator(OUTPUTS), SOURCES, REFERENCES, quick=True)
    assert quick.scores.bleu.value == full.scores.bleu.value
    assert quick.scores.chrf.value == full.scores.chrf.value
    assert (quick.scores.ter, quick.scores.bleu.low, quick.perplexity, quick.num_tokens) == (None, None, None, 0)


@pytest.mark.parametrize("references", [REFERENCES[:-1], ["An extra line.", *REFERENCES]])
def test_unequal_counts_are_refused_before_anything_is_translated(references):
    # Trap 9.
    translator = TableTranslator(OUTPUTS)
    with pytest.raises(MetricError, match=rf"3 source lines against {len(references)} reference lines"):
        evaluate(translator, SOURCES, references)
    assert translator.asked == []


def test_an_unknown_tokenizer_or_no_lines_are_refused_before_anything_is_translated():
    translator = TableTranslator(OUTPUTS)
    with pytest.raises(MetricError, match="'13b'"):
        evaluate(translator, SOURCES, REFERENCES, tokenize="13b")
    with pytest.raises(MetricError, match="0 sentences"):
        evaluate(translator, [], [])
    assert translator.asked == []


def test_tokenised_output_is_warned_of():
    # Trap 17.
    result = evaluate(TableTranslator(["It &apos;s 5 @-@ 6 .", "", "x"]), SOURCES, REFERENCES)
    assert "hypothesis text looks tokenised" in result.warnings[0]


def test_cut_translations_are_counted():
    result = evaluate(TableTranslator(OUTPUTS, cut=SOURCES[:2]), SOURCES, REFERENCES, quick=True)
    assert result.num_cut == 2
    assert "2 of 3 translations reached the length limit" in result.warnings[0]


def test_pairs_beyond_the_learned_positions_are_left_out_of_perplexity_aloud():
    translator = TableTranslator(OUTPUTS, max_output_tokens=17)
    result = evaluate(translator, SOURCES, REFERENCES)
    assert translator.scored == [["One, two.", ""]]
    assert any("leaves out 1 of 3 pairs" in warning and "17 positions" in warning for warning in result.warnings)
    nothing = evaluate(TableTranslator(OUTPUTS, max_output_tokens=0), SOURCES, REFERENCES)
    assert (nothing.perplexity, nothing.num_tokens) == (None, 0)


def test_infinite_perplexity_is_said_and_still_json():
    result = evaluate(TableTranslator(OUTPUTS, log_prob=-math.inf), SOURCES, REFERENCES)
    assert result.perplexity == math.inf
    assert "infinite" in result.warnings[-1]
    table = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert table["perplexity"] is None
    assert table["warnings"] == list(result.warnings)
