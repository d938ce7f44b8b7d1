"""BPE-dropout (Provilkov et al. 2020): in training a word is taken apart anew each time it is seen.

Algorithm 1 of the paper: as long as a merge applies, each that does is dropped with probability p, and of those left
the one of highest priority is made; when all are dropped the word is finished. Every draw is a hash of (seed, epoch,
side, number of the pair, word, merge), so what a pair becomes depends on nothing else: not on its batch, the process,
the number of threads or what was drawn before.

Departure: the paper starts from characters. A byte-level vocabulary starts from bytes, and merges inside one character
are never dropped, so that a character with a token of its own does not fall apart into bytes.

Shapes: N tokens of all sentences, W words, R words of like length that are taken apart, L symbols of the longest one.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise
from typing import Self

import numpy as np
from numpy.typing import NDArray

from headway.errors import TextError
from headway.text.tokenizer import CONTROL_TOKENS, Tokenizer

Ints = NDArray[np.int64]
Keys = NDArray[np.uint64]

COLUMN_BITS = 9  # a merge is ordered by its priority, then by its place: both in one number, priority << 9 | place
MOST_SYMBOLS = 1 << COLUMN_BITS  # of a word; a run has at most 65 characters of 4 bytes
NO_MERGE = np.iinfo(np.int32).max
WIDTHS = (4, 8, 12, 16, 24, 32, 64, 128, MOST_SYMBOLS)  # words are taken apart together with others of like length

_WEYL = np.uint64(0x9E3779B97F4A7C15)  # 2^64 divided by the golden ratio, and odd: successive sums are spread evenly
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


@dataclass(frozen=True, slots=True)
class Sentences:
    """Token ids of sentences one after the other, and where each begins; the last offset is the number of ids."""

    ids_N: Ints
    offsets: Ints

    @staticmethod
    def of(sentences: list[list[int]]) -> "Sentences":
        """Join lists of ids."""
        lengths = [len(ids) for ids in sentences]
        joined = [token_id for ids in sentences for token_id in ids]
        return Sentences(np.asarray(joined, np.int64), _offsets(np.asarray(lengths, np.int64)))

    def lists(self) -> list[list[int]]:
        """Give the ids of each sentence as a list."""
        ids = self.ids_N.tolist()
        bounds = self.offsets.tolist()
        return [ids[begin:end] for begin, end in pairwise(bounds)]


def gather(ids: NDArray[np.integer], offsets: Ints, indices: Ints) -> Sentences:
    """The sentences of these numbers, of many that lie one after the other."""
    begins = offsets[indices]
    lengths = offsets[indices + 1] - begins
    return Sentences(ids[_ranges(begins, lengths)].astype(np.int64), _offsets(lengths))


def pair_keys(indices: Ints, *, seed: int, epoch: int, side: str) -> Keys:
    """The key of each pair's side, from which all its draws follow."""
    digest = sha256(f"headway bpe dropout {seed} {epoch} {side}".encode()).digest()
    base = np.frombuffer(digest[:8], "<u8").astype(np.uint64)
    return _mixed(base + (indices.astype(np.uint64) + np.uint64(1)) * _WEYL)


def draws_of_tokens(sentences: Sentences, keys: Keys) -> NDArray[np.float64]:
    """A number from 0 to 1 for each token (N), by the key of its sentence and its place in it alone."""
    lengths = np.diff(sentences.offsets)
    return _draws(np.repeat(keys, lengths), _counted(lengths)) / 2.0**64


