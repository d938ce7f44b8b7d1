"""The record of a sentence: its weights are the formula's, its target the search's, its labels what was built in."""

import math

import numpy as np
import pytest
import torch
from inspected_models import SIZES, TEXTS, TOKENIZER, small_subject, subject_of

from headway.config.model_config import ModelConfig
from headway.errors import InspectionError, TextError, TranslationError
from headway.inspection.explanation import explain
from headway.inspection.record import AXES
from headway.model.build import build_transformer
from headway.nn.attention import MultiHeadAttention
from headway.text.bpe import learn_bpe
from headway.text.reserved import BOS_ID, EOS_ID

SENTENCE, TARGET = "the cat sat on 7 mats", "ein kater sitzt ."
PARTS = {
    "the paper's": {},
    "grouped": {"num_kv_heads": 2, "d_k": 4},
    "rope": {"positions": "rope"},
    "alibi": {"positions": "alibi", "num_kv_heads": 1},
    "t5": {"positions": "t5", "norm_placement": "pre"},
    "window": {"attention_window": 2},
    "learned": {"positions": "learned", "max_positions": 83},
}


def by_hand(attention, x_TD, memory_SD, mask_TS):
    """Softmax of scaled products, head by head (Section 3.2.1)."""
    size, weights = attention.d_k, []
    for head in range(attention.num_heads):
        rows = slice(head * size, (head + 1) * size)
        scores = (x_TD @ attention.query.weight[rows].T) @ (memory_SD @ attention.key.weight[rows].T).T
        weights.append((scores / math.sqrt(size)).masked_fill(~mask_TS, -math.inf).softmax(dim=-1))
    return torch.stack(weights).detach().numpy()


def weights_of(record, kind, layer):
    return np.stack([head.tokens.weights_TS for head in record.heads if (head.kind, head.layer) == (kind, layer)])


def test_the_recorded_weights_are_the_formula_by_hand_for_all_three_kinds():
    subject = small_subject()
    record = explain(subject, SENTENCE, target=TARGET)
    model = subject.model
    source = torch.tensor([[*TOKENIZER.encode(SENTENCE), EOS_ID]])
    target_in = torch.tensor([[BOS_ID, *TOKENIZER.encode(TARGET)]])
    x_SD, y_TD = model.source_stem(source)[0], model.target_stem(target_in)[0]
    everything = torch.ones(len(x_SD), len(x_SD), dtype=torch.bool)
    causal = torch.ones(len(y_TD), len(y_TD)).tril().bool()
    encoder, decoder = next(model.encoder.each_layer()), next(model.decoder.each_layer())
    wanted = by_hand(encoder.self_attention, x_SD, x_SD, everything)
    np.testing.assert_allclose(weights_of(record, "encoder", 1), wanted, atol=1e-6)
    np.testing.assert_allclose(
        weights_of(record, "decoder", 1), by_hand(decoder.self_attention, y_TD, y_TD, causal), atol=1e-6
    )
    memory_SD = model.encode(source, None)[0]
    y_TD = decoder.self_sublayer(
        y_TD[None], lambda y: decoder.self_attention(y, y, mask=causal, span=model.target_stem.position.span(9, 9, 0))
    )[0]
    across = torch.ones(len(y_TD), len(memory_SD), dtype=torch.bool)
    np.testing.assert_allclose(
        weights_of(record, "cross", 1), by_hand(decoder.cross_attention, y_TD, memory_SD, across), atol=1e-6
    )


@pytest.mark.parametrize("parts", PARTS)
def test_every_row_sums_to_one_over_what_may_be_seen_before_and_after_merging(parts):
    subject = small_subject(**PARTS[parts])
    record = explain(subject, SENTENCE)
    assert [head.name for head in record.heads] == [
        f"{kind}.{layer}.{head}"
        for kind, layers in (("encoder", 3), ("decoder", 2), ("cross", 2))
        for layer in range(1, layers + 1)
        for head in range(1, 5)
    ]
    for head in record.heads:
        queries, keys = (record.axes[name] for name in AXES[head.kind])
        assert head.tokens.weights_TS.shape == (len(queries.tokens), len(keys.tokens))
        assert head.words.weights_TS.shape == (len(queries.words), len(keys.words))
        assert len(keys.words) <= len(keys.tokens)
        for look in (head.words, head.tokens):
            np.testing.assert_allclose(look.weights_TS.sum(axis=1), 1.0, atol=1e-5)
            assert (look.weights_TS >= 0).all()
        if head.kind == "decoder":
            assert (np.triu(head.tokens.weights_TS, k=1) == 0).all()
        if head.kind != "cross" and parts == "window":
            distance = np.abs(np.subtract.outer(*[np.arange(len(keys.tokens))] * 2))
            assert (head.tokens.weights_TS[distance > 2] == 0).all()


