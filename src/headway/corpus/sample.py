"""A sample of pairs that depends on the pairs only, not on their order, from a stream of any length."""

import heapq

from headway.corpus.pair import SentencePair


class Sample:
    """Keeps the pairs with the smallest marks; marks are fingerprints, so this is a uniform sample of what differs."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._heap: list[tuple[int, int, SentencePair]] = []  # largest mark first

    def wants(self, mark: int) -> bool:
        """Whether a pair with this mark would be kept."""
        return len(self._heap) < self._size or -mark > self._heap[0][0]

    def add(self, mark: int, pair: SentencePair) -> None:
        """Offer a pair."""
        if len(self._heap) < self._size:
            heapq.heappush(self._heap, (-mark, -pair.line, pair))
        elif -mark > self._heap[0][0]:
            heapq.heapreplace(self._heap, (-mark, -pair.line, pair))

    def pairs(self) -> list[SentencePair]:
        """The pairs that were kept, in the order of their marks."""
        return [pair for _, _, pair in sorted(self._heap, key=lambda entry: entry[:2], reverse=True)]
