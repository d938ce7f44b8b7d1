"""Scores laid out as EVALB prints them, column for column."""

from headway.metrics.evalb_sentence import SCORED, SentenceScore
from headway.metrics.parseval import Figures, ParsevalScores

_RULE = "=" * 76
_HEAD = (
    "  Sent.                        Matched  Bracket   Cross        Correct Tag\n"
    " ID  Len.  Stat. Recal  Prec.  Bracket gold test Bracket Words  Tags Accracy\n"  # codespell:ignore recal,accracy
)


def evalb_report(scores: ParsevalScores) -> str:
    """The figure ``evalb`` as text: a row a sentence, their sums, and summaries of every length and up to the cutoff.

    As in the output that EVALB is published with, the sum of the column Cross is how many sentences have no crossing
    brackets (later versions print how many brackets cross). Departure: F1 is 0 where EVALB has nan, and a report goes
    on to its end where EVALB stops for its number of errors.
    """
    rows = [_row(number, sentence) for number, sentence in enumerate(scores.sentences, 1)]
    cutoff = scores.parameters.cutoff_length
    return "\n".join(
        [
            f"{_HEAD}{_RULE}",
            *rows,
            _RULE,
            _sums(scores),
            "=== Summary ===",
            "",
            "-- All --",
            *_summary(scores.evalb.every_length),
            "",
            f"-- len<={cutoff} --",
            *_summary(scores.evalb.up_to_cutoff),
            "",
        ]
    )


def _row(number: int, sentence: SentenceScore) -> str:
    gold = sentence.gold_brackets if sentence.status == SCORED else 0
    return (
        f"{number:4}  {sentence.length:3}    {sentence.status}  "
        f"{_per_cent(sentence.matched_brackets, gold):6.2f} "
        f"{_per_cent(sentence.matched_brackets, sentence.test_brackets):6.2f}   {sentence.matched_brackets:3}    "
        f"{gold:3}  {sentence.test_brackets:3}    {sentence.crossing_brackets:3}   {sentence.words:4}  "
        f"{sentence.correct_tags:4}   {_per_cent(sentence.correct_tags, sentence.words):6.2f}"
    )


def _sums(scores: ParsevalScores) -> str:
    figures = scores.evalb.every_length
    scored = [sentence for sentence in scores.sentences if sentence.status == SCORED]
    without_crossing = sum(sentence.crossing_brackets == 0 for sentence in scored)
    words, tags = sum(sentence.words for sentence in scored), sum(sentence.correct_tags for sentence in scored)
    brackets = (
        f"                {figures.recall:6.2f} {figures.precision:6.2f} {figures.matched_brackets:6} "
        f"{figures.gold_brackets:5} {figures.test_brackets:5}  {without_crossing:5}"
        if figures.gold_brackets and figures.test_brackets
        else ""
    )
    return f"{brackets}  {words:5} {tags:5}   {figures.tagging_accuracy:6.2f}"


def _summary(figures: Figures) -> list[str]:
    counts = {
        "Number of sentence": figures.num_sentences,
        "Number of Error sentence": figures.num_errors,
        "Number of Skip  sentence": figures.num_skipped,
        "Number of Valid sentence": figures.num_scored,
    }
    shares = {
        "Bracketing Recall": figures.recall,
        "Bracketing Precision": figures.precision,
        "Bracketing FMeasure": figures.f1,
        "Complete match": figures.complete_match,
        "Average crossing": figures.average_crossing,
        "No crossing": figures.no_crossing,
        "2 or less crossing": figures.two_or_less_crossing,
        "Tagging accuracy": figures.tagging_accuracy,
    }
    return [
        *(f"{name:25} = {count:6}" for name, count in counts.items()),
        *(f"{name:25} = {share:6.2f}" for name, share in shares.items()),
    ]


def _per_cent(part: int, whole: int) -> float:
    return 100.0 * part / whole if whole else 0.0
