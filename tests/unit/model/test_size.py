"""Sizes against Table 3 of the paper, its estimates of training cost, and counts by hand."""

import subprocess
import sys

import pytest

from headway.config.model_config import ModelConfig
from headway.config.presets import BASE, BIG, PRESETS
from headway.model.size import (
    BIG_ERRATUM,
    cache_bytes_per_token,
    count_multiply_adds,
    count_parameters,
    training_memory,
)

# The first public code of the paper's authors: 40,960 rows of embedding and biases in the attention projections.
AS_COUNTED = {"vocab_size": 40_960, "attention_bias": True}
# The paper's equations taken literally.
AS_WRITTEN = {"vocab_size": 37_000, "attention_bias": False}

# row -> settings, count under AS_COUNTED, millions printed in Table 3, millions under AS_WRITTEN with two decimals
TABLE_3 = {
    "base": ({}, 65_110_016, 65, "63.05"),
    "A h=1": ({"num_heads": 1}, 65_110_016, 65, "63.05"),
    "A h=4": ({"num_heads": 4}, 65_110_016, 65, "63.05"),
    "A h=16": ({"num_heads": 16}, 65_110_016, 65, "63.05"),
    "A h=32": ({"num_heads": 32}, 65_110_016, 65, "63.05"),
    "B d_k=16": ({"d_k": 16}, 58_018_304, 58, "55.97"),
    "B d_k=32": ({"d_k": 32}, 60_382_208, 60, "58.33"),
    "C N=2": ({"num_encoder_layers": 2, "num_decoder_layers": 2}, 35_684_352, 36, "33.64"),
    "C N=4": ({"num_encoder_layers": 4, "num_decoder_layers": 4}, 50_397_184, 50, "48.35"),
    "C N=8": ({"num_encoder_layers": 8, "num_decoder_layers": 8}, 79_822_848, 80, "77.75"),
    "C d=256": ({"d_model": 256, "d_k": 32, "d_v": 32}, 27_848_704, 28, "26.82"),
    "C d=1024": ({"d_model": 1024, "d_k": 128, "d_v": 128}, 167_944_192, 168, "163.82"),
    "C d_ff=1024": ({"d_ff": 1024}, 52_514_816, 53, "50.45"),
    "C d_ff=4096": ({"d_ff": 4096}, 90_300_416, 90, "88.24"),
    "D dropout 0": ({"dropout": 0.0}, 65_110_016, 65, "63.05"),
    "big": ({"d_model": 1024, "d_ff": 4096, "num_heads": 16}, 218_300_416, 218, "214.17"),
}


def model(*parts, **settings):
    merged = {}
    for part in (*parts, settings):
        merged |= part
    return ModelConfig(**merged)


@pytest.mark.parametrize("row", TABLE_3)
def test_every_count_of_table_3_comes_out_under_the_assumptions_of_the_authors_code(row):
    settings, exact, printed, _ = TABLE_3[row]
    total = count_parameters(model(AS_COUNTED, settings)).total
    assert total == exact
    assert round(total / 1e6) == printed  # big: 218, where the paper prints 213


@pytest.mark.parametrize("row", TABLE_3)
def test_every_row_of_table_3_comes_out_for_37000_tokens_without_attention_biases(row):
    settings, _, _, millions = TABLE_3[row]
    assert f"{count_parameters(model(AS_WRITTEN, settings)).total / 1e6:.2f}" == millions


@pytest.mark.parametrize(
    ("vocab_size", "attention_bias", "base", "big"),
    [
        (37_000, False, 63_045_632, 214_171_648),
        (37_000, True, 63_082_496, 214_245_376),
        (32_768, True, 60_915_712, 209_911_808),
        (40_960, True, 65_110_016, 218_300_416),
    ],
)
def test_base_and_big_have_the_known_counts(vocab_size, attention_bias, base, big):
    settings = {"vocab_size": vocab_size, "attention_bias": attention_bias}
    assert count_parameters(BASE.model_copy(update=settings)).total == base
    assert count_parameters(BIG.model_copy(update=settings)).total == big


def test_the_presets_are_the_two_models_of_the_paper_and_the_small_ones():
    assert count_parameters(PRESETS["base"]).total == 63_045_632
    assert count_parameters(PRESETS["big"]).total == 214_171_648
    # by hand: an attention 4*128*128, a feed forward 2*128*256 + 256 + 128, a norm 2*128; 12 attentions,
    # 8 feed forwards, 20 norms, and 10,000 rows of 128
    assert count_parameters(PRESETS["tiny"]).total == 12 * 65_536 + 8 * 65_920 + 20 * 256 + 1_280_000
    assert PRESETS["big"].dropout == PRESETS["tiny"].dropout == 0.3
    assert count_parameters(PRESETS["small"]).total == 12 * 65_536 + 8 * 65_920 + 20 * 256 + 8_000 * 128


