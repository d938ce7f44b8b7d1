"""Settings chosen from a corpus (``--preset auto``): counts of its text go in, values and the reason for each come out.

Nothing else goes in, the machine neither, so the same text gives the same choices everywhere. A row of ``SCALES`` holds
what has been found good for corpora of about its size; sources stand in its reasons. What a user gave is kept, and
what depends on it (heads on d_model, the rate on optimizer and warm-up ...) is chosen to fit.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from headway.config.learning_rate import FALLING, peak_rate

ENOUGH_PAIRS = 5_000_000  # beyond these no choice changes, so no more need be counted
FEWEST_STEPS, MOST_STEPS = 2000, 100_000  # below, a model has hardly learnt to copy; the paper's base takes 100,000
VALIDATIONS = 40  # about so many in the longest run ...
MOST_STEPS_BETWEEN = 2500  # ... but not further apart than this
PATIENCE = 6
MOST_RATE = 0.004  # of Adam: what Multi30k's model of 128 numbers bears (docs/results.md, the run of f30db9c)
MUON_RATE = 0.004  # found on Multi30k (docs/log.md)
FEWEST_WARMUP = 1000  # steps, of any optimizer but Muon; its rate is that for so many at least
SCHEDULES = {"adam": "noam", "muon": "linear", "schedule_free": "constant"}  # what goes with each optimizer
SCORED_PAIRS = 100  # BLEU of fewer validation sentences is left to chance
WHOLE_STEP, MICROBATCH = 8192, 5000  # a step of more tokens is computed in parts of so many
BYTES_AND_CONTROLS = 260  # the tokens that every vocabulary has
PADDING = 1.1  # tokens of a batch with padding for one without
FEW_SEVERAL = 0.1  # share of sources of several sentences below which a model hardly learns to translate them at once
TOKENS_A_WORD = 4 / 3
TOKENS_A_CHARACTER = 0.7  # in scripts without spaces
FEWEST_WORDS, MOST_WORDS = 4, 25  # a pair of so many target words counts as one; others by their words

Given = Mapping[str, object]  # section.key -> value, as the user has it


@dataclass(frozen=True, slots=True)
class SideFacts:
    """One side of a corpus. ``words`` stand between spaces; ``spaceless`` are characters of scripts without spaces."""

    words: int
    spaceless: int = 0

    @property
    def is_spaceless(self) -> bool:
        """Whether most of it is written without spaces between words."""
        return self.spaceless > self.words

    @property
    def all_words(self) -> int:
        """Its words; three characters of a script without spaces count as two."""
        return self.words + 2 * self.spaceless // 3

    @property
    def tokens(self) -> float:
        """About how many tokens it will have."""
        return self.words * TOKENS_A_WORD + self.spaceless * TOKENS_A_CHARACTER

    def __str__(self) -> str:
        """Words, or characters; many of them in millions."""
        number = max(self.spaceless, self.words)
        shown = f"{number / 1e6:,.2f} million" if number >= 100_000 else f"{number:,}"
        return f"{shown} characters, without spaces" if self.is_spaceless else f"{shown} words"


@dataclass(frozen=True, slots=True)
class CorpusFacts:
    """What the choices are made from, all counted after cleaning.

    ``characters`` are the most frequent ones that make up 99.95 % of the text; ``validation_pairs`` those that will be
    held out, None where validation files are named; ``is_whole`` is False where counting ended at ENOUGH_PAIRS;
    ``several`` pairs have more than one sentence in the source, 0 where nothing is translated.
    """

    pairs_read: int
    pairs: int
    source: SideFacts
    target: SideFacts
    different_words: int
    characters: int
    validation_pairs: int | None = None
    is_whole: bool = True
    several: int = 0

    @property
    def amount(self) -> int:
        """The number of pairs, but a pair counts for 4 to 25 target words: titles for less, paragraphs for more."""
        words = self.target.all_words
        return max(1, min(max(self.pairs, words // MOST_WORDS), words // FEWEST_WORDS))

    def __str__(self) -> str:
        """One line of the counts."""
        less = "" if self.is_whole else ", where counting ended; no choice depends on more"
        return (
            f"{self.pairs:,} of {self.pairs_read:,} pairs after cleaning{less}; source {self.source}; "
            f"target {self.target}; {self.different_words:,} different words; {self.characters:,} characters make up "
            "99.95 % of the text"
        )


@dataclass(frozen=True, slots=True)
class Choice:
    """A value for one key, ``section.key``, and why; ``given`` is what the user had there, which stays."""

    key: str
    value: int | float | str
    reason: str
    given: object = None

    def __str__(self) -> str:
        """The reason, behind what was given."""
        if self.given is None:
            return self.reason
        return f"as given; the corpus would have {write_value(self.value)}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Scale:
    """What suits corpora of ``pairs`` pairs and more, up to the next row."""

    pairs: int
    vocab_size: int
    d_model: int
    d_ff: int
    num_heads: int
    num_layers: int  # of each stack
    dropout: float
    inner_dropout: float  # on attention weights and inside the feed-forward network
    optimizer: str
    batch_tokens: int
    warmup_steps: int
    epochs: int  # at most; where the rate falls to 0 a run goes through all of them
    like: str  # what models of about this size have been good for


_MULTI30K = "Multi30k's 29,000 pairs had 4 + 4 layers of 128 (Wu et al. 2021)"
_IWSLT = "IWSLT14's 160,000 pairs 6 + 6 of 512 (fairseq)"
_BASE = "the paper's base, for 4.5 million pairs"

SCALES = (
    Scale(0, 2000, 128, 256, 4, 2, 0.4, 0.1, "muon", 1024, 200, 120, f"few pairs want shallow nets; {_MULTI30K}"),
    Scale(10_000, 4000, 256, 512, 4, 3, 0.3, 0.1, "muon", 2048, 400, 60, f"{_MULTI30K}, {_IWSLT}"),
    Scale(100_000, 8000, 256, 1024, 4, 4, 0.2, 0.1, "adam", 4096, 2000, 80, f"{_IWSLT}, too much for most processors"),
    Scale(300_000, 8000, 512, 1024, 4, 6, 0.2, 0.1, "adam", 8192, 4000, 40, _IWSLT),
    Scale(1_000_000, 16_000, 512, 2048, 8, 6, 0.1, 0.0, "adam", 25_000, 4000, 30, _BASE),
    Scale(4_000_000, 32_000, 512, 2048, 8, 6, 0.1, 0.0, "adam", 25_000, 4000, 25, _BASE),
)
_VOCABULARY = (
    "guide of Gowda and May 2020: 1,000 for 30,000 pairs, 4,000 to 16,000 for 0.5 million, from 32,000 for 4.5"
)
_DROPOUT = (
    "0.3 to 0.5 for small corpora (Sennrich and Zhang 2019), 0.3 for IWSLT14's 160,000 pairs, the paper's base 0.1"
)
_FOUND = "found on Multi30k's 29,000 pairs (docs/log.md)"


def scale_of(facts: CorpusFacts) -> Scale:
    """The row for a corpus."""
    return max((scale for scale in SCALES if scale.pairs <= facts.amount), key=lambda scale: scale.pairs)


def choose(facts: CorpusFacts, given: Given) -> list[Choice]:
    """Choose model, vocabulary, dropout and training for a corpus, in the order of the schema.

    ``given`` are the keys that the user has set, checked or not: they are not chosen, and marked as given.
    """
    choices: dict[str, Choice] = {}
    for maker in (_vocabulary, _sizes, _dropouts, _batches, _optimizer, _length, _rate, _validation, _sentences):
        for key, value, reason in maker(facts, scale_of(facts), _Said(given, choices)):
            choices[key] = Choice(key, value, reason, given.get(key))
    return list(choices.values())


def choosable(given: Given) -> list[dict[str, object]]:
    """What may be chosen beside what is given: the values for a corpus of each row of ``SCALES``, from the smallest on.

    The largest has so many words that it trains for the most steps there are.
    """
    sizes = [(scale.pairs or 1, MOST_WORDS * max(1, scale.pairs)) for scale in SCALES]
    sizes[-1] = (ENOUGH_PAIRS, ENOUGH_PAIRS**2)
    facts = (
        CorpusFacts(pairs, pairs, SideFacts(words), SideFacts(words), words, 80, several=pairs)
        for pairs, words in sizes
    )
    return [chosen_values(choose(example, given)) for example in facts]


def chosen_values(choices: list[Choice]) -> dict[str, object]:
    """The values of the keys that were not given."""
    return {choice.key: choice.value for choice in choices if choice.given is None}


def write_value(value: object) -> str:
    """A value as it is shown to a reader."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:,}" if isinstance(value, int) else str(value)


