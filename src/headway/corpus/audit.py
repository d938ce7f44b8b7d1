"""An audit of parallel text before training: one pass, in which each pair is looked at from all sides.

Memory: 32 bytes a pair (``Repetition``), a sample of each file, and the test text. What would need text that is gone,
the examples of repetitions and of shifted stretches, is read again from the files where they can be.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from headway.config.data_config import CleanConfig, DataConfig
from headway.corpus.clean import FILTERS
from headway.corpus.encoding_damage import damage_of, is_composed
from headway.corpus.finding import KINDS, NUM_EXAMPLES, SEVERITIES, Example, Finding, Tally, example_of, merge
from headway.corpus.held_text import HeldText
from headway.corpus.identifier import FEWEST_JUDGED, Identified, Identifier, judge_languages
from headway.corpus.language import matches
from headway.corpus.length import LengthCounter, Lengths, RatioCounter
from headway.corpus.pair import SentencePair
from headway.corpus.repetition import Repetition, first_places, loose
from headway.corpus.sample import Sample
from headway.corpus.script import main_script, scripts_of_language, share_in
from headway.corpus.shift import ShiftFinder, Stretch
from headway.errors import CorpusError

Marks = Callable[[str], Sequence[str]]  # the placeholders and tags of a text
Open = Callable[[], Iterator[SentencePair]]  # begins to read a file

SIDES = ("source", "target")
SAMPLED = 2000  # pairs of each file whose language is told, and that a tokenizer is tried on
_LONGEST_SAMPLED = 1000  # characters of a side
_TOKENS_A_WORD = 4 / 3
_TOKENS_A_CHARACTER = 0.7  # in scripts without spaces
_SPACELESS = frozenset({"Hani", "Hira", "Kana", "Thai", "Laoo", "Khmr", "Mymr", "Tibt"})
_STRAY_LETTERS = 0.1  # share of the letters of a text that are in its language's scripts, and yet it is in another
_STRETCHES_TOLD = 10
_FEWEST_CASED = 20  # texts, below which nothing is said of capitals
_FEWEST_TOKENISED = 0.05  # share, below which spaces before punctuation are taken for slips

_NOT_DIGIT = re.compile(r"\D+")
_TOKEN_SIGNS = (" ,", " .", " @-@ ", " &apos;")
_TOKENISED = re.compile(r"(?<=\S) [,.](?: |$)|\w @-@ \w|\w &apos;s?\b")


@dataclass(frozen=True, slots=True)
class SideReport:
    """One side of a file: lengths in characters and words, texts by script, and of the sample by language."""

    characters: Lengths
    words: Lengths
    scripts: dict[str, int]
    languages: dict[str, int]


@dataclass(frozen=True, slots=True)
class FileReport:
    """A file, or all together. ``ratio``: target / source characters, 5th, 50th, 95th percentile, to within 2 %.

    ``error`` says why the file was not read to its end; empty where it was.
    """

    name: str
    pairs: int
    error: str
    source: SideReport
    target: SideReport
    ratio: tuple[float, float, float]
    stretches: tuple[tuple[int, int, int, int], ...]  # first line, last line, pairs, shift (0: none)
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class AuditReport:
    """All that was found: of each file, and of all together (``total``), whose findings include test sets."""

    source_language: str
    target_language: str
    files: tuple[FileReport, ...]
    total: FileReport
    sampled: int
    identified: bool  # whether languages were told


@dataclass(slots=True)
class _Side:
    """Counts of one side of a file."""

    scripts_wanted: frozenset[str]
    characters: LengthCounter = field(default_factory=LengthCounter)
    words: LengthCounter = field(default_factory=LengthCounter)
    scripts: Counter[str] = field(default_factory=Counter[str])
    cased: int = 0  # texts that have letters with a case ...
    without_capitals: int = 0  # ... and no capital among them

    def see(self, text: str, stripped: str, line: int) -> str:
        """Take note of a text; returns its main script."""
        self.characters.add(len(text), line)
        self.words.add(len(text.split()), line)
        if not stripped:
            return ""
        script = main_script(stripped)
        if script:
            self.scripts[script] += 1
        if stripped.upper() != stripped.lower():
            self.cased += 1
            self.without_capitals += stripped == stripped.lower()
        return script

    def update(self, other: "_Side") -> None:
        self.characters.update(other.characters)
        self.words.update(other.words)
        self.scripts.update(other.scripts)

    def report(self, languages: Counter[str]) -> SideReport:
        return SideReport(
            self.characters.result(),
            self.words.result(),
            dict(self.scripts.most_common()),
            dict(languages.most_common()),
        )


@dataclass(slots=True)
class _File:
    """What is known of one file."""

    name: str
    open_again: Open | None
    start: int  # place of its first pair
    tally: Tally
    sides: tuple[_Side, _Side]
    stop: int = 0
    error: str = ""
    ratios: RatioCounter = field(default_factory=RatioCounter)
    shifts: ShiftFinder = field(default_factory=ShiftFinder)
    sample: Sample = field(default_factory=lambda: Sample(SAMPLED))
    identified: Identified = field(default_factory=Identified)
    stretches: list[Stretch] = field(default_factory=list[Stretch])
    lacking: dict[str, int] = field(default_factory=dict[str, int])

    @property
    def pairs(self) -> int:
        return self.stop - self.start


class Audit:
    """Looks at any number of files, one after the other, and tells what it found.

    ``marks`` gives a text's placeholders and tags; ``identify`` a text's language, where it can be told; ``held`` is
    test text that the files must not hold. Filters are those of the default ``[clean]``.
    """

    def __init__(
        self,
        source_language: str,
        target_language: str,
        *,
        marks: Marks | None = None,
        identify: Identifier | None = None,
        held: Sequence[HeldText] = (),
    ) -> None:
        self.languages = (source_language, target_language)
        self._scripts = (scripts_of_language(source_language), scripts_of_language(target_language))
        self._may_swap = not matches(source_language, target_language)
        self._marks = marks
        self._identify = identify
        self._held = held
        self._repetition = Repetition()
        self._files: list[_File] = []
        self._is_too_long = FILTERS["too long"](CleanConfig())
        self._is_uneven = FILTERS["ratio"](CleanConfig())
        self._max_tokens = DataConfig().max_tokens

    def read(self, name: str, open_file: Open, *, may_reopen: bool, lacking: dict[str, int] | None = None) -> None:
        """Look at a file. One that cannot be read to its end counts as far as it was read, and the error is kept.

        A pair right before that place that lacks a side does not count: it may be half of what broke.
        ``may_reopen``: ``open_file`` may be called again, for examples. ``lacking`` is filled while the file is read:
        the languages of the file, and how many texts there are in them.
        """
        sides = (_Side(self._scripts[0]), _Side(self._scripts[1]))
        start = len(self._repetition)
        file = _File(name, open_file if may_reopen else None, start, Tally(name), sides)
        self._files.append(file)
        self._repetition.start_file()
        last: SentencePair | None = None
        try:
            for pair in open_file():
                if last is not None:
                    self._see(last, file)
                last = pair
        except CorpusError as error:
            file.error = str(error)
        if last is not None and not (file.error and _lacks_side(last)):
            self._see(last, file)
        file.stop = len(self._repetition)
        file.lacking = dict(lacking or {})  # a copy, for reading again fills it again

    def sample(self) -> list[SentencePair]:
        """Pairs of every file, chosen by their fingerprints."""
        return [pair for file in self._files for pair in file.sample.pairs()]

    def report(self) -> AuditReport:
        """All that was found; nothing may be read after."""
        repeated = self._repeated()
        files: list[FileReport] = []
        for number, file in enumerate(self._files):
            file.stretches = file.shifts.finish()
            if self._identify is not None:
                file.identified = self._identified(file)
            files.append(self._file_report(file, repeated[number]))
        return AuditReport(*self.languages, tuple(files), self._total(files), len(self.sample()), bool(self._identify))

    # While pairs flow by

    def _see(self, pair: SentencePair, file: _File) -> None:
        source, target = pair.source.strip(), pair.target.strip()
        loose_sides = loose(source), loose(target)
        mark = self._repetition.add(source, target, line=pair.line, loose_sides=loose_sides)
        for held in self._held:
            held.see(pair, loose_sides, file=file.name)
        file.shifts.add(source, target)
        scripts = (
            file.sides[0].see(pair.source, source, pair.line),
            file.sides[1].see(pair.target, target, pair.line),
        )
        is_whole = self._see_encoding(pair, file.tally)
        if source and target:
            file.ratios.add(len(source), len(target))
            self._see_scripts(pair, scripts, loose_sides, file)
            self._see_lengths(pair, scripts, file.tally)
            self._see_contents(SentencePair(source, target, pair.line), loose_sides, file.tally)
            if is_whole and file.sample.wants(mark) and max(len(source), len(target)) <= _LONGEST_SAMPLED:
                file.sample.add(mark, pair)
        else:
            if not source:
                file.tally.add("empty-source", pair)
            if not target:
                file.tally.add("empty-target", pair)

    def _see_encoding(self, pair: SentencePair, tally: Tally) -> bool:
        """Count damage; tells whether both texts are made of characters."""
        damage = dict.fromkeys([*damage_of(pair.source), *damage_of(pair.target)])
        for kind in damage:
            tally.add(kind, pair)
        if not (is_composed(pair.source) and is_composed(pair.target)):
            tally.add("not-composed", pair)
        if _is_tokenised(pair.source) or _is_tokenised(pair.target):
            tally.add("tokenised", pair)
        return "surrogate" not in damage

    def _see_scripts(
        self, pair: SentencePair, scripts: tuple[str, str], loose_sides: tuple[str, str], file: _File
    ) -> None:
        """Count texts with hardly a letter of their language's scripts; names and codes in Latin are usual in all."""
        wrong = [
            bool(script and side.scripts_wanted and script not in side.scripts_wanted)
            for script, side in zip(scripts, file.sides, strict=True)
        ]
        if not any(wrong) or loose_sides[0] == loose_sides[1]:  # a name that was copied
            return
        for number, text in enumerate((pair.source, pair.target)):
            wrong[number] = wrong[number] and share_in(text, self._scripts[number]) < _STRAY_LETTERS
        if all(wrong) and scripts[0] in self._scripts[1] and scripts[1] in self._scripts[0]:
            file.tally.add("sides-swapped", pair, f"{scripts[0]} | {scripts[1]}")
            return
        for kind, script, is_wrong in zip(("source-script", "target-script"), scripts, wrong, strict=True):
            if is_wrong:
                file.tally.add(kind, pair, script)

    def _see_lengths(self, pair: SentencePair, scripts: tuple[str, str], tally: Tally) -> None:
        if self._is_too_long is not None and self._is_too_long(pair):
            tally.add("too-long", pair, f"{len(pair.source):,} | {len(pair.target):,} characters")
        elif any(
            self._tokens(text, script) > self._max_tokens
            for text, script in zip((pair.source, pair.target), scripts, strict=True)
        ):
            tally.add("many-words", pair)
        if self._is_uneven is not None and self._is_uneven(pair):
            tally.add("ratio", pair, f"{len(pair.source):,} | {len(pair.target):,} characters")

    def _tokens(self, text: str, script: str) -> float:
        """About how many tokens a text has; short ones are not looked at."""
        if len(text) <= self._max_tokens:
            return 0.0
        return len(text) * _TOKENS_A_CHARACTER if script in _SPACELESS else len(text.split()) * _TOKENS_A_WORD

    def _see_contents(self, pair: SentencePair, loose_sides: tuple[str, str], tally: Tally) -> None:
        if loose_sides[0] == loose_sides[1] and loose_sides[0] and any(map(str.isalpha, pair.source)):
            tally.add("copy" if pair.source == pair.target else "near-copy", pair)
        numbers = _digits(pair.source), _digits(pair.target)
        if numbers[0] != numbers[1]:
            tally.add("numbers-differ", pair)
        if self._marks is not None:
            marks = self._marks(pair.source), self._marks(pair.target)
            if marks[0] != marks[1] and sorted(marks[0]) != sorted(marks[1]):
                tally.add("marks-differ", pair, _told(*marks))

    # At the end

    def _file_report(self, file: _File, repeated: list[Finding]) -> FileReport:
        findings = [*self._counted(file), *repeated, *self._shifted(file)]
        return FileReport(
            file.name,
            file.pairs,
            file.error,
            file.sides[0].report(file.identified.languages["source"]),
            file.sides[1].report(file.identified.languages["target"]),
            file.ratios.result(),
            tuple(self._lines(file, stretch) for stretch in file.stretches),
            sort_findings(findings),
        )

    def _counted(self, file: _File) -> list[Finding]:
        """What the tally of a file amounts to."""
        if not file.pairs:
            return [_whole_file("ended-early" if file.error else "no-pairs", file)]
        details = {
            f"{name}-script": f"{name}: {_shares(side.scripts)}; wanted {' or '.join(sorted(side.scripts_wanted))}"
            for name, side in zip(SIDES, file.sides, strict=True)
        }
        found = [_whole_file("ended-early", file)] if file.error else []
        for kind in KINDS:
            finding = file.tally.finding(kind, file.pairs, detail=details.get(kind, ""))
            if finding is not None and not (kind == "tokenised" and finding.share < _FEWEST_TOKENISED):
                found.append(finding)
        return [*found, *_lower_cased(file), *_languages(file), *_lacking(file)]

    def _identified(self, file: _File) -> Identified:
        assert self._identify is not None, "asked for only where there is one"
        told = Tally(file.name)
        identified = judge_languages(
            file.sample.pairs(),
            self._identify,
            told,
            source_language=self.languages[0],
            target_language=self.languages[1],
        )
        if not self._may_swap:
            told.counts.pop("sides-swapped", None)
        identified.tally = told
        return identified

    def _repeated(self) -> list[list[Finding]]:
        """Of each file, what repeats or contradicts earlier pairs, with examples read again."""
        found = self._repetition.find()
        chosen = {
            kind: [first_places(repeated, file.start, file.stop, NUM_EXAMPLES) for file in self._files]
            for kind, repeated in found.items()
        }
        texts = self._read_again(
            {place for files in chosen.values() for file in files for both in file for place in both}
        )
        findings: list[list[Finding]] = []
        counts = {kind: self._repetition.by_file(repeated.places) for kind, repeated in found.items()}
        for number, file in enumerate(self._files):
            row: list[Finding] = []
            for kind in found:
                count = counts[kind][number]
                if count:
                    examples = tuple(self._repeat(kind, *both, texts) for both in chosen[kind][number])
                    severity = KINDS[kind].severity(count / file.pairs)
                    row.append(Finding(kind, severity, count, file.pairs, examples))
            findings.append(row)
        return findings

    def _repeat(self, kind: str, place: int, earlier: int, texts: dict[int, SentencePair]) -> Example:
        """The example of a pair and an earlier one."""
        file, line = self._repetition.where(place)
        other_file, other_line = self._repetition.where(earlier)
        where = f"line {other_line:,}" if file == other_file else f"{self._files[other_file].name} line {other_line:,}"
        note, other = where, texts.get(earlier)
        if other is not None and kind != "duplicate":
            shown = example_of(other, "")
            note = f"{where}: {shown.source} | {shown.target}"
        return example_of(texts.get(place, SentencePair("", "", line)), self._files[file].name, note)

    def _shifted(self, file: _File) -> list[Finding]:
        """The stretches of a file as findings: those that are shifted, and those that belong to nothing nearby."""
        found: list[Finding] = []
        for kind in ("shifted", "unrelated"):
            chosen = [stretch for stretch in file.stretches if (stretch.shift == 0) == (kind == "unrelated")]
            if not chosen:
                continue
            count = sum(stretch.end - stretch.first for stretch in chosen)
            told = [self._lines(file, stretch) for stretch in chosen[:_STRETCHES_TOLD]]
            where = "; ".join(
                f"{file.name} lines {first:,} to {last:,}" + (f" by {shift:+d}" if shift else "")
                for first, last, _, shift in told
            )
            more = f" and {len(chosen) - len(told):,} more" if len(chosen) > len(told) else ""
            severity = KINDS[kind].severity(count / file.pairs)
            examples = self._stretch_examples(file, chosen[:NUM_EXAMPLES])
            found.append(Finding(kind, severity, count, file.pairs, examples, where + more))
        return found

    def _stretch_examples(self, file: _File, stretches: Sequence[Stretch]) -> tuple[Example, ...]:
        """The first pair of each stretch, and beside it the target that fits."""
        firsts = [file.start + stretch.first for stretch in stretches]
        fitting = [first + stretch.shift for first, stretch in zip(firsts, stretches, strict=True)]
        texts = self._read_again({place for place in (*firsts, *fitting) if file.start <= place < file.stop})
        examples: list[Example] = []
        for place, fits, stretch in zip(firsts, fitting, stretches, strict=True):
            first, last, _, shift = self._lines(file, stretch)
            note = f"lines {first:,} to {last:,}"
            if shift:
                note += f": the translation stands {abs(shift)} further {'down' if shift > 0 else 'up'}"
                note += f": {example_of(texts[fits], '').target}" if fits in texts else ""
            examples.append(example_of(texts.get(place, SentencePair("", "", first)), file.name, note))
        return tuple(examples)

    def _lines(self, file: _File, stretch: Stretch) -> tuple[int, int, int, int]:
        """First line, last line, pairs and shift of a stretch."""
        first = self._repetition.where(file.start + stretch.first)[1]
        last = self._repetition.where(file.start + stretch.end - 1)[1]
        return first, last, stretch.end - stretch.first, stretch.shift

    def _read_again(self, places: set[int]) -> dict[int, SentencePair]:
        """The pairs at these places, of files that may be read again."""
        found: dict[int, SentencePair] = {}
        for file in self._files:
            wanted = {place for place in places if file.start <= place < file.stop}
            if not wanted or file.open_again is None:
                continue
            last = max(wanted)
            with suppress(CorpusError):  # the file was changed meanwhile: there are no texts to show
                for place, pair in enumerate(file.open_again(), file.start):
                    if place in wanted:
                        found[place] = pair
                    if place == last:
                        break
        return found

    def _total(self, files: Sequence[FileReport]) -> FileReport:
        sides = _Side(frozenset()), _Side(frozenset())
        ratios = RatioCounter()
        languages: tuple[Counter[str], Counter[str]] = Counter(), Counter()
        for file in self._files:
            ratios.update(file.ratios)
            for number, name in enumerate(SIDES):
                sides[number].update(file.sides[number])
                languages[number].update(file.identified.languages[name])
        pairs = len(self._repetition)
        by_kind: dict[tuple[str, str], list[Finding]] = {}
        for report in files:
            for finding in report.findings:
                by_kind.setdefault((finding.kind, finding.unit), []).append(finding)
        findings = [merge(group, pairs) for group in by_kind.values()]
        findings += [finding for held in self._held for finding in held.findings()]
        return FileReport(
            "total",
            pairs,
            "",
            sides[0].report(languages[0]),
            sides[1].report(languages[1]),
            ratios.result(),
            (),
            sort_findings(findings),
        )


