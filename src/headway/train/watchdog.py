"""What looks wrong with a run, in one plain line each: the number seen, what it means, what to do.

A kind of trouble is a row of ``KINDS``. Thresholds were set by runs that went well: Multi30k (docs/results.md), whose
first validation has BLEU 23, and the demo. A model that has learnt little repeats itself and stops too late, and that
is no fault; so what its outputs show counts only past the warm-up, and either at two validations running, or, for a
grave case, once the model has learnt (``LEARNT``).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from headway.config.schema import RunConfig
from headway.corpus.finding import percent
from headway.corpus.overlap import Overlap
from headway.data.store import Store
from headway.metrics.outputs import OutputCounts, Shown, count_outputs, share_with_capitals
from headway.metrics.tokenised import differs
from headway.train.events import Signs, StepDone, Warned
from headway.train.history import History, step_of

if TYPE_CHECKING:
    from headway.train.session import Session
    from headway.train.validate import Seen, Validation

LEARNT = 0.6  # of the nats of guessing by frequency: Multi30k is at 0.47 at its first validation
WORSE = 1.5  # times the value last told: a line is told again
FEWEST_OUTPUTS = 3  # of one kind: one output in a small text says nothing
UNIGRAM_TOKENS = 1 << 20  # of the training text: enough to know how often tokens occur
LONG_PENALTY = 1.4  # the highest that is advised: Multi30k's outputs grow by 2 % up to 1.2, and begin to loop at 2
SHOWN_CHARACTERS = 60


@dataclass(frozen=True, slots=True)
class Sign:
    """What a kind has found: how grave (on its own scale, more is worse), and the line; ``again``: told in any case."""

    value: float
    text: str
    again: bool = False


@dataclass(frozen=True)
class Look:
    """All that one validation has to judge by. ``warmed``: past the warm-up; ``learnt``: far better than guessing."""

    config: RunConfig
    history: History  # of before this validation
    signs: Signs
    validation: "Validation"
    counts: OutputCounts
    overlap: Overlap
    unigram: float  # nats a token of guessing by how often each occurs in training
    uniform: float  # nats a token of guessing any: ln V; a model not trained yet is up to half a nat above it
    words: float  # of a reference, by BLEU's tokenizer
    peak: float  # of the learning rate, by the recipe
    target_tokens: float  # of a reference

    @property
    def seen(self) -> "Seen":
        """What the validation saw of its texts."""
        assert self.validation.seen is not None
        return self.validation.seen

    @property
    def before(self) -> Signs | None:
        """The validation before, if it was past the warm-up."""
        earlier = self.history.validations
        return earlier[-1] if earlier and self._is_warmed(earlier[-1].step) else None

    @property
    def warmed(self) -> bool:
        """Past the warm-up of the learning rate."""
        return self._is_warmed(self.signs.step)

    @property
    def learnt(self) -> bool:
        """The validation text is far less surprising than to one who guesses by frequency."""
        return self.signs.nll <= LEARNT * self.unigram

    def holds(self, value: Callable[[Signs], float], *, lasting: float, at_once: float = math.inf) -> bool:
        """Whether a value is grave here, or high here and at the validation before."""
        if not self.warmed:
            return False
        here, before = value(self.signs), self.before
        return (here >= at_once and self.learnt) or (
            here >= lasting and before is not None and value(before) >= lasting
        )

    def share_holds(self, count: Callable[[Signs], int], *, lasting: float, at_once: float) -> bool:
        """As ``holds``, for a count as a share of the outputs."""
        if count(self.signs) < FEWEST_OUTPUTS:
            return False
        return self.holds(lambda signs: count(signs) / max(signs.outputs, 1), lasting=lasting, at_once=at_once)

    def example(self, name: str) -> str:
        """An output that shows it, with its source and reference."""
        return _example(self.counts.shown[name])

    @property
    def usual(self) -> str:
        """What to say of a model that has learnt little."""
        if self.learnt:
            return ""
        return f" The model has learnt little yet (perplexity {math.exp(min(self.signs.nll, 700)):,.0f}): that first."

    def _is_warmed(self, step: int) -> bool:
        return step > self.config.train.warmup_steps


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of trouble: what it is, what finds it, and whether it shows in outputs (then not told of a lost run)."""

    title: str
    find: Callable[[Look], Sign | None]
    of_outputs: bool = False


