"""What Section 6.1 does to its results: the mean of the last checkpoints in the place of the last one."""

from headway.paper.comparison import BY_PAIRS, Against, Quantity, make_comparison
from headway.paper.study import Study, StudyMaking, Workshop
from headway.paper.text_counts import bleu, token_perplexity
from headway.paper.text_run import BASE, NUM_AVERAGED

TEXT = (
    f"Results are of single models that average the last {NUM_AVERAGED} checkpoints (base), or 20 (big), without a "
    "figure; the claim examined is that it helps."
)
PROTOCOL = f"One run; the mean of the weights of its last {NUM_AVERAGED} checkpoints against the last of them."
AGAINST = (
    Against(
        name="averaging",
        text="the mean of the last checkpoints is better than the last",
        these=(BASE, "average"),
        those=(BASE, "last"),
        quantities=(Quantity("BLEU", bleu, "above"), Quantity("perplexity", token_perplexity, "below")),
    ),
)


def make(workshop: Workshop) -> StudyMaking:
    """Make the study; its last event is TableDone."""
    title = f"The mean of the last {NUM_AVERAGED} checkpoints against the last (Section 6.1)"
    names = {(BASE, "average"): f"mean of {NUM_AVERAGED}", (BASE, "last"): "last"}
    return make_comparison("averaging", title, workshop, names=names, against=AGAINST, protocol=PROTOCOL)


STUDY = Study(section="6.1", statement=TEXT, protocol=PROTOCOL, verdict=BY_PAIRS, make=make)
