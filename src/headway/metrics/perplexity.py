"""Perplexity: how many equally likely tokens the model would hesitate between, on average."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from headway.errors import MetricError


@dataclass(frozen=True, slots=True)
class WordPerplexity:
    """How well a text is predicted, line by line; ``nll`` is -log p (nats) of all of it, the end of each line counted.

    Perplexity per word does not depend on the vocabulary: whatever tokens a model writes words with, a line has as many
    words as white space parts, and its end is one more. It is of the whole text, so that nothing may be left out of it.
    """

    nll: float
    num_words: int  # ends of lines counted, as the next two
    num_tokens: int
    num_lines: int
    num_unknown: int = 0  # tokens that stand for characters the vocabulary lacks: their price is not all of it

    @property
    def per_word(self) -> float:
        """Comparable between models of different vocabularies."""
        return perplexity(-self.nll, self.num_words)

    @property
    def per_token(self) -> float:
        """Of this model's own tokens."""
        return perplexity(-self.nll, self.num_tokens)

    def to_dict(self) -> dict[str, object]:
        """Return plain values, ready for JSON."""
        values = {"perplexity_per_word": self.per_word, "perplexity_per_token": self.per_token}
        counts = {"num_words": self.num_words, "num_tokens": self.num_tokens, "num_lines": self.num_lines}
        counts["num_unknown"] = self.num_unknown
        finite = {name: None if value == math.inf else value for name, value in values.items()}  # JSON has no infinity
        return {**finite, "nats": None if self.nll == math.inf else self.nll, **counts}


@dataclass(frozen=True, slots=True)
class HiddenTokens:
    """How well hidden tokens are filled in: -log p (nats) of one on average, and the share that is right."""

    nll: float
    accuracy: float

    @property
    def perplexity(self) -> float:
        """A hidden token; of this vocabulary, and of the share that is hidden."""
        return perplexity(-self.nll, 1)


def count_words(lines: Iterable[str]) -> int:
    """Words of a text, the end of each line counted as one."""
    return sum(len(line.split()) + 1 for line in lines)


def perplexity(log_prob_sum: float, num_tokens: int) -> float:
    """Return exp(-log_prob_sum / num_tokens): natural logs, summed over all target tokens, EOS counted.

    It is a figure per token of the vocabulary at hand (Section 6.2 of the paper: "per-wordpiece"), so models with
    different vocabularies cannot be compared by it. Infinite where a target had probability 0. Raises MetricError
    when there are no tokens, or the sum is no log-probability.
    """
    if num_tokens < 1:
        raise MetricError(
            f"metrics/perplexity: {num_tokens} target tokens; at least 1 is wanted. Give a reference that is not empty."
        )
    if math.isnan(log_prob_sum) or log_prob_sum > 0.0:
        raise MetricError(
            f"metrics/perplexity: the log-probabilities sum to {log_prob_sum}; a number not above 0 is wanted. "
            f"The weights hold values that are not finite: use an earlier checkpoint."
        )
    try:
        return math.exp(-log_prob_sum / num_tokens)
    except OverflowError:
        return math.inf
