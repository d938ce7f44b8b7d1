"""Names that end in shape letters tell the truth: every local ``name_BTD`` of nn, model and search is measured."""

import dataclasses
import sys
import types

import pytest
import torch

from headway.config.model_config import ModelConfig
from headway.config.positions import write_bits
from headway.model.build import build_transformer
from headway.model.predictor import TransformerPredictor, forced_pass
from headway.nn.attention import fused_attention
from headway.nn.position import POSITIONS
from headway.search.ensemble import EnsemblePredictor
from headway.search.phrase import Lexicon, Phrase
from headway.search.run import search
from headway.search.score import score_pairs
from headway.search.settings import Diversity, Sampling, SearchSettings
from headway.search.tree_form import Brackets, TreeForm
from shape_tracer import ShapeTracer

MODERN = {
    "norm_placement": "pre",
    "norm": "rms",
    "activation": "swiglu",
    "num_heads": 6,
    "num_kv_heads": 3,
    "attention_window": 4,
    "attention_dropout": 0.2,
    "activation_dropout": 0.2,
    "output_bias": True,
}
PARTS = {
    "the paper's": {},
    "modern": MODERN,
    "multi-query, DeepNorm": {"num_kv_heads": 1, "residual_scaling": "deepnorm"},
    "additive": {"attention_score": "additive", "num_heads": 6, "num_kv_heads": 3},
}


def build(positions="sinusoidal", **parts):
    sizes = {
        "vocab_size": 31,
        "d_model": 26,
        "d_ff": 23,
        "num_heads": 2,
        "d_k": 10,
        "d_v": 7,
        "num_encoder_layers": 1,
        "num_decoder_layers": 2,
        "dropout": 0.2,
        "positions": positions,
        "max_positions": 19,
    }
    if positions == "words":  # at both places
        starts = write_bits([2, 3, 5, 7, 11])
        sizes |= {"cross_positions": "words", "source_word_starts": starts, "target_word_starts": starts}
    return build_transformer(ModelConfig(**sizes | parts))


def example():
    generator = torch.Generator().manual_seed(1)
    source = torch.randint(4, 31, (3, 11), generator=generator)
    source[1, 4:] = 0
    target_in = torch.randint(4, 31, (3, 13), generator=generator)
    return source, source != 0, target_in


@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("parts", PARTS)
def test_shape_letters_hold_in_the_forward_pass(positions, padded, parts):
    source, mask, target_in = example()
    if not padded:
        source, mask = source[:1], mask[:1]
        target_in = target_in[:1]
    with ShapeTracer() as tracer:
        model = build(positions, **PARTS[parts]).train()
        model(source, mask, target_in).sum().backward()
        forced_pass(model.eval(), source, mask, target_in_BT=target_in, target_out_BT=target_in)
    tracer.check()
    seen = {"source_BS", "x_BTD", "memory_BSD", "q_BHTK", "v_BGSV", "scores_BHTS", "inner_BTF", "log_probs_BTV"}
    assert seen <= tracer.measured


SEARCHES = {
    "greedy": SearchSettings(1),
    "beam": SearchSettings(4, n_best=3),
    "no repeats": SearchSettings(4, no_repeat_ngram=2),
    "greedy without repeats": SearchSettings(1, no_repeat_ngram=2),
    "groups": SearchSettings(6, n_best=5, diversity=Diversity(3)),
    "samples": SearchSettings(n_best=3, sampling=Sampling(top_k=11, top_p=0.9, epsilon=0.01)),
}


@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("kind", SEARCHES)
def test_shape_letters_hold_in_cached_decoding_and_search(positions, kind):
    source, mask, _ = example()
    predictor = TransformerPredictor(build(positions).eval())
    with ShapeTracer() as tracer:
        found = search(
            predictor,
            source,
            mask,
            settings=SEARCHES[kind],
            max_output_length_B=[3, 9, 6],
            prefix_B=[[], [7, 8], [5]],
        )
        score_pairs(predictor, source, mask, [hypotheses[0].token_ids for hypotheses in found])
    tracer.check()
    seen = {"x_R1D", "x_B1D", "key_BGSK", "log_probs_RV", "limit_B", "cross_mask_R11S", "scores_BNV", "rows_R"}
    is_beam = kind in {"beam", "no repeats", "groups"}
    seen |= {"log_prob_BN", "score_BM", "token_ids_BMT", "parent_BC", "token_BC"} if is_beam else {"log_prob_R"}
    assert seen <= tracer.measured


def test_shape_letters_hold_in_an_ensemble_that_is_led_to_phrases():
    source, mask, _ = example()
    predictor = EnsemblePredictor([TransformerPredictor(build(name).eval()) for name in ("none", "sinusoidal")])
    lexicon = Lexicon([b"", b"", b"", b"", *(bytes([65 + token]) for token in range(27))])
    with ShapeTracer() as tracer:
        search(
            predictor,
            source,
            mask,
            settings=SearchSettings(5, n_best=2, no_repeat_ngram=2),
            max_output_length_B=[9, 9, 11],
            phrases_B=[[Phrase(b"AB"), Phrase(b"C")], [Phrase(b"DDE")], [Phrase(b"B"), Phrase(b"B")]],
            lexicon=lexicon,
        )
    tracer.check()
    assert {"log_probs_MRV", "state_BNC", "count_BMC", "tokens_BNCK", "next_XV", "log_prob_BM"} <= tracer.measured


