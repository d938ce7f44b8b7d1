"""Counts of a run's training text, from which ``--preset auto`` chooses: one pass over its files, cleaned as ever."""

from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from headway.config.auto import ENOUGH_PAIRS, CorpusFacts, SideFacts
from headway.config.schema import RunConfig
from headway.corpus.clean import CleanReport, clean
from headway.corpus.fingerprint import fingerprint
from headway.corpus.lines import STANDARD_STREAM
from headway.corpus.pair import SentencePair
from headway.corpus.split import num_held_out
from headway.data.cleaned import until_full
from headway.data.corpora import check_enough, files_of, filters_of, read_corpus
from headway.data.named_files import check_files, check_settings
from headway.errors import DataError
from headway.text.markup import SPACELESS
from headway.text.segment import split_sentences

COVERAGE = 0.9995  # share of the text that counted characters make up: SentencePiece's advice for scripts of many
CODE_POINTS = 0x110000
DISTINCT_KEPT = 1 << 16  # fingerprints of different words kept; up to so many the count is exact
BLOCK_CHARACTERS = 1 << 20

OnCounted = Callable[[int], None]


def count_facts(
    config: RunConfig, data_dir: Path, *, at_most: int = ENOUGH_PAIRS, on_progress: OnCounted | None = None
) -> CorpusFacts:
    """Read and clean the training files, and count; ``on_progress`` hears how many pairs it has seen, 0 when it begins.

    Memory: some 20 MB, and 13 to 27 bytes a pair where duplicates are dropped. Raises DataError when too few pairs are
    left and for input that can be read once only, CorpusError as ``corpus.read`` does.
    """
    check_settings(config)
    check_files(config, data_dir)
    _check_readable(config, data_dir)
    heard = on_progress or _ignore
    heard(0)
    counter, whole = _Counter(), CleanReport()
    for corpus in config.data.training_corpora:
        cleaned = clean(read_corpus(corpus, config, data_dir), filters_of(config), whole)
        pairs = islice(cleaned, at_most - counter.pairs)
        while block := list(until_full(pairs, BLOCK_CHARACTERS)):
            counter.add(block)
            if config.translates:
                counter.add_sentences(block, corpus.source_language or config.data.source_language)
            heard(counter.pairs)
        if counter.pairs >= at_most:
            break
    named = bool(config.data.validation_source)
    check_enough(whole, named=named)
    data = config.data
    held_out = num_held_out(counter.pairs, at_most=data.held_out_pairs, share=data.held_out_share)
    return CorpusFacts(
        pairs_read=whole.num_read,
        pairs=counter.pairs,
        source=counter.side(0),
        target=counter.side(1),
        different_words=counter.words.estimate(),
        characters=_covering(counter.characters),
        validation_pairs=None if named else held_out,
        is_whole=counter.pairs < at_most,
        several=counter.several,
    )


def _ignore(count: int) -> None:
    """Nobody listens."""


def _check_readable(config: RunConfig, data_dir: Path) -> None:
    for corpus in config.data.training_corpora:
        for name in files_of(corpus):
            path = data_dir / name
            if name == STANDARD_STREAM or (path.exists() and not path.is_file() and not path.is_dir()):
                raise DataError(
                    f"data/facts: {'standard input' if name == STANDARD_STREAM else path} can be read once only, and "
                    "choosing settings from the text (--preset auto) reads it before training does. "
                    "Write it to a file first, or leave --preset auto out."
                )


class _Counter:
    """Counts of both sides, added to block by block."""

    def __init__(self) -> None:
        self.pairs = 0
        self.several = 0  # of them, with more than one sentence in the source
        self.words = Distinct()
        self.characters = np.zeros(CODE_POINTS, np.int64)
        self._words = [0, 0]
        self._spaceless = [0, 0]

    def add(self, block: Sequence[SentencePair]) -> None:
        """Count these pairs too."""
        self.pairs += len(block)
        for place, texts in enumerate(([pair.source for pair in block], [pair.target for pair in block])):
            text = "\n".join(texts)
            spaced, spaceless = SPACELESS.subn(" ", text)
            words = spaced.split()
            self._words[place] += len(words)
            self._spaceless[place] += spaceless
            self.words.add(set(words))
            points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")
            counts = np.bincount(points)
            self.characters[: len(counts)] += counts

    def add_sentences(self, block: Sequence[SentencePair], language: str) -> None:
        """Count those of these pairs that have several sentences in the source."""
        self.several += sum(len(split_sentences(pair.source, language)) > 1 for pair in block)

    def side(self, place: int) -> SideFacts:
        """The counts of the source (0) or the target (1)."""
        return SideFacts(self._words[place], self._spaceless[place])


def _covering(counts: np.ndarray) -> int:
    """How many of the most frequent characters make up COVERAGE of the text; white space is none."""
    seen = np.flatnonzero(counts)
    letters = [point for point in seen.tolist() if not chr(point).isspace()]
    ordered = np.sort(counts[letters])[::-1]
    return int(np.searchsorted(np.cumsum(ordered), COVERAGE * ordered.sum())) + 1 if len(ordered) else 0


class Distinct:
    """How many different words there are: exactly up to DISTINCT_KEPT, beyond that within about a hundredth.

    Of the words' fingerprints those below a limit are kept; each time there are too many, the limit is halved (adaptive
    sampling, Wegman; Flajolet 1990). Two words with one fingerprint count as one: 1 in 10^10 for that many.
    """

    def __init__(self, kept: int = DISTINCT_KEPT) -> None:
        self._most = kept
        self._halvings = 0
        self._numbers: set[int] = set()

    def add(self, words: set[str]) -> None:
        """See these words."""
        limit = 1 << (64 - self._halvings)
        self._numbers.update(number for number in map(fingerprint, words) if number < limit)
        while len(self._numbers) > self._most:
            self._halvings += 1
            limit >>= 1
            self._numbers = {number for number in self._numbers if number < limit}

    def estimate(self) -> int:
        """The number of different words so far."""
        return len(self._numbers) << self._halvings