class BpeDropout:
    """Draws another segmentation for sentences that the tokenizer has encoded."""

    def __init__(self, tokenizer: Tokenizer, probability: float) -> None:
        assert 0 <= probability < 1, "a probability below 1"
        description = json.loads(tokenizer.to_json())
        if tokenizer.model != "bpe" or tokenizer.imported:
            kind = f"imported {tokenizer.model}" if tokenizer.imported else tokenizer.model
            raise TextError(
                f"text/bpe_dropout: the vocabulary is {kind}; BPE-dropout needs the merges of a BPE learnt here. "
                "Remedy: set text.bpe_dropout to 0, or text.model to bpe."
            )
        ids: dict[str, int] = description["model"]["vocab"]
        merges: list[tuple[str, str]] = [(left, right) for left, right in description["model"]["merges"]]
        assert len(merges) < NO_MERGE >> COLUMN_BITS, "a merge's priority and place fit into 31 bits"
        self._tokenizer = tokenizer
        self._piece_bytes = np.asarray([len(piece) for piece in tokenizer.pieces], np.int64)
        self._symbols = _symbols(tokenizer.names, frozenset([*range(len(CONTROL_TOKENS)), *tokenizer.tags.values()]))
        self._merges = _Merges.of(ids, merges, tokenizer.pieces)
        # Entry k: a draw below it drops k + 1 merges in a row, one after the other.
        self._thresholds = _thresholds(probability)

    @classmethod
    def from_tokenizer(cls, tokenizer: Tokenizer, probability: float) -> Self:
        """For a BPE tokenizer learnt here; TextError for another. ``probability`` is from 0 up to but not 1."""
        return cls(tokenizer, probability)

    def redraw(self, sentences: Sentences, keys: Keys, *, longest: int | None = None) -> Sentences:
        """Take sentences apart anew, one key each; they decode to the same texts.

        A sentence that would have more than ``longest`` tokens stays as it is, and so does a run around what is no
        text (ids that another tokenizer gave).
        """
        words = self._words(sentences)
        word_keys = _mixed(keys[words.sentence_W] + (words.number_W.astype(np.uint64) + np.uint64(1)) * _WEYL)
        num_merges_W = words.num_symbols_W - words.num_tokens_W
        chosen = np.flatnonzero(self._drops_any(word_keys, num_merges_W) & (words.num_symbols_W <= MOST_SYMBOLS))
        drawn = self._take_apart(words, chosen, word_keys[chosen])
        return _replaced(sentences, words, chosen, drawn, longest=longest)

    def _words(self, sentences: Sentences) -> "_Words":
        """Find the runs that no merge crosses, in the text that the ids decode to."""
        token_ends = np.cumsum(self._piece_bytes[sentences.ids_N])
        run_ends = np.cumsum(np.fromiter(self._run_lengths(sentences), np.int64))
        ends_token = np.isin(token_ends, run_ends)
        lengths = np.diff(sentences.offsets)
        ends_token[sentences.offsets[1:][lengths > 0] - 1] = True
        ends = np.flatnonzero(ends_token) + 1
        starts = np.concatenate([np.zeros(1, np.int64), ends[:-1]]) if len(ends) else ends
        sentence = np.searchsorted(sentences.offsets, starts, side="right") - 1
        first = np.searchsorted(starts, sentences.offsets[:-1])
        symbol_counts = np.concatenate([np.zeros(1, np.int64), np.cumsum(self._symbols.lengths[sentences.ids_N])])
        return _Words(
            ids_N=sentences.ids_N,
            start_W=starts,
            num_tokens_W=ends - starts,
            num_symbols_W=symbol_counts[ends] - symbol_counts[starts],
            sentence_W=sentence,
            number_W=np.arange(len(starts)) - first[sentence],
        )

    def _run_lengths(self, sentences: Sentences) -> Iterator[int]:
        """Bytes of each run, sentence by sentence; of a whole sentence if it is no text."""
        pieces = self._tokenizer.pieces
        for ids in sentences.lists():
            content = b"".join([pieces[token_id] for token_id in ids])
            try:
                text = content.decode("utf-8")
            except UnicodeDecodeError:
                yield len(content)
                continue
            runs = self._tokenizer.prepared_runs(text)
            yield from [len(run) if self._tokenizer.byte_fallback else len(run.encode()) for run in runs]

    def _drops_any(self, keys_W: Keys, num_merges_W: Ints) -> NDArray[np.bool_]:
        """Tell which words lose a merge on their way; the others stay as they are, which saves most of the work."""
        draws = _draws(np.repeat(keys_W, num_merges_W), _counted(num_merges_W))
        dropped = np.repeat(np.arange(len(keys_W)), num_merges_W)[draws < self._thresholds[-1]]
        any_W = np.zeros(len(keys_W), np.bool_)
        any_W[dropped] = True
        return any_W

    def _take_apart(self, words: "_Words", chosen: Ints, keys: Keys) -> Sentences:
        """The tokens of the chosen words, drawn anew, in their order."""
        lengths = words.num_symbols_W[chosen]
        groups = np.searchsorted(WIDTHS, lengths)
        counts = np.zeros(len(chosen), np.int64)
        found: list[tuple[Ints, Ints]] = []
        for group in np.unique(groups).tolist():
            rows = np.flatnonzero(groups == group)
            symbols = self._symbols_of(words, chosen[rows])
            tokens, counts[rows] = _merge_all(symbols, keys[rows], self._merges, self._thresholds)
            found.append((rows, tokens))
        offsets = _offsets(counts)
        ids = np.empty(int(offsets[-1]), np.int64)
        for rows, tokens in found:
            ids[_ranges(offsets[rows], counts[rows])] = tokens
        return Sentences(ids, offsets)

    def _symbols_of(self, words: "_Words", chosen: Ints) -> "Sentences":
        """The symbols that the chosen words are made of."""
        ids = words.ids_N[_ranges(words.start_W[chosen], words.num_tokens_W[chosen])]
        symbols = self._symbols.ids[_ranges(self._symbols.offsets[ids], self._symbols.lengths[ids])]
        return Sentences(symbols, _offsets(words.num_symbols_W[chosen]))


