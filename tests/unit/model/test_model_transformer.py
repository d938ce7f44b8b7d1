"""What a sentence's result may depend on: itself, and nothing else in the batch.

Shapes: B sentences, S source positions, T target positions, V vocabulary.
"""

import pytest
import torch
from model_configs import positioned

from headway.config.model_config import ModelConfig
from headway.model.build import build_transformer
from headway.model.predictor import TransformerPredictor, forced_pass, recorded
from headway.nn.position import POSITIONS
from headway.search.run import search
from headway.search.settings import SearchSettings

SMALL = ModelConfig(
    vocab_size=31,
    d_model=14,
    d_ff=22,
    num_heads=2,
    d_k=6,
    d_v=3,
    num_encoder_layers=2,
    num_decoder_layers=3,
    dropout=0.0,
    max_positions=277,
)
FIRST_WORD = 4


def build(seed=1, **settings):
    return build_transformer(SMALL.model_copy(update=settings), seed=seed).eval()


def sentence(length, seed=0):
    """A source of so many tokens, EOS counted."""
    words = torch.randint(FIRST_WORD, 31, (length - 1,), generator=torch.Generator().manual_seed(100 * length + seed))
    return [*words.tolist(), 3]


def batch(sentences, extra=0):
    """Ids and mask, padded to the longest and ``extra`` positions more."""
    longest = max(map(len, sentences)) + extra
    ids = torch.tensor([[*ids, *[0] * (longest - len(ids))] for ids in sentences])
    return ids, ids != 0


def target(*shape, seed=9):
    words = torch.randint(FIRST_WORD, 31, shape, generator=torch.Generator().manual_seed(seed))
    words[:, 0] = 2
    return words


@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("padding", [1, 2, 17])
def test_padding_never_changes_a_sentence(positions, padding):
    model = build(**positioned(positions))
    sentences = [sentence(5), sentence(5, seed=1)]
    target_in = target(2, 7)
    padded_target = torch.nn.functional.pad(target_in, (0, padding))
    alone = model(*batch(sentences), target_in)
    torch.testing.assert_close(model(*batch(sentences, padding), target_in), alone, atol=1e-5, rtol=0)
    torch.testing.assert_close(model(*batch(sentences), padded_target)[:, :7], alone, atol=1e-5, rtol=0)


@pytest.mark.parametrize("positions", POSITIONS)
def test_batch_mates_never_change_a_sentence(positions):
    model = build(**positioned(positions))
    sentences = [sentence(length) for length in (1, 3, 9, 27, 60, 200)]
    target_in = target(len(sentences), 7)
    together = model(*batch(sentences), target_in)
    for place, ids in enumerate(sentences):
        alone = model(*batch([ids]), target_in[place : place + 1])
        torch.testing.assert_close(together[place : place + 1], alone, atol=1e-4, rtol=0)


@pytest.mark.parametrize("beam_size", [1, 4])
def test_the_translation_of_a_sentence_does_not_depend_on_what_else_is_in_the_batch(beam_size):
    model = build()
    with torch.no_grad():
        model.output.weight.mul_(2.0)  # (shared: the embeddings too) so that no two outputs are equally good
    predictor = TransformerPredictor(model)
    sentences = [sentence(length) for length in (1, 3, 9, 27, 60)]

    def translate(sources):
        limits = [12] * len(sources)
        found = search(predictor, *batch(sources), settings=SearchSettings(beam_size), max_output_length_B=limits)
        return [hypotheses[0] for hypotheses in found]

    alone = [translate([ids])[0] for ids in sentences]
    runs = {
        "together": translate(sentences),
        "reversed": translate(sentences[::-1])[::-1],
        "with a long neighbour": translate([sentence(200), *sentences])[1:],
        "twice": translate([*sentences, *sentences])[5:],
    }
    for name, found in runs.items():
        assert [hypothesis.token_ids for hypothesis in found] == [hypothesis.token_ids for hypothesis in alone], name
        assert [h.score for h in found] == pytest.approx([h.score for h in alone], abs=1e-4), name
        assert [h.log_prob for h in found] == pytest.approx([h.log_prob for h in alone], abs=1e-4), name
    assert len({hypothesis.token_ids for hypothesis in alone}) > 1, "the sources must matter"


def moved(before, after):
    """Which target positions of the first sentence have other logits."""
    return ((after - before)[0].abs().amax(dim=-1) > 1e-5).tolist()


def test_only_what_may_be_attended_moves_an_output():
    model = build()
    source, mask = batch([sentence(5), sentence(9)])
    target_in = target(2, 7)
    before = model(source, mask, target_in)

    padded = source.clone()
    padded[0, 6] = 17  # (a) a token under the padding mask
    assert moved(before, model(padded, mask, target_in)) == [False] * 7

    future = target_in.clone()
    future[0, 4] = 30 - future[0, 4] + FIRST_WORD  # (b) a target token: earlier positions stay
    assert moved(before, model(source, mask, future)) == [False] * 4 + [True] * 3

    visible = source.clone()
    visible[0, 2] = 30 - visible[0, 2] + FIRST_WORD  # (c) a real source token
    assert moved(before, model(visible, mask, target_in)) == [True] * 7


