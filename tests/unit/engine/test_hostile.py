"""What nobody should ask of the engine: a right result, or an error of one line that says what to do."""

import gc
import math
import re
from functools import partial

import numpy as np
import pytest
from packed_models import (
    EOS,
    SMALL,
    drawn_sources,
    drawn_weights,
    packed_model,
    small_engine,
)

from headway.config.model_config import ModelConfig
from headway.engine.engine import Engine
from headway.errors import EngineError, HeadwayError
from headway.search.settings import Diversity, Sampling, SearchSettings

native = pytest.importorskip("headway_native", reason="headway-native is not built here")


def searched(engine, sources, *, limit=9, prefixes=None, rows=128, **settings):
    return engine.search(
        sources,
        prefixes=[()] * len(sources) if prefixes is None else prefixes,
        limits=[limit] * len(sources),
        settings=SearchSettings(**{"beam_size": 3, **settings}),
        rows=rows,
    )


def refused(call, wanted):
    with pytest.raises(HeadwayError) as caught:
        call()
    message = str(caught.value)
    assert "\n" not in message
    assert re.search(wanted, message), message
    if message.startswith("engine"):
        assert re.search(r"\. [A-Z0-9].+\.$", message), message  # a remedy at the end


# ---- sentences ----------------------------------------------------------------------------------------------------


def test_an_empty_batch_gives_nothing():
    for threads in (1, 2):
        engine = small_engine(threads=threads)
        assert searched(engine, []) == engine.score([], []) == engine.attend([], []) == []


def test_a_sentence_of_its_end_alone_is_translated():
    found = searched(small_engine(), [[EOS], [5, EOS]])
    assert [len(own) for own in found] == [1, 1]
    assert found[0] == searched(small_engine(), [[EOS]])[0]


def test_a_sentence_without_tokens_is_refused_by_its_number():
    engine = small_engine()
    refused(lambda: searched(engine, [[5, 3], []]), "source 2 has no tokens")
    refused(lambda: engine.score([[5, 3]], [[]]), "target 1 has no tokens")
    refused(lambda: engine.attend([[]], [[5, 3]]), "source 1 has no tokens")


@pytest.mark.parametrize("threads", [1, 2])
def test_a_sentence_of_5000_tokens_gets_what_it_gets_in_company(threads):
    generator = np.random.default_rng(3)
    long = [*generator.integers(4, SMALL.vocab_size, 4999).tolist(), EOS]
    company = drawn_sources(5)
    alone = searched(small_engine(), [long])[0]
    assert alone
    assert math.isfinite(alone[0].score)
    together = searched(small_engine(threads=threads), [*company, long])
    assert together[-1] == alone
    assert together[:-1] == searched(small_engine(), company)


def test_a_target_of_5000_tokens_is_scored():
    generator = np.random.default_rng(3)
    long = [*generator.integers(4, SMALL.vocab_size, 4999).tolist(), EOS]
    scores = small_engine().score([[5, EOS], [6, EOS]], [long, [7, EOS]])
    assert [len(own) for own in scores] == [5000, 2]
    assert np.isfinite(scores[0]).all()
    # what comes first does not depend on what follows
    np.testing.assert_allclose(scores[0][:100], small_engine().score([[5, EOS]], [long[:100]])[0], atol=1e-5)


@pytest.mark.parametrize("threads", [1, 2])
def test_10000_sentences_get_what_each_gets_alone(threads):
    kinds = drawn_sources(50, 7)
    sources = [kinds[place % 47] for place in range(10_000)]
    engine = small_engine(threads=threads)
    alone = [searched(small_engine(), [kind], limit=5, beam_size=2)[0] for kind in kinds[:47]]
    assert searched(engine, sources, limit=5, beam_size=2) == [alone[place % 47] for place in range(10_000)]


# ---- ids ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [-1, 61, 62, 2**31 - 1, -(2**31)])
def test_ids_that_the_vocabulary_has_not_are_refused(bad):
    engine = small_engine()
    wanted = f"has the token {bad}; wanted 0 to 60"
    refused(lambda: searched(engine, [[5, 3], [5, bad, 3]]), f"source 2 {wanted}")
    refused(lambda: searched(engine, [[5, 3]], prefixes=[[bad]]), f"prefix 1 {wanted}")
    refused(lambda: engine.score([[5, 3]], [[bad, 3]]), f"target 1 {wanted}")
    refused(lambda: engine.attend([[5, 3], [bad]], [[5, 3], [5, 3]]), f"source 2 {wanted}")


