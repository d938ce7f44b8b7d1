"""The five conclusions that Section 6.2 draws from Table 3, as claims about differences between trained rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headway.metrics.sentence_bleu import bleu_of
from headway.paper.difference import over_seeds, over_sentences
from headway.paper.trained_row import Trained, nats_a_token
from headway.paper.variants import BY_NAME
from headway.paper.verdict import Claim, Difference, Part, Side

SEEDS_FOR_SEEDS = 3  # from so many on the interval is over seeds: it then tells of another training too
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


def conclusions(rows: Rows) -> tuple[Claim, ...]:
    """Judge the conclusions by the rows there are; a comparison with a row that is not there settles nothing."""
    return tuple(
        Claim(name, text, tuple(part for given in comparisons for part in _parts(rows, Comparison(*given))))
        for name, text, comparisons in CONCLUSIONS
    )


def _parts(rows: Rows, comparison: Comparison) -> list[Part]:
    nats_side, bleu_side = SIDES[comparison.says]
    what = f"{BY_NAME[comparison.row].label} against {BY_NAME[comparison.other].label}"
    these, those = rows.get(comparison.row, {}), rows.get(comparison.other, {})
    seeds = sorted(set(these) & set(those))
    nats = bleu = None
    if seeds:
        nats, bleu = compare([these[seed] for seed in seeds], [those[seed] for seed in seeds])
    return [
        Part(f"{what}, nats a token", nats, nats_side, NEAR_NATS),
        Part(f"{what}, BLEU", bleu, bleu_side, NEAR_BLEU),
    ]


def compare(these: Sequence[Trained], those: Sequence[Trained]) -> tuple[Difference, Difference]:
    """The paired differences of two rows, a run a seed: in nats a token and in BLEU."""
    if len(these) >= SEEDS_FOR_SEEDS:
        nats = over_seeds(*([nats_a_token(run.likelihood_NC.sum(axis=0)) for run in side] for side in (these, those)))
        return nats, over_seeds([run.bleu for run in these], [run.bleu for run in those])
    nats = over_sentences([run.likelihood_NC for run in these], [run.likelihood_NC for run in those], nats_a_token)
    return nats, over_sentences([run.bleu_NC for run in these], [run.bleu_NC for run in those], bleu_of)
