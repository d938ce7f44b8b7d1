"""Which target tokens stand for which source tokens: cross-attention added up over parallel text, into a shortlist.

Shapes: T target positions, S source positions.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from headway.engine.shortlist import Shortlist, shortlist_of
from headway.text.tokenizer import EOS_ID, UNK_ID, Tokenizer

LEAST_WEIGHT = 0.02  # a target token's share in a source token; smaller ones are noise, and most of the memory
UNSEEN = 0.01  # what a pair of tokens that was never met counts
FIRST_WAITING = 1 << 17  # weights that are added up at once, or half as many as the table has
MOST_PAIRS = 1 << 25  # of a source and a target token that are kept; beyond, the rarest are let go

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Cooccurrence:
    """Counts of target tokens by source token: each target token is shared out among the source's tokens.

    A token's share is in proportion to the root of the attention that the target token gave it, times p(target |
    source) by the counts so far. Attention alone spreads too widely (after a few batches the lists are better by as
    much as lists twice as long): this is a step of expectation maximisation a batch, as in IBM's model 1 (Brown et al.
    1993), with attention in the place of the uniform alignment.
    Memory is bounded: when there are more than ``most_pairs`` pairs of tokens, those with the least weight are
    forgotten, and ``forgotten`` counts them.
    """

    def __init__(self, source: Tokenizer, target: Tokenizer, *, most_pairs: int = MOST_PAIRS) -> None:
        self.source, self.target = source, target
        self.most_pairs = most_pairs
        self.forgotten = 0
        self._occurrences = np.zeros(target.vocab_size, dtype=np.int64)
        self._keys: Ints = np.empty(0, dtype=np.int64)  # source id x target vocabulary + target id, rising
        self._weights: Floats = np.empty(0, dtype=np.float64)
        self._totals: Floats = np.zeros(source.vocab_size)  # of each source token's weights
        self._waiting: list[tuple[Ints, Floats]] = []
        self._num_waiting = 0

    def add(self, source_ids: Sequence[int], target_ids: Sequence[int], weights_TS: npt.NDArray[np.float32]) -> None:
        """Count a pair; both end in EOS, and the target's is left out: it is always allowed."""
        target_T = np.asarray(target_ids[:-1], dtype=np.int64)
        keys_TS = np.asarray(source_ids, dtype=np.int64) * self.target.vocab_size + target_T[:, None]
        share_TS = np.sqrt(weights_TS[:-1].astype(np.float64)) * self._probability(keys_TS)
        share_TS /= share_TS.sum(axis=1, keepdims=True)
        is_kept_TS = share_TS >= LEAST_WEIGHT
        np.add.at(self._occurrences, target_T, 1)
        self.count(keys_TS[is_kept_TS], share_TS[is_kept_TS])

    def count(self, keys: Ints, weights: Floats) -> None:
        """Add weights to pairs of tokens, written as source id x target vocabulary + target id."""
        self._waiting.append((keys, weights))
        self._num_waiting += len(keys)
        if self._num_waiting > max(FIRST_WAITING, len(self._keys) // 2):
            self._merge()

    def shortlist(self, *, frequent: int, per_token: int, vocabularies: tuple[str, str]) -> Shortlist:
        """The ``per_token`` best target tokens of each source token, and the ``frequent`` most frequent for all.

        Best: of the largest weight, that is, of the largest p(target | source); the frequent ones take no place of
        others. Where no target was counted, its weights added up stand for how frequent it is. Each source token may
        also stay as it is, where the target's vocabulary has it. Among equals the lower id is taken.
        """
        self._merge()
        counted = self._occurrences.astype(np.float64)
        if not counted.any():
            size = self.target.vocab_size
            counted = np.bincount(self._keys % size, weights=self._weights, minlength=size)
        ranked = np.argsort(-counted, kind="stable")[:frequent]
        always = {UNK_ID, EOS_ID, *ranked[counted[ranked] > 0].tolist()}
        same = self._same()
        lists = [
            [*best, *([same[source_id]] if source_id in same else [])]
            for source_id, best in enumerate(self._best(per_token, always))
        ]
        return shortlist_of(lists, always, target_vocab_size=self.target.vocab_size, vocabularies=vocabularies)

    def _probability(self, keys: Ints) -> Floats:
        """p(target | source) of pairs of tokens, by what has been added up; equal for all while nothing has."""
        if not len(self._keys):
            return np.ones(keys.shape)
        places = np.searchsorted(self._keys, keys).clip(max=len(self._keys) - 1)
        counts = np.where(self._keys[places] == keys, self._weights[places], 0.0)
        size = self.target.vocab_size
        return (counts + UNSEEN) / (self._totals[keys // size] + UNSEEN * size)

    def _best(self, per_token: int, always: set[int]) -> Iterator[list[int]]:
        """The best target tokens of each source token."""
        sources, targets = np.divmod(self._keys, self.target.vocab_size)
        is_open = ~np.isin(targets, list(always))
        sources, targets, weights = sources[is_open], targets[is_open], self._weights[is_open]
        order = np.lexsort((targets, -weights, sources))
        bounds = np.searchsorted(sources, np.arange(self.source.vocab_size + 1))
        for begin, end in pairwise(bounds.tolist()):
            yield targets[order[begin : min(end, begin + per_token)]].tolist()

    def _same(self) -> dict[int, int]:
        """Source ids with the target ids of the same token: names and numbers often stay as they are."""
        target_ids = {name: token_id for token_id, name in enumerate(self.target.names)}
        return {
            source_id: target_ids[name]
            for source_id, name in enumerate(self.source.names)
            if name in target_ids and target_ids[name] > EOS_ID
        }

    def _merge(self) -> None:
        """Add what waits to the table, and let the lightest pairs go where there are too many."""
        keys = np.concatenate([self._keys, *(keys for keys, _ in self._waiting)])
        weights = np.concatenate([self._weights, *(weights for _, weights in self._waiting)])
        self._waiting, self._num_waiting = [], 0
        self._keys, places = np.unique(keys, return_inverse=True)
        self._weights = np.bincount(places, weights=weights, minlength=len(self._keys)).astype(np.float64)
        excess = len(self._keys) - self.most_pairs
        if excess > 0:
            kept = np.sort(np.argsort(self._weights, kind="stable")[excess:])
            self._keys, self._weights = self._keys[kept], self._weights[kept]
            self.forgotten += excess
        sources = self._keys // self.target.vocab_size
        totals = np.bincount(sources, weights=self._weights, minlength=self.source.vocab_size)
        self._totals = totals.astype(np.float64)  # also where there is nothing to add up
