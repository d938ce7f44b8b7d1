"""A validation to judge, of a run as healthy as can be where nothing else is said."""

from train_letters import letters_config

from headway.checkpoint.state import Scores
from headway.corpus.overlap import Overlap
from headway.metrics.outputs import count_outputs
from headway.train.events import Signs
from headway.train.history import History, Step
from headway.train.look import Look
from headway.train.validate import Seen

SOURCES, REFERENCES = ["ab cd ef gh ij"] * 11, ["AB CD EF GH IJ"] * 11


def signs_of(step, **changed):
    """Of a model that has learnt: 0.4 nats a token, where guessing by frequency has 3."""
    healthy = dict.fromkeys(("empty", "looping", "same", "copied", "cut", "unknown", "spikes"), 0)
    healthy |= {"nll": 0.4, "token_accuracy": 0.9, "outputs": 11, "length_ratio": 1.0, "mismatch": 0.0, "focus": 0.2}
    healthy |= {"training_nll": 0.5, "gradient_norm": 1.0, "peak_rate": 0.02}
    return Signs(step=step, **(healthy | changed))


def look_of(signs, *before, outputs=REFERENCES, bleu=50.0, words=5.0):
    """The last of some validations; the warm-up has 5 steps."""
    history = History(validations=list(before))
    history.steps.extend(Step(number, signs.training_nll, signs.training_nll, 1.0, 0.02) for number in range(1, 61))
    return Look(
        config=letters_config(),
        history=history,
        signs=signs,
        scores=Scores(step=signs.step, loss=1.0, perplexity=1.5, bleu=bleu, chrf=20.0),
        seen=Seen(signs.nll, 0.9, sources=SOURCES, references=REFERENCES, translations=outputs, length_ratio=1.0),
        counts=count_outputs(SOURCES, REFERENCES, outputs),
        mismatch=None,
        overlap=Overlap(num_pairs=11, pairs=0, sources=0, targets=0, examples=()),
        unigram=3.0,
        uniform=4.0,
        words=words,
        expected_bleu=80.0,
        peak=0.02,
    )
