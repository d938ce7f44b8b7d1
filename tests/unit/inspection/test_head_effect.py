"""What a head is worth: against models whose output matrices were cut by hand, sentence by sentence."""

import numpy as np
import pytest
import torch
from inspected_models import TEXTS, TOKENIZER, small_subject, subject_of

from headway.config.positions import write_bits
from headway.errors import InspectionError, MetricError, TranslationError
from headway.inspection.attention_layer import attention_layers
from headway.inspection.head_effect import measure_effects
from headway.metrics.translation import compare_translations
from headway.nn.attention import MultiHeadAttention
from headway.text.bpe import learn_bpe
from headway.translate.evaluate import evaluate

SOURCES, TARGETS = TEXTS[:11], TEXTS[27:38]
PARTS = {
    "the paper's": {},
    "modern": {"num_kv_heads": 2, "positions": "rope", "norm_placement": "pre", "attention_window": 2},
    "alibi": {"positions": "alibi", "num_kv_heads": 1, "attention_bias": True},
    "words": {
        **{"positions": "words", "cross_positions": "words"},
        **{"source_word_starts": write_bits(range(30, 90)), "target_word_starts": write_bits(range(2, 90, 3))},
    },
}


@pytest.mark.parametrize("parts", PARTS)
def test_the_change_is_that_of_a_model_whose_output_matrix_lacks_the_head(parts):
    subject = small_subject(**PARTS[parts])
    found = measure_effects(subject, SOURCES, TARGETS, num_bootstrap=100)
    assert [effect.name for effect in found.heads] == [
        f"{kind}.{layer}.{head}"
        for kind, layers in (("encoder", 3), ("decoder", 2), ("cross", 2))
        for layer in range(1, layers + 1)
        for head in range(1, 5)
    ]
    whole = [score.log_prob for score in subject.translator.score(SOURCES, TARGETS)]
    tokens = sum(len(ids) + 1 for ids in TOKENIZER.encode_batch(TARGETS))
    assert (found.num_tokens, found.num_sentences, found.left_out) == (tokens, 11, 0)
    assert found.log_prob == pytest.approx(sum(whole) / tokens, abs=1e-5)
    layers = {(layer.kind, layer.layer): layer.attention for layer in attention_layers(subject.model)}
    for name in ("encoder.1.2", "encoder.3.4", "decoder.1.1", "decoder.2.3", "cross.1.4", "cross.2.1"):
        effect = next(effect for effect in found.heads if effect.name == name)
        matrix = layers[effect.kind, effect.layer].output.weight
        kept = matrix.detach().clone()
        with torch.no_grad():
            matrix[:, (effect.head - 1) * 5 : effect.head * 5] = 0.0
            without = [score.log_prob for score in subject.translator.score(SOURCES, TARGETS)]
            matrix.copy_(kept)
        assert effect.change.value == pytest.approx((sum(without) - sum(whole)) / tokens, abs=2e-5)
        assert effect.change.low <= effect.change.value <= effect.change.high
    assert all(module.gate_H is None for module in subject.model.modules() if isinstance(module, MultiHeadAttention))


def test_a_head_that_nothing_reads_changes_nothing():
    subject = small_subject()
    with torch.no_grad():
        attention_layers(subject.model)[4].attention.output.weight[:, 5:10] = 0.0
    found = measure_effects(subject, SOURCES, TARGETS)
    idle = next(effect for effect in found.heads if effect.name == "decoder.2.2")
    assert (idle.change.value, idle.change.low, idle.change.high) == (0.0, 0.0, 0.0)
    assert not idle.change.excludes_zero
    assert sum(effect.change.value == 0.0 for effect in found.heads) == 1


def test_batches_change_no_number(monkeypatch):
    whole = measure_effects(small_subject(), SOURCES, TARGETS)
    monkeypatch.setattr("headway.inspection.head_effect.BATCH_TOKENS", 37)
    heard = []
    small = measure_effects(small_subject(), SOURCES, TARGETS, on_progress=lambda *done: heard.append(done))
    assert heard[-1] == (11, 11)
    assert len(heard) > 2
    for one, other in zip(whole.heads, small.heads, strict=True):
        assert one.change.value == pytest.approx(other.change.value, abs=1e-6)
        assert one.change.low == pytest.approx(other.change.low, abs=1e-5)