def test_no_gradient_flows_from_an_output_to_a_later_token_or_to_padding():
    model = build()
    source, mask = batch([sentence(5), sentence(9)])
    target_in = target(2, 7)
    target_vectors, source_vectors = [], []
    stems = {model.target_stem: target_vectors, model.source_stem: source_vectors}
    for stem, kept in stems.items():
        stem.register_forward_hook(lambda _module, _given, vectors, kept=kept: kept.append(vectors))
    logits = model(source, mask, target_in)
    on_target, on_source = torch.autograd.grad(logits[0, 3].sin().sum(), (target_vectors[0], source_vectors[0]))
    assert (on_target[0].abs().amax(dim=-1) > 0).tolist() == [True] * 4 + [False] * 3
    assert (on_source[0].abs().amax(dim=-1) > 0).tolist() == [True] * 5 + [False] * 4
    assert (on_target[1] == 0).all()
    assert (on_source[1] == 0).all()


@pytest.mark.parametrize("with_weights", [False, True], ids=["fused", "recorded"])
@pytest.mark.parametrize("precision", ["float32", "bf16"])
def test_a_source_of_padding_only_gives_finite_outputs_and_gradients(with_weights, precision):
    model = build(attention_bias=True)
    source = torch.tensor([sentence(4), [0, 0, 0, 0]])
    target_in = target(2, 5)
    attentions = [module for module in model.modules() if hasattr(module, "recorder")]
    assert len(attentions) == 2 + 2 * 3

    def forward(source, target_in):
        kept = [recorded(attention) for attention in attentions] if with_weights else []
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=precision == "bf16"):
            for manager in kept:
                manager.__enter__()
            logits = model(source, source != 0, target_in)
            for manager in kept:
                manager.__exit__(None, None, None)
        return logits.float()

    logits = forward(source, target_in)
    assert logits.isfinite().all()
    tolerance = 1e-5 if precision == "float32" else 5e-2
    torch.testing.assert_close(logits[:1], forward(source[:1], target_in[:1]), atol=tolerance, rtol=0)
    logits.log_softmax(dim=-1).sin().sum().backward()
    gradients = {name: parameter.grad for name, parameter in model.named_parameters()}
    assert [name for name, gradient in gradients.items() if gradient is None or not gradient.isfinite().all()] == []


def test_an_empty_source_can_be_decoded():
    predictor = TransformerPredictor(build())
    source = torch.tensor([[0, 0, 0], [7, 9, 3]])
    found = search(predictor, source, source != 0, settings=SearchSettings(3), max_output_length_B=[5, 5])
    alone = search(predictor, source[1:], source[1:] != 0, settings=SearchSettings(3), max_output_length_B=[5])
    assert found[1][0].token_ids == alone[0][0].token_ids
    assert found[0][0].token_ids[-1] == 3


def test_the_forced_pass_gives_the_log_probabilities_and_mean_last_layer_attention():
    model = build()
    source, mask = batch([sentence(5), sentence(9)])
    target_in = target(2, 6)
    target_out = torch.cat([target_in[:, 1:], torch.tensor([[3], [0]])], dim=1)
    log_probs, attention = forced_pass(model, source, mask, target_in_BT=target_in, target_out_BT=target_out)
    wanted = model(source, mask, target_in).log_softmax(dim=-1).gather(-1, target_out[:, :, None])[:, :, 0]
    torch.testing.assert_close(log_probs[0], wanted[0].detach(), atol=1e-5, rtol=0)
    torch.testing.assert_close(log_probs[1, :5], wanted[1, :5].detach(), atol=1e-5, rtol=0)
    assert log_probs[1, 5] == 0.0  # padding
    assert attention.shape == (2, 6, 9)
    torch.testing.assert_close(attention.sum(dim=-1), torch.ones(2, 6))
    assert (attention[0, :, 5:] == 0).all()
    *_, last = model.decoder.each_layer()
    assert last.cross_attention.recorder is None  # recording ends with the pass


def test_without_positions_the_encoder_is_blind_to_order_and_with_them_it_is_not():
    source = torch.tensor([[7, 11, 13, 3]])
    turned = source[:, [2, 0, 3, 1]]
    for positions, blind in (("none", True), ("sinusoidal", False), ("learned", False)):
        model = build(**positioned(positions))
        target_in = target(1, 3)
        logits, other = (model(ids, ids != 0, target_in) for ids in (source, turned))
        assert torch.allclose(logits, other, atol=1e-5) == blind, positions