@dataclass(frozen=True, slots=True)
class _Words:
    """Runs of the text of sentences: where each starts among the ids, and its number in its sentence."""

    ids_N: Ints
    start_W: Ints
    num_tokens_W: Ints
    num_symbols_W: Ints
    sentence_W: Ints
    number_W: Ints


@dataclass(frozen=True, slots=True)
class _Symbols:
    """The symbols of every token of the vocabulary, one token after the other."""

    ids: Ints
    offsets: Ints
    lengths: Ints


def _symbols(names: Sequence[str], reserved: frozenset[int]) -> _Symbols:
    """Bytes or characters of each token; a reserved token, or one of unknown symbols, is its own only symbol."""
    ids = {name: token_id for token_id, name in enumerate(names)}
    flat: list[int] = []
    lengths: list[int] = []
    for token_id, name in enumerate(names):
        symbols = [ids.get(character, -1) for character in name]
        if token_id in reserved or -1 in symbols:
            symbols = [token_id]
        flat.extend(symbols)
        lengths.append(len(symbols))
    counts = np.asarray(lengths, np.int64)
    return _Symbols(np.asarray(flat, np.int64), _offsets(counts), counts)


@dataclass(frozen=True, slots=True)
class _Merges:
    """The merges as arrays: pairs in order of their number, to look up; results and whether a merge may be dropped."""

    pairs: Ints  # left * vocabulary + right, ascending
    priorities: Ints  # of each of them; 0 comes first
    results: Ints  # by priority
    droppable: NDArray[np.bool_]  # by priority
    vocab_size: int

    @staticmethod
    def of(ids: dict[str, int], merges: list[tuple[str, str]], pieces: Sequence[bytes]) -> "_Merges":
        """Merges in the order of their priority."""
        size = len(ids)
        pairs = np.asarray([ids[left] * size + ids[right] for left, right in merges], np.int64)
        results = np.asarray([ids[left + right] for left, right in merges], np.int64)
        droppable = np.asarray([not _inside_character(pieces[result]) for result in results.tolist()], np.bool_)
        order = np.argsort(pairs, kind="stable")
        return _Merges(pairs[order], order, results, droppable, size)

    def codes(self, left: Ints, right: Ints, column: Ints) -> NDArray[np.int32]:
        """Priority and place of the merge of each pair in one number; NO_MERGE for a pair that is none."""
        if not len(self.pairs):
            return np.full(left.shape, NO_MERGE, np.int32)
        wanted = left * self.vocab_size + right
        place = np.minimum(np.searchsorted(self.pairs, wanted), len(self.pairs) - 1)
        codes = self.priorities[place] << COLUMN_BITS | column
        return np.where(self.pairs[place] == wanted, codes, NO_MERGE).astype(np.int32)