class Watchdog:
    """Looks at each validation of a run and says what is new; what it knows is the history."""

    def __init__(self, session: "Session", history: History | None = None) -> None:
        self.history = history or History.read(session.folder / "metrics.jsonl")
        self._session = session

    def begin(self) -> list[Warned]:
        """What is known before the first step: training text that validation text is taken from."""
        sign = overlap_sign(self._session.prepared.report.validation_overlap)
        return [] if sign is None else self._told(0, {"overlap": sign})

    def step(self, event: StepDone) -> None:
        """Take note of a step."""
        self.history.add(step_of(event))

    def look(self, validation: "Validation") -> tuple[Signs | None, list[Warned]]:
        """The numbers of a validation, and what there is to say of them."""
        if validation.seen is None:
            return None, []
        look = self._look(validation)
        signs = {name: sign for name, kind in KINDS.items() if (sign := kind.find(look)) is not None}
        if "learning-rate" in signs:  # then outputs show nothing of their own
            signs = {name: sign for name, sign in signs.items() if not KINDS[name].of_outputs}
        self.history.end_of_validation(look.signs)
        return look.signs, self._told(look.signs.step, signs)

    def _told(self, step: int, signs: dict[str, Sign]) -> list[Warned]:
        """What has not been told, or has become materially worse since."""
        told: list[Warned] = []
        for kind, sign in signs.items():
            earlier = self.history.told.get(kind)
            if earlier is None or sign.again or sign.value >= WORSE * earlier:
                told.append(Warned(step, kind, sign.text, sign.value))
                self.history.told[kind] = sign.value
        return told

    def _look(self, validation: "Validation") -> Look:
        session, seen, history = self._session, validation.seen, self.history
        assert seen is not None
        counts = count_outputs(seen.sources, seen.references, seen.translations)
        signs = Signs(
            step=validation.scores.step,
            nll=seen.nll,
            token_accuracy=seen.accuracy,
            outputs=counts.num,
            empty=counts.empty,
            looping=counts.looping,
            same=counts.same,
            copied=counts.copied,
            cut=seen.cut,
            unknown=seen.unknown,
            length_ratio=seen.length_ratio,
            mismatch=_mismatch(seen, session.config)[0],
            focus=None if seen.focus is None else seen.focus.share,
            training_nll=history.training_nll(),
            gradient_norm=history.gradient_norm(),
            peak_rate=history.peak_rate,
            spikes=len(history.spikes),
        )
        train, encoded = session.config.train, session.prepared.report.validation
        return Look(
            config=session.config,
            history=history,
            signs=signs,
            validation=validation,
            counts=counts,
            overlap=session.prepared.report.validation_overlap,
            unigram=self._unigram,
            uniform=math.log(session.prepared.report.target_vocab_size),
            words=self._words(seen.references),
            peak=train.learning_rate or (session.model_config.d_model * train.warmup_steps) ** -0.5,
            target_tokens=encoded.target_tokens / max(encoded.pairs, 1),
        )

    @cached_property
    def _unigram(self) -> float:
        return unigram_nll(self._session.store)

    def _words(self, references: Sequence[str]) -> float:
        """Words of a reference as BLEU counts them."""
        from sacrebleu.metrics.bleu import BLEU  # noqa: PLC0415 - loaded when scores are asked for

        from headway.metrics.translation import choose_tokenizer  # noqa: PLC0415 - it loads sacreBLEU too

        config = self._session.config
        name = choose_tokenizer(config.evaluate.tokenize, config.data.target_language, [])
        tokenizer = BLEU(tokenize=name).tokenizer
        return sum(len(tokenizer(text.rstrip()).split()) for text in references) / max(len(references), 1)


