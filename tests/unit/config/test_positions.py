"""Numbers of position schemes by hand."""

import pytest

from headway.config.positions import alibi_slopes


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
