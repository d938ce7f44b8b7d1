"""Promises of headway.corpus.fingerprint.FingerprintSet, and of holding out by fingerprints."""

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.corpus.fingerprint import FingerprintSet, fingerprint
from headway.corpus.split import hold_out, hold_out_marks, num_held_out

# Numbers that share their lowest bits stand for the same place in the table.
NUMBERS = st.one_of(
    st.integers(0, 2**64 - 1),
    st.integers(0, 13),
    st.builds(lambda high, low: high << 40 | low, st.integers(0, 97), st.integers(0, 3)),
)


@given(st.lists(NUMBERS, max_size=211))
def test_the_table_is_a_set(numbers: list[int]):
    table, known = FingerprintSet(), set[int]()
    for number in numbers:
        assert (number in table) == (number in known)
        assert table.add(number) == (number not in known)
        known.add(number)
        assert len(table) == len(known)
    assert all(number in table for number in known)


@settings(max_examples=7, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 4001))
def test_the_table_stays_a_set_while_it_grows(seed: int, count: int):
    random = np.random.Generator(np.random.PCG64(seed))
    numbers = random.integers(0, 2**64, count, dtype=np.uint64).tolist() * 2
    table = FingerprintSet()
    assert [table.add(number) for number in numbers] == [True] * count + [False] * count
    assert len(table) == count


def test_a_number_takes_at_most_27_bytes():
    table = FingerprintSet()
    for number in range(20_011):
        table.add(fingerprint(str(number)))
        if number > 1000:
            assert table.num_bytes() <= 27 * len(table)


def _held_out_by_counting(marks: list[int], *, seed: int, at_most: int, share: float) -> frozenset[int]:
    """The definition: distinct marks in order, each taken whole if it still fits."""
    counts, chosen = Counter(marks), set[int]()
    space = num_held_out(len(marks), at_most=at_most, share=share)
    for mark in sorted(counts):
        if counts[mark] <= space:
            chosen.add(mark)
            space -= counts[mark]
    if not chosen:
        return hold_out(len(marks), seed=seed, at_most=at_most, share=share)
    return frozenset(index for index, mark in enumerate(marks) if mark in chosen)


@given(
    st.lists(st.one_of(st.integers(0, 7), st.integers(0, 2**64 - 1)), max_size=61),
    st.integers(1, 17),
    st.floats(0, 0.99),
)
def test_holding_out_by_arrays_equals_holding_out_by_counting(marks: list[int], at_most: int, share: float):
    found = hold_out_marks(np.array(marks, np.uint64), seed=3, at_most=at_most, share=share)
    assert found == _held_out_by_counting(marks, seed=3, at_most=at_most, share=share)