def unigram_nll(store: Store) -> float:
    """The entropy, in nats a token, of a store's target tokens, EOS counted; of a large store of its first million."""
    ids = np.asarray(store.target_ids[:UNIGRAM_TOKENS])
    num_sentences = int(np.searchsorted(store.target_offsets, len(ids), side="right")) - 1
    counts = np.append(np.bincount(ids), num_sentences).astype(np.float64)
    probabilities = counts[counts > 0] / counts.sum()
    return float(-(probabilities * np.log(probabilities)).sum())


# What finds each kind


def overlap_sign(overlap: Overlap, *, again: bool = False) -> Sign | None:
    """One validation pair in a hundred, or one source in ten, stands in the training text too.

    Multi30k has 1 source of 1,014. Short texts of interfaces share sources by nature, so these count from a tenth on.
    """
    pairs, sources = overlap.pairs / max(overlap.num_pairs, 1), overlap.sources / max(overlap.num_pairs, 1)
    if pairs < 0.01 and sources < 0.1:
        return None
    text = (
        f"the training text holds {overlap.pairs:,} of {overlap.num_pairs:,} validation pairs ({percent(pairs)}) and "
        f"{overlap.sources:,} of their sources ({percent(sources)}): validation scores are too good to be true for new "
        "text. Take these lines out of the training text (headway audit --against names them), or validate on another"
    )
    return Sign(max(pairs, sources), text, again=again)


def _overlap(look: Look) -> Sign | None:
    return overlap_sign(look.overlap, again=not look.history.validations)


def _learning_rate(look: Look) -> Sign | None:
    """Stuck at the unigram level, above the uniform one, risen by half a nat, or gradients grown fivefold for nothing.

    The median of 200 steps of Multi30k never rose by 0.1 between validations, and its gradients kept within a factor 2.
    """
    signs, nll, norm = look.signs, look.signs.training_nll, look.signs.gradient_norm
    if nll is None or norm is None or signs.step < 2 * look.config.train.warmup_steps:
        return None
    earlier = [before for before in look.history.validations if look.before and before.training_nll is not None]
    lowest = min((before.training_nll or 0.0 for before in earlier), default=math.inf)
    norms = [before.gradient_norm or math.inf for before in earlier if before.step > look.config.train.warmup_steps]
    smallest = min(norms, default=math.inf)
    advice = (
        f"Set train.learning_rate = {float(f'{look.peak / 4:.1g}'):g} (its peak is {look.peak:.2g}); "
        "more train.warmup_steps and train.clip_norm = 1.0 help too"
    )
    if nll >= lowest + 0.5:
        text = (
            f"the training loss has risen from {lowest:.2f} to {nll:.2f} nats a token (without smoothing): the "
            f"learning rate is too high. {advice}"
        )
        return Sign(nll - lowest, text)
    is_stuck = nll >= look.unigram - 0.1 and not look.history.is_falling(0.1) and lowest - nll < 0.1
    if is_stuck or nll >= look.uniform + 1.0:
        text = (
            f"after {signs.step:,} steps the training loss is {nll:.2f} nats a token, no better than guessing by how "
            f"often each token occurs ({look.unigram:.2f}): the learning rate is too high, or source and target lines "
            f"do not belong together (headway audit tells). {advice}"
        )
        return Sign(1.0, text)
    if norm >= 5 * smallest and nll >= lowest + 0.1:
        text = (
            f"gradients grow after the warm-up: their norm is {norm:.3g}, it was {smallest:.3g}, and the training loss "
            f"does not fall ({nll:.2f} nats a token, it was {lowest:.2f}): the learning rate is too high. {advice}"
        )
        return Sign(norm / smallest, text)
    return None


