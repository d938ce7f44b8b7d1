"""The claim of Section 5.4: label smoothing hurts perplexity, and improves accuracy and BLEU."""

from headway.paper.comparison import BY_PAIRS, Against, Quantity, make_comparison
from headway.paper.study import Study, StudyMaking, Workshop
from headway.paper.text_counts import accuracy, bleu, token_perplexity
from headway.paper.text_run import BASE
from headway.paper.variants import BY_NAME

TEXT = (
    "Label smoothing of 0.1 hurts perplexity, as the model learns to be more unsure, but improves accuracy and BLEU "
    "score."
)
PUBLISHED = {  # Table 3, base and row D, newstest2013
    (BASE, "average"): {"perplexity": BY_NAME["base"].perplexity, "BLEU": BY_NAME["base"].bleu},
    ("unsmoothed", "average"): {"perplexity": BY_NAME["D-smooth0"].perplexity, "BLEU": BY_NAME["D-smooth0"].bleu},
}
PROTOCOL = (
    "Two runs of one recipe, with label smoothing 0.1 and without; perplexity of both is without smoothing, of a "
    "target piece, as the paper's; that is of newstest2013, another vocabulary and size."
)
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
    return make_comparison(
        "smoothing", title, workshop, names=names, against=AGAINST, protocol=PROTOCOL, published=PUBLISHED
    )


STUDY = Study(section="5.4", statement=TEXT, protocol=PROTOCOL, verdict=BY_PAIRS, make=make)
