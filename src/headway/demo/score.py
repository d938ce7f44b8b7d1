"""How many unseen phrases of each kind are translated exactly."""

from collections.abc import Sequence
from dataclasses import dataclass

from headway.demo.phrases import Phrase
from headway.errors import MetricError


@dataclass(frozen=True, slots=True)
class KindScore:
    """Exact translations of one kind."""

    kind: str
    correct: int
    total: int

    @property
    def share(self) -> float:
        """Correct of total, 0..1."""
        return self.correct / self.total


def exact_match_by_kind(phrases: Sequence[Phrase], translations: Sequence[str]) -> list[KindScore]:
    """Count the translations that equal the phrase's target to the letter, kinds in the order of their first phrase.

    Raises MetricError when there are more or fewer translations than phrases.
    """
    if len(phrases) != len(translations):
        raise MetricError(
            f"demo/score: {len(phrases):,} phrases have {len(translations):,} translations; wanted one each. "
            f"Remedy: translate the same phrases that are scored."
        )
    correct: dict[str, int] = {}
    total: dict[str, int] = {}
    for phrase, translation in zip(phrases, translations, strict=True):
        correct[phrase.kind] = correct.get(phrase.kind, 0) + (translation == phrase.target)
        total[phrase.kind] = total.get(phrase.kind, 0) + 1
    return [KindScore(kind, correct[kind], total[kind]) for kind in total]


def over_all(scores: Sequence[KindScore]) -> KindScore:
    """Every phrase of every kind as one score, named "all". Raises MetricError when there are none."""
    if not scores:
        raise MetricError(
            "demo/score: no phrase was scored; wanted at least one. Remedy: keep some phrases for the test."
        )
    return KindScore("all", sum(score.correct for score in scores), sum(score.total for score in scores))