def _spikes(look: Look) -> Sign | None:
    spikes = look.history.spikes
    if not spikes:
        return None
    steps = ", ".join(f"{spike.step:,}" for spike in spikes[:5]) + (" ..." if len(spikes) > 5 else "")
    worst = max(spikes, key=lambda spike: spike.loss - spike.usual)
    text = (
        f"the training loss jumped at {len(spikes):,} step{'s' * (len(spikes) > 1)} ({steps}): {worst.loss:.2f} at "
        f"step {worst.step:,}, where {worst.usual:.2f} was usual. One or two heal by themselves; if they go on, set "
        f"train.clip_norm = 1.0 or a lower train.learning_rate (its peak is {look.peak:.2g}), and look for broken "
        "lines (headway audit)"
    )
    return Sign(sum(signs.spikes for signs in look.history.validations) + len(spikes), text)


def _attention(look: Look) -> Sign | None:
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
    return Sign(1.0, text)


def _scores(look: Look) -> Sign | None:
    """Outputs are written otherwise than references, or BLEU is under a quarter of what the accuracy lets expect.

    If each token is right with probability a, and a word has k, n words in a row are right with a^(nk), and the mean
    over n of 1 to 4, as BLEU takes it, is a^(2.5k). Multi30k: 28 expected and 39 found; the demo: 11 and 52. The rest
    of BLEU's faults never bring it down to a quarter.
    """
    bleu, chrf = look.validation.scores.bleu, look.validation.scores.chrf
    share, difference = _mismatch(look.seen, look.config)
    if share and look.holds(lambda signs: signs.mismatch, lasting=0.01, at_once=0.01):
        text = (
            f"{difference}: BLEU ({bleu:.1f}) counts this as errors, or cannot be compared with other scores. Give "
            f"training and validation text in the same form, the plain one. {_example(_most_alike(look.seen))}"
        )
        return Sign(1.0, text)
    expected = 100 * look.signs.token_accuracy ** (2.5 * look.target_tokens / max(look.words, 1e-9))
    if not look.warmed or expected < 10 or bleu >= expected / 4:
        return None
    if look.words < 4:
        cause = (
            f"a reference has {look.words:.1f} words on average as BLEU counts them, and BLEU needs runs of 4: set "
            'train.best_by = "chrf", or evaluate.tokenize where words have no spaces between them (zh, char)'
        )
    elif chrf >= 40:
        cause = (
            f"chrF, which counts characters without spaces, is {chrf:.1f}: outputs and references are divided into "
            "words otherwise. Set evaluate.tokenize, or give validation references as plain text"
        )
    else:
        cause = (
            "the search loses what the model knows: try search.beam_size = 1, no search.no_repeat_ngram and "
            "search.length_penalty = 0.6"
        )
    text = (
        f"BLEU is {bleu:.1f}, but {percent(look.signs.token_accuracy)} of the validation tokens are predicted right, "
        f"which lets expect {expected:.0f} or more: {cause}. {_example(_most_alike(look.seen))}"
    )
    return Sign(1.0, text)


def _empty(look: Look) -> Sign | None:
    """No output of a run that goes well is empty."""
    if not look.share_holds(lambda signs: signs.empty, lasting=0.01, at_once=0.1):
        return None
    share = look.signs.empty / look.signs.outputs
    text = (
        f"{look.signs.empty:,} of {look.signs.outputs:,} outputs are empty ({percent(share)}): the model ends before "
        "it begins. Look for targets that are empty or cut in the training text (headway audit); "
        f"{_longer(look)}.{look.usual} {look.example('empty')}"
    )
    return Sign(share, text)


def _repeats(look: Look) -> Sign | None:
    """Multi30k's outputs never loop from its first validation on, the demo's in 1 of 200."""
    if not look.share_holds(lambda signs: signs.looping, lasting=0.05, at_once=0.2):
        return None
    share, search = look.signs.looping / look.signs.outputs, look.config.search
    ways = ["train longer"] if not look.learnt else []
    if search.length_penalty > LONG_PENALTY:
        ways.append(f"set search.length_penalty = 0.6 (it is {search.length_penalty:g})")
    ways.append("look for training targets that repeat themselves (headway audit)")
    if not search.no_repeat_ngram:
        ways.append("search.no_repeat_ngram = 4 hides it")
    text = (
        f"{look.signs.looping:,} of {look.signs.outputs:,} outputs repeat the same words over and over "
        f"({percent(share)}): {'; '.join(ways)}.{look.usual} {look.example('looping')}"
    )
    return Sign(share, text)


