"""Damaged files, the same ones each time."""

import random
from collections.abc import Iterator, Sequence


def mutations(data: bytes, words: Sequence[bytes], *, count: int, seed: int = 7) -> Iterator[bytes]:
    """Copies of a file with one to four damages each: bytes and words put in, parts taken out, doubled or moved."""
    chance = random.Random(seed)
    for _ in range(count):
        damaged = data
        for _ in range(chance.choice((1, 1, 2, 4))):
            damaged = _damage(damaged, words, chance)
        yield damaged


def _damage(data: bytes, words: Sequence[bytes], chance: random.Random) -> bytes:
    start = chance.randrange(len(data) + 1)
    end = min(len(data), start + chance.choice((1, 1, 2, 5, 23, 211)))
    part = data[start:end]
    other = chance.randrange(len(data) + 1)
    kinds = [
        lambda: data[:start] + bytes([chance.randrange(256)]) + data[start + 1 :],
        lambda: data[:start] + bytes([chance.choice(b"<>&\"'/\\ \r\n\t#[]=-!?")]) + data[start:],
        lambda: data[:start] + chance.choice(words) + data[start:],
        lambda: data[:start] + data[end:],
        lambda: data[:start] + part + data[start:],
        lambda: data[:other] + part + data[other:],
        lambda: data[:start],
    ]
    return chance.choices(kinds, weights=(3, 3, 4, 4, 2, 3, 1))[0]()
