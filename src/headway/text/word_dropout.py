"""Word dropout (Iyyer et al. 2015): in training some source tokens are read as unknown, others each time.

Every draw follows from (seed, epoch, number of the pair, place of the token) alone, as in BPE-dropout.
"""

from collections.abc import Sequence

import numpy as np

from headway.text.bpe_dropout import Keys, Sentences, draws_of_tokens
from headway.text.reserved import CONTROL_TOKENS, UNK_ID


class WordDropout:
    """Replaces tokens by UNK, each with the given probability; ``reserved`` ids (tags) stay."""

    def __init__(self, probability: float, *, reserved: Sequence[int] = ()) -> None:
        assert 0 <= probability < 1, "a probability below 1"
        self._probability = probability
        self._kept = np.asarray([*range(len(CONTROL_TOKENS)), *reserved], np.int64)

    def redraw(self, sentences: Sentences, keys: Keys) -> Sentences:
        """The same sentences with some tokens unknown, one key each."""
        is_dropped_N = draws_of_tokens(sentences, keys) < self._probability
        is_dropped_N &= ~np.isin(sentences.ids_N, self._kept)
        return Sentences(np.where(is_dropped_N, UNK_ID, sentences.ids_N), sentences.offsets)
