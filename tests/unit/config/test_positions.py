"""Numbers of position schemes by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.config.positions import alibi_slopes, read_bits, write_bits


@pytest.mark.parametrize(
    ("num_heads", "slopes"),
    [
        (8, [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256]),
        (6, [1 / 4, 1 / 16, 1 / 64, 1 / 256, 1 / 2, 1 / 8]),  # those of 4, then every second one of 8
        (1, [1 / 256]),
        (2, [1 / 16, 1 / 256]),
        (3, [1 / 16, 1 / 256, 1 / 4]),
        (16, [2 ** (-n / 2) for n in range(1, 17)]),
    ],
)
def test_slopes_by_hand(num_heads, slopes):
    assert alibi_slopes(num_heads) == pytest.approx(slopes)


@given(st.sets(st.integers(0, 999), min_size=1))
def test_a_set_of_tokens_is_digits_and_comes_back(token_ids):
    digits = write_bits(token_ids)
    assert read_bits(digits) == sorted(token_ids)
    assert len(digits) == max(token_ids) // 4 + 1


def test_the_last_digit_is_that_of_the_first_four_tokens():
    assert write_bits([0, 1, 5]) == "23"
    assert write_bits([]) == "0"
    assert read_bits("0") == []
