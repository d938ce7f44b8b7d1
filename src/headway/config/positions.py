"""Numbers of the position schemes that are not trained; layers ask, and what writes them in other toolkits' layouts."""

import math

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
