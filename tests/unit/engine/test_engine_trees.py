"""The engine's search among trees: what torch's finds, every tree that there is, and errors for what is no form."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from packed_models import packed_model, small_engine
from test_engine import EOS, compare, config_of, engine_of, model_of, nearest, sources_of
from test_hostile import refused

from headway.config.model_config import ModelConfig
from headway.engine.engine import Engine
from headway.engine.packed import native_arguments
from headway.engine.shortlist import shortlist_of
from headway.search.settings import SearchSettings
from headway.search.tree_form import Brackets, TreeForm
from headway.translate.backend import model_backend

native = pytest.importorskip("headway_native", reason="headway-native is not built here")

SHAPES = ["paper", "separate vocabularies", "rope", "rms", "learned"]


def brackets_of(vocab_size, labels=9, leaves=31):
    """Labels, their ends and leaves, anywhere among tokens that have no part in trees."""
    tokens = np.random.default_rng(vocab_size).permutation(np.arange(4, vocab_size))[: 2 * labels + leaves].tolist()
    return Brackets(
        tuple(tokens[:labels]), tuple(tokens[labels : 2 * labels]), tuple(tokens[2 * labels :]), vocab_size=vocab_size
    )


def form_of(vocab_size, count, *, seed=3, longest=9, max_openings=None, reward=0.0):
    """Sentences of 1 to ``longest`` leaves, half of which are named, and limits that leave room for 0 to 28 more."""
    brackets, generator = brackets_of(vocab_size), np.random.default_rng(seed)
    choices = [*brackets.leaves, *[0] * len(brackets.leaves)]
    leaves_B = [generator.choice(choices, generator.integers(1, longest)).tolist() for _ in range(count)]
    limits = [len(leaves) + 1 + place * 5 % 29 for place, leaves in enumerate(leaves_B)]
    return TreeForm(brackets, leaves_B, max_openings, reward), limits


def is_tree(token_ids, leaves, brackets, most=None):
    """Read the tokens with a stack, as the definition of a tree has it."""
    closing = dict(zip(brackets.opening, brackets.closing, strict=True))
    *tokens, end = token_ids
    stack, found, run = [], [], 0
    for token in tokens:
        if token in closing:
            stack.append(closing[token])
            run += 1
            if most is not None and run > most:
                return False
            continue
        if token in brackets.leaves:
            found.append(token)
        elif not stack or stack.pop() != token or run:
            return False
        run = 0
    fits = len(found) == len(leaves) and all(leaf in (0, token) for leaf, token in zip(leaves, found, strict=True))
    return end == EOS and not stack and fits


def asked_of(config, count, *, beam, most=None, reward=0.0, **changes):
    form, limits = form_of(config.vocab_size, count, max_openings=most, reward=reward)
    return {
        "prefixes": [()] * count,
        "limits": limits,
        "settings": SearchSettings(**{"beam_size": beam, "n_best": min(beam, 3), "length_penalty": 0.3, **changes}),
        "form": form,
    }


@pytest.mark.parametrize("most", [None, 2])
@pytest.mark.parametrize("beam", [1, 4, 21])
@pytest.mark.parametrize("vocab_size", [97, 1117])  # 1117: three chunks of the vocabulary
@pytest.mark.parametrize("shape", SHAPES)
def test_trees_are_those_of_the_torch_search(shape, vocab_size, beam, most):
    config = ModelConfig(**{**config_of(shape).model_dump(), "vocab_size": vocab_size})
    model = model_of(config)
    sources = sources_of(config, 11)
    asked = asked_of(config, 11, beam=beam, most=most)
    found = engine_of(model, config).search(sources, **asked)
    expected = model_backend(model, torch.device("cpu")).search(sources, **asked)
    exact = model_backend(model.double(), torch.device("cpu")).search(sources, **asked)
    assert compare(found, nearest(found, expected, exact)) <= 1


@pytest.mark.parametrize("reward", [0.37, 1.0, 40.0])
@pytest.mark.parametrize("beam", [1, 2, 4, 21])
@pytest.mark.parametrize("vocab_size", [97, 1117])
def test_a_reward_of_leaves_ranks_as_in_the_torch_search(vocab_size, beam, reward):
    config = ModelConfig(**{**config_of("paper").model_dump(), "vocab_size": vocab_size})
    model = model_of(config)
    sources = sources_of(config, 11)
    asked = asked_of(config, 11, beam=beam, reward=reward)
    found = engine_of(model, config).search(sources, **asked)
    expected = model_backend(model, torch.device("cpu")).search(sources, **asked)
    exact = model_backend(model.double(), torch.device("cpu")).search(sources, **asked)
    assert compare(found, nearest(found, expected, exact)) <= 1
    if reward == 40.0:  # a node is opened where the last leaf cannot come without it, and nowhere else
        plain = engine_of(model, config).search(sources, **asked_of(config, 11, beam=beam))
        assert found != plain
        assert max(len(own[0].token_ids) for own in found) < max(len(own[0].token_ids) for own in plain)


def test_reserved_ids_are_in_no_tree():
    config = config_of("paper")
    model = model_of(config)
    sources = sources_of(config, 11)
    asked = asked_of(config, 11, beam=4)
    form = asked["form"]
    reserved = (form.brackets.opening[3], *form.brackets.leaves[:7])
    leaves_B = [[0 if leaf in reserved else leaf for leaf in leaves] for leaves in form.leaves_B]
    asked |= {
        "form": TreeForm(form.brackets, leaves_B),
        "settings": SearchSettings(beam_size=4, n_best=4, reserved=reserved),
    }
    found = engine_of(model, config).search(sources, **asked)
    assert compare(found, model_backend(model, torch.device("cpu")).search(sources, **asked)) <= 1
    assert all(set(one.token_ids).isdisjoint(reserved) for own in found for one in own)


def test_a_wide_beam_finds_every_tree_that_the_torch_search_finds():
    config = ModelConfig(**{**config_of("paper").model_dump(), "vocab_size": 11})
    model = model_of(config)
    brackets = Brackets(opening=(4, 6), closing=(9, 5), leaves=(7, 10), vocab_size=11)  # 8 has no part in trees
    for most, leaves in ((None, (0, 0)), (1, (0, 0)), (None, (7, 0)), (2, (0, 10))):
        asked = {
            "prefixes": [()],
            "limits": [9],
            "settings": SearchSettings(700, n_best=700),
            "form": TreeForm(brackets, [leaves], max_openings=most),
        }
        (found,) = engine_of(model, config).search([[4, 5, EOS]], **asked)
        (expected,) = model_backend(model, torch.device("cpu")).search([[4, 5, EOS]], **asked)
        assert {one.token_ids for one in found} == {one.token_ids for one in expected}
        assert 20 < len(found) < 700
        assert all(is_tree(one.token_ids, leaves, brackets, most) for one in found)


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 10_000),
    st.sampled_from(["float32", "int8"]),
    st.sampled_from(native.available()),
    st.sampled_from([1, 3, 21]),
    st.sampled_from([None, 1, 2, 10]),
)
def test_every_output_of_every_kernel_is_a_tree_over_the_leaves(seed, precision, kernels, beam, most):
    engine = small_engine(precision=precision, kernels=kernels)
    form, limits = form_of(61, 5, seed=seed, max_openings=most)
    sources = np.random.default_rng(seed).integers(4, 61, (5, 3)).tolist()
    asked = SearchSettings(beam_size=beam, n_best=beam)
    found = engine.search(sources, prefixes=[()] * 5, limits=limits, settings=asked, form=form)
    for leaves, limit, own in zip(form.leaves_B, limits, found, strict=True):
        assert own
        assert len({one.token_ids for one in own}) == len(own)
        for one in own:
            assert is_tree(one.token_ids, leaves, form.brackets, most)
            assert len(one.token_ids) <= limit
            assert one.is_cut == (len(one.token_ids) == limit)


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_trees_do_not_depend_on_company_threads_or_rows(precision):
    form, limits = form_of(61, 23)
    sources = np.random.default_rng(5).integers(4, 61, (23, 5)).tolist()

    def searched(engine, places, **more):
        return engine.search(
            [sources[place] for place in places],
            prefixes=[()] * len(places),
            limits=[limits[place] for place in places],
            settings=SearchSettings(beam_size=4, n_best=2),
            form=TreeForm(form.brackets, [form.leaves_B[place] for place in places]),
            **more,
        )

    engine, everything = small_engine(precision=precision), range(23)
    together = searched(engine, everything)
    assert [searched(engine, [place])[0] for place in everything] == together
    assert searched(engine, everything[::-1])[::-1] == together
    assert searched(engine, everything, rows=11) == together
    assert searched(small_engine(precision=precision, threads=3), everything) == together


def test_2000_leaves_and_none_are_served():
    brackets, engine = brackets_of(61), small_engine()
    form = TreeForm(brackets, [[0] * 2000, [], [brackets.leaves[5]] * 3])
    asked = SearchSettings(beam_size=2)
    found = engine.search([[5, EOS]] * 3, prefixes=[()] * 3, limits=[2300, 1, 4], settings=asked, form=form)
    assert is_tree(found[0][0].token_ids, form.leaves_B[0], brackets)
    assert [one.token_ids for one in found[1]] == [(EOS,)]
    assert [one.token_ids for one in found[2]] == [(*form.leaves_B[2], EOS)]


def test_a_model_of_nan_finds_no_tree():
    packed = packed_model()
    for array in packed.arrays.values():
        array.reshape(-1)[:] = math.nan
    form, limits = form_of(61, 2)
    engine, asked = Engine(packed, threads=1), SearchSettings()
    assert engine.search([[5, EOS]] * 2, prefixes=[()] * 2, limits=limits, settings=asked, form=form) == [[], []]


# ---- what is no form ----------------------------------------------------------------------------------------------


def ask(engine, *, leaves_B=((0, 7),), limit=9, most=None, reward=0.0, prefixes=((),), settings=None, **brackets):
    """Search with a form whose parts nobody has looked at, as ``Brackets`` does."""
    parts = {"opening": (4, 6), "closing": (9, 5), "leaves": (7, 10), "vocab_size": 61, **brackets}
    form = SimpleNamespace(brackets=SimpleNamespace(**parts), leaves_B=leaves_B, max_openings=most, leaf_reward=reward)
    settings = settings or SearchSettings(beam_size=3)
    return engine.search([[5, EOS]], prefixes=prefixes, limits=[limit], settings=settings, form=form)


def test_the_form_that_the_following_break_is_one():
    assert ask(small_engine())[0]


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        ({"opening": (4, 61)}, "opening token 2 of trees is the token 61; wanted 0 to 60"),
        ({"closing": (-1, 5)}, "closing token 1 of trees is the token -1; wanted 0 to 60"),
        ({"leaves": (7, 2**31 - 1)}, "leaf 2 of trees is the token 2147483647; wanted 0 to 60"),
        ({"leaves": (7, 2**31)}, "brackets 3 holds '2147483648'; wanted whole numbers of 32 bits"),
        ({"opening": (4, "NP")}, "brackets 1 holds 'NP'; wanted whole numbers"),
        ({"closing": None}, "brackets 2 is 'None'; wanted a list of token ids"),
        ({"opening": (4, 0)}, "opening token 2 of trees is the token 0, a control token"),
        ({"closing": (2, 5)}, "closing token 1 of trees is the token 2, a control token"),
        ({"leaves": (7, 3)}, "leaf 2 of trees is the token 3, a control token"),
        ({"leaves": (7, 7)}, "leaf 2 of trees is the token 7, which has a place in trees already"),
        ({"closing": (9, 4)}, "closing token 2 of trees is the token 4, which has a place in trees already"),
        ({"opening": (4, 6, 8)}, "3 tokens that open and 2 that close; wanted as many of each"),
        ({"opening": (), "closing": ()}, "the vocabulary has 0 labels and 2 leaves"),
        ({"leaves": ()}, "the vocabulary has 2 labels and 0 leaves"),
        ({"vocab_size": 60}, "the form is of 60 tokens, and the model has 61"),
        ({"leaves_B": ((0, 61),)}, "tree 1 has the token 61; wanted 0 to 60"),
        ({"leaves_B": ((0, -1),)}, "tree 1 has the token -1; wanted 0 to 60"),
        ({"leaves_B": ((0, 8),)}, "tree of sentence 1 is to have the leaf 8, which is none"),
        ({"leaves_B": ((0, 4),)}, "tree of sentence 1 is to have the leaf 4, which is none"),
        ({"leaves_B": ((0, 5.0),)}, "leaves 1 holds '5.0'; wanted whole numbers"),
        ({"leaves_B": (None,)}, "leaves 1 is 'None'; wanted a list of token ids"),
        ({"leaves_B": ()}, "the form has leaves for 0 sentences, and there are 1"),
        ({"leaves_B": ((0,), (0,))}, "the form has leaves for 2 sentences, and there are 1"),
        ({"limit": 2}, "sentence 1: 2 words.* 2 tokens.*needs 3"),
        ({"most": 0}, "0 nodes of a tree may open in a row; wanted 1 or more"),
        ({"most": -5}, "-5 nodes of a tree may open in a row"),
        ({"most": 2**31}, "max_openings 1 holds '2147483648'"),
        ({"reward": -0.5}, "the reward of a leaf is -0.5; wanted a number of nats from 0 up"),
        ({"reward": math.inf}, "the reward of a leaf is inf; wanted"),
        ({"prefixes": ((7,),)}, "must be trees cannot also be led to prefixes"),
        ({"settings": SearchSettings(beam_size=3, no_repeat_ngram=2)}, "must be trees cannot also"),
    ],
)
def test_what_is_no_form_is_refused(change, wanted):
    refused(lambda: ask(small_engine(), **change), wanted)


def test_a_shortlist_and_trees_are_refused_together():
    shortlist = shortlist_of([[]] * 61, [7], target_vocab_size=61, vocabularies=("source", "target"))
    refused(lambda: ask(small_engine(shortlist=shortlist)), "must be trees, and there is a shortlist")


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        ({"limits": [2]}, "tree of sentence 1 has 2 leaves, and its output may have 2 tokens"),
        ({"prefixes": [[7]]}, "output of sentence 1 must be a tree, and begin with a prefix"),
        ({"no_repeat": 2}, "must be trees, and may not repeat"),
        ({"form": ([4], [9], [7], [], None, 0.0)}, "1 sources, and leaves for 0"),
        ({"form": ([], [], [7], [[0]], None, 0.0)}, "trees have 0 labels and 1 leaves"),
        ({"form": ([4], [9], [7], [[0, 0]], None, -1.0)}, "the reward of a leaf is -1.0"),
        ({"form": ([4], [9], [7], [[0, 0]], None, math.nan)}, "the reward of a leaf is nan"),
    ],
)
def test_the_compiled_part_looks_for_itself(change, wanted):
    session = native.Session(native.Model.load(**native_arguments(packed_model())))
    asked = {"prefixes": [[]], "limits": [9], "beam": 3, "n_best": 1, "length_penalty": 0.6, "no_repeat": 0}
    asked |= {"never": [], "rows": 7, "form": ([4], [9], [7], [[0, 7]], None, 0.0)}
    assert session.search([[5, EOS]], **asked)[0]
    with pytest.raises(ValueError, match=wanted):
        session.search([[5, EOS]], **{**asked, **change})
