"""Small models of every combination of parts, and sentences for them: shared by the tests of this folder."""

import torch
from hypothesis import strategies as st

from headway.config.model_config import ModelConfig
from headway.config.positions import write_bits
from headway.model.build import build_model

VOCABULARY, SOURCE_VOCABULARY = 29, 23
STARTS = write_bits([2, 3, 5, 8, 9, 11])  # tokens that begin words

# Each modern part by itself, on top of the paper's.
SWITCHES = {
    "the paper": {},
    "learned": {"positions": "learned"},
    "rope": {"positions": "rope"},
    "alibi": {"positions": "alibi"},
    "t5": {"positions": "t5"},
    "words": {"positions": "words", "source_word_starts": STARTS, "target_word_starts": STARTS},
    "cross by words": {"cross_positions": "words", "source_word_starts": STARTS, "target_word_starts": STARTS},
    "pre": {"norm_placement": "pre"},
    "rms": {"norm": "rms"},
    "epsilon": {"norm_epsilon": 1e-5},
    "gelu": {"activation": "gelu"},
    "silu": {"activation": "silu"},
    "swiglu": {"activation": "swiglu"},
    "grouped": {"num_kv_heads": 2},
    "multi-query": {"num_kv_heads": 1},
    "unscaled scores": {"attention_score": "unscaled"},
    "additive scores": {"attention_score": "additive"},
    "window": {"attention_window": 3},
    "attention dropout": {"attention_dropout": 0.1},
    "activation dropout": {"activation_dropout": 0.1},
    "deepnorm": {"residual_scaling": "deepnorm"},
    "output bias": {"output_bias": True},
    "unscaled": {"embedding_scale": False},
}


def positioned(scheme):
    """The settings of a scheme of positions: with words, which tokens begin them too."""
    return SWITCHES["words"] if scheme == "words" else {"positions": scheme}


@st.composite
def model_configs(draw, *, max_positions=31):
    """Any combination that a recipe may ask for; sizes that differ where divisibility allows."""
    kv_heads, share = draw(st.sampled_from([(1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (3, 1), (2, 3), (3, 2)]))
    positions = draw(st.sampled_from(["sinusoidal", "learned", "none", "rope", "alibi", "t5", "words"]))
    cross_positions = draw(st.sampled_from(["none", "words"]))
    counts_words = "words" in (positions, cross_positions)
    sharing = draw(st.sampled_from(["all", "target", "none"]))
    placement = draw(st.sampled_from(["post", "pre"]))
    num_heads = kv_heads * share
    sizes = (2, 6, 10) if positions == "rope" else (2, 5, 6, 7)
    given = {
        "architecture": "transformer",
        "vocab_size": VOCABULARY,
        "source_vocab_size": None if sharing == "all" else draw(st.sampled_from([None, SOURCE_VOCABULARY])),
        "d_model": draw(st.sampled_from([13, 14])),
        "d_ff": draw(st.sampled_from([11, 17])),
        "num_heads": num_heads,
        "d_k": draw(st.sampled_from(sizes)),
        "d_v": draw(st.sampled_from([3, 7])),
        "num_encoder_layers": draw(st.integers(1, 2)),
        "num_decoder_layers": draw(st.integers(1, 3)),
        "dropout": draw(st.sampled_from([0.0, 0.1])),
        "attention_bias": draw(st.booleans()),
        "positions": positions,
        "cross_positions": cross_positions,
        "max_positions": max_positions,
        "embedding_sharing": sharing,
        "norm_placement": placement,
        "norm": draw(st.sampled_from(["layer", "rms"])),
        "norm_epsilon": draw(st.sampled_from([1e-6, 1e-5])),
        "activation": draw(st.sampled_from(["relu", "gelu", "silu", "swiglu"])),
        "num_kv_heads": draw(st.sampled_from([None, num_heads])) if share == 1 else kv_heads,
        "attention_score": draw(st.sampled_from(["scaled", "unscaled", "additive"])),
        "attention_window": draw(st.sampled_from([None, 1, 2, 5, 30])),
        "attention_dropout": draw(st.sampled_from([0.0, 0.1])),
        "activation_dropout": draw(st.sampled_from([0.0, 0.1])),
        "residual_scaling": draw(st.sampled_from(["none", "deepnorm"])) if placement == "post" else "none",
        "embedding_scale": draw(st.booleans()),
        "output_bias": draw(st.booleans()),
        "recurrent_cell": "lstm",  # of other architectures, as kernel_size is
        "kernel_size": 3,
        "num_classes": None,
        "source_word_starts": STARTS if counts_words else "",
        "target_word_starts": STARTS if counts_words else "",
    }
    assert given.keys() == ModelConfig.model_fields.keys(), "a new field of ModelConfig belongs here too"
    return ModelConfig(**given)


# The architectures without self-attention, each with what is its own.
SEQUENTIAL = {
    "lstm": {"architecture": "recurrent"},
    "gru": {"architecture": "recurrent", "recurrent_cell": "gru"},
    "convolutional": {"architecture": "convolutional"},
    "learned positions": {"architecture": "convolutional", "positions": "learned", "max_positions": 277},
    "no positions, even kernel": {"architecture": "convolutional", "positions": "none", "kernel_size": 4},
}


@st.composite
def sequential_configs(draw):
    """Any combination that a recipe may ask for without self-attention."""
    sharing = draw(st.sampled_from(["all", "target", "none"]))
    given = {
        "vocab_size": VOCABULARY,
        "source_vocab_size": None if sharing == "all" else draw(st.sampled_from([None, SOURCE_VOCABULARY])),
        "d_model": draw(st.sampled_from([10, 14])),
        "num_encoder_layers": draw(st.integers(1, 2)),
        "num_decoder_layers": draw(st.integers(1, 3)),
        "dropout": draw(st.sampled_from([0.0, 0.1])),
        "embedding_sharing": sharing,
        "embedding_scale": draw(st.booleans()),
        "output_bias": draw(st.booleans()),
    }
    return ModelConfig(**given, **draw(st.sampled_from(list(SEQUENTIAL.values()))))


@st.composite
def language_model_configs(draw, *, max_positions=31):
    """The same parts, in a decoder alone."""
    return draw(_one_sided_configs(max_positions=max_positions)).model_copy(update={"architecture": "decoder_only"})


@st.composite
def text_encoder_configs(draw, *, max_positions=31):
    """The same parts, in an encoder alone."""
    config = draw(_one_sided_configs(max_positions=max_positions))
    classes = draw(st.sampled_from([None, 2, 5]))
    return config.model_copy(update={"architecture": "encoder_only", "num_classes": classes})


@st.composite
def _one_sided_configs(draw, *, max_positions):
    """Of one text, whose words are not counted."""
    config = draw(model_configs(max_positions=max_positions).filter(lambda config: not config.counts_words))
    return config.model_copy(update={"source_vocab_size": None})


def build_scrambled(config, *, seed=1):
    """A model whose every number is random, gains and biases too, so that each one counts."""
    model = build_model(config, seed=seed)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator), alpha=0.2)
    return model.eval()


def example(seed=3):
    """Three sources of 7, 4 and 1 tokens, padded, and targets of 11 tokens without padding."""
    generator = torch.Generator().manual_seed(seed)
    source = torch.randint(4, SOURCE_VOCABULARY, (3, 7), generator=generator)
    for row, length in enumerate((7, 4, 1)):
        source[row, length - 1] = 3
        source[row, length:] = 0
    target_in = torch.randint(4, VOCABULARY, (3, 11), generator=generator)
    target_in[:, 0] = 2
    return source, target_in
