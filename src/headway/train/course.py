"""What is wrong with the course of a run: loss, gradients, attention.

Three kinds say that the learning rate is too high; of these the gravest is told, in the order of the functions. The
median loss of 200 steps of Multi30k never rose by 0.1 nats between validations, and its gradients kept within a
factor 2.
"""

import math

from headway.corpus.finding import percent
from headway.train.events import Signs
from headway.train.look import Look
from headway.train.trouble import Trouble


def loss_rises(look: Look) -> Trouble | None:
    """The training loss is half a nat above its lowest. Scale: nats risen."""
    nll, lowest = _training_nll(look), _lowest(look)
    if nll is None or nll < lowest + 0.5:
        return None
    text = (
        f"the training loss has risen from {lowest:.2f} to {nll:.2f} nats a {look.unit} (without smoothing): the "
        f"learning rate is too high. {_advice(look)}"
    )
    return Trouble(nll - lowest, text)


def stuck(look: Look) -> Trouble | None:
    """The training loss is that of guessing by frequency and does not fall, or above that of chance. Scale: nats."""
    nll, lowest = _training_nll(look), _lowest(look)
    if nll is None or loss_rises(look) is not None:
        return None
    is_level = nll >= look.unigram - 0.1 and not look.history.is_falling(0.1) and lowest - nll < 0.1
    if not is_level and nll < look.uniform + 1.0:
        return None
    apart = ""
    if look.config.reads == "labelled":
        apart = ", or texts and labels do not belong together"
    elif look.config.reads == "pairs":
        told = " (headway audit tells)" * look.config.translates
        apart = f", or source and target lines do not belong together{told}"
    text = (
        f"after {look.signs.step:,} steps the training loss is {nll:.2f} nats a {look.unit}, no better than guessing "
        f"by how often each {look.unit} occurs ({look.unigram:.2f}): the learning rate is too high{apart}. "
        f"{_advice(look)}"
    )
    return Trouble(nll, text)


def gradients_grow(look: Look) -> Trouble | None:
    """Gradients have grown fivefold since the warm-up, and the loss rose by 0.1 nats. Scale: how many times."""
    nll, lowest, norm = _training_nll(look), _lowest(look), look.signs.gradient_norm
    if nll is None or norm is None or loss_rises(look) is not None or stuck(look) is not None:
        return None
    warmup = look.config.train.warmup_steps
    norms = [signs.gradient_norm or math.inf for signs in _validations_before(look) if signs.step > warmup]
    smallest = min(norms, default=math.inf)
    if norm < 5 * smallest or nll < lowest + 0.1:
        return None
    text = (
        f"gradients grow after the warm-up: their norm is {norm:.3g}, it was {smallest:.3g}, and the training loss "
        f"does not fall ({nll:.2f} nats a {look.unit}, it was {lowest:.2f}): the learning rate is too high. "
        f"{_advice(look)}"
    )
    return Trouble(norm / smallest, text)


def spikes(look: Look) -> Trouble | None:
    """Steps since the validation before whose loss stands far above what was usual. Scale: how many in all."""
    found = look.history.spikes
    if not found:
        return None
    steps = ", ".join(f"{spike.step:,}" for spike in found[:5]) + (" ..." if len(found) > 5 else "")
    worst = max(found, key=lambda spike: spike.loss - spike.usual)
    text = (
        f"the training loss jumped at {len(found):,} step{'s' * (len(found) > 1)} ({steps}): {worst.loss:.2f} at "
        f"step {worst.step:,}, where {worst.usual:.2f} was usual. One or two heal by themselves; if they go on, set "
        f"train.clip_norm = 1.0 or a lower train.learning_rate (its peak is {look.peak:.2g}), and look for broken "
        f"lines{' (headway audit)' * look.config.translates}"
    )
    return Trouble(sum(signs.spikes for signs in look.history.validations) + len(found), text)


def attention(look: Look) -> Trouble | None:
    """Multi30k's heads gather 0.12 at least, the demo's 0.25, those of a model not trained yet 0.1."""
    focus = look.seen.focus
    if focus is None or not look.holds(lambda signs: signs.focus or 0.0, lasting=0.7):
        return None
    place = {"first": "the first token", "last": "the end of the sentence", "inside": "one token"}[focus.place]
    text = (
        f"every head's attention over the source gathers on {place}, {percent(focus.share)} of it at least, whatever "
        "is written: the translations cannot depend on the words of the source. Look whether source and target lines "
        f"belong together (headway audit); else lower train.learning_rate (its peak is {look.peak:.2g}), with more "
        'train.warmup_steps, or set model.norm_placement = "pre"'
    )
    return Trouble(1.0, text)


def overfitting(look: Look) -> Trouble | None:
    """The validation loss was 0.1 nats lower, and the training loss has fallen since, at two validations running.

    A tenth of a nat is a tenth of perplexity; Multi30k's validations rise by 0.01 at most. Scale: nats risen.
    """
    earlier = [signs for signs in look.history.validations if signs.training_nll is not None]
    nll, before = look.signs.training_nll, look.before
    if len(earlier) < 2 or nll is None or before is None or not look.learnt:
        return None
    best = min(earlier, key=lambda signs: signs.nll)
    rise = min(look.signs.nll, before.nll) - best.nll
    fall = (best.training_nll or 0.0) - nll
    if rise < 0.1 or fall < 0.05:
        return None
    dropout = look.config.model.dropout
    text = (
        f"the validation loss rises, from {best.nll:.2f} nats a {look.unit} at step {best.step:,} to "
        f"{look.signs.nll:.2f}, "
        f"while the training loss falls, from {best.training_nll:.2f} to {nll:.2f} (without smoothing): the model "
        f"learns the training text by heart. Raise model.dropout (it is {dropout:g}; try {min(dropout + 0.1, 0.5):g}), "
        'use more text or a smaller model, or stop here (train.early_stopping = "loss")'
    )
    return Trouble(rise, text)


def _training_nll(look: Look) -> float | None:
    """The training loss, from twice the warm-up on: before that no loss says that a rate is too high."""
    return None if look.signs.step < 2 * look.config.train.warmup_steps else look.signs.training_nll


def _lowest(look: Look) -> float:
    """The lowest training loss of the validations before; infinite before there is one past the warm-up."""
    return min((signs.training_nll or 0.0 for signs in _validations_before(look)), default=math.inf)


def _validations_before(look: Look) -> list[Signs]:
    """Those that know a training loss; none before there is one past the warm-up."""
    if look.before is None:
        return []
    return [signs for signs in look.history.validations if signs.training_nll is not None]


def _advice(look: Look) -> str:
    return (
        f"Set train.learning_rate = {float(f'{look.peak / 4:.1g}'):g} (its peak is {look.peak:.2g}); "
        "more train.warmup_steps and train.clip_norm = 1.0 help too"
    )
