"""An audit of parallel text before training: one pass, in which each pair is looked at from all sides.

Memory: 32 bytes a pair (``Repetition``), a sample of each file, and the test text. What would need text that is gone,
the examples of repetitions and of shifted stretches, is read again from the files where they can be.
"""

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress

from headway.corpus.audit_report import SIDES, AuditReport, FileReport
from headway.corpus.audited_file import AuditedFile, AuditedSide, Open
from headway.corpus.finding import KINDS, NUM_EXAMPLES, Example, Finding, Tally, example_of, merge, sort_findings
from headway.corpus.held_text import HeldText
from headway.corpus.identifier import Identified, Identifier, judge_languages
from headway.corpus.language import matches
from headway.corpus.length import RatioCounter
from headway.corpus.pair import SentencePair
from headway.corpus.pair_audit import Marks, PairAudit
from headway.corpus.repetition import Repetition, first_places, loose
from headway.corpus.shift import Stretch
from headway.errors import CorpusError

_LONGEST_SAMPLED = 1000  # characters of a side
_STRETCHES_TOLD = 10


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
        self._may_swap = not matches(source_language, target_language)
        self._pairs = PairAudit(source_language, target_language, marks=marks)
        self._identify = identify
        self._held = held
        self._repetition = Repetition()
        self._files: list[AuditedFile] = []

    def read(self, name: str, open_file: Open, *, may_reopen: bool, lacking: dict[str, int] | None = None) -> None:
        """Look at a file. One that cannot be read to its end counts as far as it was read, and the error is kept.

        A pair right before that place that lacks a side does not count: it may be half of what broke.
        ``may_reopen``: ``open_file`` may be called again, for examples. ``lacking`` is filled while the file is read:
        the languages of the file, and how many texts there are in them.
        """
        sides = (AuditedSide(self._pairs.scripts_wanted[0]), AuditedSide(self._pairs.scripts_wanted[1]))
        start = len(self._repetition)
        file = AuditedFile(name, open_file if may_reopen else None, start, Tally(name), sides)
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

    def _see(self, pair: SentencePair, file: AuditedFile) -> None:
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
        stripped = SentencePair(source, target, pair.line)
        is_fit = self._pairs.see(pair, stripped, scripts, loose_sides, file.tally)
        if source and target:
            file.ratios.add(len(source), len(target))
        if is_fit and file.sample.wants(mark) and max(len(source), len(target)) <= _LONGEST_SAMPLED:
            file.sample.add(mark, pair)

    # At the end

    def _file_report(self, file: AuditedFile, repeated: list[Finding]) -> FileReport:
        findings = [*file.counted(), *repeated, *self._shifted(file)]
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

    def _identified(self, file: AuditedFile) -> Identified:
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

    def _shifted(self, file: AuditedFile) -> list[Finding]:
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

    def _stretch_examples(self, file: AuditedFile, stretches: Sequence[Stretch]) -> tuple[Example, ...]:
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

    def _lines(self, file: AuditedFile, stretch: Stretch) -> tuple[int, int, int, int]:
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
        sides = AuditedSide(frozenset()), AuditedSide(frozenset())
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


def _lacks_side(pair: SentencePair) -> bool:
    return not (pair.source.strip() and pair.target.strip())