@pytest.mark.parametrize("bad", [2**31, -(2**31) - 1, 2**64, 10**400, 5.0, 5.5, math.nan, "5", None, [5], b"5"])
def test_ids_that_are_no_whole_numbers_are_refused_where_they_stand(bad):
    engine = small_engine()
    refused(lambda: searched(engine, [[5, 3], [5, bad, 3]]), "source 2 holds .*; wanted whole numbers of 32 bits")
    refused(lambda: engine.score([[5, 3]], [[5, bad]]), "target 1 holds")
    refused(lambda: engine.attend([[bad]], [[5, 3]]), "source 1 holds")


def test_ids_of_numpy_are_ids():
    engine = small_engine()
    for kind in (np.int64, np.int32, np.uint8):
        assert searched(engine, [np.array([5, 7, 3], dtype=kind)]) == searched(engine, [[5, 7, 3]])


def test_a_sentence_that_is_none_is_refused():
    engine = small_engine()
    for bad in (5, None):
        refused(lambda bad=bad: searched(engine, [[5, 3], bad]), f"source 2 is '{bad}'; wanted a list of token ids")
    refused(lambda: engine.score([[5, 3]], [[5, 3], [5, 3]]), "1 sources and 2 targets; wanted as many of each")


def test_every_id_of_the_vocabulary_is_a_source():
    for vocab_size in (61, 16, 17, 513):
        config = SMALL.model_copy(update={"vocab_size": vocab_size})
        for precision in ("float32", "int8"):
            engine = small_engine(config, precision)
            everything = [*range(vocab_size)]
            assert searched(engine, [everything])[0]
            assert np.isfinite(engine.score([everything], [everything])[0]).all()


# ---- settings -----------------------------------------------------------------------------------------------------


def test_a_beam_larger_than_the_vocabulary_gives_all_there_is():
    config = SMALL.model_copy(update={"vocab_size": 5})  # EOS, UNK and one token more may come
    for precision in ("float32", "int8"):
        engine = small_engine(config, precision)
        found = searched(engine, [[4, EOS], [4, 4, EOS]], limit=3, beam_size=50, n_best=50)
        for own in found:
            # (e), (a e), (b e), and the four of length 3, whose last can only be EOS
            assert sorted(len(one.token_ids) for one in own) == [1, 2, 2, 3, 3, 3, 3]
            assert [one.score for one in own] == sorted((one.score for one in own), reverse=True)


def test_n_best_beyond_the_beam_is_refused():
    refused(lambda: searched(small_engine(), [[5, 3]], beam_size=3, n_best=4), "n-best is 4, beam size is 3")


@pytest.mark.parametrize("size", [10, 17, 2**31 - 1])
def test_a_rule_of_very_long_runs_forbids_nothing(size):
    engine, sources = small_engine(), drawn_sources(7)
    assert searched(engine, sources, no_repeat_ngram=size) == searched(engine, sources)


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        ({"sampling": Sampling()}, "the search settings have sampling or diversity groups; the engine has greedy"),
        ({"beam_size": 4, "diversity": Diversity(2)}, "have sampling or diversity groups"),
        ({"beam_size": 0}, "beam size is 0"),
        ({"beam_size": -3}, "beam size is -3"),
        ({"beam_size": 5000, "n_best": 1}, "beam is 5000; wanted 1 to 4096"),
        ({"n_best": 0}, "n-best is 0"),
        ({"length_penalty": math.nan}, "length penalty is nan"),
        ({"length_penalty": math.inf}, "length penalty is inf"),
        ({"length_penalty": -0.1}, "length penalty is -0.1"),
        ({"no_repeat_ngram": -1}, "no-repeat n-gram is -1"),
        ({"no_repeat_ngram": 2**31}, "settings 1 holds '2147483648'"),
        ({"limit": 0}, "may have 0 tokens"),
        ({"limit": -5}, "may have -5 tokens"),
        ({"limit": (1 << 24) + 1}, "limit 1 is 16777217; wanted at most 16777216"),
        ({"limit": 1 << 24, "beam_size": 4096}, "limit 1 is 16777216; wanted at most 524287 with a beam of 4096"),
        ({"limit": 2**31}, "limits 1 holds '2147483648'"),
        ({"limit": 2, "prefixes": [[5, 6]]}, "its forced prefix has 2"),
        ({"rows": 0}, "rows is 0; wanted 1 to 1048576"),
        ({"rows": 2**31}, "settings 1 holds '2147483648'"),
        ({"reserved": (2**31,)}, "reserved ids 1 holds '2147483648'"),
    ],
)
def test_settings_without_a_meaning_are_refused(settings, wanted):
    refused(lambda: searched(small_engine(), [[5, 3]], **settings), wanted)


