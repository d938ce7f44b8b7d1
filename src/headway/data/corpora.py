"""The corpora of a run: their files, and their cleaned text, divided into what is trained on and what is held out."""

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from headway.config.data_config import CleanConfig, CorpusConfig, DataConfig
from headway.config.schema import RunConfig
from headway.corpus.clean import CleanReport, clean
from headway.corpus.fingerprint import fingerprint
from headway.corpus.lines import STANDARD_STREAM
from headway.corpus.pair import SentencePair
from headway.corpus.read import read
from headway.corpus.split import hold_out_marks
from headway.data.cleaned import Block, Cleaned, write_blocks
from headway.data.mixture import weights
from headway.data.treebank import read_treebank
from headway.errors import DataError

PARTS_OF_DATA = ("train", "validation", "test")
Progress = Callable[[str, int], None]
Rows = NDArray[np.bool_]  # true for some of the cleaned pairs, in their order


def corpora_of(data: DataConfig, part: str) -> list[CorpusConfig]:
    """The corpora of ``train``, ``validation`` or ``test``; none where no file is named."""
    if part == "train":
        return data.training_corpora
    names = {
        "validation": (data.validation_source, data.validation_target, data.validation_tag),
        "test": (data.test_source, data.test_target, data.test_tag),
    }
    source, target, tag = names[part]
    if not source:
        return []
    own = data.model_dump(include={"format", "source_field", "target_field", "source_language", "target_language"})
    return [CorpusConfig(source=source, target=target, tag=tag, **own)]


def files_of(corpus: CorpusConfig) -> list[str]:
    """Its one or two files, as the recipe names them."""
    return [name for name in (corpus.source, corpus.target) if name]


def read_corpus(corpus: CorpusConfig, config: RunConfig, data_dir: Path) -> Iterator[SentencePair]:
    """Its pairs in their order. CorpusError as ``corpus.read`` raises it, and of trees as ``read_treebank`` does."""
    data = config.data
    paths = [name if name == STANDARD_STREAM else data_dir / name for name in files_of(corpus)]
    if config.is_parser:
        return read_treebank(paths[0], config.parsing)
    return read(
        *paths,
        source_language=corpus.source_language,
        target_language=corpus.target_language,
        format=corpus.format,
        source_field=corpus.source_field,
        target_field=corpus.target_field,
        inline_tags=data.inline_tags,
    )


def filters_of(config: RunConfig) -> CleanConfig:
    """The filters that tell something of the run's text: sides that are no translations may be alike or unlike.

    So of a parser, too: symbols of trees are longer than words.
    """
    return (
        config.clean
        if config.translates
        else config.clean.model_copy(update={"drop_identical": False, "max_ratio": 0.0})
    )


@dataclass(slots=True)
class Corpus:
    """A training corpus and how its pairs have fared."""

    config: CorpusConfig
    cleaning: CleanReport = field(default_factory=CleanReport)
    held_out: int = 0

    @property
    def left(self) -> int:
        """Cleaned pairs that are not held out."""
        return self.cleaning.num_kept - self.held_out


