"""In training the ids of a pair may be drawn anew each time it is seen: words taken apart, source tokens unknown."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from headway.config.schema import RunConfig
from headway.data.prepared import Prepared
from headway.data.store import Store
from headway.text.bpe_dropout import BpeDropout, Ints, Sentences, gather, pair_keys
from headway.text.word_dropout import WordDropout


@dataclass(frozen=True, slots=True)
class Segmentation:
    """Draws both sides of pairs from (seed, epoch, side, number of the pair) alone; a side without a rule stays.

    A sentence that would have more than ``longest`` tokens, EOS not counted, keeps the ids of the store. ``words``
    comes last: it makes tokens of the source unknown.
    """

    source: BpeDropout | None
    target: BpeDropout | None
    words: WordDropout | None
    seed: int
    longest: int

    @classmethod
    def of(cls, config: RunConfig, prepared: Prepared) -> Self | None:
        """What a run asks for: nothing without ``text.bpe_dropout`` and ``text.word_dropout``."""
        text = config.text
        if not (text.bpe_dropout or text.word_dropout):
            return None
        longest = config.data.max_tokens
        if config.model.positions == "learned":
            longest = min(longest, config.model.max_positions)
        source, target = _bpe_dropout(config, prepared) if text.bpe_dropout else (None, None)
        reserved = tuple(prepared.source_tokenizer.tags.values())
        words = WordDropout(text.word_dropout, reserved=reserved) if text.word_dropout else None
        return cls(source, target, words, config.train.seed, longest - 1)

    def draw(self, store: Store, indices: Ints, *, epoch: int) -> tuple[Sentences, Sentences]:
        """The sources and the targets of these pairs, in this order."""
        source = gather(store.source_ids, store.source_offsets, indices)
        target = gather(store.target_ids, store.target_offsets, indices)
        pairs = np.asarray(indices, np.int64)
        keys = {
            side: pair_keys(pairs, seed=self.seed, epoch=epoch, side=side) for side in ("source", "target", "words")
        }
        if self.source is not None:
            source = self.source.redraw(source, keys["source"], longest=self.longest)
        if self.target is not None:
            target = self.target.redraw(target, keys["target"], longest=self.longest)
        if self.words is not None:
            source = self.words.redraw(source, keys["words"])
        return source, target


def _bpe_dropout(config: RunConfig, prepared: Prepared) -> tuple[BpeDropout, BpeDropout | None]:
    """Of source and target; symbols of trees have no merges."""
    tokenizers = prepared.source_tokenizer, prepared.target_tokenizer
    source = BpeDropout(tokenizers[0], config.text.bpe_dropout)
    if config.is_parser:
        return source, None
    return source, source if tokenizers[0] is tokenizers[1] else BpeDropout(tokenizers[1], config.text.bpe_dropout)
