"""Pairs to ids in a store: what is too long or empty is left out, and counted."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from headway.config.schema import RunConfig
from headway.corpus.overlap import OverlapCounter
from headway.data.cleaned import Block
from headway.data.corpora import Progress, TrainingText
from headway.data.encoder import Encoder, no_texts
from headway.data.labels import Labels
from headway.data.mixture import Mixture, Share
from headway.data.prepared import Dropped, Encoded
from headway.data.store import StoreWriter
from headway.data.treebank import source_coder
from headway.errors import DataError
from headway.text.tokenizer import Tokenizer

NUM_LINES = 3  # that are named of those left out

Tagged = tuple[str, Block]  # pairs of one tag


@dataclass(slots=True)
class Counts:
    """What went into a store and what did not, while it is written."""

    pairs: int = 0
    source_tokens: int = 0
    target_tokens: int = 0
    too_long: list[int] = field(default_factory=list[int])  # lines of the first few, ...
    num_too_long: int = 0  # ... and how many there are
    empty: list[int] = field(default_factory=list[int])
    num_empty: int = 0

    def add_left_out(self, *, too_long: list[int], empty: list[int]) -> None:
        """Count lines that are left out."""
        self.num_too_long += len(too_long)
        self.num_empty += len(empty)
        self.too_long += too_long[: NUM_LINES - len(self.too_long)]
        self.empty += empty[: NUM_LINES - len(self.empty)]

    def encoded(self) -> Encoded:
        """The counts as they are reported."""
        too_long, empty = Dropped(self.num_too_long, tuple(self.too_long)), Dropped(self.num_empty, tuple(self.empty))
        return Encoded(self.pairs, self.source_tokens, self.target_tokens, too_long, empty)


def sum_of(counts: Sequence[Counts]) -> Encoded:
    """The counts of all corpora together; lines only where there is one corpus, for they are those of a file."""
    if len(counts) == 1:
        return counts[0].encoded()
    whole = Counts()
    for name in ("pairs", "source_tokens", "target_tokens", "num_too_long", "num_empty"):
        setattr(whole, name, sum(getattr(each, name) for each in counts))
    return whole.encoded()


class Coder:
    """Turns pairs into ids, and leaves out what is too long or empty. Without sources, those have no ids.

    With ``labels`` targets are no text.
    """

    def __init__(self, tokenizers: tuple[Tokenizer, Tokenizer], config: RunConfig, *, labels: Labels | None) -> None:
        self._tokenizers = tokenizers
        self._max_tokens = config.data.max_tokens
        self._has_sources = config.reads != "text"
        source = source_coder(tokenizers[0], config.parsing) if config.is_parser else tokenizers[0]
        self._source = Encoder(source)
        text = self._source if tokenizers[0] is tokenizers[1] else Encoder(tokenizers[1])
        self._target = text if labels is None else labels
        self._target_size = tokenizers[1].vocab_size if labels is None else labels.size

    def open(self, folder: Path) -> StoreWriter:
        """A writer of a store with these vocabularies."""
        source = self._tokenizers[0].vocab_size
        return StoreWriter(folder, source_vocab_size=source, target_vocab_size=self._target_size)

    def write(self, block: Block, writer: StoreWriter, *, tag: str, counts: Counts) -> None:
        """Add pairs to a store, and count them."""
        targets = self._target.encode(block.targets)
        sources = self._source.encode(block.sources) if self._has_sources else no_texts(len(block))
        if tag:
            sources = sources.after(self._tokenizers[0].tag_id(tag))
        texts = zip(block.sources, block.targets, strict=True)
        is_empty = np.array([not source.strip() or not target.strip() for source, target in texts], np.bool_)
        is_long = (np.maximum(sources.lengths, targets.lengths) + 1 > self._max_tokens) & ~is_empty
        left_out = [[block.lines[row] for row in np.flatnonzero(rows).tolist()] for rows in (is_long, is_empty)]
        counts.add_left_out(too_long=left_out[0], empty=left_out[1])
        kept = ~(is_long | is_empty)
        sources, targets = sources.some(kept), targets.some(kept)
        writer.extend(sources, targets)
        counts.pairs += int(kept.sum())
        counts.source_tokens += len(sources.ids)
        counts.target_tokens += len(targets.ids)


def encode_training(
    text: TrainingText,
    folder: Path,
    *,
    coder: Coder,
    config: RunConfig,
    counters: Sequence[OverlapCounter],
    on_progress: Progress,
) -> list[Counts]:
    """Write the store of the training pairs, with the weights of their corpora; the counts of each corpus."""
    counts = [Counts() for _ in text.corpora]
    seen = 0
    with coder.open(folder) as writer:
        for number, block in text.blocks(text.training):
            for source, target, line in zip(block.sources, block.targets, block.lines, strict=True):
                for counter in counters:
                    counter.see(source, target, line=line, corpus=text.name(number))
            coder.write(block, writer, tag=text.corpora[number].config.tag, counts=counts[number])
            seen += len(block)
            on_progress("encode", seen)
        writer.mix(_mixture([each.pairs for each in counts], text, config))
    return counts


def _mixture(sizes: Sequence[int], text: TrainingText, config: RunConfig) -> Mixture:
    """Corpora of these sizes with their weights. DataError when an epoch could be without a pair."""
    weights = text.weights(sizes, temperature=config.data.sampling_temperature)
    mixture = Mixture(tuple(Share(size, weight) for size, weight in zip(sizes, weights, strict=True)))
    if sum(sizes) and not mixture.fewest():
        raise DataError(
            f"data/encoding: corpora of {', '.join(f'{size:,}' for size in sizes)} pairs with the weights "
            f"{', '.join(f'{float(weight):g}' for weight in weights)} give epochs without a pair; wanted 1 at least. "
            "Raise the weights."
        )
    return mixture


def encode_validation(text: Iterable[Tagged], folder: Path, *, coder: Coder) -> Encoded:
    """Write the store of held-out or named validation text."""
    counts = Counts()
    with coder.open(folder) as writer:
        for tag, block in text:
            coder.write(block, writer, tag=tag, counts=counts)
    return counts.encoded()
