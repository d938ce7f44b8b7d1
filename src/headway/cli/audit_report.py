"""The report of an audit as text to print, and as the facts of its JSON, whose keys are stable."""

from collections.abc import Sequence

from headway.cli.reports import clip, columns
from headway.corpus.audit_report import SIDES, AuditReport, FileReport, SideReport
from headway.corpus.finding import KINDS, SEVERITIES, Finding, percent, sort_findings
from headway.corpus.length import Lengths
from headway.data.round_trip import RoundTrip

SCHEMA = 1  # of the JSON; another number where a key changes its meaning or goes
PREFIXES = {"fatal": "fatal", "costly": "costs", "note": "note"}
_DETAIL_WIDTH = 400


def all_findings(report: AuditReport, trip: RoundTrip | None) -> tuple[Finding, ...]:
    """The findings of all files together, and of the vocabulary; the gravest first."""
    return sort_findings([*report.total.findings, *(trip.findings if trip else ())])


def verdict(finding: Finding) -> str:
    """One line: how grave, how much, what, and of what it consists."""
    detail = f" ({clip(finding.detail, width=_DETAIL_WIDTH)})" if finding.detail else ""
    kind = KINDS[finding.kind]
    amount = "" if kind.of_file else f"{percent(finding.share)} of the {finding.unit} ({finding.count:,}): "
    return f"{PREFIXES[finding.severity]}: {amount}{kind.title}{detail}"


def conclusion(findings: Sequence[Finding]) -> str:
    """What to make of all findings together."""
    counts = {severity: sum(finding.severity == severity for finding in findings) for severity in SEVERITIES}
    if counts["fatal"]:
        return "Do not train on this before what is fatal is mended."
    if counts["costly"]:
        return "Nothing fatal; training works, and mending what costs makes it better."
    return "Nothing fatal, nothing costly."


def notices(report: AuditReport) -> list[str]:
    """What was not looked at, and why."""
    if report.identified:
        return []
    return ["Languages were told by script only. To tell them by their words: pip install 'headway[language-id]'"]


def render_audit(report: AuditReport, trip: RoundTrip | None) -> str:
    """The whole report: verdict, tables, each finding with its remedy and examples."""
    findings = all_findings(report, trip)
    parts = [
        f"pairs: {report.total.pairs:,}, {report.source_language} to {report.target_language}",
        "\n".join([*map(verdict, findings), conclusion(findings), *notices(report)]),
        _table(report),
        _scripts(report),
    ]
    if trip is not None:
        parts.append(vocabulary_line(trip))
    parts += [_details(finding) for finding in findings]
    return "\n\n".join(parts)


def vocabulary_line(trip: RoundTrip) -> str:
    """What the vocabulary makes of the sample."""
    return (
        f"vocabulary, tried on {trip.pairs:,} sampled pairs: {trip.source_tokens_a_word:.2f} tokens a source word, "
        f"{trip.target_tokens_a_word:.2f} a target word, {percent(trip.unknown_tokens)} of the tokens unknown"
    )


def table_rows(report: AuditReport) -> list[list[str]]:
    """A row for each side of each file, headings first; a total where there are several files."""
    rows = [
        ["file", "pairs", "side", "characters: mean", "median", "95 %", "longest", "line", "words: mean", "longest"]
    ]
    for file in _with_total(report):
        for name, side in zip(SIDES, (file.source, file.target), strict=True):
            first = [clip(file.name), f"{file.pairs:,}"] if name == "source" else ["", ""]
            long = side.characters
            rows.append(
                [
                    *first,
                    name,
                    f"{long.mean:,.1f}",
                    *(f"{number:,}" for number in (long.median, long.percentile_95, long.longest)),
                    f"{long.longest_line:,}" if file.name != "total" else "",
                    f"{side.words.mean:,.1f}",
                    f"{side.words.longest:,}",
                ]
            )
    return rows


def script_lines(report: AuditReport) -> list[str]:
    """Length ratio, scripts and languages of each file."""
    lines: list[str] = []
    for file in _with_total(report):
        low, middle, high = file.ratio
        lines.append(
            f"{clip(file.name)}: target / source characters {middle:.2f} (90 % of the pairs: {low:.2f} to {high:.2f}); "
            + "; ".join(_side_line(name, side) for name, side in zip(SIDES, (file.source, file.target), strict=True))
        )
    return lines


