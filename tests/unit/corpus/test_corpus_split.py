"""Promises of headway.corpus.split and headway.corpus.fingerprint."""

from collections import Counter
from hashlib import blake2b

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.corpus.fingerprint import fingerprint
from headway.corpus.split import hold_out, hold_out_sources, num_held_out


@pytest.mark.parametrize(
    ("num_pairs", "expected"),
    [(0, 0), (1, 0), (2, 1), (39, 1), (40, 2), (997, 49), (20_000, 1000), (20_019, 1000), (10**8, 1000)],
)
def test_at_most_a_thousand_and_at_most_a_twentieth_and_at_least_one(num_pairs: int, expected: int):
    assert num_held_out(num_pairs, at_most=1000, share=0.05) == expected
    if num_pairs < 10**6:
        chosen = hold_out(num_pairs, seed=1, at_most=1000, share=0.05)
        assert len(chosen) == expected
        assert all(0 <= index < num_pairs for index in chosen)


def test_the_choice_for_a_seed_is_the_same_for_ever():
    """Golden: sorted(hold_out(100, seed=1, at_most=1000, share=0.05)), made by this code when it was written."""
    assert sorted(hold_out(100, seed=1, at_most=1000, share=0.05)) == [12, 25, 49, 74, 82]
    sources = [str(index) for index in range(100)]
    assert sorted(hold_out_sources(sources, seed=1, at_most=1000, share=0.05)) == [50, 66, 85, 92, 95]


@pytest.mark.parametrize("choose", ["pairs", "sources"])
def test_every_pair_is_held_out_equally_often_over_seeds(choose: str):
    num_pairs, num_seeds, share = 23, 2003, 0.31
    sources = [f"sentence {index}" for index in range(num_pairs)]
    seen: Counter[int] = Counter()
    for seed in range(num_seeds):
        if choose == "pairs":
            seen.update(hold_out(num_pairs, seed=seed, at_most=1000, share=share))
        else:
            seen.update(hold_out_sources(sources, seed=seed, at_most=1000, share=share))
    # 7 of 23 each time: a binomial count of mean 609.6 and deviation 20.6; five deviations either way.
    assert sum(seen.values()) == 7 * num_seeds
    assert len(seen) == num_pairs
    assert all(abs(times - 609.6) < 103 for times in seen.values())


def test_another_seed_chooses_others():
    assert hold_out(997, seed=1, at_most=1000, share=0.05) != hold_out(997, seed=2, at_most=1000, share=0.05)
    sources = [str(index) for index in range(997)]
    assert hold_out_sources(sources, seed=1, at_most=1000, share=0.05) != hold_out_sources(
        sources, seed=2**64 + 1, at_most=1000, share=0.05
    )


SOURCES = st.lists(st.sampled_from("abcdefghijklmnopqrstuvwxyz"), max_size=61)


@given(sources=SOURCES, seed=st.integers(0, 2**130), share=st.floats(0, 0.99))
def test_the_size_is_never_more_than_asked_and_never_nothing(sources: list[str], seed: int, share: float):
    chosen = hold_out_sources(sources, seed=seed, at_most=17, share=share)
    limit = num_held_out(len(sources), at_most=17, share=share)
    assert min(limit, 1) <= len(chosen) <= limit


@given(sources=SOURCES, seed=st.integers(0, 2**64))
def test_no_source_stands_on_both_sides_where_one_fits(sources: list[str], seed: int):
    chosen = hold_out_sources(sources, seed=seed, at_most=1000, share=0.2)
    limit = num_held_out(len(sources), at_most=1000, share=0.2)
    held = {sources[index] for index in chosen}
    kept = {source for index, source in enumerate(sources) if index not in chosen}
    if any(count <= limit for count in Counter(sources).values()):
        assert not held & kept


@given(sources=SOURCES.filter(lambda sources: 1 in Counter(sources).values()), seed=st.integers(0, 97))
def test_the_order_of_the_corpus_does_not_matter(sources: list[str], seed: int):
    def held(order: list[str]) -> set[str]:
        return {order[index] for index in hold_out_sources(order, seed=seed, at_most=1000, share=0.3)}

    assert held(sources) == held(sources[::-1])


def test_sources_that_differ_in_outer_white_space_stay_together():
    sources = ["a", " a", "a\t"] + [f"{index}" for index in range(7)]
    for seed in range(53):
        chosen = hold_out_sources(sources, seed=seed, at_most=1000, share=0.5)
        assert len({0, 1, 2} & chosen) in (0, 3)


def test_where_no_source_fits_pairs_are_held_out_one_by_one():
    sources = ["a"] * 13 + ["b"] * 11
    chosen = hold_out_sources(sources, seed=3, at_most=1000, share=0.1)
    assert chosen == hold_out(24, seed=3, at_most=1000, share=0.1)
    assert len(chosen) == 2


def test_a_fingerprint_is_blake2b_of_lengths_and_bytes():
    data = (3).to_bytes(8, "little") + "aß".encode() + (0).to_bytes(8, "little")
    expected = blake2b(data, digest_size=8, salt=(7).to_bytes(16, "little")).digest()
    assert fingerprint("aß", "", seed=7) == int.from_bytes(expected, "little")


@given(texts=st.lists(st.text(max_size=3), max_size=3), others=st.lists(st.text(max_size=3), max_size=3))
def test_fingerprints_tell_texts_and_their_borders_apart(texts: list[str], others: list[str]):
    assert (fingerprint(*texts) == fingerprint(*others)) == (texts == others)
