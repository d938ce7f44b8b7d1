"""The claims that the paper makes in words: each a study by the name that its command has."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from headway.folder.atomic import replace_file
from headway.paper import averaging, length, order, scaling, smoothing, subwords, warmup
from headway.paper.events import PaperEvent
from headway.paper.study import Study, Workshop
from headway.paper.table import Table
from headway.paper.writing import to_dict

CLAIMS: dict[str, Study] = {
    "scaling": scaling.STUDY,
    "length": length.STUDY,
    "order": order.STUDY,
    "warmup": warmup.STUDY,
    "smoothing": smoothing.STUDY,
    "averaging": averaging.STUDY,
    "subwords": subwords.STUDY,
}


def overview(tables: Sequence[Table]) -> str:
    """The verdicts of several studies as one page of Markdown."""
    lines = ["# Claims of the paper", "", "| study | section | claim | verdict |", "|---|---|---|---|"]
    for table in tables:
        section = CLAIMS[table.name].section
        lines += [
            f"| [{table.name}]({table.name}.md) | {section} | {claim.text} | {claim.verdict} |"
            for claim in table.claims
        ]
    return "\n".join([*lines, ""])


def to_json(tables: Sequence[Table], command: str) -> str:
    """The studies as one JSON object: what each examines and by what protocol, and its whole table."""
    studies = [
        {
            "section": CLAIMS[table.name].section,
            "statement": CLAIMS[table.name].statement,
            "protocol": CLAIMS[table.name].protocol,
            "verdict_rests_on": CLAIMS[table.name].verdict,
            **to_dict(table),
        }
        for table in tables
    ]
    found = {"name": "claims", "command": command, "studies": studies}
    return json.dumps(found, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def write_overview(tables: Sequence[Table], folder: Path, command: str) -> list[Path]:
    """Write ``claims.md`` and ``claims.json`` beside the tables; give the paths."""
    texts = {"claims.md": overview(tables), "claims.json": to_json(tables, command)}
    for name, text in texts.items():
        with replace_file(folder / name) as file:
            file.write(text.encode("utf-8"))
    return [folder / name for name in texts]


def make_claims(names: Sequence[str], workshop: Workshop) -> Iterator[PaperEvent]:
    """Make the studies one after another; each ends in a TableDone, unless the user asked to stop."""
    for name in names:
        table = yield from CLAIMS[name].make(workshop)
        if table is None:
            return
