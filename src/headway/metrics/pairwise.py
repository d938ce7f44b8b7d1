"""Sentence chrF and BLEU of every text of a list against every other: the utilities of minimum Bayes risk decoding.

The scores are sacreBLEU's sentence scores with its default settings (BLEU with effective order, as its own
``sentence_bleu`` has it). Each text's n-grams are counted once, and pairs are compared all together.

Shapes: H texts as hypotheses, R the same texts as references, G different n-grams.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
Unit = TypeVar("Unit")

CHARACTER_ORDER = 6
CHRF_BETA = 2
WORD_ORDER = 4


def pairwise_chrf(texts: Sequence[str], target_language: str = "") -> Matrix:
    """The chrF2 (0 to 100) of each text (row) against each as reference (column). The language does not matter."""
    characters = ["".join(text.split()) for text in texts]
    precision_HR = recall_HR = orders_HR = np.zeros((len(texts), len(texts)))
    for order in range(1, CHARACTER_ORDER + 1):
        count = np.array([max(len(text) - order + 1, 0) for text in characters], dtype=np.float64)
        matches_HR = _matches([_ngrams(text, order) for text in characters])
        counts_HR = (count[:, None] > 0) & (count[None, :] > 0)
        precision_HR = precision_HR + matches_HR / np.maximum(count, 1)[:, None]
        recall_HR = recall_HR + matches_HR / np.maximum(count, 1)[None, :]
        orders_HR = orders_HR + counts_HR
    orders_HR = np.maximum(orders_HR, 1)
    precision_HR, recall_HR = precision_HR / orders_HR, recall_HR / orders_HR
    factor = CHRF_BETA**2
    bottom_HR = factor * precision_HR + recall_HR
    top_HR = (1 + factor) * precision_HR * recall_HR
    return 100.0 * np.divide(top_HR, bottom_HR, out=np.zeros_like(top_HR), where=bottom_HR > 0)


def pairwise_bleu(texts: Sequence[str], target_language: str = "") -> Matrix:
    """The sentence BLEU (0 to 100) of each text (row) against each as reference (column).

    Words are those of the tokenizer that suits the language. Raises MetricError where it is not installed.
    """
    from sacrebleu.metrics.bleu import BLEU  # noqa: PLC0415 - loaded when scores are asked for

    from headway.metrics.translation import choose_tokenizer  # noqa: PLC0415 - the same

    tokenizer = BLEU(tokenize=choose_tokenizer("auto", target_language, [])).tokenizer
    words = [tuple(tokenizer(text.rstrip()).split()) for text in texts]
    length = np.array([len(sentence) for sentence in words], dtype=np.float64)
    log_precision_HR = np.zeros((len(texts), len(texts)))
    smoothing_HR = np.ones_like(log_precision_HR)
    matched_HR = np.zeros_like(log_precision_HR, dtype=bool)
    for order in range(1, WORD_ORDER + 1):
        total_H1 = np.maximum(length - order + 1, 0)[:, None]
        matches_HR = _matches([_ngrams(sentence, order) for sentence in words])
        matched_HR |= matches_HR > 0
        is_missed_HR = (matches_HR == 0) & (total_H1 > 0)
        smoothing_HR = np.where(is_missed_HR, 2 * smoothing_HR, smoothing_HR)
        counted_HR = np.where(is_missed_HR, 1 / smoothing_HR, np.maximum(matches_HR, 1))
        log_precision_HR += np.where(total_H1 > 0, np.log(100.0 * counted_HR / np.maximum(total_H1, 1)), 0.0)
    mean_HR = log_precision_HR / np.clip(length, 1, WORD_ORDER)[:, None]
    brevity_HR = np.exp(np.minimum(1 - length[None, :] / np.maximum(length, 1)[:, None], 0.0))
    return np.where(matched_HR, brevity_HR * np.exp(mean_HR), 0.0)


# name -> the scores of all pairs of texts, given the language of the texts
UTILITIES: dict[str, Callable[[Sequence[str], str], Matrix]] = {"chrf": pairwise_chrf, "bleu": pairwise_bleu}


def _ngrams(units: Sequence[Unit], order: int) -> Counter[Sequence[Unit]]:
    """How often each run of ``order`` characters or words occurs."""
    return Counter(units[start : start + order] for start in range(len(units) - order + 1))


def _matches(counters: Sequence[Counter[Sequence[Unit]]]) -> Matrix:
    """How many n-grams each pair has in common, an n-gram as often as both have it.

    min(a, b) is the number of k with a >= k and b >= k, so each k takes one product of matrices of ones and zeros;
    whole numbers below 2^24, and therefore exact in float32.
    """
    place_of: dict[Sequence[Unit], int] = {}
    for counter in counters:
        for ngram in counter:
            place_of.setdefault(ngram, len(place_of))
    counts_HG = np.zeros((len(counters), len(place_of)), dtype=np.int32)
    for row, counter in enumerate(counters):
        counts_HG[row, [place_of[ngram] for ngram in counter]] = list(counter.values())
    matches = np.zeros((len(counters), len(counters)))
    most = counts_HG.max(axis=0, initial=0)
    for k in range(1, int(most.max(initial=0)) + 1):
        has_k_HG = (counts_HG[:, most >= k] >= k).astype(np.float32)
        matches += has_k_HG @ has_k_HG.T
    return matches
