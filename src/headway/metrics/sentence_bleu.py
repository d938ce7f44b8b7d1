"""BLEU as counts of each sentence: sums of them give the BLEU of any selection, as a bootstrap asks for."""

from collections.abc import Sequence

import numpy as np

from headway.errors import MetricError

ORDER = 4  # of the longest n-gram
NUM_COUNTS = 2 + 2 * ORDER


def bleu_counts(
    hypotheses: Sequence[str], references: Sequence[str], *, tokenize: str = "13a", lowercase: bool = False
) -> np.ndarray:
    """One row of 10 whole numbers a sentence: its length, the reference's, and of 1- to 4-grams the right ones and all.

    ``tokenize`` is a name that sacreBLEU knows (``metrics/translation.py::choose_tokenizer`` finds one). Raises
    MetricError for unequal counts.
    """
    from sacrebleu.metrics.bleu import BLEU  # noqa: PLC0415 - loaded when scores are asked for

    if len(hypotheses) != len(references):
        raise MetricError(
            f"metrics/sentence_bleu: {len(hypotheses):,} hypotheses against {len(references):,} references; equal "
            "counts are wanted. Restore the files as they were."
        )
    metric = BLEU(tokenize=tokenize, lowercase=lowercase, force=True, effective_order=True)
    rows = np.zeros((len(references), NUM_COUNTS), dtype=np.int64)
    for row, hypothesis, reference in zip(rows, hypotheses, references, strict=True):
        score = metric.sentence_score(hypothesis, [reference])
        row[:] = (score.sys_len, score.ref_len, *score.counts, *score.totals)
    return rows


def bleu_of(sums: np.ndarray) -> float:
    """The BLEU, 0..100, of a corpus whose sentences' ``bleu_counts`` add up to these; smoothed as sacreBLEU does."""
    from sacrebleu.metrics.bleu import BLEU  # noqa: PLC0415 - the same

    system, reference, *grams = (int(number) for number in sums)
    score = BLEU.compute_bleu(
        correct=grams[:ORDER], total=grams[ORDER:], sys_len=system, ref_len=reference, smooth_method="exp"
    )
    return float(score.score)
