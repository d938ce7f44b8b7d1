"""PARSEVAL: labelled brackets of parses against those of a treebank (Black et al. 1991), as EVALB counts, and whole.

Every figure comes twice. ``evalb`` equals the output of EVALB, which leaves out every sentence whose parse failed or
has other words than the reference, so that a parser that fails looks better. In ``all`` these count: each bracket of
their references is missed. Quote ``all``.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from headway.errors import MetricError
from headway.metrics.evalb_parameters import COLLINS, Parameters
from headway.metrics.evalb_sentence import (
    ERROR,
    MISSING,
    SCORED,
    SKIPPED,
    SentenceScore,
    first_bare_word,
    score_sentence,
)
from headway.metrics.tree_bootstrap import Interval, PairedF1, compare_counts, f1_interval, f1_of
from headway.trees.tree import Tree, with_tags


@dataclass(frozen=True, slots=True)
class Figures:
    """Scores of some sentences, in per cent but for ``average_crossing``; 0 where there is nothing to divide by.

    ``num_scored`` of ``num_sentences`` had a parse over their words. In the figure ``all`` brackets, tags, complete
    match, no crossing and 2 or less crossing are of all sentences; a failed parse has no crossing brackets to average,
    so that ``average_crossing`` is of the scored ones.
    """

    num_sentences: int
    num_errors: int
    num_skipped: int
    num_scored: int
    matched_brackets: int
    gold_brackets: int
    test_brackets: int
    recall: float
    precision: float
    f1: float
    f1_interval: Interval | None
    complete_match: float
    average_crossing: float
    no_crossing: float
    two_or_less_crossing: float
    tagging_accuracy: float


@dataclass(frozen=True, slots=True)
class ByLength:
    """Figures of all sentences, and of those of at most ``Parameters.cutoff_length`` words."""

    every_length: Figures
    up_to_cutoff: Figures


@dataclass(frozen=True, slots=True)
class ParsevalScores:
    """Scores of one parser's trees. ``evalb_stops_at``: the sentence at whose error EVALB ends without a result.

    ``reference_tags``: the tags of the references stood on the trees while brackets were counted; else their own did.
    """

    evalb: ByLength
    all: ByLength
    num_missing: int
    evalb_stops_at: int | None
    sentences: tuple[SentenceScore, ...]
    parameters: Parameters
    num_bootstrap: int
    reference_tags: bool = False

    @property
    def num_failed(self) -> int:
        """Sentences without a parse over the words of their reference."""
        return sum(bool(sentence.failure) for sentence in self.sentences)

    def to_dict(self) -> dict[str, object]:
        """Return plain values, ready for JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class ParserComparison:
    """A paired bootstrap test of two parsers by F1, in the figure ``all``."""

    every_length: PairedF1
    up_to_cutoff: PairedF1
    num_sentences: int
    num_bootstrap: int

    def to_dict(self) -> dict[str, object]:
        """Return plain values, ready for JSON."""
        return asdict(self)


def score_trees(
    hypotheses: Sequence[Tree | None],
    references: Sequence[Tree],
    *,
    parameters: Parameters = COLLINS,
    num_bootstrap: int = 1000,
    reference_tags: bool = False,
) -> ParsevalScores:
    """Score parses, one a reference; None is a parser that found nothing.

    Intervals are the middle 95 % of ``num_bootstrap`` resamples of sentences, with a fixed seed; none below 2. Tags
    matter: punctuation is left out by its tag. With ``reference_tags`` the parses are scored with those of their
    references (``with_reference_tags``), and the tagging accuracy is still that of their own.

    Raises:
        MetricError: unequal counts, no sentences, or a reference with a word that has no tag, which EVALB cannot read.

    """
    sentences = _score(hypotheses, references, parameters, reference_tags=reference_tags)
    errors = [number for number, sentence in enumerate(sentences, 1) if sentence.status == ERROR]
    return ParsevalScores(
        evalb=_by_length(sentences, parameters, num_bootstrap, counts_failed=False),
        all=_by_length(sentences, parameters, num_bootstrap, counts_failed=True),
        num_missing=sum(sentence.failure == MISSING for sentence in sentences),
        evalb_stops_at=errors[parameters.max_errors + 1] if len(errors) > parameters.max_errors + 1 else None,
        sentences=tuple(sentences),
        parameters=parameters,
        num_bootstrap=num_bootstrap,
        reference_tags=reference_tags,
    )


def compare_trees(
    baseline: Sequence[Tree | None],
    system: Sequence[Tree | None],
    references: Sequence[Tree],
    *,
    parameters: Parameters = COLLINS,
    num_bootstrap: int = 1000,
    reference_tags: bool = False,
) -> ParserComparison:
    """Test whether two parsers differ by more than chance, on the same sentences. Arguments are ``score_trees``'s."""
    ours = _score(baseline, references, parameters, reference_tags=reference_tags)
    theirs = _score(system, references, parameters, reference_tags=reference_tags)
    short = [number for number, sentence in enumerate(ours) if sentence.length <= parameters.cutoff_length]
    return ParserComparison(
        every_length=compare_counts(_counts(ours), _counts(theirs), num_bootstrap=num_bootstrap),
        up_to_cutoff=compare_counts(
            _counts([ours[number] for number in short]),
            _counts([theirs[number] for number in short]),
            num_bootstrap=num_bootstrap,
        ),
        num_sentences=len(references),
        num_bootstrap=num_bootstrap,
    )