def test_only_attention_biases_make_the_row_of_d_ff_1024_print_53():
    without = model(vocab_size=40_960, d_ff=1024)
    assert f"{count_parameters(without).total / 1e6:.3f}" == "52.478"


def test_the_erratum_of_big_names_both_numbers():
    assert "213" in BIG_ERRATUM
    assert "218,300,416" in BIG_ERRATUM
    difference = count_parameters(model(AS_COUNTED, TABLE_3["big"][0])).total - 167_944_192
    assert (
        difference == 12 * 2 * 1024 * 2048 + 12 * 2048
    )  # only d_ff differs: weights and biases; the paper prints 45 M


def test_the_core_without_embeddings_is_that_of_the_paper():
    assert count_parameters(BASE).non_embedding == 44_101_632
    assert count_parameters(model(attention_bias=True)).non_embedding == 44_138_496


def test_row_e_adds_one_learned_table_to_each_stack():
    learned = count_parameters(model(AS_WRITTEN, positions="learned", max_positions=1021))
    assert learned.total == 63_045_632 + 2 * 1021 * 512
    assert learned.non_embedding == 44_101_632
    assert count_parameters(model(AS_WRITTEN, positions="none")).total == 63_045_632


@pytest.mark.parametrize(("sharing", "matrices"), [("all", 1), ("target", 2), ("none", 3)])
def test_sharing_decides_how_many_matrices_are_counted(sharing, matrices):
    counts = count_parameters(model(vocab_size=32_771, embedding_sharing=sharing))
    assert counts.embedding == matrices * 32_771 * 512


def test_a_source_vocabulary_of_its_own_sizes_the_source_matrix_alone():
    settings = {"vocab_size": 509, "source_vocab_size": 16_384, "d_model": 1024}
    assert count_parameters(model(settings, embedding_sharing="target")).embedding == (16_384 + 509) * 1024
    assert count_parameters(model(settings, embedding_sharing="none")).embedding == (16_384 + 2 * 509) * 1024


def test_the_parser_of_section_6_3_has_between_100_and_134_million_parameters():
    four = {"num_encoder_layers": 4, "num_decoder_layers": 4, "d_model": 1024, "vocab_size": 16_384}
    # the authors' code: d_ff 2048, 8 heads of 128
    totals = [
        count_parameters(model(four, embedding_sharing=sharing, attention_bias=True)).total
        for sharing in ("all", "target", "none")
    ]
    assert [f"{total / 1e6:.1f}" for total in totals] == ["100.8", "117.6", "134.3"]


def test_one_layer_is_counted_component_by_component_as_by_hand():
    small = model(
        vocab_size=23, d_model=7, d_ff=11, num_heads=3, d_k=2, d_v=5, num_encoder_layers=1, num_decoder_layers=2,
        attention_bias=True,
    )  # fmt: skip
    attention = (7 * 6 + 6) * 2 + (7 * 15 + 15) + (15 * 7 + 7)
    feed_forward = (7 * 11 + 11) + (11 * 7 + 7)
    counts = count_parameters(small)
    assert counts.embedding == 161
    assert counts.encoder_attention == attention
    assert counts.encoder_feed_forward == feed_forward
    assert counts.encoder_norm == 28
    assert counts.decoder_self_attention == counts.decoder_cross_attention == 2 * attention
    assert counts.decoder_feed_forward == 2 * feed_forward
    assert counts.decoder_norm == 84


def flop_of_a_step(config):
    per_token = count_multiply_adds(config, source_length=27, target_length=27)
    return 3 * 2 * 25_000 * (per_token.source_token + per_token.target_token)


def test_a_step_of_the_paper_costs_the_flops_that_its_run_is_estimated_by():
    assert f"{flop_of_a_step(BASE):.2e}" == "9.52e+12"
    assert f"{flop_of_a_step(BIG):.2e}" == "3.23e+13"
    assert f"{100_000 * flop_of_a_step(BASE):.1e}" == "9.5e+17"
    assert f"{300_000 * flop_of_a_step(BIG):.1e}" == "9.7e+18"


def test_the_paper_s_own_estimate_is_three_times_the_flops_of_base():
    paper_base, paper_big = 43_200 * 8 * 9.5e12, 3.5 * 86_400 * 8 * 9.5e12
    assert f"{paper_base:.4e}" == "3.2832e+18"
    assert f"{paper_big:.5e}" == "2.29824e+19"
    assert f"{100_000 * flop_of_a_step(BASE) / paper_base:.0%}" == "29%"
    assert f"{300_000 * flop_of_a_step(BIG) / paper_big:.0%}" == "42%"


def test_a_pair_of_tokens_of_base_costs_381_megaflop_with_its_backward_pass():
    assert f"{flop_of_a_step(BASE) / 25_000:.2e}" == "3.81e+08"