def _inside_character(piece: bytes) -> bool:
    """Tell whether bytes are at most one character: only the first may start one."""
    return all(byte & 0xC0 == 0x80 for byte in piece[1:])  # 10xxxxxx goes on with a character


class _Board:
    """Words while their symbols are merged: one column a word, each symbol knows its neighbours that are left.

    A flat place is row * R + column. Row L is a border: it stands before the first symbol and after the last.
    """

    def __init__(self, symbols: Sentences, merges: _Merges) -> None:
        lengths_R = np.diff(symbols.offsets)
        self.num_words, self.num_rows = len(lengths_R), int(lengths_R.max())
        size = (self.num_rows + 1) * self.num_words
        word = np.repeat(np.arange(self.num_words), lengths_R)
        row = _counted(lengths_R)
        place = row * self.num_words + word
        border = self.num_rows * self.num_words + word
        self.tokens = np.full(size, -1, np.int64)
        self.tokens[place] = symbols.ids_N
        self.next = np.full(size, size - 1, np.int64)
        self.next[place] = np.where(row + 1 < lengths_R[word], place + self.num_words, border)
        self.before = np.full(size, size - 1, np.int64)
        self.before[place] = np.where(row > 0, place - self.num_words, border)
        self.codes = np.full(size, NO_MERGE, np.int32)
        self._merges = merges
        self._look_up(place)

    def best(self) -> NDArray[np.int32]:
        """The code of each word's first merge."""
        return self.codes.reshape(-1, self.num_words).min(axis=0)

    def ordered(self, words: Ints) -> NDArray[np.int32]:
        """The codes of these words, the first merges first."""
        return np.sort(self.codes.reshape(-1, self.num_words)[:, words], axis=0)

    def finish(self, words: Ints) -> None:
        """No merge is made in these words any more."""
        self.codes.reshape(-1, self.num_words)[:, words] = NO_MERGE

    def merge(self, words: Ints, codes: NDArray[np.int32]) -> None:
        """Make one merge in each of these words."""
        row = (codes & (MOST_SYMBOLS - 1)).astype(np.int64)
        left = row * self.num_words + words
        right = self.next[left]
        after = self.next[right]
        self.tokens[left] = self._merges.results[codes >> COLUMN_BITS]
        self.tokens[right] = -1
        self.codes[right] = NO_MERGE
        self.next[left] = after
        inside = after < self.num_rows * self.num_words
        self.before[after[inside]] = left[inside]
        before = self.before[left]
        self._look_up(np.concatenate([left, before[before < self.num_rows * self.num_words]]))

    def result(self) -> tuple[Ints, Ints]:
        """The tokens that are left, word after word, and how many each word has."""
        tokens = self.tokens.reshape(-1, self.num_words).T
        left = tokens >= 0
        return tokens[left], left.sum(axis=1)

    def _look_up(self, place: Ints) -> None:
        following = self.tokens[self.next[place]]  # -1 at the border
        codes = self._merges.codes(self.tokens[place], following, place // self.num_words)
        self.codes[place] = np.where(following >= 0, codes, NO_MERGE)


def _merge_all(symbols: Sentences, keys: Keys, merges: _Merges, thresholds: Keys) -> tuple[Ints, Ints]:
    """Run Algorithm 1 on all words at once: the tokens, word after word, and how many each word has."""
    board = _Board(symbols, merges)
    for number in range(board.num_rows):
        best = board.best()
        words = np.flatnonzero(best != NO_MERGE)
        if not len(words):
            break
        codes = best[words]
        draws = _draws(keys[words], np.full(len(words), number, np.int64))
        skipped = len(thresholds) - np.searchsorted(thresholds, draws, side="right")
        some = np.flatnonzero(skipped)
        if len(some):
            codes[some] = _left_over(board.ordered(words[some]), skipped[some], merges.droppable)
            board.finish(words[codes == NO_MERGE])
            words, codes = words[codes != NO_MERGE], codes[codes != NO_MERGE]
        board.merge(words, codes)
    return board.result()


def _left_over(ordered_LR: NDArray[np.int32], skipped_R: Ints, droppable: NDArray[np.bool_]) -> NDArray[np.int32]:
    """The first merge of each word that is not among the ``skipped_R`` that are dropped; NO_MERGE if none is left."""
    is_merge = ordered_LR != NO_MERGE
    may_drop = is_merge & droppable[np.where(is_merge, ordered_LR >> COLUMN_BITS, 0)]
    dropped = may_drop & (np.cumsum(may_drop, axis=0) <= skipped_R)
    first = np.argmin(dropped, axis=0)  # the border is never dropped, so there is one
    return np.take_along_axis(ordered_LR, first[None], axis=0)[0]


def _replaced(sentences: Sentences, words: _Words, chosen: Ints, drawn: Sentences, *, longest: int | None) -> Sentences:
    """Sentences with the chosen words in their new form, where they are not too long."""
    num_sentences = len(sentences.offsets) - 1
    counts = words.num_tokens_W.copy()
    counts[chosen] = np.diff(drawn.offsets)
    lengths = np.bincount(words.sentence_W, weights=counts, minlength=num_sentences).astype(np.int64)
    if longest is not None:
        too_long = lengths > np.maximum(longest, 0)
        fits = ~too_long[words.sentence_W[chosen]]
        counts = np.where(too_long[words.sentence_W], words.num_tokens_W, counts)
        lengths = np.where(too_long, np.diff(sentences.offsets), lengths)
    else:
        fits = np.ones(len(chosen), np.bool_)
    offsets = _offsets(counts)
    ids = np.empty(int(offsets[-1]), np.int64)
    new = np.zeros(len(counts), np.bool_)
    new[chosen[fits]] = True
    old = ~new
    ids[_ranges(offsets[:-1][old], counts[old])] = sentences.ids_N[_ranges(words.start_W[old], counts[old])]
    kept = chosen[fits]
    ids[_ranges(offsets[kept], counts[kept])] = drawn.ids_N[_ranges(drawn.offsets[:-1][fits], counts[kept])]
    return Sentences(ids, _offsets(lengths))


def _thresholds(probability: float) -> Keys:
    """2^64 p^k for k from the most symbols down to 1, ascending: a draw is below entry -k with probability p^k."""
    thresholds: list[int] = []
    share = 1.0
    for _ in range(MOST_SYMBOLS):
        share *= probability
        thresholds.append(int(share * 2.0**64))
    return np.asarray(thresholds[::-1], np.uint64)


def _draws(keys: Keys, number: Ints) -> Keys:
    """A number from 0 to 2^64 - 1 for the merge of this number in the word with this key."""
    return _mixed(keys + (number.astype(np.uint64) + np.uint64(1)) * _WEYL)


def _mixed(state: Keys) -> Keys:
    """The finishing steps of SplitMix64 (Steele et al. 2014): every bit of the result hangs on every bit given."""
    state = (state ^ (state >> np.uint64(30))) * _MIX[0]
    state = (state ^ (state >> np.uint64(27))) * _MIX[1]
    return state ^ (state >> np.uint64(31))


def _offsets(lengths: Ints) -> Ints:
    """Where each of several things of these lengths begins, and where the last ends."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])


def _counted(lengths: Ints) -> Ints:
    """0, 1, ... up to each length, one after the other."""
    return _ranges(np.zeros(len(lengths), np.int64), lengths)


def _ranges(begins: Ints, lengths: Ints) -> Ints:
    """begin, begin + 1, ... for each of several ranges, one after the other."""
    ends = np.cumsum(lengths)
    return np.repeat(begins - (ends - lengths), lengths) + np.arange(int(ends[-1]) if len(ends) else 0)