def _side_line(name: str, side: SideReport) -> str:
    languages = f", sampled languages {_commonest(side.languages)}" if side.languages else ""
    return f"{name} scripts {_commonest(side.scripts) or 'none'}{languages}"


def _commonest(counts: dict[str, int]) -> str:
    total = sum(counts.values())
    return ", ".join(
        f"{name} {percent(count / total).removeprefix('about ')}" for name, count in list(counts.items())[:3]
    )


def _with_total(report: AuditReport) -> list[FileReport]:
    return [*report.files, *([report.total] if len(report.files) > 1 else [])]


def _table(report: AuditReport) -> str:
    return columns(table_rows(report), right={1, *range(3, 10)})


def _scripts(report: AuditReport) -> str:
    return "\n".join(script_lines(report))


def _details(finding: Finding) -> str:
    kind = KINDS[finding.kind]
    amount = "" if kind.of_file else f", {finding.count:,} of {finding.total:,} {finding.unit}"
    lines = [f"{finding.kind} ({finding.severity}{amount}): {kind.title}"]
    lines += [f"  {kind.cost}", f"  Remedy: {kind.remedy}"]
    for example in finding.examples:
        note = f"  ({clip(example.note, width=160)})" if example.note else ""
        lines.append(
            f"  {clip(example.file)} line {example.line:,}: {clip(example.source)} | {clip(example.target)}{note}"
        )
    return "\n".join(lines)


# JSON


def audit_facts(report: AuditReport, trip: RoundTrip | None) -> dict[str, object]:
    """The JSON object."""
    findings = all_findings(report, trip)
    facts: dict[str, object] = {
        "schema": SCHEMA,
        "pairs": report.total.pairs,
        "source_language": report.source_language,
        "target_language": report.target_language,
        "fatal": any(finding.severity == "fatal" for finding in findings),
        "verdict": [*map(verdict, findings), conclusion(findings), *notices(report)],
        "findings": [_finding_facts(finding) for finding in findings],
        "files": [_file_facts(file) for file in report.files],
        "total": {name: _side_facts(side) for name, side in _sides(report.total)},
        "sampled_pairs": report.sampled,
    }
    if trip is not None:
        facts["vocabulary"] = {
            "sampled_pairs": trip.pairs,
            "source_tokens_a_word": trip.source_tokens_a_word,
            "target_tokens_a_word": trip.target_tokens_a_word,
            "unknown_tokens": trip.unknown_tokens,
        }
    return facts


def _sides(file: FileReport) -> list[tuple[str, SideReport]]:
    return [("source", file.source), ("target", file.target)]


def _file_facts(file: FileReport) -> dict[str, object]:
    return {
        "name": file.name,
        "pairs": file.pairs,
        "error": file.error or None,
        **{name: _side_facts(side) for name, side in _sides(file)},
        "ratio": dict(zip(("percentile_5", "median", "percentile_95"), file.ratio, strict=True)),
        "stretches": [
            dict(zip(("first_line", "last_line", "pairs", "shift"), stretch, strict=True)) for stretch in file.stretches
        ],
        "findings": [_finding_facts(finding) for finding in file.findings],
    }


def _side_facts(side: SideReport) -> dict[str, object]:
    return {
        "characters": _length_facts(side.characters),
        "words": _length_facts(side.words),
        "scripts": side.scripts,
        "languages": side.languages,
    }


def _length_facts(lengths: Lengths) -> dict[str, float]:
    return {
        "mean": lengths.mean,
        "median": lengths.median,
        "percentile_95": lengths.percentile_95,
        "longest": lengths.longest,
        "longest_line": lengths.longest_line,
    }


def _finding_facts(finding: Finding) -> dict[str, object]:
    kind = KINDS[finding.kind]
    return {
        "kind": finding.kind,
        "severity": finding.severity,
        "count": finding.count,
        "of": finding.total,
        "unit": finding.unit,
        "share": finding.share,
        "title": kind.title,
        "cost": kind.cost,
        "remedy": kind.remedy,
        "detail": finding.detail,
        "examples": [
            {
                "file": example.file,
                "line": example.line,
                "source": example.source,
                "target": example.target,
                "note": example.note,
            }
            for example in finding.examples
        ],
    }
