"""Numbers of the position schemes that are not trained; layers ask, and what writes them in other toolkits' layouts."""

import math
from collections.abc import Iterable

BASE = 10_000.0  # of the wavelengths, in sinusoids and in rotations
NUM_BUCKETS = 32  # T5's: rows of its table ...
MAX_DISTANCE = 128  # ... and the distance from which all share one row


def alibi_slopes(num_heads: int) -> list[float]:
    """2^(-8/H), 2^(-16/H), ... 2^-8 for a power of two (Press et al. 2021).

    For another H, those of the power of two below it, then every second one, from the first, of the power above.
    """
    below = 2 ** math.floor(math.log2(num_heads))
    slopes = [2.0 ** (-8.0 * (head + 1) / below) for head in range(below)]
    between = [2.0 ** (-4.0 * (2 * head + 1) / below) for head in range(num_heads - below)]
    return slopes + between


def word_slopes(num_heads: int) -> list[float]:
    """What a score of cross-attention loses for a word of distance, a head: four times the slopes of ALiBi."""
    return [4.0 * slope for slope in alibi_slopes(num_heads)]


def write_bits(token_ids: Iterable[int]) -> str:
    """A set of token ids in hexadecimal digits, a bit a token, the last digit being that of the first four."""
    value = 0
    for token_id in token_ids:
        value |= 1 << token_id
    return f"{value:x}"


def read_bits(digits: str) -> list[int]:
    """The token ids that ``write_bits`` wrote, from the lowest up. Raises ValueError for what are no such digits."""
    return [token_id for token_id, bit in enumerate(reversed(f"{int(digits, 16):b}")) if bit == "1"]
