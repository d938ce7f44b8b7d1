"""The report of an audit as one page of HTML that needs nothing else: no network, no scripts, no other file.

It is well-formed XML as well. All text of a corpus goes through ``_text``.
"""

import html

from headway.cli.audit_report import (
    all_findings,
    conclusion,
    notices,
    script_lines,
    table_rows,
    verdict,
    vocabulary_line,
)
from headway.corpus.audit_report import AuditReport
from headway.corpus.finding import KINDS, Finding
from headway.data.round_trip import RoundTrip
from headway.text.printable import printable

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #1c2330; background: #fff; max-width: 66em; margin: 2em auto;
  padding: 0 1em; }
h1 { font-size: 1.5em; } h2 { font-size: 1.15em; margin: 2em 0 .2em; }
table { border-collapse: collapse; width: 100%; margin: .6em 0; }
th, td { border-bottom: 1px solid #dde1e8; padding: .3em .6em; text-align: left; vertical-align: top; }
td { overflow-wrap: anywhere; } th { font-weight: 600; color: #505a6b; }
.number { text-align: right; white-space: nowrap; }
ul { list-style: none; padding: 0; } li { padding: .35em .7em; margin: .3em 0; border-left: .35em solid #b9c1ce; }
.fatal { border-color: #b3261e; } .costly { border-color: #b26a00; } .note { border-color: #7c8aa0; }
.small { color: #505a6b; font-size: .9em; }
"""
_HEAD = (
    '<!DOCTYPE html>\n<html xmlns="http://www.w3.org/1999/xhtml" lang="en">\n<head>\n<meta charset="utf-8"/>\n'
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\"/>\n"
    '<meta name="viewport" content="width=device-width, initial-scale=1"/>\n'
)
_NUMBERS = {1, *range(3, 10)}  # columns of the table of files


def render_page(report: AuditReport, trip: RoundTrip | None) -> str:
    """The whole page."""
    findings = all_findings(report, trip)
    title = f"Audit of {report.total.pairs:,} pairs, {report.source_language} to {report.target_language}"
    verdicts = "".join(
        f'<li class="{finding.severity}"><a href="#{finding.kind}-{number}">{_text(verdict(finding))}</a></li>\n'
        for number, finding in enumerate(findings)
    )
    parts = [
        f"{_HEAD}<title>{_text(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<h1>{_text(title)}</h1>",
        f"<p>{_text(conclusion(findings))}</p>",
        f"<ul>\n{verdicts}</ul>" if findings else "",
        *(f"<p>{_text(notice)}</p>" for notice in notices(report)),
        "<h2>Files</h2>",
        _table(table_rows(report)),
        *(f'<p class="small">{_text(line)}</p>' for line in script_lines(report)),
        f"<p>{_text(vocabulary_line(trip))}</p>" if trip is not None else "",
        *(_section(finding, number) for number, finding in enumerate(findings)),
        "</body>\n</html>\n",
    ]
    return "\n".join(part for part in parts if part)


def _section(finding: Finding, number: int) -> str:
    kind = KINDS[finding.kind]
    rows = "".join(
        f'<tr><td>{_text(example.file)}</td><td class="number">{example.line:,}</td><td dir="auto">'
        f'{_text(example.source)}</td><td dir="auto">{_text(example.target)}</td><td>{_text(example.note)}</td></tr>\n'
        for example in finding.examples
    )
    heads = "<tr><th>file</th><th>line</th><th>source</th><th>target</th><th></th></tr>\n"
    detail = f'<p class="small">{_text(finding.detail)}</p>\n' if finding.detail else ""
    table = f"<table>\n{heads}{rows}</table>\n" if rows else ""
    amount = "" if kind.of_file else f"{finding.count:,} of {finding.total:,} {_text(finding.unit)}. "
    return (
        f'<section>\n<h2 id="{finding.kind}-{number}">{_text(kind.title)}</h2>\n'
        f"<p>{amount}{_text(kind.cost)} "
        f"<strong>{_text(kind.remedy)}</strong></p>\n{detail}{table}</section>"
    )


def _table(rows: list[list[str]]) -> str:
    lines: list[str] = []
    for place, row in enumerate(rows):
        tag = "td" if place else "th"
        cells = [
            f'<{tag} class="number">{_text(cell)}</{tag}>' if number in _NUMBERS else f"<{tag}>{_text(cell)}</{tag}>"
            for number, cell in enumerate(row)
        ]
        lines.append(f"<tr>{''.join(cells)}</tr>\n")
    return f"<table>\n{''.join(lines)}</table>"


def _text(text: str) -> str:
    """Text as HTML shows it; what does not print (controls, bidirectional marks, halves of characters) as escapes."""
    return html.escape(printable(text, kept="\u00a0"))