def test_a_huge_penalty_or_limit_is_served():
    engine = small_engine()
    assert searched(engine, [[5, 3]], length_penalty=1e308)[0]
    assert searched(engine, [[5, 3]], length_penalty=1e308)[0][0].score == 0
    # a limit beyond memory, where EOS comes long before it
    config = SMALL.model_copy(update={"output_bias": True})
    weights = drawn_weights(config)
    weights["output.bias"] = np.eye(1, config.vocab_size, EOS, dtype=np.float32)[0] * 3
    engine = Engine(packed_model(config, weights=weights), threads=1)
    sources = drawn_sources(7)
    short = searched(engine, sources, limit=29, length_penalty=0.0)
    assert not any(own[0].is_cut for own in short)
    assert searched(engine, sources, limit=1 << 24, length_penalty=0.0) == short


def test_lists_that_are_not_equally_many_are_refused():
    for prefixes in ([], [(), ()]):
        with pytest.raises((ValueError, HeadwayError)):
            searched(small_engine(), [[5, 3]], prefixes=prefixes)


@pytest.mark.parametrize("threads", [0, -1, 1025, 10_000, 2**31])
def test_threads_that_nobody_can_have_are_refused(threads):
    refused(lambda: small_engine(threads=threads), f"threads are {threads}; wanted 1 to 1024")


def test_more_threads_than_cores_compute_what_one_does():
    sources = drawn_sources(3)
    assert searched(small_engine(threads=37), sources) == searched(small_engine(), sources)
    assert small_engine(threads=1024).threads == 1024  # they are started when they are needed


def test_kernels_that_nobody_knows_are_refused():
    for name in ("", "avx1024", "AUTO"):
        refused(lambda name=name: small_engine(kernels=name), "no kernels named")


def test_positions_beyond_the_learned_table_are_refused():
    config = ModelConfig(**{**SMALL.model_dump(), "positions": "learned", "max_positions": 13})
    weights = drawn_weights(config)
    for side in ("source", "target"):
        weights[f"{side}_stem.position.weight"] = np.zeros((13, config.d_model), dtype=np.float32)
    engine = Engine(packed_model(config, weights=weights), threads=1)
    assert searched(engine, [[5] * 13], limit=13)[0]
    refused(lambda: searched(engine, [[5] * 14], limit=13), "14 tokens; the model has learned 13")
    refused(lambda: searched(engine, [[5]], limit=14), "14 tokens; the model has learned 13")
    refused(lambda: engine.score([[5]], [[5] * 14]), "14 tokens; the model has learned 13")


