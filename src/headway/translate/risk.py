"""Minimum Bayes risk: of many samples, the output that is most like all of them.

The samples stand for what the model believes. An output's expected utility is its mean chrF or BLEU against each of the
samples as a reference, itself among them; the output with the highest is the one whose mean loss is the lowest
(Kumar and Byrne 2004; Eikema and Aziz 2020). Samples with the same text count as one output with their number.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from headway.errors import TranslationError
from headway.metrics.pairwise import UTILITIES
from headway.search.hypothesis import Hypothesis
from headway.search.settings import Sampling

MOST_SAMPLES = 1000
# Freitag et al. 2023 found epsilon sampling at 0.02 the best for this.
DEFAULT_SAMPLING = Sampling(epsilon=0.02)


@dataclass(frozen=True, slots=True)
class Risk:
    """Draw ``samples`` outputs and rank them by expected utility: chrf or bleu, each from 0 to 100."""

    samples: int = 32
    utility: str = "chrf"


def check_risk(risk: Risk, n_best: int) -> None:
    """Raise TranslationError for what cannot be ranked."""
    if risk.utility not in UTILITIES:
        raise TranslationError(f"translate/risk: utility is {risk.utility!r}; wanted one of {', '.join(UTILITIES)}.")
    if not 1 <= n_best <= risk.samples <= MOST_SAMPLES:
        raise TranslationError(
            f"translate/risk: {risk.samples:,} samples for the {n_best:,} best; wanted from 1 to {MOST_SAMPLES:,} "
            "samples, and no fewer than the n-best."
        )


def by_expected_utility(
    hypotheses: Sequence[Hypothesis], texts: Sequence[str], *, utility: str, target_language: str
) -> list[Hypothesis]:
    """One hypothesis a text, with its expected utility as score and the samples of that text as count, best first.

    Of hypotheses with the same text the first stands for all; so hypotheses go in with the best first.
    """
    merged: dict[str, Hypothesis] = {}
    for hypothesis, text in zip(hypotheses, texts, strict=True):
        known = merged.get(text)
        merged[text] = hypothesis if known is None else replace(known, count=known.count + hypothesis.count)
    counts = np.array([hypothesis.count for hypothesis in merged.values()], dtype=np.float64)
    expected = UTILITIES[utility](list(merged), target_language) @ counts / counts.sum()
    scored = [replace(one, score=float(value)) for one, value in zip(merged.values(), expected, strict=True)]
    return sorted(scored, key=lambda hypothesis: -hypothesis.score)
