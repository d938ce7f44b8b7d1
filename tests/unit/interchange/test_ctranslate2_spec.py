"""What stands in a CTranslate2 specification: tables against those of our layers, and the numbers of its parts."""

import re
import sys

import numpy as np
import pytest

from headway.config.model_config import ModelConfig
from headway.errors import InterchangeError, MissingExtraError
from headway.interchange.ctranslate2_export import near_penalty
from headway.interchange.ctranslate2_spec import alibi_table, build_spec, sinusoids
from headway.model.build import build_transformer, export_weights
from headway.nn import position
from headway.search.length import length_penalty

SHAPE = {"vocab_size": 29, "d_model": 22, "d_ff": 37, "num_heads": 2, "num_encoder_layers": 2, "num_decoder_layers": 1}


def spec_of(num_positions=31, **changes):
    config = ModelConfig(**{**SHAPE, **changes})
    weights = export_weights(build_transformer(config))
    return build_spec(config, weights, num_positions=num_positions), weights


@pytest.mark.parametrize("d_model", [22, 13])
def test_the_table_of_waves_is_that_of_our_layer(d_model):
    assert np.allclose(sinusoids(1031, d_model), position.sinusoids(1031, d_model).numpy(), rtol=0, atol=1e-7)


@pytest.mark.parametrize("num_heads", [1, 4, 7])
def test_the_table_of_linear_biases_gives_each_distance_to_both_sides_its_bias(num_heads):
    rows = alibi_table(num_heads, 17)
    bias_HTS = position.Alibi(num_heads).bias(17, 17, 0).numpy()
    for query in range(17):
        for key in range(17):
            row = abs(key - query) + (34 if key > query else 0)  # the second half of the rows is the future
            assert np.array_equal(rows[row], bias_HTS[:, query, key])
    assert rows.shape == (68, num_heads)


def test_shared_heads_stay_shared_in_self_attention_and_are_repeated_where_the_source_is_asked():
    spec, weights = spec_of(num_heads=6, d_k=4, d_v=4, num_kv_heads=2)
    layer = spec.decoder.layer[0]
    assert layer.self_attention.linear[0].weight.shape == ((6 + 2 + 2) * 4, 22)
    assert layer.self_attention.num_heads_kv == 2
    assert layer.attention.num_heads_kv == 6
    key_HKD = layer.attention.linear[1].weight[:24].reshape(6, 4, 22)
    wanted = weights["decoder.layers.0.cross_attention.key.weight"].reshape(2, 4, 22)
    assert np.array_equal(key_HKD, wanted[[0, 0, 0, 1, 1, 1]])


def test_a_smaller_head_is_padded_with_zeros_and_its_scores_keep_their_divisor():
    spec, weights = spec_of(d_k=3, d_v=5)
    attention = spec.encoder.layer[0].self_attention
    query_HSD = attention.linear[0].weight[:10].reshape(2, 5, 22)
    assert np.array_equal(query_HSD[:, :3].reshape(6, 22), weights["encoder.layers.0.self_attention.query.weight"])
    assert not query_HSD[:, 3:].any()
    assert attention.queries_scale == 1 / 3**0.5


def test_what_the_format_has_no_place_for_is_an_error_that_names_the_key():
    with pytest.raises(InterchangeError, match=r"model\.attention_window: found 5; the format has no place"):
        spec_of(attention_window=5)


def test_without_the_library_an_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ctranslate2.specs", None)
    with pytest.raises(MissingExtraError, match=re.escape("pip install 'headway[ctranslate2]'")):
        spec_of()


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0])
def test_the_power_nearest_to_our_penalty_grows_with_the_length_as_ours_does(alpha):
    ours = length_penalty(22, alpha) / length_penalty(20, alpha)  # EOS counted
    theirs = (21 / 19) ** near_penalty(alpha)
    assert theirs == pytest.approx(ours, rel=1e-3)
