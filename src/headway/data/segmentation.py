"""In training with BPE-dropout the ids of a pair are drawn anew each time it is seen."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from headway.config.schema import RunConfig
from headway.data.prepared import Prepared
from headway.data.store import Store
from headway.text.bpe_dropout import BpeDropout, Ints, Sentences, gather, pair_keys


@dataclass(frozen=True, slots=True)
class Segmentation:
    """Draws both sides of pairs from (seed, epoch, side, number of the pair) alone.

    A sentence that would have more than ``longest`` tokens, EOS not counted, keeps the ids of the store.
    """

    source: BpeDropout
    target: BpeDropout
    seed: int
    longest: int

    @classmethod
    def of(cls, config: RunConfig, prepared: Prepared) -> Self | None:
        """What a run asks for: nothing without ``text.bpe_dropout``."""
        probability = config.text.bpe_dropout
        if not probability:
            return None
        tokenizers = prepared.source_tokenizer, prepared.target_tokenizer
        source = BpeDropout(tokenizers[0], probability)
        target = source if tokenizers[0] is tokenizers[1] else BpeDropout(tokenizers[1], probability)
        longest = config.data.max_tokens
        if config.model.positions == "learned":
            longest = min(longest, config.model.max_positions)
        return cls(source, target, config.train.seed, longest - 1)

    def draw(self, store: Store, indices: Ints, *, epoch: int) -> tuple[Sentences, Sentences]:
        """The sources and the targets of these pairs, in this order."""
        source = gather(store.source_ids, store.source_offsets, indices)
        target = gather(store.target_ids, store.target_offsets, indices)
        pairs = np.asarray(indices, np.int64)
        keys = [pair_keys(pairs, seed=self.seed, epoch=epoch, side=side) for side in ("source", "target")]
        return (
            self.source.redraw(source, keys[0], longest=self.longest),
            self.target.redraw(target, keys[1], longest=self.longest),
        )
