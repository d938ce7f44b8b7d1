"""One file of an audit: what is counted while its pairs flow by, and the findings that its counts amount to."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from headway.corpus.audit_report import SIDES, SideReport
from headway.corpus.finding import KINDS, Finding, Tally
from headway.corpus.identifier import FEWEST_JUDGED, Identified
from headway.corpus.length import LengthCounter, RatioCounter
from headway.corpus.pair import SentencePair
from headway.corpus.sample import Sample
from headway.corpus.script import main_script
from headway.corpus.shift import ShiftFinder, Stretch

Open = Callable[[], Iterator[SentencePair]]  # begins to read a file

SAMPLED = 2000  # pairs of each file whose language is told, and that a tokenizer is tried on
_FEWEST_CASED = 20  # texts, below which nothing is said of capitals
_FEWEST_TOKENISED = 0.05  # share, below which spaces before punctuation are taken for slips


@dataclass(slots=True)
class AuditedSide:
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

    def update(self, other: "AuditedSide") -> None:
        """Add the counts of another file's side."""
        self.characters.update(other.characters)
        self.words.update(other.words)
        self.scripts.update(other.scripts)

    def report(self, languages: Counter[str]) -> SideReport:
        """What the counts come to; ``languages`` are those of the sample."""
        return SideReport(
            self.characters.result(),
            self.words.result(),
            dict(self.scripts.most_common()),
            dict(languages.most_common()),
        )


@dataclass(slots=True)
class AuditedFile:
    """What is known of one file."""

    name: str
    open_again: Open | None
    start: int  # place of its first pair
    tally: Tally
    sides: tuple[AuditedSide, AuditedSide]
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
        """How many pairs were read."""
        return self.stop - self.start

    def counted(self) -> list[Finding]:
        """What the counts of the file amount to."""
        if not self.pairs:
            return [_whole_file("ended-early" if self.error else "no-pairs", self)]
        details = {
            f"{name}-script": f"{name}: {_shares(side.scripts)}; wanted {' or '.join(sorted(side.scripts_wanted))}"
            for name, side in zip(SIDES, self.sides, strict=True)
        }
        found = [_whole_file("ended-early", self)] if self.error else []
        for kind in KINDS:
            finding = self.tally.finding(kind, self.pairs, detail=details.get(kind, ""))
            if finding is not None and not (kind == "tokenised" and finding.share < _FEWEST_TOKENISED):
                found.append(finding)
        return [*found, *_lower_cased(self), *_languages(self), *_lacking(self)]


def _whole_file(kind: str, file: AuditedFile) -> Finding:
    return Finding(kind, "fatal", file.pairs, file.pairs, (), file.error or file.name)


def _lower_cased(file: AuditedFile) -> list[Finding]:
    lower = {
        name: side.cased
        for name, side in zip(SIDES, file.sides, strict=True)
        if side.cased >= _FEWEST_CASED and side.without_capitals == side.cased
    }
    return [Finding("lower-cased", "costly", max(lower.values()), file.pairs, (), " and ".join(lower))] if lower else []


def _languages(file: AuditedFile) -> list[Finding]:
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


def _lacking(file: AuditedFile) -> list[Finding]:
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
