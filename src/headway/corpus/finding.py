"""What an audit finds: the kinds of faults, how grave each is by its share, what it costs and what to do."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from headway.corpus.pair import SentencePair

Severity = Literal["fatal", "costly", "note"]
SEVERITIES: tuple[Severity, ...] = ("fatal", "costly", "note")

NUM_EXAMPLES = 3
_SHOWN_CHARACTERS = 300  # of a text in an example
_NEVER = 2.0  # more than any share


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of fault: what it is, what it costs, what to do; and the share from which it is costly, or fatal.

    ``of_file``: it is a fault of the whole file, and no number or share of pairs says how much of it there is.
    """

    title: str
    cost: str
    remedy: str
    costly: float = 0.0
    fatal: float = _NEVER
    of_file: bool = False

    def severity(self, share: float) -> Severity:
        """How grave the fault is at this share of the pairs."""
        if share >= self.fatal:
            return "fatal"
        return "costly" if share >= self.costly else "note"


@dataclass(frozen=True, slots=True)
class Example:
    """A pair that shows a fault; ``note`` says what of it, or where the other pair stands."""

    file: str
    line: int
    source: str
    target: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """A fault that was found ``count`` times among ``total`` pairs (of what ``unit`` says), with the first examples."""

    kind: str
    severity: Severity
    count: int
    total: int
    examples: tuple[Example, ...] = ()
    detail: str = ""
    unit: str = "pairs"

    @property
    def share(self) -> float:
        """The part of the pairs that have it, 0 to 1."""
        return self.count / self.total if self.total else 0.0


@dataclass(slots=True)
class Tally:
    """Counts of faults in one file, with the first examples of each."""

    file: str
    counts: dict[str, int] = field(default_factory=dict[str, int])
    examples: dict[str, list[Example]] = field(default_factory=dict[str, list[Example]])

    def add(self, kind: str, pair: SentencePair, note: str = "") -> None:
        """Count a pair with this fault."""
        self.counts[kind] = self.counts.get(kind, 0) + 1
        examples = self.examples.setdefault(kind, [])
        if len(examples) < NUM_EXAMPLES:
            examples.append(example_of(pair, self.file, note))

    def finding(self, kind: str, total: int, *, detail: str = "", unit: str = "pairs") -> Finding | None:
        """The finding of this kind among ``total`` pairs, None where there is none."""
        count = self.counts.get(kind, 0)
        if not count:
            return None
        severity = KINDS[kind].severity(count / total)
        return Finding(kind, severity, count, total, tuple(self.examples.get(kind, ())), detail, unit)


def example_of(pair: SentencePair, file: str, note: str = "") -> Example:
    """An example with texts of bounded length; a cut is told."""
    return Example(file, pair.line, _bounded(pair.source), _bounded(pair.target), note)


def merge(findings: Sequence[Finding], total: int) -> Finding:
    """One finding of several files' findings of the same kind, as grave as the gravest, among ``total`` pairs."""
    first = findings[0]
    return Finding(
        first.kind,
        next(grave for grave in SEVERITIES if any(finding.severity == grave for finding in findings)),
        sum(finding.count for finding in findings),
        total if first.unit == "pairs" else sum(finding.total for finding in findings),
        tuple(example for finding in findings for example in finding.examples)[:NUM_EXAMPLES],
        "; ".join(dict.fromkeys(finding.detail for finding in findings if finding.detail)),
        first.unit,
    )


