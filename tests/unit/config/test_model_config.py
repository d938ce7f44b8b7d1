"""Parts that cannot be combined are refused with a remedy, and what leaves the paper is told in words."""

import pytest

from headway.config.architecture import UNUSED
from headway.config.departure import DEPARTURES, departures
from headway.config.load import load_text
from headway.config.model_config import ModelConfig
from headway.config.presets import PRESETS
from headway.errors import ConfigError

# Fields that the paper itself varies (Table 3) or sets: a size is no departure.
OF_THE_PAPER = {
    "vocab_size", "source_vocab_size", "d_model", "d_ff", "num_heads", "d_k", "d_v", "num_encoder_layers",
    "num_decoder_layers", "dropout", "attention_bias", "max_positions", "embedding_sharing",
    "source_word_starts", "target_word_starts",  # of the vocabulary
}  # fmt: skip


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("num_kv_heads = 3", "num_kv_heads 3 does not divide num_heads 8; set model.num_kv_heads to a divisor of 8"),
        ("num_kv_heads = 16", "num_kv_heads 16 does not divide num_heads 8"),
        (
            'positions = "rope"\nd_k = 7',
            "positions rope turns pairs of numbers and the size of a key is 7, which is odd; set model.d_k to an even",
        ),
        ('positions = "rope"\nd_model = 24', "the size of a key is 3, which is odd"),
        (
            'residual_scaling = "deepnorm"\nnorm_placement = "pre"',
            "residual_scaling deepnorm is defined for post-norm and norm_placement is pre; set model.norm_placement to",
        ),
        ("attention_window = 0", "1 or more"),
        ("num_kv_heads = 0", "1 or more"),
        ("norm_epsilon = 0.0", "more than 0"),
        ("attention_dropout = 1.0", "less than 1"),
        ("activation_dropout = -0.1", "0 or more"),
        ('activation = "geglu"', "geglu"),
        ('positions = "rotary"', "rotary"),
        ('architecture = "recurrent"\nd_ff = 11', "d_ff is 11 and has no meaning for architecture recurrent; take"),
        (
            'architecture = "recurrent"\npreset = "tiny"',
            "take model.d_ff, model.num_heads out (and model.preset, if a preset sets it), or back to the default: "
            "--set model.d_ff= --set model.num_heads=",
        ),
        ('architecture = "recurrent"\npositions = "none"', "positions is none and has no meaning for architecture"),
        ('architecture = "recurrent"\nd_model = 7', "d_model is 7; set model.d_model to an even number"),
        ('architecture = "recurrent"\nkernel_size = 5', "kernel_size is 5 and has no meaning"),
        ('architecture = "convolutional"\nnorm = "rms"', "norm is rms and has no meaning for architecture convolution"),
        ('architecture = "convolutional"\npositions = "t5"', "set model.positions to one of sinusoidal, learned, none"),
        ('architecture = "convolutional"\nkernel_size = 0', "1 or more"),
        ('recurrent_cell = "gru"', "recurrent_cell is gru and has no meaning for architecture transformer; take"),
        ('architecture = "rnn"', "rnn"),
    ],
)
def test_what_cannot_be_built_is_refused_with_a_remedy(settings, message):
    with pytest.raises(ConfigError) as caught:
        load_text(f"[model]\n{settings}\n", name="my.toml")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_odd_values_may_be_combined_with_rotary_positions():
    model = load_text('[model]\npositions = "rope"\nd_k = 6\nd_v = 7\nnum_kv_heads = 1\n').model
    assert (model.key_size, model.value_size, model.kv_heads) == (6, 7, 1)
    assert ModelConfig().kv_heads == 8


OTHER_VALUES = {
    "positions": "none", "norm_placement": "pre", "norm": "rms", "activation": "gelu", "residual_scaling": "deepnorm",
    "attention_bias": True, "norm_epsilon": 0.5, "attention_dropout": 0.5, "activation_dropout": 0.5,
    "recurrent_cell": "gru", "attention_score": "unscaled",
}  # fmt: skip


@pytest.mark.parametrize(("architecture", "name"), [(kind, name) for kind, names in UNUSED.items() for name in names])
def test_a_key_without_a_meaning_for_an_architecture_is_refused_by_name(architecture, name):
    value = OTHER_VALUES.get(name, 4)
    with pytest.raises(ValueError, match=f"{name} is .* has no meaning for architecture {architecture}; take model"):
        ModelConfig(**{"architecture": architecture, name: value})
    ModelConfig(**{"architecture": architecture, name: ModelConfig.model_fields[name].default})


