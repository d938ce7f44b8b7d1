"""The kinds of vocabulary that can be learnt (``[text] model``)."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from headway.text.bpe import learn_bpe
from headway.text.tokenizer import Tokenizer
from headway.text.unigram import learn_unigram
from headway.text.wordpiece import learn_wordpiece


class Learner(Protocol):
    """Learns a vocabulary of at most ``vocab_size`` tokens, control tokens and tags counted."""

    def __call__(
        self, texts: Iterable[str], *, vocab_size: int, byte_fallback: bool = True, tags: Sequence[str] = ()
    ) -> Tokenizer:
        """Raises TextError when the alphabet does not fit into ``vocab_size``; equal texts give an equal tokenizer."""
        ...


LEARNERS: dict[str, Learner] = {"bpe": learn_bpe, "wordpiece": learn_wordpiece, "unigram": learn_unigram}