@dataclass(frozen=True, slots=True)
class _Said:
    """What stands so far: values that were given, else those chosen. Given ones that are no numbers count for none."""

    given: Given
    choices: Mapping[str, Choice]

    def number(self, key: str) -> int | None:
        """A whole number, 1 at least."""
        value = self.given.get(key, self.choices[key].value if key in self.choices else None)
        return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None

    def text(self, key: str, default: str) -> str:
        """A word; ``default`` where none stands yet, or one that is no text was given."""
        value = self.given.get(key, self.choices[key].value if key in self.choices else default)
        return value if isinstance(value, str) else default


_Made = Iterator[tuple[str, int | float | str, str]]  # key, value, reason


def _vocabulary(facts: CorpusFacts, scale: Scale, said: _Said) -> _Made:
    del said
    size, reason = scale.vocab_size, f"{scale.vocab_size:,} for {_range(scale)} ({_VOCABULARY})"
    more = _round_up(max(0, facts.characters - BYTES_AND_CONTROLS), 500)
    if more:
        size += more
        reason = f"{reason}; {more:,} more, as {facts.characters:,} characters are each to be a token"
    most = BYTES_AND_CONTROLS + _round_up(facts.different_words, 100)
    if size > most and not (facts.source.is_spaceless or facts.target.is_spaceless):
        size, reason = most, f"bytes and {facts.different_words:,} different words are no more; {reason}"
    yield "model.vocab_size", size, reason


