"""Choices of Sections 3.4 and 5.1: one matrix for both embeddings and the softmax, one vocabulary for both sides."""

from headway.paper.comparison import BY_PAIRS, Against, Quantity, make_comparison
from headway.paper.study import Study, StudyMaking, Workshop
from headway.paper.text_counts import bleu, word_perplexity
from headway.paper.text_run import BASE

TEXT = (
    "The paper shares one matrix between both embeddings and the softmax (Section 3.4) and one vocabulary of "
    "sub-words between source and target (Section 5.1), without a figure; the claim examined is that both help."
)
PROTOCOL = (
    "Three runs of one recipe: one vocabulary and one matrix; one vocabulary and three matrices; a vocabulary and a "
    "matrix for each side, of the same size each. Perplexity is a word, for the tokens differ."
)
QUANTITIES = (Quantity("BLEU", bleu, "above"), Quantity("perplexity a word", word_perplexity, "below"))
AGAINST = (
    Against("matrix", "one matrix helps", (BASE, "average"), ("unshared", "average"), QUANTITIES),
    Against(
        "vocabulary", "one vocabulary for both sides helps", (BASE, "average"), ("separate", "average"), QUANTITIES
    ),
)


def make(workshop: Workshop) -> StudyMaking:
    """Make the study; its last event is TableDone."""
    title = "One vocabulary and one matrix against separate ones (Sections 3.4 and 5.1)"
    names = {
        (BASE, "average"): "one vocabulary, one matrix",
        ("unshared", "average"): "one vocabulary, three matrices",
        ("separate", "average"): "two vocabularies",
    }
    return make_comparison("subwords", title, workshop, names=names, against=AGAINST, protocol=PROTOCOL)


STUDY = Study(section="3.4, 5.1", statement=TEXT, protocol=PROTOCOL, verdict=BY_PAIRS, make=make)