@pytest.mark.parametrize("parts", PARTS)
def test_the_target_is_what_the_search_chose_and_its_probability_the_searchs(parts):
    subject = small_subject(**PARTS[parts])
    record = explain(subject, f"  {SENTENCE}\t")
    (translation,) = subject.translator.translate([SENTENCE])
    assert (record.source, record.target) == (SENTENCE, translation.text)
    assert record.axes["target_out"].token_ids == (*translation.token_ids, EOS_ID)
    assert record.axes["target_out"].tokens[:-1] == translation.tokens
    assert record.axes["target_in"].token_ids == (BOS_ID, *translation.token_ids)
    assert record.axes["source"].token_ids == (*TOKENIZER.encode(SENTENCE), EOS_ID)
    assert record.log_prob == pytest.approx(translation.log_prob, abs=1e-4)
    assert record.score == translation.score
    assert (record.is_given, record.is_cut) == (False, translation.is_cut)


def test_a_given_target_has_the_probability_that_scoring_gives_it():
    subject = small_subject()
    record = explain(subject, SENTENCE, target=f" {TARGET} ")
    (score,) = subject.translator.score([SENTENCE], [TARGET])
    assert record.log_probs == pytest.approx(score.token_log_probs, abs=1e-5)
    assert record.target == TARGET
    assert (record.is_given, record.score) == (True, None)
    assert [word.text for word in record.axes["target_out"].words] == ["ein", "kater", "sitzt", ".", "⟨eos⟩"]


def test_looking_leaves_the_model_as_it_was():
    subject = small_subject()
    before = subject.translator.translate(TEXTS[:3])
    explain(subject, SENTENCE)
    assert all(module.recorder is None for module in subject.model.modules() if isinstance(module, MultiHeadAttention))
    assert subject.translator.translate(TEXTS[:3]) == before


def looking_back(steps):
    """Embeddings are zero, so positions alone are there, and head 3 of 4 asks for the position so many before its own.

    PE(pos + k) is a rotation of PE(pos) (Section 3.5), which its matrix W^Q makes.
    """
    size = 16
    model = build_transformer(
        ModelConfig(**SIZES | {"d_model": size, "d_k": size, "norm_placement": "pre", "norm": "rms"})
    ).eval()
    with torch.no_grad():
        model.source_stem.embedding.weight.zero_()
        for attention in (next(stack.each_layer()).self_attention for stack in (model.encoder, model.decoder)):
            attention.query.weight.zero_()
            rows = slice(2 * size, 3 * size)
            attention.key.weight[rows] = torch.eye(size)
            for pair in range(0, size, 2):
                angle = torch.tensor(-steps / 10_000 ** (pair / size))
                turn = torch.stack([torch.stack([angle.cos(), angle.sin()]), torch.stack([-angle.sin(), angle.cos()])])
                attention.query.weight[2 * size + pair : 2 * size + pair + 2, pair : pair + 2] = 90.0 * turn
    return subject_of(model)


@pytest.mark.parametrize(("steps", "place"), [(1, "previous"), (0, "same"), (-1, "next")])
def test_a_head_that_was_set_to_look_at_the_previous_token_is_labelled_so_and_no_other(steps, place):
    record = explain(looking_back(steps), "the cat sat on mats", target="the cat sat on mats")
    labels = {head.name: head.tokens.looks_at for head in record.heads if head.tokens.looks_at}
    seen = {"encoder.1.3": place} if place == "next" else {"encoder.1.3": place, "decoder.1.3": place}
    if place == "next":  # the decoder, which may not, looks at the last that it may see: its own
        labels.pop("decoder.1.3", None)
    assert labels == seen
    head = next(head for head in record.heads if head.name == "encoder.1.3")
    assert head.words.looks_at == place  # each of these words is one token
    assert head.tokens.shares[place].value > 0.99
    assert head.tokens.distance.value == pytest.approx(abs(steps), abs=0.2)
    equal = next(head for head in record.heads if head.name == "encoder.1.1")
    assert equal.tokens.shares[place].value == pytest.approx(equal.tokens.shares[place].chance, abs=1e-6)
    assert equal.tokens.entropy.value == pytest.approx(math.log(6), abs=1e-5)