def _same(look: Look) -> Sign | None:
    if not look.share_holds(lambda signs: signs.same, lasting=0.05, at_once=0.2):
        return None
    share = look.signs.same / look.signs.outputs
    text = (
        f"one output answers {look.signs.same:,} of {look.signs.outputs:,} sources whose references differ "
        f"({percent(share)}): the model does not read the source. Look whether source and target lines belong "
        f"together, and for one target that stands for everything (headway audit).{look.usual} {look.example('same')}"
    )
    return Sign(share, text)


def _copies(look: Look) -> Sign | None:
    """An output is a copy where its reference is none, so names and numbers do not count. Multi30k has none."""
    if not look.share_holds(lambda signs: signs.copied, lasting=0.05, at_once=0.2):
        return None
    share = look.signs.copied / look.signs.outputs
    text = (
        f"{look.signs.copied:,} of {look.signs.outputs:,} outputs copy the source ({percent(share)}) where the "
        "reference does not: the training text has untranslated targets. Let headway audit count them (copy, "
        f"near-copy, language) and remove them; clean.drop_identical = true drops exact ones.{look.usual} "
        f"{look.example('copied')}"
    )
    return Sign(share, text)


def _length(look: Look) -> Sign | None:
    """Multi30k's outputs have 0.94 to 0.96 of their references' tokens, the demo's 0.90 at first and 1.0 in the end."""
    ratio = look.signs.length_ratio
    short = look.holds(lambda signs: -signs.length_ratio, lasting=-0.88, at_once=-0.6)
    long = look.holds(lambda signs: signs.length_ratio, lasting=1.12, at_once=1.6)
    if not short and not long:
        return None
    seen = f"outputs have {percent(ratio)} of the length of their references"
    if short:
        text = f"{seen}: {_longer(look)}; look for cut targets in the training text (headway audit).{look.usual}"
    else:
        text = f"{seen}: {_shorter(look)}; look for loops and for targets that say more than their sources.{look.usual}"
    return Sign(abs(math.log(max(ratio, 1e-3))), text)


def _cut(look: Look) -> Sign | None:
    """No output of Multi30k or the demo reaches the limit of source + 50 tokens."""
    if not look.share_holds(lambda signs: signs.cut, lasting=0.02, at_once=0.2):
        return None
    share, extra = look.signs.cut / look.signs.outputs, look.config.search.max_extra_tokens
    text = (
        f"{look.signs.cut:,} of {look.signs.outputs:,} outputs were cut at the length limit ({percent(share)}), which "
        f"is the source's tokens and search.max_extra_tokens = {extra}: raise it to {2 * max(extra, 25)} if the target "
        f"language needs so many; else the outputs do not end, as looping ones do not.{look.usual}"
    )
    return Sign(share, text)


def _unknown(look: Look) -> Sign | None:
    if look.signs.unknown < FEWEST_OUTPUTS or look.signs.unknown < 0.05 * look.signs.outputs:
        return None
    share = look.signs.unknown / look.signs.outputs
    text = (
        f"{look.signs.unknown:,} of {look.signs.outputs:,} validation sources have characters that the vocabulary "
        f"lacks ({percent(share)}): the model sees <unk> in their place. Set text.byte_fallback = true, or a larger "
        "model.vocab_size, and train anew"
    )
    return Sign(share, text)


