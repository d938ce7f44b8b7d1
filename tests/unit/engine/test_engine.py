"""The engine against the torch Predictor: the same hypotheses, or the same scores."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

from headway.config.model_config import ModelConfig
from headway.config.positions import write_bits
from headway.engine.engine import Engine
from headway.engine.pack import packed_arrays
from headway.engine.packed import PackedModel
from headway.model.build import build_transformer
from headway.model.init import initialise
from headway.search.settings import SearchSettings
from headway.translate.backend import model_backend

native = pytest.importorskip("headway_native", reason="headway-native is not built here")

EOS = 3
SMALL = {"vocab_size": 97, "d_model": 40, "d_ff": 53, "num_heads": 4, "num_encoder_layers": 2, "num_decoder_layers": 3}
VARIANTS = {
    "paper": {},
    "biases": {"attention_bias": True, "output_bias": True},
    "learned": {"positions": "learned", "max_positions": 83},
    "rope": {"positions": "rope"},
    "alibi": {"positions": "alibi", "num_heads": 5, "d_k": 7, "d_v": 9},
    "none": {"positions": "none"},
    "words": {
        "positions": "words",
        "embedding_sharing": "target",
        "source_vocab_size": 61,
        "source_word_starts": write_bits([3, 5, *range(20, 50)]),
        "target_word_starts": write_bits([2, *range(7, 31)]),
    },
    "cross-attention by words": {
        "cross_positions": "words",
        "num_kv_heads": 2,
        "source_word_starts": write_bits([3, *range(40, 70)]),
        "target_word_starts": write_bits([2, *range(11, 40)]),
    },
    "words, odd width": {
        "positions": "words",
        "d_model": 33,
        "d_k": 8,
        "d_v": 8,
        "source_word_starts": write_bits([3, 9]),
        "target_word_starts": write_bits([2, 9]),
    },
    "pre-norm": {"norm_placement": "pre"},
    "rms": {"norm": "rms", "norm_placement": "pre"},
    "gelu": {"activation": "gelu"},
    "swiglu": {"activation": "swiglu", "norm": "rms"},
    "silu": {"activation": "silu"},
    "grouped heads": {"num_kv_heads": 2},
    "one head of keys": {"num_kv_heads": 1, "positions": "rope"},
    "depths apart": {"num_encoder_layers": 3, "num_decoder_layers": 1},
    "sizes of heads apart": {"d_k": 11, "d_v": 6},
    "separate vocabularies": {"embedding_sharing": "target", "source_vocab_size": 61},
    "separate embeddings": {"embedding_sharing": "none"},
    "deepnorm": {"residual_scaling": "deepnorm"},
    "unscaled embeddings": {"embedding_scale": False},
}


def config_of(variant):
    return ModelConfig(**{**SMALL, **VARIANTS[variant]})


def model_of(config, seed=5):
    model = build_transformer(config)
    initialise(model, seed)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norm" in name or "bias" in name:
                parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator))
            elif "embedding" not in name:
                parameter.mul_(1.5)  # sharper than at the start, so that searches differ
    return model.eval()


def engine_of(model, config, precision="float32", **settings):
    weights = {name: parameter.detach().numpy() for name, parameter in model.named_parameters()}
    arrays = {name: np.ascontiguousarray(array) for name, array in packed_arrays(config, weights, precision=precision)}
    return Engine(PackedModel(Path("memory"), config, precision, arrays), **{"threads": 1, **settings})


def sources_of(config, count=23, seed=7, longest=19):
    generator = np.random.default_rng(seed)
    vocab_size = config.source_vocab_size or config.vocab_size
    return [[*generator.integers(4, vocab_size, generator.integers(1, longest)).tolist(), EOS] for _ in range(count)]


def compare(found, expected):
    """Equal hypotheses, or both scores within 1e-4; how many differ."""
    different = 0
    for own, others in zip(found, expected, strict=True):
        assert len(own) == len(others)
        for one, other in zip(own, others, strict=True):
            assert one.score == pytest.approx(other.score, abs=1e-4)
            if one.token_ids == other.token_ids:
                assert one.log_prob == pytest.approx(other.log_prob, abs=1e-4)
                assert one.is_cut == other.is_cut
            else:
                different += 1
    return different


def nearest(found, *expected):
    """Of each sentence the expected hypotheses whose scores are nearest to those found.

    At the edge of a beam rounding may drop a hypothesis that another rounding keeps, and later ones then differ by more
    than rounding: torch in float64 says which way is right.
    """

    def distance(own, others):
        return max((abs(one.score - other.score) for one, other in zip(own, others, strict=False)), default=0.0)

    return [min(choices, key=partial(distance, own)) for own, *choices in zip(found, *expected, strict=True)]


@pytest.mark.parametrize("kernels", native.available())
@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize("variant", VARIANTS)
def test_hypotheses_are_those_of_the_torch_predictor(variant, beam, kernels):
    config = config_of(variant)
    model = model_of(config)
    sources = sources_of(config)
    asked = {
        "prefixes": [()] * len(sources),
        "limits": [len(source) + 13 for source in sources],
        "settings": SearchSettings(beam_size=beam, n_best=min(beam, 3), length_penalty=0.6),
    }
    found = engine_of(model, config, kernels=kernels).search(sources, **asked)
    expected = model_backend(model, torch.device("cpu")).search(sources, **asked)
    exact = model_backend(model.double(), torch.device("cpu")).search(sources, **asked)
    assert compare(found, nearest(found, expected, exact)) <= 1


def test_prefixes_limits_and_forbidden_runs_are_kept():
    config = config_of("paper")
    model = model_of(config)
    sources = sources_of(config, 17)
    generator = np.random.default_rng(3)
    prefixes = [generator.integers(12, 97, place % 4).tolist() for place in range(17)]
    for no_repeat in (0, 1, 2, 3):
        asked = {
            "prefixes": prefixes,
            "limits": [len(prefix) + 1 + place % 7 for place, prefix in enumerate(prefixes)],
            "settings": SearchSettings(beam_size=5, n_best=2, no_repeat_ngram=no_repeat, reserved=(11, 5, 8)),
        }
        expected = model_backend(model, torch.device("cpu")).search(sources, **asked)
        found = engine_of(model, config).search(sources, **asked)
        assert compare(found, expected) <= 1
        for prefix, own in zip(prefixes, found, strict=True):
            assert all(list(one.token_ids[: len(prefix)]) == prefix for one in own)


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_results_do_not_depend_on_company_order_threads_or_rows(precision):
    config = config_of("paper")
    model = model_of(config)
    sources = sources_of(config, 41)
    settings = SearchSettings(beam_size=4, n_best=2)

    def searched(engine, places, **more):
        return engine.search(
            [sources[place] for place in places],
            prefixes=[()] * len(places),
            limits=[len(sources[place]) + 20 for place in places],
            settings=settings,
            **more,
        )

    engine = engine_of(model, config, precision)
    everything = range(len(sources))
    together = searched(engine, everything)
    assert [searched(engine, [place])[0] for place in everything] == together
    assert searched(engine, everything[::-1])[::-1] == together
    assert searched(engine, everything, rows=11) == together
    assert searched(engine_of(model, config, precision, threads=3), everything) == together
    wide = engine_of(model, config, precision, threads=2)
    assert [searched(wide, [place])[0] for place in everything] == together


@pytest.mark.parametrize("variant", VARIANTS)
def test_scores_and_attention_are_those_of_torch(variant):
    config = config_of(variant)
    model = model_of(config)
    sources = sources_of(config, 9)
    targets = [
        [*source[:-1][: 1 + place], EOS]
        for place, source in enumerate(
            sources_of(config_of("separate vocabularies") if variant == "separate vocabularies" else config, 9, seed=19)
        )
    ]
    backend, engine = model_backend(model, torch.device("cpu")), engine_of(model, config)
    for one, other in zip(engine.score(sources, targets), backend.score(sources, targets), strict=True):
        assert one == pytest.approx(other, abs=1e-4)
    for one, other in zip(engine.attend(sources, targets), backend.attend(sources, targets), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)
