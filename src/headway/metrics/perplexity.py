"""Perplexity: how many equally likely tokens the model would hesitate between, on average."""

import math

from headway.errors import MetricError


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