def test_a_decoding_step_of_base_touches_41_million_weights():
    step = count_multiply_adds(BASE, source_length=0, target_length=0)
    assert step.decoder == 22_020_096  # 6 layers of 4 d^2 + 2 d^2 + 2 d ff
    assert step.softmax == 18_944_000
    assert step.target_token == 40_964_096


def test_encoder_and_cross_projections_of_base_cost_44_megaflop_a_source_token():
    assert 2 * count_multiply_adds(BASE, source_length=0, target_length=0).source_token == 44_040_192


def test_lengths_cost_what_the_scores_and_the_weighted_sums_cost():
    wide = model(num_heads=3, d_model=7, d_k=2, d_v=5, num_encoder_layers=2, num_decoder_layers=4, vocab_size=23)
    none = count_multiply_adds(wide, source_length=0, target_length=0)
    some = count_multiply_adds(wide, source_length=13, target_length=17)
    assert some.encoder - none.encoder == 2 * 13 * (6 + 15)
    assert some.decoder - none.decoder == 4 * (13 + 17) * (6 + 15)
    assert some.cross_projection == none.cross_projection == 4 * 7 * (6 + 15)


def test_the_cache_of_base_takes_12288_bytes_a_token_in_float16():
    assert cache_bytes_per_token(BASE) == 12_288
    assert cache_bytes_per_token(BASE, value_bytes=4) == 24_576
    assert cache_bytes_per_token(model(d_k=16, num_decoder_layers=3)) == 3 * (8 * 16 + 8 * 64) * 2


def test_weights_gradients_and_moments_take_sixteen_bytes_a_parameter():
    memory = training_memory(BASE, microbatch_tokens=1)
    assert memory.weights + memory.gradients + memory.moments == 16 * 63_045_632


def test_muon_keeps_four_bytes_of_hidden_matrices_and_an_average_takes_four_more():
    hidden = 6 * (4 * 512**2 + 2 * 512 * 2048 + 2048 + 512) + 6 * (8 * 512**2 + 2 * 512 * 2048 + 2048 + 512)
    muon = training_memory(BASE, microbatch_tokens=1, optimizer="muon")
    assert muon.moments == 8 * 63_045_632 - 4 * hidden
    averaged = training_memory(BASE, microbatch_tokens=1, moving_average=True)
    assert averaged.moments == 12 * 63_045_632


def test_two_passes_take_the_activations_and_logits_of_twice_the_tokens():
    one, two = (training_memory(BASE, microbatch_tokens=97, passes=passes) for passes in (1, 2))
    assert two.activations == pytest.approx(2 * one.activations, abs=1)
    assert two.loss - one.loss == 97 * 37_000 * 4


def test_activations_follow_the_stated_formula():
    memory = training_memory(BASE, microbatch_tokens=4093)
    encoder = 5 * 512 + 2048 + 6 * 512
    decoder = 5 * 512 + 2048 + 5 * 512 + 9 * 512
    assert memory.activations == round(2.05 * 4 * 4093 * (6 * encoder + 6 * decoder + 6 * 512))
    assert memory.total == sum((memory.weights, memory.gradients, memory.moments, memory.activations, memory.loss))


@pytest.mark.parametrize(
    ("value_bytes", "microbatch_tokens", "measured"),  # GB, of docs/results.md
    [
        *((4, 1568, 3.12), (4, 3136, 4.87), (4, 6272, 7.87), (4, 12_544, 14.06)),
        *((2, 1568, 2.63), (2, 3136, 3.62), (2, 6272, 5.51), (2, 12_544, 9.26)),
    ],
)
def test_the_estimate_for_base_is_within_a_sixteenth_of_what_was_measured(value_bytes, microbatch_tokens, measured):
    memory = training_memory(BASE, microbatch_tokens=microbatch_tokens, value_bytes=value_bytes, length=28)
    assert (memory.total / 1e9 + 0.3) / measured == pytest.approx(1, abs=1 / 16)  # 0.3 of torch itself


def test_the_loss_takes_the_same_memory_for_any_number_of_tokens():
    from headway.train.chunked import BLOCK_BYTES, CHUNK_BYTES

    few, many = (training_memory(BASE, microbatch_tokens=tokens) for tokens in (7_000, 70_000))
    assert few.loss == many.loss == CHUNK_BYTES + (4 + 4) * 512 * 37_000 + 2 * BLOCK_BYTES


def test_the_loss_of_a_small_vocabulary_takes_the_logits_of_a_chunk():
    from headway.train.chunked import BLOCK_BYTES, CHUNK_TOKENS

    small = BASE.model_copy(update={"vocab_size": 997})
    memory = training_memory(small, microbatch_tokens=4093, value_bytes=2)
    assert memory.loss == CHUNK_TOKENS * 997 * 2 + (2 + 4) * 512 * 997 + 2 * BLOCK_BYTES


def test_sizes_are_told_without_torch():
    code = "import sys, headway.model.size; sys.exit('torch' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