@pytest.mark.parametrize("architecture", ["recurrent", "convolutional"])
def test_a_width_that_no_number_of_heads_divides_is_refused_only_where_there_are_heads(architecture):
    assert ModelConfig(architecture=architecture, d_model=34).d_model == 34
    with pytest.raises(ConfigError, match="not divisible by num_heads 8"):
        load_text("[model]\nd_model = 34\n")


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"positions": "words", "architecture": "recurrent"}, "positions is words and has no meaning"),
        ({"positions": "words", "architecture": "decoder_only"}, "set model.architecture to transformer"),
        ({"positions": "words", "architecture": "convolutional"}, "set model.architecture to transformer"),
        ({"cross_positions": "words", "architecture": "encoder_only"}, "set model.architecture to transformer"),
        (
            {"source_word_starts": "8"},
            "source_word_starts is given, and neither positions nor cross_positions are words; take model.source",
        ),
        ({"positions": "words", "target_word_starts": "0G"}, "String should match pattern"),
        (
            {"positions": "words", "vocab_size": 7, "source_word_starts": "80"},
            "source_word_starts has the token 7 and its vocabulary 7 tokens; take model.source_word_starts out",
        ),
    ],
)
def test_words_are_counted_by_models_of_two_sides_whose_vocabularies_say_what_begins_them(settings, told):
    with pytest.raises(ValueError, match=told):
        ModelConfig(**settings)


def test_words_are_counted_of_trees_alone():
    with pytest.raises(
        ConfigError, match=r"positions and cross_positions words count the words that trees are written"
    ):
        load_text('[model]\npositions = "words"\n')
    with pytest.raises(ConfigError, match=r"data\.format is auto; set data\.format to trees"):
        load_text('[model]\ncross_positions = "words"\n')


def test_every_field_is_the_papers_or_told_as_a_departure():
    assert set(ModelConfig.model_fields) == OF_THE_PAPER | set(DEPARTURES)
    assert not OF_THE_PAPER & set(DEPARTURES)


@pytest.mark.parametrize("name", ["base", "big", "tiny"])
def test_the_papers_models_depart_from_it_in_nothing(name):
    assert departures(PRESETS[name]) == {}


def test_small_departs_from_the_paper_in_its_dropout():
    assert set(departures(PRESETS["small"])) == {"attention_dropout", "activation_dropout"}


def test_what_the_paper_has_itself_is_no_departure():
    assert departures(ModelConfig(positions="learned", num_kv_heads=8, attention_bias=True, d_k=16)) == {}


def test_each_departure_is_told_with_its_value():
    config = ModelConfig(
        positions="alibi", norm_placement="pre", norm="rms", norm_epsilon=1e-5, activation="gelu", num_kv_heads=2,
        attention_score="additive", attention_window=61, attention_dropout=0.17, activation_dropout=0.19,
        embedding_scale=False, output_bias=True, cross_positions="words",
    )  # fmt: skip
    told = departures(config)
    others = {"residual_scaling", "architecture", "recurrent_cell", "kernel_size", "num_classes"}
    assert list(told) == [name for name in DEPARTURES if name not in others]
    for name, words in {
        "positions": "ALiBi",
        "norm_epsilon": "1e-05",
        "activation": "GELU",
        "num_kv_heads": "2 heads",
        "attention_score": "tanh",
        "attention_window": "61 tokens",
        "attention_dropout": "0.17",
        "activation_dropout": "0.19",
    }.items():
        assert words in told[name]
    assert list(departures(ModelConfig(residual_scaling="deepnorm"))) == ["residual_scaling"]
    recurrent = departures(ModelConfig(architecture="recurrent", recurrent_cell="gru"))
    assert list(recurrent) == ["architecture", "recurrent_cell"]
    assert "GRU" in recurrent["recurrent_cell"]
    assert "5 positions" in departures(ModelConfig(architecture="convolutional", kernel_size=5))["kernel_size"]
    alone = ModelConfig(architecture="encoder_only", num_classes=3)
    assert list(departures(alone)) == ["architecture", "num_classes"]
    for scheme in ("none", "rope", "t5"):
        assert list(departures(ModelConfig(positions=scheme))) == ["positions"]