@pytest.mark.parametrize("kind", ["greedy", "beam"])
def test_shape_letters_hold_in_a_search_among_trees(kind):
    source, mask, _ = example()
    predictor = TransformerPredictor(build("sinusoidal").eval())
    brackets = Brackets((5, 7), closing=(6, 8), leaves=(9, 10, 11), vocab_size=31)
    form = TreeForm(brackets, [(0, 0), (0, 9, 0), (10,)], max_openings=2)
    with ShapeTracer() as tracer:
        search(predictor, source, mask, settings=SEARCHES[kind], max_output_length_B=[7, 13, 9], form=form)
    tracer.check()
    assert {"depth_BNT", "missing_BN", "allowed_BNV", "leaf_BL", "wanted_BN1", "closing_V"} <= tracer.measured


@pytest.mark.parametrize("positions", POSITIONS)
def test_shape_letters_hold_in_cached_decoding_with_modern_parts(positions):
    source, mask, _ = example()
    predictor = TransformerPredictor(build(positions, **MODERN).eval())
    with ShapeTracer() as tracer:
        search(predictor, source, mask, settings=SearchSettings(3), max_output_length_B=[3, 9, 6])
    tracer.check()
    assert {"q_BGJK", "mixed_BGJV"} & tracer.measured
    assert ("bias_HTS" in tracer.measured) == (positions in {"alibi", "t5"})
    assert ("wave_TK" in tracer.measured) == (positions == "rope")
    assert ("word_BTE" in tracer.measured) == ("cross_bias_BHTS" in tracer.measured) == (positions == "words")


def test_shape_letters_hold_for_the_fused_kernel_with_an_empty_row():
    mask = torch.tensor([[True, False, True], [False] * 3])[:, None, None]
    q, k, v = torch.randn(2, 5, 7, 11), torch.randn(2, 5, 3, 11), torch.randn(2, 5, 3, 13)
    with ShapeTracer() as tracer:
        fused_attention(q, k, v, mask)
    tracer.check()
    assert "mixed_BHTV" in tracer.measured


# Functions that lie about their shapes must be caught.


def turned(x_BTD):
    y_BTD = x_BTD.transpose(1, 2)
    return y_BTD.sum()


def too_few_letters(x_BTD):
    y_BT = x_BTD * 2
    return y_BT


def not_single(x_BTD):
    last_B1D = x_BTD[:, -2:]
    return last_B1D


def rebound(x_BTD):
    x_BTD = x_BTD[:, 1:]
    return x_BTD


def nested(x_BTD):
    def inner(x_BDT):
        return x_BDT.sum()

    z_BT = x_BTD[:, :, 0]
    return inner(x_BTD) + z_BT.sum()  # each frame has letters of its own: no clash


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (turned, r"turned: T is 5 in y_BTD \(2, 5, 3\), 3 by x_BTD"),
        (too_few_letters, r"y_BT has 3 dimensions \(2, 3, 5\)"),
        (not_single, r"1 is 2 in last_B1D \(2, 2, 5\), 1 by the digit"),
        (rebound, r"T is 2 in x_BTD \(2, 2, 5\), 3 by x_BTD"),
    ],
)
def test_a_function_whose_names_lie_is_caught(function, message):
    with ShapeTracer(rooms=(__name__,)) as tracer:
        function(torch.zeros(2, 3, 5))
    with pytest.raises(AssertionError, match=message):
        tracer.check()


def test_a_lie_within_a_dataclass_is_caught():
    @dataclasses.dataclass
    class Pair:
        first_BT: torch.Tensor
        second_B: torch.Tensor

    def hold(pairs):
        return len(pairs)

    with ShapeTracer(rooms=(__name__,)) as tracer:
        hold([Pair(torch.zeros(2, 3), torch.zeros(2)), Pair(torch.zeros(5, 3), torch.zeros(3))])
    with pytest.raises(AssertionError, match=r"hold Pair: B is 3 in second_B \(3,\), 5 by first_BT"):
        tracer.check()


def test_frames_have_letters_of_their_own_and_the_profiler_before_is_put_back():
    def before(_frame: types.FrameType, _event, _argument):
        return None

    original = sys.getprofile()
    sys.setprofile(before)
    try:
        with ShapeTracer(rooms=(__name__,)) as tracer:
            nested(torch.zeros(2, 3, 5))
        assert sys.getprofile() is before
    finally:
        sys.setprofile(original)
    tracer.check()
    assert {"x_BTD", "x_BDT", "z_BT"} <= tracer.measured