def test_the_alignment_is_where_the_last_layers_heads_together_look_most_without_control_tokens():
    record = explain(small_subject(), SENTENCE, target=TARGET)
    mean = weights_of(record, "cross", 2).mean(axis=0)
    sources, targets = record.axes["source"].words, record.axes["target_out"].words
    assert [link.target for link in record.alignment] == list(range(len(targets) - 1))
    for link in record.alignment:
        rows = slice(targets[link.target].first, targets[link.target].end)
        by_word = [mean[rows, word.first : word.end].sum(axis=1).mean() for word in sources]
        assert link.source == int(np.argmax(by_word[:-1]))
        assert link.weight == pytest.approx(by_word[link.source])


def test_a_tag_is_a_word_by_itself_before_the_source():
    tokenizer = learn_bpe(TEXTS, vocab_size=300, tags=("legal",))
    subject = subject_of(small_subject().model, tokenizer=tokenizer, tags=("", "legal"))
    plain, tagged = explain(subject, SENTENCE), explain(subject, SENTENCE, tag="legal")
    assert tagged.axes["source"].token_ids == (tokenizer.tag_id("legal"), *plain.axes["source"].token_ids)
    assert [word.is_control for word in tagged.axes["source"].words] == [True, *[False] * 6, True]
    assert 0 not in {link.source for link in tagged.alignment}
    with pytest.raises(TranslationError, match="found the tag 'medical'"):
        explain(subject, SENTENCE, tag="medical")


@pytest.mark.parametrize("sentence", ["", " \t ", "\n"])
def test_a_sentence_without_words_is_refused(sentence):
    with pytest.raises(InspectionError, match="has no words"):
        explain(small_subject(), sentence)


def test_several_lines_are_refused_on_either_side():
    with pytest.raises(InspectionError, match="the sentence holds a line end"):
        explain(small_subject(), "the cat\nsat")
    with pytest.raises(InspectionError, match="the target holds a line end"):
        explain(small_subject(), "the cat", target="ein\nkater")


def test_300_words_are_shown_where_the_model_takes_them_and_else_refused_with_the_first_part():
    sentence = " ".join(["the cat sat on 7 mats."] * 50)
    with pytest.raises(
        InspectionError, match=r"has 401 tokens, EOS counted; the model was trained on 61 at most, .* in \d+ parts.*cat"
    ):
        explain(small_subject(), sentence)
    record = explain(small_subject(max_source_tokens=401, num_heads=1), sentence, target=sentence)
    assert len(record.axes["source"].words) == 351
    for head in record.heads:
        np.testing.assert_allclose(head.words.weights_TS.sum(axis=1), 1.0, atol=1e-4)


def test_a_target_longer_than_the_model_writes_is_refused():
    with pytest.raises(InspectionError, match="the target has 121 tokens, EOS counted; the model writes 111 at most"):
        explain(small_subject(), "the cat", target="mats " * 120)
    with pytest.raises(InspectionError, match="the model writes 23 at most"):
        explain(small_subject(positions="learned", max_positions=23), "the cat", target="mats " * 30)


@pytest.mark.parametrize(
    "sentence",
    ["a\x00b \x1b[31m\x07", "שלום עולם!", "مرحبا بالعالم", "\u202e the \u200f cat", "a\u00a0b\rc", "😀 é", "\ufffe"],
)
def test_strange_text_is_shown_as_it_is(sentence):
    record = explain(small_subject(), sentence, target=sentence)
    assert record.source == sentence.strip()
    shown = "".join("".join(word.text.split()) for word in record.axes["source"].words if not word.is_control)
    assert shown == "".join(sentence.split())
    for head in record.heads:
        np.testing.assert_allclose(head.words.weights_TS.sum(axis=1), 1.0, atol=1e-5)


def test_half_a_character_is_refused_as_everywhere():
    with pytest.raises(TextError, match="lone surrogate"):
        explain(small_subject(), "a \ud800")


def test_an_empty_target_is_the_end_alone():
    record = explain(small_subject(), SENTENCE, target="")
    assert [word.text for word in record.axes["target_out"].words] == ["⟨eos⟩"]
    assert record.alignment == ()
    only = next(head for head in record.heads if head.kind == "decoder")
    assert (only.words.entropy, only.words.looks_at) == (None, None)
    assert len(record.log_probs) == 1