def _sizes(facts: CorpusFacts, scale: Scale, said: _Said) -> _Made:
    del facts
    d_model = scale.d_model
    heads = said.number("model.num_heads") or said.number("model.num_kv_heads")
    if heads and d_model % (2 * heads):  # an even number for each head, which rotary positions need
        d_model = _round_up(d_model, 2 * heads)
    yield "model.d_model", d_model, f"for {_range(scale)}; {scale.like}"
    width = said.number("model.d_model") or d_model
    ratio = scale.d_ff // scale.d_model
    yield "model.d_ff", ratio * width, f"{ratio} times d_model for {_range(scale)}; the paper has 4 times"
    heads = _heads(width, scale.num_heads, said)
    yield "model.num_heads", heads, f"of {width // heads} numbers each; the paper's have 64"
    layers = f"for {_range(scale)}, as for d_model"
    yield "model.num_encoder_layers", scale.num_layers, layers
    yield "model.num_decoder_layers", scale.num_layers, layers


def _heads(width: int, most: int, said: _Said) -> int:
    """The most heads that divide a width, and suit heads of keys and values and rotary positions where these are given.

    More than ``most`` only where the heads of keys and values are. Where none suits, the schema has the last word.
    """
    kv_heads = said.number("model.num_kv_heads") or 1
    turns = said.text("model.positions", "") == "rope" and said.number("model.d_k") is None  # pairs of a key's numbers
    dividing = [count for count in range(1, max(most, kv_heads) + 1) if width % count == 0]
    suiting = [count for count in dividing if count % kv_heads == 0 and not (turns and width // count % 2)]
    return max(suiting or (count for count in dividing if count <= most))


def _dropouts(facts: CorpusFacts, scale: Scale, said: _Said) -> _Made:
    del facts, said
    yield "model.dropout", scale.dropout, f"for {_range(scale)}; {_DROPOUT}"
    inner = "the paper's base has none there"
    if scale.inner_dropout:
        inner = f"beside the dropout above, as the best recipes for IWSLT14; {inner}"
    yield "model.attention_dropout", scale.inner_dropout, inner
    yield "model.activation_dropout", scale.inner_dropout, inner


def _batches(facts: CorpusFacts, scale: Scale, said: _Said) -> _Made:
    yield "train.label_smoothing", 0.1, "the paper's, for any corpus"
    tokens = _epoch_tokens(facts)
    steps = _count(_steps(tokens, scale.batch_tokens), "step")
    like = "the paper's"
    if scale.batch_tokens < 25_000:
        like = "small batches for small corpora (Sennrich and Zhang 2019)"
    if scale.optimizer == said.text("train.optimizer", scale.optimizer) == "muon":
        like = f"{like}, which help Muon: {_FOUND}"
    longest = said.number("data.max_tokens") or 0
    reason = f"{steps} an epoch of some {_round(tokens):,} tokens a side; {like}"
    if longest > scale.batch_tokens:
        reason = f"room for one sentence of data.max_tokens = {longest:,}; {scale.batch_tokens:,} would do for shorter"
    yield "train.batch_tokens", max(scale.batch_tokens, longest), reason
    batch = said.number("train.batch_tokens") or max(scale.batch_tokens, longest)
    if batch > WHOLE_STEP:
        yield (
            "train.microbatch_tokens",
            max(MICROBATCH, longest),
            "a step in parts, for memory; the gradient is that of the whole",
        )


def _optimizer(facts: CorpusFacts, scale: Scale, said: _Said) -> _Made:
    del facts
    optimizer, reason = scale.optimizer, "the paper's; nothing else was measured for corpora of this size"
    if optimizer == "muon":
        reason = f"for {_range(scale)}; better than Adam when the rate falls to 0: {_FOUND}"
        if said.text("train.sharding", "none") != "none" or "train.lora_rank" in said.given:
            optimizer, reason = "adam", "muon works on whole matrices of the model itself"
    yield "train.optimizer", optimizer, reason


def _length(facts: CorpusFacts, scale: Scale, said: _Said) -> _Made:
    epoch = _steps(_epoch_tokens(facts), said.number("train.batch_tokens") or scale.batch_tokens)
    steps = min(max(_round(scale.epochs * epoch), FEWEST_STEPS), MOST_STEPS)
    usual = SCHEDULES.get(said.text("train.optimizer", scale.optimizer), "noam")
    schedule = said.text("train.schedule", usual)
    end = "early stopping ends most runs sooner"
    if schedule in FALLING:
        end = "the rate is 0 at the last"
    yield (
        "train.max_steps",
        steps,
        f"{scale.epochs} epochs of {_count(epoch, 'step')}, {FEWEST_STEPS:,} at least, {MOST_STEPS:,} at most; {end}",
    )


def _rate(facts: CorpusFacts, scale: Scale, said: _Said) -> _Made:
    del facts
    most = said.number("train.max_steps") or MOST_STEPS
    optimizer = said.text("train.optimizer", scale.optimizer)
    slow = scale.warmup_steps if optimizer == "muon" else max(scale.warmup_steps, FEWEST_WARMUP)
    warmup = min(slow, max(1, most // 8))
    reason = f"{slow:,} with {optimizer} for {_range(scale)}, an eighth of the steps at most"
    yield "train.warmup_steps", warmup, reason
    warmup = said.number("train.warmup_steps") or warmup
    if optimizer == "muon":
        rate = MUON_RATE
        reason = f"for any width, as Muon's updates have the same size whatever the gradient's; {_FOUND}"
    else:
        width = said.number("model.d_model") or scale.d_model
        slow = max(slow, warmup)  # a shortened warm-up is no reason to go faster
        rate = min(float(f"{peak_rate(width, slow):.2g}"), MOST_RATE)
        reason = f"the paper's peak for {slow:,} steps of warm-up, ({width} x {slow:,})^-0.5, {MOST_RATE} at most"
    yield "train.learning_rate", rate, reason
    schedule, reason = SCHEDULES.get(optimizer, "noam"), f"goes with {optimizer}"
    if schedule == "noam":
        reason = "the paper's"
    if schedule in FALLING:
        reason = f"straight to 0 at the last step; {_FOUND}"
        if most <= warmup:
            schedule = "noam"
            reason = f"{_count(most, 'step')} and {warmup:,} of warm-up leave none for a fall to 0"
    yield "train.schedule", schedule, reason


def _validation(facts: CorpusFacts, scale: Scale, said: _Said) -> _Made:
    epoch = _steps(_epoch_tokens(facts), said.number("train.batch_tokens") or scale.batch_tokens)
    most = said.number("train.max_steps") or MOST_STEPS
    wanted = max(1, round(most / VALIDATIONS / epoch))
    epochs = max(1, min(wanted, MOST_STEPS_BETWEEN // epoch))
    every = epochs * epoch
    reason = f"{_count(epochs, 'epoch')} of about {_count(epoch, 'step')}, "
    reason += f"for some {VALIDATIONS} validations in all" if epochs == wanted else f"{MOST_STEPS_BETWEEN:,} at most"
    if every > MOST_STEPS_BETWEEN:
        every, reason = MOST_STEPS_BETWEEN, f"an epoch of about {epoch:,} steps is long to wait for"
    every = min(every, most)
    yield "train.validate_every", every, reason
    every = said.number("train.validate_every") or every
    yield "train.checkpoint_every", every, "at each validation"
    pairs = facts.validation_pairs
    metric, reason = "bleu", "what is wanted of a translator; the loss rises long before it gets worse"
    if pairs is not None and pairs < SCORED_PAIRS:
        metric, reason = "loss", f"{pairs:,} validation pairs are too few to tell anything by BLEU"
    falls = said.text("train.schedule", "noam") in FALLING
    usual = "none" if falls else said.text("train.best_by", metric)
    stopping = said.text("train.early_stopping", usual)
    yield "train.best_by", metric if stopping == "none" else stopping, reason
    reason = "training ends by itself where validation gains no more"
    if falls:
        reason = "most is gained while the rate falls to 0, so a run goes to its last step"
    yield "train.early_stopping", usual, reason
    if stopping != "none":
        yield (
            "train.patience",
            PATIENCE,
            "validations without a better value, until it ends; none counts before the warm-up has ended",
        )
    reason = "the last weights of a run that ends by itself are past its best"
    if stopping == "none":
        reason = "the best by validation, early or late in the run"
    yield "train.average", "best", reason


def _sentences(facts: CorpusFacts, scale: Scale, said: _Said) -> _Made:
    del scale, said
    if not facts.several:
        return
    share = facts.several / facts.pairs
    reason = f"{facts.several:,} sources of several sentences ({share:.1%})"
    if share < FEW_SEVERAL:
        reason += " are few to learn from: each sentence alone is better (Home Assistant's strings, docs/log.md)"
    else:
        reason += " are enough to learn to translate them at once"
    yield "search.split_sentences", share < FEW_SEVERAL, reason


def _range(scale: Scale) -> str:
    """The corpora of a row, in words."""
    place = SCALES.index(scale)
    if place == len(SCALES) - 1:
        return f"{scale.pairs:,} pairs and more"
    end = f"{SCALES[place + 1].pairs:,} pairs"
    return f"{scale.pairs:,} to {end}" if place else f"fewer than {end}"


def _epoch_tokens(facts: CorpusFacts) -> float:
    """Padded tokens of the longer side, EOS counted."""
    return PADDING * (max(facts.source.tokens, facts.target.tokens) + facts.pairs)


def _steps(tokens: float, batch_tokens: int) -> int:
    return max(1, round(tokens / batch_tokens))


def _round(number: float) -> int:
    """To two digits that count."""
    return int(float(f"{number:.2g}"))


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _round_up(number: int, unit: int) -> int:
    return -(-number // unit) * unit