# ---- weights ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernels", native.available())
@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_weights_that_are_no_numbers_give_a_result_or_none(precision, kernels):
    sources = drawn_sources(3, 5)
    numbers = [math.nan, math.inf, -math.inf, 3e38, -3e38, 1e-45]
    names = [name for name, array in packed_model(precision=precision).arrays.items() if array.dtype == np.float32]
    for place, name in enumerate(names * 2):
        packed = packed_model(precision=precision)
        array = packed.arrays[name].reshape(-1)
        array[:: max(1, array.size // 7)] = numbers[(place + place // len(names)) % 6]
        engine = Engine(packed, threads=1, kernels=kernels)
        for own in searched(engine, sources, limit=5):
            for one in own:
                assert math.isfinite(one.score)
                assert one.token_ids[-1] == EOS
                assert all(0 <= token < SMALL.vocab_size for token in one.token_ids)
        assert all(len(own) == len(source) for own, source in zip(engine.score(sources, sources), sources, strict=True))
        engine.attend(sources, sources)


@pytest.mark.parametrize("precision", ["float32", "int8"])
@pytest.mark.parametrize("kernels", native.available())
@pytest.mark.parametrize("bits", [0x7FC00000, 0xFFC00000, 0x7FC00001, 0xFFFFFFFF])
def test_a_model_of_nan_says_so_by_giving_nothing(precision, kernels, bits):
    packed = packed_model(precision=precision)
    for array in packed.arrays.values():
        if array.dtype == np.float32:
            array.view(np.uint32)[:] = bits
    engine = Engine(packed, threads=1, kernels=kernels)
    assert searched(engine, [[5, 3], [6, 3]]) == [[], []]
    assert np.isnan(engine.score([[5, 3]], [[7, 8, 3]])).all()
    assert np.isnan(engine.attend([[5, 3]], [[7, 8, 3]])[0]).all()


@pytest.mark.parametrize("name", native.available())
def test_a_row_of_the_smallest_numbers_is_one_of_zeros_in_8_bits(name):
    for size in (1e-45, 1e-40, 1e-38):
        whole, scale = native.Probe(name).quantise(np.full((1, 19), size, dtype=np.float32))
        assert not any(whole)
        assert 0 <= scale < 1e-36


def test_a_matrix_whose_sums_would_not_fit_in_32_bits_is_refused():
    config = ModelConfig(
        vocab_size=61, d_model=4, d_ff=2**16 + 1, num_heads=2, num_encoder_layers=1, num_decoder_layers=1
    )
    with pytest.raises(EngineError, match="has 65537 inputs; in 8 bits at most 65536 can be added up"):
        small_engine(config, "int8")
    assert searched(small_engine(config, "float32"), [[5, 3]])[0]


# ---- arrays -------------------------------------------------------------------------------------------------------


def test_an_engine_keeps_the_arrays_that_it_computes_with():
    packed = packed_model()
    expected = searched(Engine(packed, threads=1), [[5, 3]])
    engine = Engine(packed, threads=1)
    engine.packed = packed_model(precision="int8")
    packed.arrays.clear()
    del packed
    gc.collect()
    filler = [np.full(997, math.nan, dtype=np.float32) for _ in range(997)]  # takes the place of what was freed
    assert searched(engine, [[5, 3]]) == expected
    del filler


def test_arrays_that_do_not_fit_are_refused():
    probe = native.Probe("portable")
    floats = np.ones((2, 32), dtype=np.float32)
    row, short = np.ones(32, dtype=np.float32), np.ones(31, dtype=np.float32)
    wrong = [
        lambda: probe.norm(floats, gain=row, bias=short, epsilon=1e-5, centred=True, out=floats.copy()),
        lambda: probe.norm(floats, gain=short, bias=None, epsilon=1e-5, centred=True, out=floats.copy()),
        lambda: probe.norm(floats, gain=row, bias=None, epsilon=1e-5, centred=True, out=floats[:1].copy()),
        lambda: probe.quantise(floats),
        lambda: probe.quantise(floats[:, :0].copy()),
        lambda: probe.scan(floats[:0].copy(), threshold=0.0),
        lambda: probe.activate("relu", np.ones((2, 31), dtype=np.float32)),
        lambda: probe.activate("relux", floats.copy()),
    ]
    for sizes in ((-16, 32), (16, -32), (2**30, 2**30), (0, 32), (16, 0), (16, 31)):
        for scale in (None, row[:16]):
            wrong.append(
                partial(
                    probe.product,
                    np.zeros(2048, dtype=np.uint8),
                    scale=scale,
                    bias=None,
                    outputs=sizes[0],
                    inputs=sizes[1],
                    rows=floats,
                    relu=False,
                    out=np.zeros((2, 16), dtype=np.float32),
                )
            )
    for call in wrong:
        with pytest.raises(ValueError, match=r"fit|wanted|whole blocks|does not know"):
            call()


def test_results_are_never_written_into_a_copy():
    probe = native.Probe("portable")
    floats, row = np.ones((2, 32), dtype=np.float32), np.ones(32, dtype=np.float32)
    for out in (np.zeros((2, 32)), np.zeros((2, 64), dtype=np.float32)[:, ::2], np.zeros((32, 2), dtype=np.float32).T):
        with pytest.raises(TypeError):
            probe.norm(floats, gain=row, bias=None, epsilon=1e-5, centred=True, out=out)
