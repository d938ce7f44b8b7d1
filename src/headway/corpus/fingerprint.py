"""A short number that stands for a text, where keeping every text would take too much memory."""

from array import array
from hashlib import blake2b

_FEWEST_SLOTS = 1 << 10
_FULL = 0.6  # share of slots in use at which the table doubles


def fingerprint(*texts: str, seed: int = 0) -> int:
    """64 bits that depend on the texts, on where each ends, and on the seed; the same on every machine.

    Among n different texts two share a number with probability about n^2 / 2^65: 1 in 30,000 for 36 million pairs.
    """
    parts: list[bytes] = []
    for text in texts:
        encoded = text.encode("utf-8", "surrogatepass")
        parts += (len(encoded).to_bytes(8, "little"), encoded)
    digest = blake2b(b"".join(parts), digest_size=8, salt=(seed % 2**128).to_bytes(16, "little"))
    return int.from_bytes(digest.digest(), "little")


class FingerprintSet:
    """A set of fingerprints that only grows, in 13 to 27 bytes each (a set of Python numbers takes some 100).

    An open-addressing table with linear probing: a number's place is its lowest bits, for fingerprints are evenly
    spread already.
    """

    def __init__(self) -> None:
        self._slots = array("Q", bytes(8 * _FEWEST_SLOTS))  # 0: free
        self._has_zero = False
        self._used = 0

    def __len__(self) -> int:
        return self._used + self._has_zero

    def __contains__(self, number: int) -> bool:
        return self._slots[self._place(number)] != 0 if number else self._has_zero

    def add(self, number: int) -> bool:
        """Put a number of 64 bits in; tell whether it is new."""
        if number == 0:
            is_new, self._has_zero = not self._has_zero, True
            return is_new
        place = self._place(number)
        if self._slots[place]:
            return False
        self._slots[place] = number
        self._used += 1
        if self._used > _FULL * len(self._slots):
            self._grow()
        return True

    def num_bytes(self) -> int:
        """Memory that the table takes; half as much again while it doubles."""
        return self._slots.itemsize * len(self._slots)

    def _place(self, number: int) -> int:
        """Where the number is, or the free slot where it belongs."""
        slots, last = self._slots, len(self._slots) - 1
        place = number & last
        while slots[place] and slots[place] != number:
            place = (place + 1) & last
        return place

    def _grow(self) -> None:
        earlier = self._slots
        self._slots = array("Q", bytes(16 * len(earlier)))
        for number in earlier:
            if number:
                self._slots[self._place(number)] = number