def test_bleu_is_that_of_translations_without_the_head_in_the_paired_test():
    subject = small_subject(num_encoder_layers=1, num_decoder_layers=1, num_heads=2)
    found = measure_effects(subject, SOURCES, TARGETS, with_bleu=True, num_bootstrap=20)
    whole = [translation.text for translation in subject.translator.translate(SOURCES)]
    attention = attention_layers(subject.model)[2].attention
    with torch.no_grad():
        attention.output.weight[:, 5:] = 0.0
    without = [translation.text for translation in subject.translator.translate(SOURCES)]
    assert without != whole
    wanted = compare_translations(whole, without, TARGETS, target_language="de", num_bootstrap=20, include_ter=False)
    assert found.heads[-1].bleu == wanted.metrics[0]
    assert found.to_dict()["heads"][-1]["bleu"]["name"] == "BLEU"
    assert "bleu" not in measure_effects(subject, SOURCES, TARGETS, num_bootstrap=20).to_dict()["heads"][0]


def test_bleu_with_every_head_is_the_figure_of_headway_evaluate():
    subject = small_subject(num_encoder_layers=1, num_decoder_layers=1, num_heads=2)
    sources = [*SOURCES[:2], "see {0} the cat"]  # a placeholder, which users get back whatever the model writes
    own = [translation.text for translation in subject.translator.translate(sources)]
    references = [f"{text.upper()}." for text in own]
    figures = []
    for tokenize, lowercase in (("auto", False), ("char", True)):
        given = {"tokenize": tokenize, "lowercase": lowercase}
        found = measure_effects(subject, sources, references, with_bleu=True, num_bootstrap=20, **given)
        wanted = evaluate(subject.translator, sources, references, target_language="de", quick=True, **given)
        assert [effect.bleu.baseline for effect in found.heads] == pytest.approx([wanted.scores.bleu.value] * 6)
        figures.append(wanted.scores.bleu.value)
        case, name = "lc" if lowercase else "mixed", "13a" if tokenize == "auto" else tokenize
        assert f"|case:{case}|" in found.heads[0].bleu.signature
        assert f"|tok:{name}|" in found.heads[0].bleu.signature
    assert figures[1] > figures[0]
    assert "{0}" in wanted.translations[-1]


def test_an_unknown_tokenizer_is_told_before_anything_is_computed():
    heard = []
    with pytest.raises(MetricError, match="no BLEU tokenizer is named 'lower'"):
        measure_effects(
            small_subject(),
            SOURCES,
            TARGETS,
            with_bleu=True,
            tokenize="lower",
            on_progress=lambda *done: heard.append(done),
        )
    assert heard == []


def test_what_there_is_to_know_of_bleu_is_told_once():
    subject = small_subject(num_encoder_layers=1, num_decoder_layers=1, num_heads=2)
    targets = [f"{text} ." for text in TARGETS]
    found = measure_effects(subject, SOURCES, targets, with_bleu=True, tokenize="none", num_bootstrap=20)
    assert len(set(found.warnings)) == len(found.warnings)
    assert any("reference text looks tokenised" in warning for warning in found.warnings)
    assert found.to_dict()["warnings"] == list(found.warnings)
    assert measure_effects(subject, SOURCES, targets, num_bootstrap=20).warnings == ()


def test_pairs_without_a_side_or_positions_are_left_out_and_counted():
    subject = small_subject(positions="learned", max_positions=19)
    sources, targets = [*SOURCES, "the cat", " ", "mats " * 40], [*TARGETS, "", "ein", "ein"]
    found = measure_effects(subject, sources, targets)
    assert (found.num_sentences, found.left_out) == (11, 3)
    assert found.log_prob == measure_effects(subject, SOURCES, TARGETS).log_prob
    with pytest.raises(InspectionError, match="of 2 pairs none is left"):
        measure_effects(subject, ["the", ""], ["", "ein"])
    with pytest.raises(TranslationError, match="3 sources and 2 targets"):
        measure_effects(subject, ["a"] * 3, ["b"] * 2)


def test_tags_go_before_the_sources():
    tokenizer = learn_bpe(TEXTS, vocab_size=300, tags=("legal",))
    subject = subject_of(small_subject().model, tokenizer=tokenizer, tags=("", "legal"))
    found = measure_effects(subject, SOURCES, TARGETS, tag="legal")
    scores = subject.translator.score(SOURCES, TARGETS, tags=["legal"] * 11)
    assert found.log_prob == pytest.approx(np.sum([score.log_prob for score in scores]) / found.num_tokens, abs=1e-5)
    assert found.log_prob != pytest.approx(measure_effects(subject, SOURCES, TARGETS).log_prob, abs=1e-4)