@dataclass(frozen=True, slots=True)
class TrainingText:
    """The cleaned text of all corpora, one after the other, and which pairs are to train on (the rest is held out)."""

    cleaned: Cleaned
    corpora: list[Corpus]
    training: Rows

    def blocks(self, rows: Rows) -> Iterator[tuple[int, Block]]:
        """The pairs of these rows, and the number of the corpus that each block is of."""
        number, last = 0, self.corpora[0].cleaning.num_kept
        for block in self.cleaned.blocks():
            while block.first >= last:
                number += 1
                last += self.corpora[number].cleaning.num_kept
            mine = np.flatnonzero(rows[block.first : block.first + len(block)])
            if len(mine):
                yield number, block.some(mine.tolist())

    def bounds(self) -> list[tuple[int, int]]:
        """Where each corpus begins and ends among the cleaned pairs."""
        ends = np.cumsum([0, *(corpus.cleaning.num_kept for corpus in self.corpora)]).tolist()
        return list(pairwise(ends))

    def weights(self, counts: Sequence[int], *, temperature: float) -> list[Fraction]:
        """The weight of each corpus, if it has so many pairs to train on."""
        return weights(counts, [corpus.config.weight for corpus in self.corpora], temperature=temperature)

    def tags(self) -> list[str]:
        """The tags of its corpora, in their order; corpora without one give none."""
        return [tag for tag in dict.fromkeys(corpus.config.tag for corpus in self.corpora) if tag]

    def name(self, number: int) -> str:
        """What tells this corpus from the others; nothing where there is one only."""
        return self.corpora[number].config.source if len(self.corpora) > 1 else ""

    def cleaning(self) -> CleanReport:
        """The reports of all corpora in one; examples only where there is one, for their lines are those of a file."""
        if len(self.corpora) == 1:
            return self.corpora[0].cleaning
        whole = CleanReport()
        for corpus in self.corpora:
            report = corpus.cleaning
            whole.num_read += report.num_read
            whole.num_kept += report.num_kept
            whole.active |= report.active
            for name, count in report.dropped.items():
                whole.dropped[name] = whole.dropped.get(name, 0) + count
        return whole


def clean_corpora(config: RunConfig, data_dir: Path, path: Path, *, on_progress: Progress) -> TrainingText:
    """Clean each training corpus for itself, write what is left to ``path``, and choose what is held out.

    A pair that stands in two corpora stays in both: their weights and tags say what it is there for. What is held out
    is chosen among all. DataError when too few pairs are left, OSError when the disk is full.
    """
    named = bool(config.data.validation_source)
    corpora = [Corpus(corpus) for corpus in config.data.training_corpora]
    marks = array("Q")  # of sources
    before = 0
    with path.open("wb") as file:
        for corpus in corpora:
            pairs = clean(
                read_corpus(corpus.config, config, data_dir),
                filters_of(config),
                corpus.cleaning,
            )
            for count in write_blocks(file, pairs if named else _marked(pairs, marks, config.train.seed)):
                on_progress("clean", before + count)
            before += corpus.cleaning.num_kept
    text = TrainingText(Cleaned(path), corpora, np.ones(before, np.bool_))
    check_enough(text.cleaning(), named=named)
    if not named:
        text.training[_held_out(marks, config)] = False
        for corpus, (begin, end) in zip(corpora, text.bounds(), strict=True):
            corpus.held_out = int((~text.training[begin:end]).sum())
    return text


def _marked(pairs: Iterable[SentencePair], marks: "array[int]", seed: int) -> Iterator[SentencePair]:
    """The pairs as they come; the fingerprints of their sources are added to ``marks``."""
    for pair in pairs:
        marks.append(fingerprint(pair.source.strip(), seed=seed))
        yield pair


def _held_out(marks: "array[int]", config: RunConfig) -> list[int]:
    data, seed = config.data, config.train.seed
    numbers = np.frombuffer(marks, np.uint64)
    return sorted(hold_out_marks(numbers, seed=seed, at_most=data.held_out_pairs, share=data.held_out_share))


def check_enough(report: CleanReport, *, named: bool) -> None:
    """Raise DataError where too few pairs are left; ``named``: validation text is named, none is held out."""
    wanted, why = (1, "") if named else (2, ", one to train on and one to validate with")
    if report.num_kept >= wanted:
        return
    dropped = "; ".join(f"{name} {count:,}" for name, count in report.dropped.items()) or "none"
    raise DataError(
        f"data/corpora: {report.num_kept:,} of {report.num_read:,} sentence pairs are left after cleaning (dropped: "
        f"{dropped}); training needs at least {wanted}{why}. Add pairs, relax the filters of [clean]"
        f"{'' if named else ', or name validation files (data.validation_source)'}."
    )
