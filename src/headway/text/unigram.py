"""Unigram (Kudo 2018): of all ways to take a text apart, the one of the most probable pieces.

Learning starts from many substrings. Expectation and maximisation give each a probability, then those are dropped whose
loss lowers the likelihood of the text least, and so on until the vocabulary has its size (Section 3.2 of the paper).
The `tokenizers` library encodes with the result, but its own learner depends on the order of a hash table and gives
another vocabulary each time; here every sum is taken in a fixed order, by one thread.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from headway.text.alphabet import Alphabet, run_splitter
from headway.text.lattice import Bools, Floats, Lattice, Substrings, alternatives, substrings
from headway.text.tokenizer import UNK_ID, Tokenizer, byte_characters

LONGEST_PIECE = 16  # characters
MOST_CHARACTERS = 1 << 20  # of different words that are learnt from, the most frequent first
SEEDS_PER_TOKEN = 10  # substrings to start from, for each token asked for
SHRINKING = 0.75  # share of the pieces that a round leaves
SUB_ITERATIONS = 2  # of expectation and maximisation in a round
FEWEST = 0.5  # expected occurrences: a piece with fewer goes, and a symbol never seen counts as seen so often
DECIMALS = 6  # of a score: what lies beyond differs between processors


def learn_unigram(
    texts: Iterable[str], *, vocab_size: int, byte_fallback: bool = True, tags: Sequence[str] = ()
) -> Tokenizer:
    """Learn a vocabulary of at most ``vocab_size`` tokens, the four control tokens and the ``tags`` counted.

    Alphabet, determinism and errors are those of ``learn_bpe``. A piece has whole characters, 16 at most, and single
    bytes stand for characters that have no piece. Where texts have very many different words, pieces are learnt from
    the most frequent (a million characters of them), and the others are made of these pieces.
    """
    import tokenizers  # noqa: PLC0415 - importing this room must be instant

    alphabet = Alphabet(byte_fallback=byte_fallback, tags=tags)
    alphabet.check_size(vocab_size, finished=False)
    splitter, counts = run_splitter(), Counter[str]()
    for text in alphabet.spaced(texts):
        counts.update(run for run, _ in splitter.pre_tokenize_str(text))
    alphabet.check_size(vocab_size, finished=True)
    symbols = alphabet.symbols
    names_of_bytes = {byte: name for name, byte in byte_characters().items()}

    def name_of(piece: str) -> str:
        return "".join(names_of_bytes[byte] for byte in piece.encode()) if byte_fallback else piece

    learnt = {
        name_of(piece): score
        for piece, score in _learn(_most_frequent(counts), alphabet, vocab_size - len(alphabet.reserved)).items()
    }
    floor = min(learnt.values(), default=0.0) - 1
    longer = sorted(learnt.keys() - set(symbols), key=lambda name: (-learnt[name], name))
    vocabulary = [(name, 0.0) for name in alphabet.reserved]
    vocabulary += [(name, learnt.get(name, floor)) for name in [*symbols, *longer]]
    model = tokenizers.models.Unigram(vocabulary, None if byte_fallback else UNK_ID, False)
    return alphabet.assemble(model, isolate_unknown=True)


def _most_frequent(counts: Counter[str]) -> dict[str, int]:
    """The words to learn from; of equal counts, the first of the alphabet."""
    chosen: dict[str, int] = {}
    characters = 0
    for word in sorted(counts, key=lambda word: (-counts[word], word)):
        characters += len(word)
        if characters > MOST_CHARACTERS:
            break
        chosen[word] = counts[word]
    return chosen


def _learn(counts: dict[str, int], alphabet: Alphabet, room: int) -> dict[str, float]:
    """The score of each piece that stays; the symbols of the alphabet and the other pieces are ``room`` at most."""
    if not counts:
        return {}
    room -= len(alphabet.symbols)
    found = substrings(counts, longest=LONGEST_PIECE, most=SEEDS_PER_TOKEN * room)
    pieces = _Pieces(found, byte_fallback=alphabet.byte_fallback)
    lattice = Lattice(found.edges, found.offsets)
    while True:
        for _ in range(SUB_ITERATIONS):
            pieces.update(lattice.expected(pieces.score_M, found.weight_W))
        if pieces.count() <= room:
            return pieces.scores()
        pieces.keep_best(max(room, int(SHRINKING * pieces.count())))
        lattice = Lattice(pieces.edges, found.offsets)


class _Pieces:
    """The pieces while they become fewer.

    A character keeps its edges when its piece is gone: its bytes stand there then.
    """

    def __init__(self, found: Substrings, *, byte_fallback: bool) -> None:
        self.edges = found.edges
        self._names = found.names
        self._is_character_M = np.arange(len(found.names)) < found.num_characters
        self._num_bytes_M = np.asarray([len(name.encode()) for name in found.names], np.int64)
        self._is_symbol_M: Bools = self._is_character_M & ((self._num_bytes_M == 1) | (not byte_fallback))
        self._present_M = np.ones(len(found.names), np.bool_)
        lengths_M = np.asarray([len(name) for name in found.names], np.float64)
        self._expected_M: Floats = found.count_M * lengths_M
        self.score_M: Floats = self._scores_of()

    def count(self) -> int:
        """Pieces that are there, symbols apart."""
        return int((self._present_M & ~self._is_symbol_M).sum())

    def update(self, expected_M: Floats) -> None:
        """Maximisation: the probability of a piece is its share of all; a longer one expected hardly ever goes."""
        self._present_M &= self._is_character_M | (expected_M >= FEWEST)
        self._expected_M = expected_M
        self.score_M = self._scores_of()

    def keep_best(self, number: int) -> None:
        """Drop the pieces, symbols apart, whose loss would lower the likelihood least, down to ``number``."""
        candidates = np.flatnonzero(self._present_M & ~self._is_symbol_M)
        without = self._without_M()[candidates]
        loss = self._expected_M[candidates] * (self.score_M[candidates] - without)
        dropped = candidates[np.argsort(-loss, kind="stable")[number:]]
        self._present_M[dropped] = False
        self.score_M = self._scores_of()
        self.edges = self.edges.where((self._present_M | self._is_character_M)[self.edges.piece_E])

    def scores(self) -> dict[str, float]:
        """The score of each piece that is there."""
        return {
            self._names[piece]: round(float(self.score_M[piece]), DECIMALS) for piece in np.flatnonzero(self._present_M)
        }

    def _scores_of(self) -> Floats:
        """Logarithms of probabilities; of a character without a piece, those of its bytes; else minus infinity."""
        held_M = np.maximum(self._expected_M, FEWEST)
        instead_M = np.where(self._is_character_M, self._of_bytes_M(), -np.inf)
        return np.where(self._present_M, np.log(held_M) - self._log_total(), instead_M)

    def _without_M(self) -> Floats:
        """The score of the best way to do without each piece."""
        without_M = self._of_bytes_M()
        longer = np.flatnonzero(self._present_M & ~self._is_character_M)
        without_M[longer] = alternatives(self.edges, longer, self.score_M)
        return without_M

    def _of_bytes_M(self) -> Floats:
        """The score of each piece byte by byte, each byte as if seen FEWEST times."""
        return self._num_bytes_M * (np.log(FEWEST) - self._log_total())

    def _log_total(self) -> float:
        return float(np.log(np.maximum(self._expected_M, FEWEST)[self._present_M].sum()))