def sort_findings(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """The gravest first, then in the order of ``KINDS``."""
    order = list(KINDS)
    return tuple(sorted(findings, key=lambda finding: (SEVERITIES.index(finding.severity), order.index(finding.kind))))


def _lacks_side(pair: SentencePair) -> bool:
    return not (pair.source.strip() and pair.target.strip())


def _whole_file(kind: str, file: _File) -> Finding:
    return Finding(kind, "fatal", file.pairs, file.pairs, (), file.error or file.name)


def _lower_cased(file: _File) -> list[Finding]:
    lower = {
        name: side.cased
        for name, side in zip(SIDES, file.sides, strict=True)
        if side.cased >= _FEWEST_CASED and side.without_capitals == side.cased
    }
    return [Finding("lower-cased", "costly", max(lower.values()), file.pairs, (), " and ".join(lower))] if lower else []


def _languages(file: _File) -> list[Finding]:
    """What the identifier found; nothing of a side of which too few texts could be judged."""
    found: list[Finding] = []
    for kind, side in (("sides-swapped", "pair"), ("source-language", "source"), ("target-language", "target")):
        judged = file.identified.judged[side]
        if judged < FEWEST_JUDGED or (kind == "sides-swapped" and file.tally.counts.get(kind)):
            continue
        detail = "" if side == "pair" else f"{side}: {_shares(file.identified.languages[side])}"
        finding = file.identified.tally.finding(kind, judged, detail=detail, unit="sampled pairs")
        if finding is not None:
            found.append(finding)
    return found


def _lacking(file: _File) -> list[Finding]:
    """The languages of a file whose units lack one of the two."""
    count = sum(file.tally.counts.get(f"empty-{side}", 0) for side in SIDES)
    if not file.lacking or not count:
        return []
    by_count = sorted(file.lacking.items(), key=lambda entry: (-entry[1], entry[0]))[:12]
    told = "texts by language: " + ", ".join(f"{code[:40] or 'none'} {number:,}" for code, number in by_count)
    return [
        Finding("other-languages", KINDS["other-languages"].severity(count / file.pairs), count, file.pairs, (), told)
    ]


def _shares(counts: Counter[str]) -> str:
    """The commonest names with their shares."""
    total = counts.total() or 1
    return ", ".join(f"{name} {count / total:.1%}" for name, count in counts.most_common(4))


def _is_tokenised(text: str) -> bool:
    """Whether a text looks split into tokens; most has not one of the signs, and looking for these is quick."""
    return any(sign in text for sign in _TOKEN_SIGNS) and _TOKENISED.search(text) is not None


def _digits(text: str) -> list[str]:
    """All digits of a text, sorted: separators and order play no part, nor whether they are raised or full-width."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    digits = _NOT_DIGIT.sub("", text)
    return sorted(digits if digits.isascii() else [str(int(digit)) for digit in digits])


def _told(source: Sequence[str], target: Sequence[str]) -> str:
    """Which marks are on one side only, or more often there."""
    sides = Counter(source), Counter(target)
    beyond = {"source": sides[0] - sides[1], "target": sides[1] - sides[0]}
    parts = [f"{side} only: {' '.join(mark[:60] for mark in marks)}" for side, marks in beyond.items() if marks]
    return "; ".join(parts)[:200]