def _overfitting(look: Look) -> Sign | None:
    """The validation loss was 0.1 nats lower, and the training loss has fallen since, at two validations running.

    A tenth of a nat is a tenth of perplexity; Multi30k's validations rise by 0.01 at most.
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
        f"the validation loss rises, from {best.nll:.2f} nats a token at step {best.step:,} to {look.signs.nll:.2f}, "
        f"while the training loss falls, from {best.training_nll:.2f} to {nll:.2f} (without smoothing): the model "
        f"learns the training text by heart. Raise model.dropout (it is {dropout:g}; try {min(dropout + 0.1, 0.5):g}), "
        'use more text or a smaller model, or stop here (train.early_stopping = "loss")'
    )
    return Sign(rise, text)


# In the order in which they are told. Names are stable: they stand in metrics.jsonl.
KINDS: dict[str, Kind] = {
    "overlap": Kind("training text equal to validation text", _overlap),
    "learning-rate": Kind("learning rate too high", _learning_rate),
    "loss-spike": Kind("the training loss jumps", _spikes),
    "attention": Kind("attention gathered on one position", _attention),
    "scores": Kind("BLEU low, accuracy high", _scores, of_outputs=True),
    "empty": Kind("empty outputs", _empty, of_outputs=True),
    "repeats": Kind("outputs that loop", _repeats, of_outputs=True),
    "same-output": Kind("one output for many sources", _same, of_outputs=True),
    "copies": Kind("outputs that copy the source", _copies, of_outputs=True),
    "length": Kind("outputs too short or too long", _length, of_outputs=True),
    "cut": Kind("outputs cut at the length limit", _cut, of_outputs=True),
    "unknown": Kind("unknown characters", _unknown),
    "overfitting": Kind("training text learnt by heart", _overfitting),
}


# Words for what was seen


def _longer(look: Look) -> str:
    search = look.config.search
    if search.beam_size == 1:
        return "search.beam_size is 1, so search.length_penalty does nothing: set it to 4"
    if search.length_penalty >= LONG_PENALTY:
        return f"search.length_penalty is {search.length_penalty:g} already, and more makes outputs loop"
    wanted = min(search.length_penalty + 0.6, LONG_PENALTY)
    return (
        f"set search.length_penalty = {wanted:g} (it is {search.length_penalty:g}; 0.6 more makes outputs some 2 % "
        f"longer, and above {LONG_PENALTY} they begin to loop)"
    )


def _shorter(look: Look) -> str:
    search = look.config.search
    if search.beam_size == 1 or search.length_penalty == 0:
        return "search.length_penalty does nothing here (a beam of 1, or a penalty of 0)"
    wanted = max(search.length_penalty - 0.6, 0.0)
    return f"set search.length_penalty = {wanted:g} (it is {search.length_penalty:g})"


def _mismatch(seen: "Seen", config: RunConfig) -> tuple[float, str]:
    """The share of lines that outputs and references write differently, and what differs; 0 where nothing does."""
    total = max(len(seen.references), 1)
    traces = differs(seen.references, seen.translations)
    if traces is not None:
        name, references, outputs = traces
        text = f"{name}: in {references:,} of {total:,} references and in {outputs:,} outputs"
        return abs(references - outputs) / total, text
    references, outputs = (share_with_capitals(texts) for texts in (seen.references, seen.translations))
    if sum(any(map(str.isalpha, text)) for text in seen.translations) < total / 2:
        return 0.0, ""
    if not config.evaluate.lowercase and max(references, outputs) >= 0.5 and min(references, outputs) <= 0.05:
        text = f"capital letters: in {percent(references)} of the references and in {percent(outputs)} of the outputs"
        return abs(references - outputs), text
    return 0.0, ""


def _most_alike(seen: "Seen") -> Shown:
    """The pair that shows best how an output and its reference differ: equal letters, or the first one."""

    def letters(text: str) -> str:
        return "".join(filter(str.isalnum, text.casefold()))

    triples = list(zip(seen.sources, seen.references, seen.translations, strict=True))
    alike = [triple for triple in triples if triple[1] != triple[2] and letters(triple[1]) == letters(triple[2])]
    return Shown(*(alike or triples)[0])


def _example(shown: Shown) -> str:
    return f"Output {_clipped(shown.output)}, reference {_clipped(shown.reference)}, source {_clipped(shown.source)}"


def _clipped(text: str) -> str:
    return repr(text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + "…")