def with_reference_tags(
    hypotheses: Sequence[Tree | None], references: Sequence[Tree], *, parameters: Parameters = COLLINS
) -> list[Tree | None]:
    """Parses with the tags of their references, as is the custom; one of other words than it reads stays as it is.

    Traces, which ``parameters`` name as of no length, may stand in the references alone. Without the references' tags a
    parser that hides its own keeps punctuation that the reference deletes, and all its sentences are errors. Raises
    MetricError for unequal counts.
    """
    _check_counts(hypotheses, references)
    return [
        hypothesis if hypothesis is None else _tagged_like(hypothesis, reference, parameters)
        for hypothesis, reference in zip(hypotheses, references, strict=True)
    ]


def _tagged_like(hypothesis: Tree, reference: Tree, parameters: Parameters) -> Tree:
    tags = reference.tags()
    heard = [tag for tag in tags if tag not in parameters.delete_labels_for_length]
    count = len(hypothesis.words())
    return next((with_tags(hypothesis, each) for each in (tags, heard) if len(each) == count), hypothesis)


def _score(
    hypotheses: Sequence[Tree | None], references: Sequence[Tree], parameters: Parameters, *, reference_tags: bool
) -> list[SentenceScore]:
    _check_counts(hypotheses, references)
    for number, reference in enumerate(references, 1):
        word = first_bare_word(reference)
        if word:
            raise MetricError(
                f"metrics/parseval: reference {number:,}: the word {word!r} has no tag of its own; wanted (TAG word), "
                f"for EVALB leaves words out by their tags. Give it a tag."
            )
    own = hypotheses
    if reference_tags:
        hypotheses = with_reference_tags(hypotheses, references, parameters=parameters)
    scores = [
        score_sentence(hypothesis, reference, parameters=parameters)
        for hypothesis, reference in zip(hypotheses, references, strict=True)
    ]
    if not reference_tags:
        return scores
    return [
        replace(score, correct_tags=_right_tags(tree, hypothesis, parameters))
        if tree is not None and hypothesis is not None and not score.failure
        else score
        for score, tree, hypothesis in zip(scores, own, hypotheses, strict=True)
    ]


def _right_tags(own: Tree, tagged: Tree, parameters: Parameters) -> int:
    """Of the words that count, those whose own tags are those that were put on the tree."""
    pairs = zip(own.tags(), tagged.tags(), strict=True)
    return sum(parameters.same_label(ours, right) for ours, right in pairs if right not in parameters.delete_labels)


def _check_counts(hypotheses: Sequence[Tree | None], references: Sequence[Tree]) -> None:
    if len(hypotheses) != len(references):
        raise MetricError(
            f"metrics/parseval: {len(hypotheses):,} parses against {len(references):,} reference trees; equal counts "
            f"are wanted. Write an empty line for a sentence without a parse: scoring never leaves one out."
        )
    if not references:
        raise MetricError("metrics/parseval: 0 trees to score; at least 1 is wanted. Give files with trees.")


def _by_length(
    sentences: Sequence[SentenceScore], parameters: Parameters, num_bootstrap: int, *, counts_failed: bool
) -> ByLength:
    short = [sentence for sentence in sentences if sentence.length <= parameters.cutoff_length]
    return ByLength(
        every_length=_figures(sentences, num_bootstrap, counts_failed=counts_failed),
        up_to_cutoff=_figures(short, num_bootstrap, counts_failed=counts_failed),
    )


def _figures(sentences: Sequence[SentenceScore], num_bootstrap: int, *, counts_failed: bool) -> Figures:
    scored = [sentence for sentence in sentences if sentence.status == SCORED]
    counted = sentences if counts_failed else scored
    complete = sum(sentence.is_complete for sentence in counted)
    # A sentence of nothing but deleted words, parsed, has nothing that could cross.
    parsed = [sentence for sentence in counted if not sentence.failure]
    matched, gold, test = (sum(column) for column in zip(*_counts(counted), strict=True)) if counted else (0, 0, 0)
    return Figures(
        num_sentences=len(sentences),
        num_errors=sum(sentence.status == ERROR for sentence in sentences),
        num_skipped=sum(sentence.status == SKIPPED for sentence in sentences),
        num_scored=len(scored),
        matched_brackets=matched,
        gold_brackets=gold,
        test_brackets=test,
        recall=_per_cent(matched, gold),
        precision=_per_cent(matched, test),
        f1=f1_of(matched, gold, test),
        f1_interval=f1_interval(_counts(counted), num_bootstrap=num_bootstrap),
        complete_match=_per_cent(complete, len(counted)),
        average_crossing=_per_cent(sum(sentence.crossing_brackets for sentence in scored), len(scored)) / 100,
        no_crossing=_per_cent(sum(sentence.crossing_brackets == 0 for sentence in parsed), len(counted)),
        two_or_less_crossing=_per_cent(sum(sentence.crossing_brackets <= 2 for sentence in parsed), len(counted)),
        tagging_accuracy=_per_cent(
            sum(sentence.correct_tags for sentence in counted), sum(sentence.words for sentence in counted)
        ),
    )


def _counts(sentences: Sequence[SentenceScore]) -> list[tuple[int, int, int]]:
    """Of each sentence: brackets that match, of the reference, of the parse."""
    return [(each.matched_brackets, each.gold_brackets, each.test_brackets) for each in sentences]


def _per_cent(part: int, whole: int) -> float:
    return 100.0 * part / whole if whole else 0.0
