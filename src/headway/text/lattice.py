"""All ways to take words apart into pieces, as arrays: how probable they are together, and which is the best.

A word of n characters has n + 1 nodes, one before each character and one after the last; an edge is a piece between two
nodes. Sums run over all words at once, from one number of characters to the next.

Shapes: P characters of all words, W words, E edges, M pieces, X nodes.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

SMALLEST_COUNT = 2  # a substring seen once is no pattern


@dataclass(frozen=True, slots=True)
class Edges:
    """Pieces in words: the nodes before and after each, and how many characters of its word come before."""

    piece_E: Ints
    start_E: Ints
    end_E: Ints
    depth_E: Ints

    def where(self, keep_E: Bools) -> "Edges":
        """Only some of the edges."""
        return Edges(self.piece_E[keep_E], self.start_E[keep_E], self.end_E[keep_E], self.depth_E[keep_E])


@dataclass(frozen=True, slots=True)
class Substrings:
    """Pieces to start from, single characters first, with their counts, and every place where they are in the words.

    ``offsets`` has the first node of each word, and the number of nodes at its end; ``weight_W`` each word's count.
    """

    names: list[str]
    count_M: Floats
    num_characters: int
    edges: Edges
    offsets: Ints
    weight_W: Floats


@dataclass(slots=True)
class _Level:
    """Substrings of one length: the places where they begin, which one begins there, and how often each is there."""

    place: Ints
    piece: Ints
    count: Floats
    parent: Ints  # the substring without its last character, among those of the length below


def substrings(counts: Mapping[str, int], *, longest: int, most: int) -> Substrings:
    """Find the substrings that come twice or more in words of these counts: the ``most`` that cover most of the text.

    A substring that the same character always follows is left to the longer one. Single characters are all there, and
    not counted among the ``most``.
    """
    words = sorted(counts)
    text = "".join(words)
    lengths = np.asarray([len(word) for word in words], np.int64)
    weight_W = np.asarray([counts[word] for word in words], np.float64)
    word_P = np.repeat(np.arange(len(words)), lengths)
    end_P = np.cumsum(lengths)[word_P]
    levels = _levels(text, end_P, weight_W[word_P], longest=longest)
    chosen = _choose(levels, most)
    pieces: list[Ints] = []
    places: list[Ints] = []
    sizes: list[Ints] = []
    number = 0
    for length, (level, kept) in enumerate(zip(levels, chosen, strict=True), start=1):
        here = kept[level.piece]
        pieces.append((np.cumsum(kept) - 1 + number)[level.piece[here]])
        places.append(level.place[here])
        sizes.append(np.full(int(here.sum()), length, np.int64))
        number += int(kept.sum())
    piece_E, place_E, size_E = np.concatenate(pieces), np.concatenate(places), np.concatenate(sizes)
    start_E = place_E + word_P[place_E]
    edges = Edges(piece_E, start_E, start_E + size_E, place_E - (end_P - lengths[word_P])[place_E])
    first = first_edges(edges, number)
    names = [text[place : place + size] for place, size in zip(place_E[first], size_E[first], strict=True)]
    count_M = np.concatenate([level.count[kept] for level, kept in zip(levels, chosen, strict=True)])
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths + 1)])
    return Substrings(names, count_M, len(levels[0].count), edges, offsets, weight_W)


def _levels(text: str, end_P: Ints, weight_P: Floats, *, longest: int) -> list[_Level]:
    """Substrings of each length from 1 on; each is told from others by the one that is a character shorter."""
    codes_P = np.frombuffer(text.encode("utf-32-le"), "<u4").astype(np.int64)
    _, letter_P = np.unique(codes_P, return_inverse=True)
    level = _Level(np.arange(len(codes_P)), letter_P, _sums(letter_P, weight_P), letter_P[:0])
    levels = [level]
    num_letters = len(level.count)
    for length in range(2, longest + 1):
        inside = level.place + length <= end_P[level.place]
        place = level.place[inside]
        keys, piece = np.unique(level.piece[inside] * num_letters + letter_P[place + length - 1], return_inverse=True)
        count = _sums(piece, weight_P[place])
        often = count >= SMALLEST_COUNT
        kept = often[piece]
        renumbered = np.cumsum(often) - 1
        level = _Level(place[kept], renumbered[piece[kept]], count[often], keys[often] // num_letters)
        if not len(level.place):
            break
        levels.append(level)
    return levels


def _sums(groups: Ints, values: Floats, *, at_least: int = 0) -> Floats:
    """The sum of the values of each group, in their order."""
    return np.bincount(groups, weights=values, minlength=at_least).astype(np.float64, copy=False)


def _choose(levels: list[_Level], most: int) -> list[Bools]:
    """Which substrings of each length to start from; all of length 1."""
    covered: list[Floats] = []
    for length, (level, longer) in enumerate(pairwise([*levels[1:], None]), start=2):
        assert level is not None, "only the last has no longer one"
        followed = np.zeros(len(level.count))
        if longer is not None:
            np.maximum.at(followed, longer.parent, longer.count)
        covered.append(np.where(followed < level.count, level.count * length, 0.0))
    joined = np.concatenate([*covered, np.zeros(0)])
    best = np.argsort(-joined, kind="stable")[:most]
    chosen = np.zeros(len(joined), np.bool_)
    chosen[best] = joined[best] > 0
    bounds = np.cumsum([0, *(len(part) for part in covered)]).tolist()
    return [np.ones(len(levels[0].count), np.bool_), *(chosen[begin:end] for begin, end in pairwise(bounds))]


def first_edges(edges: Edges, num_pieces: int) -> Ints:
    """The number of one edge of each piece, the first; -1 for a piece without edges."""
    first = np.full(num_pieces, -1, np.int64)
    first[edges.piece_E[::-1]] = np.arange(len(edges.piece_E))[::-1]  # of several the last assignment stays
    return first


class Lattice:
    """Words with their edges, in the order in which sums from a word's first node to its last need them."""

    def __init__(self, edges: Edges, offsets: Ints) -> None:
        self._edges = edges
        self._offsets = offsets
        self._word_E = np.searchsorted(offsets, edges.start_E, side="right") - 1
        self._forward = _Sweep(edges.depth_E + edges.end_E - edges.start_E, edges.start_E, edges.end_E)
        self._backward = _Sweep(-edges.depth_E, edges.end_E, edges.start_E)

    def expected(self, score_M: Floats, weight_W: Floats) -> Floats:
        """How often each piece is expected in the words, over all ways to take them apart, by their probability."""
        score_E = score_M[self._edges.piece_E]
        before_X = self._run(self._forward, score_E, _log_sums, begin=self._offsets[:-1])
        after_X = self._run(self._backward, score_E, _log_sums, begin=self._offsets[1:] - 1)
        total_W = before_X[self._offsets[1:] - 1]
        log_share_E = before_X[self._edges.start_E] + score_E + after_X[self._edges.end_E] - total_W[self._word_E]
        count_E = np.exp(log_share_E) * weight_W[self._word_E]
        return _sums(self._edges.piece_E, count_E, at_least=len(score_M))

    def best(self, score_M: Floats) -> Floats:
        """The score of the best way to take each word apart; minus infinity if there is none."""
        score_E = score_M[self._edges.piece_E]
        value_X = self._run(self._forward, score_E, np.maximum.reduceat, begin=self._offsets[:-1])
        return value_X[self._offsets[1:] - 1]

    def _run(
        self, sweep: "_Sweep", score_E: Floats, reduce: "Callable[[Floats, Ints], Floats]", *, begin: Ints
    ) -> Floats:
        value_X = np.full(int(self._offsets[-1]), -np.inf)
        value_X[begin] = 0.0
        for edges, nodes in sweep.levels:
            values = value_X[sweep.from_E[edges]] + score_E[sweep.order_E[edges]]
            value_X[sweep.nodes[nodes]] = reduce(values, sweep.starts[nodes] - edges.start)
        return value_X


