"""A shortlist limits what the engine's search looks at, and nothing else; files that do not fit are refused."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_engine import EOS, compare, config_of, engine_of, model_of, sources_of

from headway.config.model_config import ModelConfig
from headway.engine.shortlist import Shortlist, digests, read_shortlist, shortlist_of
from headway.errors import EngineError, FolderError, HeadwayError
from headway.folder.contents import FolderConfig, ModelFolder, write_folder
from headway.folder.weights import read_metadata, write_weights
from headway.model.build import build_transformer, export_weights
from headway.search.settings import SearchSettings
from headway.text.bpe import learn_bpe

native = pytest.importorskip("headway_native", reason="headway-native is not built here")

NOBODY = ("source", "target")  # digests of vocabularies that no test asks for


def random_shortlist(config, seed=3, per_token=11, frequent=5):
    """Lists of a few target tokens, some of them empty."""
    generator = np.random.default_rng(seed)
    size = config.vocab_size
    lists = [
        generator.choice(size, generator.integers(0, per_token), replace=False)
        for _ in range(config.source_vocab_size or size)
    ]
    return shortlist_of(lists, generator.choice(size, frequent), target_vocab_size=size, vocabularies=NOBODY)


def whole_vocabulary(config, *, always):
    """Everything is allowed: always, or by the list of EOS, which every source has."""
    size = config.vocab_size
    lists = [range(0 if always or token != EOS else size) for token in range(config.source_vocab_size or size)]
    return shortlist_of(lists, range(size) if always else [], target_vocab_size=size, vocabularies=NOBODY)


def searched(engine, sources, beam=4, n_best=2, prefixes=None, **more):
    return engine.search(
        sources,
        prefixes=prefixes or [()] * len(sources),
        limits=[len(source) + 20 for source in sources],
        settings=SearchSettings(beam_size=beam, n_best=min(n_best, beam), **more),
    )


@pytest.mark.parametrize("always", [True, False])
@pytest.mark.parametrize("beam", [1, 5])
@pytest.mark.parametrize("precision", ["float32", "int8"])
@pytest.mark.parametrize("variant", ["paper", "biases", "separate vocabularies"])
def test_a_shortlist_of_the_whole_vocabulary_changes_nothing(variant, precision, beam, always):
    config = ModelConfig(**{**config_of(variant).model_dump(), "vocab_size": 1117})  # three chunks of the vocabulary
    model = model_of(config)
    sources = sources_of(config, 17)
    limited = engine_of(model, config, precision, shortlist=whole_vocabulary(config, always=always))
    assert searched(limited, sources, beam) == searched(engine_of(model, config, precision), sources, beam)


@pytest.mark.parametrize("variant", ["paper", "biases", "separate vocabularies"])
def test_an_output_has_tokens_of_its_own_sentence_s_list_alone(variant):
    config = config_of(variant)
    shortlist = random_shortlist(config)
    sources = sources_of(config, 31)
    found = searched(engine_of(model_of(config), config, shortlist=shortlist), sources, 5, 5)
    for source, own in zip(sources, found, strict=True):
        allowed = set(shortlist.allowed(source).tolist())
        assert own
        assert all(set(one.token_ids) <= allowed for one in own)
    assert any(set(own[0].token_ids) - set(shortlist.always.tolist()) - {EOS} for own in found)


def test_a_search_is_that_of_a_model_with_the_tokens_of_the_list_alone():
    """The oracle: torch, with a bias of minus infinity (nearly) for every token that is not in the one list."""
    torch = pytest.importorskip("torch")
    from headway.translate.backend import model_backend

    config = config_of("biases")
    model = model_of(config)
    allowed = [EOS, 7, 11, 13, 29, 31, 37, 53, 64, 65, 66, 90, 96]
    shortlist = shortlist_of([[]] * 97, allowed, target_vocab_size=97, vocabularies=NOBODY)
    sources = sources_of(config, 19)
    found = searched(engine_of(model, config, shortlist=shortlist), sources)
    with torch.no_grad():
        forbidden = torch.ones(97, dtype=torch.bool)
        forbidden[allowed] = False
        model.output.bias[forbidden] = -1e30
    assert compare(found, searched(model_backend(model, torch.device("cpu")), sources)) <= 1


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_greedy_search_is_the_same_when_the_list_holds_its_output(precision):
    config = config_of("paper")  # the most probable of all tokens is that of any few that it is among
    model = model_of(config)
    sources = sources_of(config, 29)
    expected = [own[0].token_ids for own in searched(engine_of(model, config, precision), sources, 1)]
    for source, output in zip(sources, expected, strict=True):
        lists = [set(output) if token in source else [] for token in range(97)]
        shortlist = shortlist_of(lists, [], target_vocab_size=97, vocabularies=NOBODY)
        found = searched(engine_of(model, config, precision, shortlist=shortlist), [source], 1)
        assert found[0][0].token_ids == output


@pytest.mark.parametrize("kernels", native.available())
@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_log_probabilities_are_the_model_s_own_among_the_tokens_of_the_list(kernels, precision):
    """The oracle: scores among the whole vocabulary, less the log-sum of those of the list, by every set of kernels."""
    config = config_of("biases")
    allowed = [EOS, 7, 19, 30, 31, 32, 45, 46, 64, 80, 95, 96]
    shortlist = shortlist_of([[]] * 97, allowed, target_vocab_size=97, vocabularies=NOBODY)
    engine = engine_of(model_of(config), config, precision, kernels=kernels, shortlist=shortlist)
    for source in sources_of(config, 5):
        pairs = [[one, other] for one in allowed[1:] for other in allowed]
        scores = dict(zip(map(tuple, pairs), engine.score([source] * len(pairs), pairs), strict=True))
        first = {one: scores[one, EOS][0] for one in allowed[1:]}
        first[EOS] = engine.score([source], [[EOS]])[0][0]
        asked = {"prefixes": [()], "limits": [2], "settings": SearchSettings(beam_size=11, n_best=11)}
        for one in engine.search([source], **asked)[0]:
            token, last = one.token_ids[0], one.token_ids[-1]
            assert last == EOS
            expected = first[token] - np.logaddexp.reduce(list(first.values()))
            if token != EOS:
                second = [scores[token, other][1] for other in allowed]
                expected += scores[token, EOS][1] - np.logaddexp.reduce(second)
            assert one.log_prob == pytest.approx(expected, abs=1e-4 if precision == "float32" else 3e-2)


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_results_with_a_shortlist_do_not_depend_on_company_order_threads_or_rows(precision):
    config = ModelConfig(**{**config_of("paper").model_dump(), "vocab_size": 1117})
    model = model_of(config)
    shortlist = random_shortlist(config, per_token=211)
    sources = sources_of(config, 19, longest=11)
    engine = engine_of(model, config, precision, shortlist=shortlist)
    together = searched(engine, sources)
    assert [searched(engine, [source])[0] for source in sources] == together
    assert searched(engine, sources[::-1])[::-1] == together
    assert searched(engine_of(model, config, precision, threads=3, shortlist=shortlist), sources) == together
    wide = engine_of(model, config, precision, threads=2, shortlist=shortlist)
    assert [searched(wide, [source])[0] for source in sources[:7]] == together[:7]
    limits = [len(source) + 20 for source in sources]
    settings = SearchSettings(beam_size=4, n_best=2)
    few = engine.search(sources, prefixes=[()] * len(sources), limits=limits, settings=settings, rows=11)
    assert few == together


def test_what_an_output_must_begin_with_is_allowed_whatever_the_list_says():
    config = config_of("paper")
    shortlist = random_shortlist(config, per_token=5)
    sources = sources_of(config, 13)
    prefixes = [[place + 50, 71] for place in range(13)]
    found = searched(engine_of(model_of(config), config, shortlist=shortlist), sources, prefixes=prefixes)
    for source, prefix, own in zip(sources, prefixes, found, strict=True):
        assert own
        assert all(list(one.token_ids[:2]) == prefix for one in own)
        assert all(set(one.token_ids) <= {*shortlist.allowed(source).tolist(), *prefix} for one in own)


def test_a_list_of_eos_alone_gives_empty_outputs_and_no_token_twice_is_still_kept():
    config = config_of("paper")
    nothing = shortlist_of([[]] * 97, [], target_vocab_size=97, vocabularies=NOBODY)
    sources = sources_of(config, 5)
    found = searched(engine_of(model_of(config), config, shortlist=nothing), sources)
    assert [[one.token_ids for one in own] for own in found] == [[(EOS,)]] * 5
    assert all(own[0].log_prob == 0.0 for own in found)
    pair = shortlist_of([[]] * 97, [17, 19], target_vocab_size=97, vocabularies=NOBODY)
    once = searched(engine_of(model_of(config), config, shortlist=pair), sources, no_repeat_ngram=1)
    assert all(len(set(one.token_ids)) == len(one.token_ids) for own in once for one in own)


def test_scores_and_attention_know_the_whole_vocabulary():
    config = config_of("paper")
    model = model_of(config)
    plain, limited = engine_of(model, config), engine_of(model, config, shortlist=random_shortlist(config))
    sources, targets = sources_of(config, 7), sources_of(config, 7, seed=11)
    assert plain.score(sources, targets) == limited.score(sources, targets)
    for one, other in zip(plain.attend(sources, targets), limited.attend(sources, targets), strict=True):
        np.testing.assert_array_equal(one, other)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), per_token=st.integers(1, 23), frequent=st.integers(0, 17))
def test_the_engine_s_lists_are_those_of_numpy(seed, per_token, frequent):
    config = config_of("separate vocabularies")
    shortlist = random_shortlist(config, seed, per_token, frequent)
    sources = sources_of(config, 7, seed=seed)
    found = shortlist.native().allowed(sources)
    assert found == [shortlist.allowed(source).tolist() for source in sources]
    for source, own in zip(sources, found, strict=True):  # and the definition, by sets
        expected = {EOS, *shortlist.always.tolist()}
        for token in source:
            expected.update(shortlist.tokens[shortlist.offsets[token] : shortlist.offsets[token + 1]].tolist())
        assert own == sorted(expected)


def test_a_list_beyond_the_limit_is_the_whole_vocabulary():
    config = ModelConfig(**{**config_of("paper").model_dump(), "vocab_size": 8311, "d_model": 8, "num_heads": 2})
    model = model_of(config)
    sources = sources_of(config, 3)
    plain = searched(engine_of(model, config), sources)
    for size, is_whole in ((8192, False), (8193, True)):
        some = shortlist_of([[]] * 8311, range(3, 3 + size), target_vocab_size=8311, vocabularies=NOBODY)
        found = searched(engine_of(model, config, shortlist=some), sources)
        assert (found == plain) == is_whole


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"tokens": [97]}, "target token 97; the vocabulary has 97"),
        ({"tokens": [-1]}, "target token -1"),
        ({"always": [1 << 30]}, "target token 1073741824"),
        ({"offsets": [0, 5]}, "do not rise from 0 to its number of tokens"),
        ({"offsets": [0, 2, 1, 3]}, "do not rise"),
        ({"offsets": [1, 3]}, "do not rise"),
        ({"offsets": [0]}, "no source token"),
        ({"offsets": [0, *[3] * 4]}, "is for 4 source and 97 target tokens; the model has 97 and 97"),
        ({"target_vocab_size": 101, "offsets": [0, *[3] * 97]}, "97 source and 101 target"),
    ],
)
def test_the_engine_refuses_lists_that_lead_outside(change, what):
    config = config_of("paper")
    good = Shortlist(np.array([0, *[3] * 97]), np.array([5, 7, 9], np.int32), np.array([4], np.int32), 97, NOBODY)
    types = {"offsets": np.int64, "tokens": np.int32, "always": np.int32}
    values = {name: np.array(value, types[name]) if name in types else value for name, value in change.items()}
    if "tokens" in values:
        values["offsets"] = np.array([0, *[1] * 97])
    with pytest.raises(EngineError, match=what):
        engine_of(model_of(config), config, shortlist=replace(good, **values))


# ---- files


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("model")
    tokenizer = learn_bpe(["a cat sat on the mat", "one two three"] * 3, vocab_size=271)
    model = ModelConfig(
        vocab_size=tokenizer.vocab_size, d_model=8, d_ff=13, num_heads=2, num_encoder_layers=1, num_decoder_layers=1
    )
    return write_folder(
        path,
        config=FolderConfig(model=model, max_source_tokens=29),
        weights=export_weights(build_transformer(model)),
        source_tokenizer=tokenizer,
        target_tokenizer=tokenizer,
        card="",
    )


@pytest.fixture
def written(folder, tmp_path):
    size = folder.source_tokenizer.vocab_size
    generator = np.random.default_rng(5)
    lists = [generator.choice(size, 7, replace=False) for _ in range(size)]
    shortlist = shortlist_of(lists, [11, 12], target_vocab_size=size, vocabularies=digests(folder))
    shortlist.write(tmp_path / "shortlist.safetensors")
    return shortlist, tmp_path / "shortlist.safetensors"


def test_a_file_gives_back_what_was_written(folder, written):
    shortlist, path = written
    found = read_shortlist(path, folder)
    for name in ("offsets", "tokens", "always"):
        np.testing.assert_array_equal(getattr(found, name), getattr(shortlist, name))
    assert found.vocabularies == shortlist.vocabularies
    assert found.target_vocab_size == shortlist.target_vocab_size


def test_another_model_s_shortlist_is_refused_by_name(folder, written, tmp_path):
    _, path = written
    other = tmp_path / "other"
    shutil.copytree(folder.path, other)
    tokenizer = learn_bpe(["a dog sat on the rug", "four five six"] * 3, vocab_size=271)
    assert tokenizer.vocab_size == folder.source_tokenizer.vocab_size  # only the tokens tell them apart
    (other / "tokenizer.json").write_text(tokenizer.to_json(), encoding="utf-8")
    with pytest.raises(EngineError, match="made for another source vocabulary"):
        read_shortlist(path, ModelFolder.open(other))


def test_a_file_of_another_kind_is_refused(folder, tmp_path):
    with pytest.raises(EngineError, match="is no shortlist of version 1"):
        read_shortlist(folder.path / "model.safetensors", folder)
    with pytest.raises(FolderError, match="does not exist"):
        read_shortlist(tmp_path / "none", folder)


@pytest.mark.parametrize(
    ("name", "change", "what"),
    [
        ("tokens", lambda array: array + 300, "the vocabulary ends at 270"),
        ("tokens", lambda array: array - 100, "ids from -"),
        ("tokens", lambda array: array.astype(np.int64), "no row of int32 numbers named tokens"),
        ("tokens", lambda array: array[:-1], "do not rise from 0"),
        ("always", lambda array: array.reshape(1, -1), "no row of int32 numbers named always"),
        ("always", lambda array: array * 1000, "always has ids"),
        ("offsets", lambda array: array[::-1].copy(), "do not rise"),
        ("offsets", lambda array: array[1:], "offsets; "),
    ],
)
def test_a_sound_file_with_numbers_that_do_not_fit_is_refused(folder, written, tmp_path, name, change, what):
    shortlist, path = written
    arrays = {key: getattr(shortlist, key) for key in ("offsets", "tokens", "always")}
    arrays[name] = change(arrays[name])
    write_weights(tmp_path / "bad", arrays, metadata=read_metadata(path))
    with pytest.raises(EngineError, match=what):
        read_shortlist(tmp_path / "bad", folder)


def mutated(folder, path, count):
    """How many of so many damaged copies were refused; the others are as the original (a change in its header)."""
    whole = path.read_bytes()
    generator = np.random.default_rng(13)
    good = read_shortlist(path, folder)
    refused = 0
    for _ in range(count):
        data = bytearray(whole)
        kind = generator.integers(3)
        if kind == 0:
            data[generator.integers(len(data))] ^= 1 << generator.integers(8)
        elif kind == 1:
            del data[generator.integers(len(data)) :]
        else:
            place = generator.integers(len(data))
            data[place : place + 8] = generator.bytes(8)
        path.with_name("mutated").write_bytes(data)
        try:
            found = read_shortlist(path.with_name("mutated"), folder)
        except HeadwayError:
            refused += 1
        else:
            np.testing.assert_array_equal(found.tokens, good.tokens)
            np.testing.assert_array_equal(found.offsets, good.offsets)
    return refused


def test_a_damaged_file_is_refused(folder, written):
    assert mutated(folder, written[1], 150) >= 140


@pytest.mark.slow
def test_a_damaged_file_is_refused_ten_thousand_times(folder, written):
    assert mutated(folder, written[1], 10_000) >= 9_500
