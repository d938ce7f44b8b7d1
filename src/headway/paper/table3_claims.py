"""The five conclusions that Section 6.2 draws from Table 3, as claims about differences between trained rows.

The paper's rows had equally many steps, and it claims of each what its numbers show: so BLEU is left out where they do
not (N = 8), and a comparison of rows that were made otherwise settles nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headway.metrics.sentence_bleu import bleu_of
from headway.paper.difference import SEEDS_FOR_SEEDS, over_runs
from headway.paper.trained_row import Trained, nats_a_token
from headway.paper.variants import BY_NAME
from headway.paper.verdict import Claim, Difference, Part, Side

FEWEST_EPOCHS = 15  # of the training text, below which dropout has nothing to hinder: no text is known by heart
NEAR_NATS, NEAR_BLEU = 0.02, 0.5  # what counts as "nearly identical" is ours: 2 % of perplexity, half a point

Rows = Mapping[str, Mapping[int, Trained]]  # by name and seed


@dataclass(frozen=True, slots=True)
class Comparison:
    """A row against another, and what the text says of it: worse, better, or much the same."""

    row: str
    other: str
    says: str


WORSE, BETTER, SAME = "worse", "better", "same"
SIDES: Mapping[str, tuple[Side, Side]] = {  # of nats and of BLEU
    WORSE: ("above", "below"),
    BETTER: ("below", "above"),
    SAME: ("near", "near"),
}
CONCLUSIONS = (
    (
        "A",
        "a single head is worse than the best number of heads, and so are too many",
        (("A-1", "base", WORSE), ("A-32", "base", WORSE)),
    ),
    ("B", "smaller keys hurt", (("B-16", "base", WORSE), ("B-32", "base", WORSE))),
    (
        "C",
        "bigger models are better",
        (
            ("C-N2", "C-N4", WORSE),
            ("C-N4", "base", WORSE),
            ("C-N8", "base", BETTER),
            ("C-d256", "base", WORSE),
            ("C-d1024", "base", BETTER),
            ("C-ff1024", "base", WORSE),
            ("C-ff4096", "base", BETTER),
        ),
    ),
    ("D", "dropout helps against overfitting", (("D-drop0", "base", WORSE),)),
    ("E", "learned positions give nearly the same results as sinusoids", (("E", "base", SAME),)),
)


def conclusions(rows: Rows, *, by_steps: bool) -> tuple[Claim, ...]:
    """Judge the conclusions by the rows there are; a comparison with a row that is not there settles nothing.

    ``by_steps``: the rows had equally many steps, not equal time.
    """
    return tuple(
        Claim(
            name,
            text,
            tuple(part for given in comparisons for part in _parts(rows, Comparison(*given), name, by_steps=by_steps)),
        )
        for name, text, comparisons in CONCLUSIONS
    )


def _parts(rows: Rows, comparison: Comparison, letter: str, *, by_steps: bool) -> list[Part]:
    row, other = BY_NAME[comparison.row], BY_NAME[comparison.other]
    nats_side, bleu_side = SIDES[comparison.says]
    these, those = rows.get(comparison.row, {}), rows.get(comparison.other, {})
    seeds = sorted(set(these) & set(those))
    nats = bleu = None
    what, settles = f"{row.label} against {other.label}", True
    if seeds:
        nats, bleu = compare([these[seed] for seed in seeds], [those[seed] for seed in seeds])
        lacking = _lacking(letter, [runs[seed] for runs in (these, those) for seed in seeds], by_steps=by_steps)
        if lacking:
            what, settles = f"{what} ({lacking})", False
    parts = [Part(f"{what}, nats a token", nats, nats_side, NEAR_NATS, settles=settles)]
    if comparison.says == SAME or (row.bleu > other.bleu) == (comparison.says == BETTER):
        parts.append(Part(f"{what}, BLEU", bleu, bleu_side, NEAR_BLEU, settles=settles))
    return parts


def _lacking(letter: str, runs: Sequence[Trained], *, by_steps: bool) -> str:
    """What runs lack that a group's conclusion rests on; nothing where they lack nothing."""
    epochs = min(run.epochs for run in runs)
    if letter == "C" and not by_steps:
        return "equal time, not equal steps"
    if letter == "D" and epochs < FEWEST_EPOCHS:
        return f"{epochs:.1f} epochs, too few to overfit"
    if letter == "E" and len(runs) < 2 * SEEDS_FOR_SEEDS:
        return f"fewer than {SEEDS_FOR_SEEDS} seeds: another training may differ by more"
    return ""


def compare(these: Sequence[Trained], those: Sequence[Trained]) -> tuple[Difference, Difference]:
    """The paired differences of two rows, a run a seed: in nats a token and in BLEU."""
    nats = over_runs([run.likelihood_NC for run in these], [run.likelihood_NC for run in those], nats_a_token)
    return nats, over_runs([run.bleu_NC for run in these], [run.bleu_NC for run in those], bleu_of)