class _Sweep:
    """Edges in the order of their level and of the node they lead to, so that each node's edges are one slice."""

    def __init__(self, level_E: Ints, from_E: Ints, to_E: Ints) -> None:
        self.order_E = np.lexsort((to_E, level_E))
        self.from_E = from_E[self.order_E]
        to_E, level_E = to_E[self.order_E], level_E[self.order_E]
        is_first = np.ones(len(to_E), np.bool_)
        is_first[1:] = to_E[1:] != to_E[:-1]
        self.starts = np.flatnonzero(is_first)
        self.nodes = to_E[self.starts]
        edge_bounds = [*np.flatnonzero(np.diff(level_E, prepend=np.inf)).tolist(), len(to_E)]
        node_bounds = np.searchsorted(self.starts, edge_bounds).tolist()
        self.levels = [
            (slice(*edges), slice(*nodes))
            for edges, nodes in zip(pairwise(edge_bounds), pairwise(node_bounds), strict=True)
        ]


def _log_sums(values: Floats, starts: Ints) -> Floats:
    """The logarithm of the sum of exponentials of each slice; at least one value of a slice is finite."""
    highest = np.maximum.reduceat(values, starts)
    shifted = values - np.repeat(highest, np.diff(starts, append=len(values)))
    return highest + np.log(np.add.reduceat(np.exp(shifted), starts))


def alternatives(edges: Edges, pieces: Ints, score_M: Floats) -> Floats:
    """For each of ``pieces``, longer than a character: the score of the best way to do without it."""
    first = first_edges(edges, len(score_M))[pieces]
    start, size = edges.start_E[first], edges.end_E[first] - edges.start_E[first]
    by_start = np.argsort(edges.start_E, kind="stable")
    sorted_start = edges.start_E[by_start]
    low = np.searchsorted(sorted_start, start)
    high = np.searchsorted(sorted_start, start + size)
    number = np.repeat(np.arange(len(pieces)), high - low)
    place = np.arange(len(number)) - np.repeat(np.cumsum(high - low) - (high - low), high - low)
    inner = by_start[np.repeat(low, high - low) + place]
    inside = (edges.end_E[inner] <= (start + size)[number]) & (edges.piece_E[inner] != pieces[number])
    inner, number = inner[inside], number[inside]
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(size + 1)])
    moved = offsets[number] - start[number]
    moved_start = edges.start_E[inner] + moved
    copied = Edges(edges.piece_E[inner], moved_start, edges.end_E[inner] + moved, moved_start - offsets[number])
    return Lattice(copied, offsets).best(score_M)
