"""paper/variants.py: the paper's 20 rows, their counts, and how they are made small."""

import pytest

from headway.config.model_config import ModelConfig
from headway.errors import PaperError
from headway.model.size import count_parameters
from headway.paper.variants import AS_COUNTED, AS_WRITTEN, BY_NAME, VARIANTS, count_full_size

SMALL = ModelConfig(vocab_size=307, d_model=64, num_heads=4)
# shared/paper.md A1 and docs/paper.md: by the authors' code, and by the text
COUNTS = {
    "base": (65_110_016, 63_045_632),
    "A-1": (65_110_016, 63_045_632),
    "A-4": (65_110_016, 63_045_632),
    "A-16": (65_110_016, 63_045_632),
    "A-32": (65_110_016, 63_045_632),
    "B-16": (58_018_304, 55_967_744),
    "B-32": (60_382_208, 58_327_040),
    "C-N2": (35_684_352, 33_644_544),
    "C-N4": (50_397_184, 48_345_088),
    "C-N8": (79_822_848, 77_746_176),
    "C-d256": (27_848_704, 26_816_512),
    "C-d1024": (167_944_192, 163_815_424),
    "C-ff1024": (52_514_816, 50_450_432),
    "C-ff4096": (90_300_416, 88_236_032),
    "D-drop0": (65_110_016, 63_045_632),
    "D-drop0.2": (65_110_016, 63_045_632),
    "D-smooth0": (65_110_016, 63_045_632),
    "D-smooth0.2": (65_110_016, 63_045_632),
    "E": (66_158_592, 64_094_208),
    "big": (218_300_416, 214_171_648),
}


def test_there_are_20_rows_in_the_groups_of_the_table():
    assert list(COUNTS) == list(BY_NAME)
    groups = [variant.group for variant in VARIANTS]
    assert {group: groups.count(group) for group in "ABCDE"} == {"A": 4, "B": 2, "C": 7, "D": 4, "E": 1}
    assert len(VARIANTS) == 20


@pytest.mark.parametrize("name", COUNTS)
def test_every_count_under_both_assumptions(name):
    variant = BY_NAME[name]
    assert (count_full_size(variant, AS_COUNTED), count_full_size(variant, AS_WRITTEN)) == COUNTS[name]


def test_all_printed_counts_but_big_s_come_out_to_the_million():
    printed = {variant.name: variant.millions for variant in VARIANTS if variant.millions is not None}
    assert len(printed) == 11
    missed = [name for name, millions in printed.items() if round(COUNTS[name][0] / 1e6) != millions]
    assert missed == ["big"]


def test_printed_scores_are_the_paper_s():
    assert [(each.perplexity, each.bleu) for each in VARIANTS if each.group == "C"] == [
        (6.11, 23.7),
        (5.19, 25.3),
        (4.88, 25.5),
        (5.75, 24.5),
        (4.66, 26.0),
        (5.12, 25.4),
        (4.75, 26.2),
    ]
    # "single-head attention is 0.9 BLEU worse than the best setting"
    assert max(each.bleu for each in VARIANTS if each.group == "A") - BY_NAME["A-1"].bleu == pytest.approx(0.9)


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("base", {"d_model": 128, "d_ff": 512, "num_heads": 8, "d_k": 16, "d_v": 16, "num_encoder_layers": 3}),
        ("A-1", {"num_heads": 1, "d_k": 128, "d_v": 128}),
        ("A-32", {"num_heads": 32, "d_k": 4, "d_v": 4}),
        ("B-16", {"num_heads": 8, "d_k": 4, "d_v": 16}),
        ("C-N2", {"num_encoder_layers": 1, "num_decoder_layers": 1, "d_model": 128}),
        ("C-N8", {"num_encoder_layers": 4, "num_decoder_layers": 4}),
        ("C-d256", {"d_model": 64, "d_ff": 512, "d_k": 8, "d_v": 8}),
        ("C-d1024", {"d_model": 256, "d_ff": 512, "d_k": 32, "num_heads": 8}),
        ("C-ff4096", {"d_ff": 1024, "d_model": 128}),
        ("D-drop0", {"dropout": 0.0, "d_model": 128}),
        ("E", {"positions": "learned", "d_model": 128}),
        ("big", {"d_model": 256, "d_ff": 1024, "num_heads": 16, "d_k": 16, "dropout": 0.3}),
    ],
)
def test_a_row_is_made_small_in_proportion(name, wanted):
    model = BY_NAME[name].scaled(SMALL, width=128, layers=3)
    assert {key: getattr(model, key) for key in wanted} == wanted
    assert model.vocab_size == 307  # what no row changes is the recipe's


def test_at_full_scale_a_row_is_the_paper_s():
    for variant in VARIANTS:
        scaled = variant.scaled(ModelConfig(), width=512, layers=6)
        assert count_parameters(scaled) == count_parameters(variant.full_size({})), variant.name


def test_only_the_heads_of_group_a_differ_and_not_their_parameters():
    sizes = {
        count_parameters(BY_NAME[name].scaled(SMALL, width=64, layers=3)).total for name in COUNTS if name[0] == "A"
    }
    assert sizes == {count_parameters(BY_NAME["base"].scaled(SMALL, width=64, layers=3)).total}


@pytest.mark.parametrize(("width", "layers"), [(100, 3), (128, 2), (16, 3)])
def test_a_scale_that_gives_no_whole_sizes_is_refused(width, layers):
    with pytest.raises(PaperError, match="not whole; wanted a width that 32 divides"):
        BY_NAME["base"].scaled(SMALL, width=width, layers=layers)