def sort_findings(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """The gravest first, then in the order of ``KINDS``."""
    order = list(KINDS)
    return tuple(sorted(findings, key=lambda finding: (SEVERITIES.index(finding.severity), order.index(finding.kind))))


def _bounded(text: str) -> str:
    if len(text) <= _SHOWN_CHARACTERS:
        return text
    return f"{text[:_SHOWN_CHARACTERS]}… ({len(text):,} characters)"


def percent(share: float) -> str:
    """A share for reading: about two digits, and never 0 % of something or 100 % of less than all."""
    value = 100 * share
    if 0 < value < 0.01:
        return "under 0.01 %"
    if 99.5 <= value < 100:
        return "over 99 %"
    about = "about " if 0 < value < 100 else ""
    return f"{about}{value:.2g} %" if value < 10 else f"{about}{value:.0f} %"


# In the order in which they are told where equally grave. Names are stable: they stand in the JSON.
KINDS: dict[str, Kind] = {
    "no-pairs": Kind(
        "the file holds no pairs",
        "There is nothing to train on.",
        "Check the file and --format.",
        fatal=0.0,
        of_file=True,
    ),
    "ended-early": Kind(
        "the file could not be read to its end",
        "Training stops with the same error; this report covers what stands before it.",
        "Do what the error says.",
        fatal=0.0,
        of_file=True,
    ),
    "sides-swapped": Kind(
        "source and target are swapped",
        "The model learns the other direction.",
        "Everywhere: swap --source-language and --target-language, or the columns (data.source_field, "
        "data.target_field). In some lines: swap the sides of these, or remove them.",
        costly=0.001,
        fatal=0.5,
    ),
    "source-script": Kind(
        "the source is in a script that its language is not written in",
        "The model learns from another language.",
        "Check --source-language and the column or file; remove the lines.",
        costly=0.02,
        fatal=0.5,
    ),
    "target-script": Kind(
        "the target is in a script that its language is not written in",
        "The model learns to write another language.",
        "Check --target-language and the column or file; remove the lines.",
        costly=0.02,
        fatal=0.5,
    ),
    "source-language": Kind(
        "the source is in another language",
        "The model learns from another language.",
        "Check --source-language; remove the lines.",
        costly=0.05,
        fatal=0.5,
    ),
    "target-language": Kind(
        "the target is in another language",
        "The model learns to write another language.",
        "Check --target-language; remove the lines.",
        costly=0.05,
        fatal=0.5,
    ),
    "shifted": Kind(
        "source and target are out of step",
        "In these lines no target is the translation of its source.",
        "A line was added or lost on one side near the first line named: restore the original files, or remove the "
        "stretch.",
        fatal=0.05,
    ),
    "unrelated": Kind(
        "source and target have nothing in common, nor have their neighbours",
        "In these lines no target is the translation of its source.",
        "Look whether the two files belong together, line by line; restore the original files, or remove the stretch.",
        costly=0.001,
        fatal=0.2,
    ),
    "test-overlap": Kind(
        "the training text holds text of the test set",
        "Scores on that test set are too good to be true.",
        "Remove these lines from the training files, or choose another test set.",
        fatal=0.01,
    ),
    "test-near-overlap": Kind(
        "the training text holds text of the test set but for case, digits, punctuation and spaces",
        "Scores on that test set are too good.",
        "Remove these lines from the training files, or tell it beside the scores.",
        costly=0.02,
    ),
    "empty-source": Kind(
        "the source is empty", "Such pairs are dropped when training.", "Nothing to do but to know.", fatal=0.5
    ),
    "empty-target": Kind(
        "the target is empty", "Such pairs are dropped when training.", "Nothing to do but to know.", fatal=0.5
    ),
    "duplicate": Kind(
        "an earlier pair is the same",
        "Repetitions are dropped when training.",
        "Nothing to do (clean.drop_duplicates = true is the default).",
        costly=0.1,
    ),
    "near-duplicate": Kind(
        "an earlier pair is the same but for case, digits, punctuation and spaces",
        "They take time and teach little.",
        "Remove some where they are many; Headway drops exact duplicates only.",
        costly=0.2,
    ),
    "many-targets": Kind(
        "an earlier pair translates the same source otherwise",
        "The model learns a mixture of the translations.",
        "Keep the better one where they contradict each other; in interfaces and dialogues this is usual.",
        costly=0.2,
    ),
    "many-sources": Kind(
        "an earlier pair has another source for the same target",
        "Little, unless it is one text that stands for everything (an error message, a placeholder).",
        "Look at the examples.",
        costly=0.3,
    ),
    "copy": Kind(
        "the target is the source, not translated",
        "Such pairs are dropped when training.",
        "Nothing to do (clean.drop_identical = true is the default).",
        costly=0.05,
        fatal=0.5,
    ),
    "near-copy": Kind(
        "the target is the source but for case, digits, punctuation and spaces",
        "The model learns to copy in place of translating.",
        "Remove what is not translated. Look at the lines, mend or remove them.",
        costly=0.02,
        fatal=0.5,
    ),
    "mojibake": Kind(
        "UTF-8 was read as another encoding (Ã¤ for ä, â€™ for ’)",
        "The model learns to write the damage.",
        "Convert the file again from its original: UTF-8 is not to be decoded as Windows-1252 or Latin-1.",
        costly=0.0005,
        fatal=0.2,
    ),
    "replacement": Kind(
        "U+FFFD stands where a character was lost",
        "The model learns to write the damage.",
        "Convert the file again from its original with the right encoding; remove the lines otherwise.",
        costly=0.0005,
        fatal=0.2,
    ),
    "surrogate": Kind(
        "half of a surrogate pair, which is no character",
        "Such a text has no UTF-8, and no vocabulary takes it.",
        "Remove the lines.",
        fatal=0.0,
    ),
    "control": Kind(
        "control characters (NUL and the like)",
        "Such pairs are dropped when training.",
        "Remove the characters to keep the pairs; clean.drop_control_characters = false lets them in.",
        costly=0.01,
    ),
    "line-separator": Kind(
        "line breaks that other tools break lines at (U+2028, U+2029, U+0085)",
        "Other tools will shift the lines of this file; Headway breaks lines at \\n only.",
        "Replace them by spaces.",
        costly=0.01,
    ),
    "invisible": Kind(
        "zero-width characters or byte order marks inside of a text",
        "Equal words look different to the model.",
        "Remove U+200B, U+2060 and U+FEFF from the text.",
        costly=0.01,
    ),
    "entity": Kind(
        "entities of HTML that were left escaped (&amp; &quot; &#39;)",
        "The model learns to write them.",
        "Unescape the text once, on both sides.",
        costly=0.01,
    ),
    "double-escaped": Kind(
        "entities that were escaped twice (&amp;lt;)",
        "The model learns to write them.",
        "Unescape the text twice, on both sides.",
        costly=0.001,
    ),
    "not-composed": Kind(
        "letters with separate accents (not in Unicode’s form NFC)",
        "Equal words look different to the model.",
        "Normalise the text to NFC, on both sides.",
        costly=0.005,
    ),
    "tokenised": Kind(
        "the text was split into tokens (spaces before punctuation, @-@)",
        "The model learns to write spaces before punctuation, and scores are not comparable.",
        "Use the text before tokenisation; Headway needs none.",
        costly=0.2,
    ),
    "lower-cased": Kind(
        "no text has a capital letter",
        "The model cannot learn where capitals belong.",
        "Use the text before it was lower-cased.",
    ),
    "marks-differ": Kind(
        "placeholders or tags differ between the sides",
        "The model learns to lose or invent them.",
        "Each of {x}, %s, <b> stands on both sides equally often. Look at the lines, mend or remove them.",
        costly=0.005,
    ),
    "numbers-differ": Kind(
        "digits differ between the sides",
        "Where a number is wrong the model learns wrong numbers; much is legitimate (3 and three, 10 pm and 22).",
        "Much of it points at pairs that do not belong together. Look at the lines, mend or remove them.",
        costly=0.1,
    ),
    "too-long": Kind(
        "a side is longer than clean.max_characters",
        "Such pairs are dropped when training.",
        "Split them into sentences, or raise clean.max_characters (0: no limit) and data.max_tokens.",
        costly=0.01,
        fatal=0.9,
    ),
    "many-words": Kind(
        "a side is likely longer than data.max_tokens",
        "Sentences of more tokens are dropped when training.",
        "Split them into sentences, or raise data.max_tokens.",
        costly=0.01,
        fatal=0.9,
    ),
    "ratio": Kind(
        "one side is far longer than the other",
        "Such pairs are dropped when training (clean.max_ratio).",
        "Look whether they belong together; clean.max_ratio = 0 lets them in.",
        costly=0.01,
        fatal=0.5,
    ),
    "round-trip": Kind(
        "decode(encode(text)) is not the text",
        "The model cannot write such text.",
        "Set text.byte_fallback = true, or a larger model.vocab_size.",
        costly=0.001,
        fatal=0.5,
    ),
    "unknown-tokens": Kind(
        "texts with characters that the vocabulary lacks",
        "The model sees <unk> in their place.",
        "Set text.byte_fallback = true, or a larger model.vocab_size.",
        costly=0.001,
        fatal=0.5,
    ),
    "other-languages": Kind(
        "units that lack one of the two languages, in a file of several",
        "They give no pair.",
        "Name the languages that the file has (--source-language, --target-language).",
        costly=0.5,
    ),
}
