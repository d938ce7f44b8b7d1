"""All that one validation of a run has to judge by, and when a value of it is grave enough to be told."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from headway.checkpoint.state import Scores
from headway.config.schema import EvaluateConfig, RunConfig
from headway.corpus.overlap import Overlap
from headway.data.store import Store
from headway.metrics.outputs import OutputCounts
from headway.metrics.writing import Mismatch
from headway.train.events import Signs
from headway.train.history import History
from headway.train.validate import Seen

LEARNT = 0.6  # of the nats of guessing by frequency: Multi30k is at 0.47 at its first validation
FEWEST_OUTPUTS = 3  # of one kind: one output in a small text says nothing
UNIGRAM_TOKENS = 1 << 20  # of the training text: enough to know how often tokens occur


@dataclass(frozen=True, slots=True)
class Look:
    """What a validation shows, what the run was before it, and what both are compared with."""

    config: RunConfig
    history: History  # of before this validation
    signs: Signs
    scores: Scores
    seen: Seen
    counts: OutputCounts
    mismatch: Mismatch | None
    overlap: Overlap
    unigram: float  # nats a token of guessing by how often each occurs in training
    uniform: float  # nats a token of guessing any: ln V; a model not trained yet is up to half a nat above it
    words: float  # of a reference, by BLEU's tokenizer
    expected_bleu: float  # by the accuracy of single tokens
    peak: float  # of the learning rate, by the recipe

    @property
    def unit(self) -> str:
        """What is predicted, one by one."""
        return "label" if self.config.reads == "labelled" else "token"

    @property
    def before(self) -> Signs | None:
        """The validation before, if it was past the warm-up."""
        earlier = self.history.validations
        return earlier[-1] if earlier and self._is_warmed(earlier[-1].step) else None

    @property
    def bleu(self) -> float:
        """That of the outputs, which are those of a model that translates."""
        assert self.scores.bleu is not None
        return self.scores.bleu

    @property
    def chrf(self) -> float:
        """The same."""
        assert self.scores.chrf is not None
        return self.scores.chrf

    @property
    def learnt(self) -> bool:
        """The validation text is far less surprising than to one who guesses by frequency."""
        return self.signs.nll <= LEARNT * self.unigram

    def holds(self, value: Callable[[Signs], float], *, lasting: float, at_once: float = math.inf) -> bool:
        """Whether a value is grave here, or high here and at the validation before; never during the warm-up."""
        if not self._is_warmed(self.signs.step):
            return False
        here, before = value(self.signs), self.before
        return (here >= at_once and self.learnt) or (
            here >= lasting and before is not None and value(before) >= lasting
        )

    def share_holds(self, count: Callable[[Signs], int], *, lasting: float, at_once: float) -> bool:
        """As ``holds``, for a count as a share of the outputs."""
        if count(self.signs) < FEWEST_OUTPUTS:
            return False
        return self.holds(lambda signs: count(signs) / max(signs.outputs, 1), lasting=lasting, at_once=at_once)

    def _is_warmed(self, step: int) -> bool:
        return step > self.config.train.warmup_steps


def unigram_nll(store: Store, *, has_ends: bool = True) -> float:
    """The entropy, in nats a token, of a store's target tokens (or labels); of a large store of its first million.

    With ``has_ends`` EOS counts, as where the ends of texts are predicted.
    """
    ids = np.asarray(store.target_ids[:UNIGRAM_TOKENS])
    num_sentences = int(np.searchsorted(store.target_offsets, len(ids), side="right")) - 1
    counts = np.append(np.bincount(ids), num_sentences * has_ends).astype(np.float64)
    probabilities = counts[counts > 0] / counts.sum()
    return float(-(probabilities * np.log(probabilities)).sum())


def words_of(references: Sequence[str], evaluate: EvaluateConfig, *, target_language: str) -> float:
    """Words of a reference, as BLEU counts them."""
    from sacrebleu.metrics.bleu import BLEU  # noqa: PLC0415 - loaded when scores are asked for

    from headway.metrics.translation import choose_tokenizer  # noqa: PLC0415 - it loads sacreBLEU too

    tokenizer = BLEU(tokenize=choose_tokenizer(evaluate.tokenize, target_language, [])).tokenizer
    return sum(len(tokenizer(text.rstrip()).split()) for text in references) / max(len(references), 1)


def expected_bleu(accuracy: float, *, tokens: float, words: float) -> float:
    """The BLEU that the accuracy of single tokens lets expect, for references of so many tokens and words.

    If each token is right with probability a, and a word has k, n words in a row are right with a^(nk), and the mean
    over n of 1 to 4, as BLEU takes it, is a^(2.5k). Multi30k: 28 expected and 39 found; the demo: 11 and 52.
    """
    return 100 * accuracy ** (2.5 * tokens / max(words, 1e-9))
