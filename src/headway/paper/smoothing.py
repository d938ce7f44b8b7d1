"""The claim of Section 5.4: label smoothing hurts perplexity, and improves accuracy and BLEU."""

from headway.paper.comparison import BY_PAIRS, Against, Quantity, make_comparison
from headway.paper.study import Study, StudyMaking, Workshop
from headway.paper.text_counts import accuracy, bleu, token_perplexity
from headway.paper.text_run import BASE

TEXT = (
    "Label smoothing of 0.1 hurts perplexity, as the model learns to be more unsure, but improves accuracy and BLEU "
    "score."
)
PROTOCOL = "Two runs of one recipe, with label smoothing 0.1 and without; perplexity of both is without smoothing."
AGAINST = (
    Against(
        name="smoothing",
        text="label smoothing hurts perplexity and improves accuracy and BLEU",
        these=(BASE, "average"),
        those=("unsmoothed", "average"),
        quantities=(
            Quantity("perplexity", token_perplexity, "above"),
            Quantity("tokens right", accuracy, "above", "%"),
            Quantity("BLEU", bleu, "above"),
        ),
    ),
)


def make(workshop: Workshop) -> StudyMaking:
    """Make the study; its last event is TableDone."""
    title = "Label smoothing 0.1 against none (Section 5.4)"
    names = {(BASE, "average"): "smoothing 0.1", ("unsmoothed", "average"): "none"}
    return make_comparison("smoothing", title, workshop, names=names, against=AGAINST, protocol=PROTOCOL)


STUDY = Study(section="5.4", statement=TEXT, protocol=PROTOCOL, verdict=BY_PAIRS, make=make)
