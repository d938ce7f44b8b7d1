"""A table as Markdown, as JSON and as rows of text; plots beside them."""

import json
import math
from collections.abc import Sequence
from pathlib import Path

from headway.folder.atomic import replace_file
from headway.paper.table import Cell, Column, Number, Row, Table
from headway.paper.verdict import Claim, Difference, Part

SIDES = {"above": "above 0", "below": "below 0", "near": "near 0"}


def headings(table: Table) -> list[str]:
    """The first line of a table as text: the row, then each column as the paper has it and as it is here."""
    found = ["row"]
    for column in table.columns:
        name = f"{column.name}, {column.unit}" if column.unit else column.name
        found += [f"{name}: {side}" if _is_double(column) else name for side in _sides(column)]
    return found


def text_rows(table: Table) -> list[list[str]]:
    """Every row as text, in the order of ``headings``."""
    return [
        [_title(row), *(shown for column in table.columns for shown in _shown_cells(column, row))] for row in table.rows
    ]


def claim_rows(claims: Sequence[Claim]) -> list[list[str]]:
    """Heading and lines: each claim with its verdict, then its parts, each with difference and interval."""
    found = [["claim", "difference", "interval", "claimed", "over", "verdict"]]
    for claim in claims:
        found.append([f"{claim.name}: {claim.text}", "", "", "", "", str(claim.verdict)])
        found += [_part_row(part) for part in claim.parts]
    return found


def to_markdown(table: Table) -> str:
    """A page: the table, its claims, its notes, its plots and the command that makes it."""
    parts = [f"# {table.title}", _markdown([headings(table), *text_rows(table)])]
    if any(row.note for row in table.rows):
        parts.append("\n".join(f"- {row.name}: {row.note}" for row in table.rows if row.note))
    if table.claims:
        parts.append("## Claims\n\n" + _markdown(claim_rows(table.claims)))
    parts += [f"![{name}]({name})" for name in table.plots]
    if table.notes:
        parts.append("\n".join(f"- {note}" for note in table.notes))
    if table.command:
        parts.append(f"Made by `{table.command}`.")
    return "\n\n".join(parts) + "\n"


def to_dict(table: Table) -> dict[str, object]:
    """Plain values, ready for JSON; a number that is none (infinite, or not a number) is null."""
    return {
        "name": table.name,
        "title": table.title,
        "command": table.command,
        "columns": [{"name": column.name, "unit": column.unit} for column in table.columns],
        "rows": [
            {
                "name": row.name,
                "group": row.group,
                "note": row.note,
                "command": row.command,
                "cells": {
                    name: {"published": _finite(cell.published), "measured": _finite(cell.measured)}
                    for name, cell in row.cells.items()
                },
            }
            for row in table.rows
        ],
        "claims": [_claim_dict(claim) for claim in table.claims],
        "notes": list(table.notes),
        "plots": list(table.plots),
        "points": {
            name: {line: [[_finite(value) for value in point] for point in points] for line, points in lines.items()}
            for name, lines in table.points.items()
        },
    }


def to_json(table: Table) -> str:
    """``to_dict`` as a JSON text."""
    return json.dumps(to_dict(table), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def write_files(table: Table, folder: Path) -> list[Path]:
    """Write ``NAME.md``, ``NAME.json`` and the plots into a folder; give the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = {f"{table.name}.md": to_markdown(table), f"{table.name}.json": to_json(table), **table.plots}
    for name, text in texts.items():
        with replace_file(folder / name) as file:
            file.write(text.encode("utf-8"))
    return [folder / name for name in texts]


def shown(value: Number, form: str) -> str:
    """A number in its format; nothing where there is none, text as it is."""
    if value is None:
        return ""
    return value if isinstance(value, str) else format(value, form)


def _title(row: Row) -> str:
    return f"({row.group}) {row.name}" if row.group else row.name


def _is_double(column: Column) -> bool:
    return column.is_printed and column.is_measured


def _sides(column: Column) -> list[str]:
    sides = (("paper", column.is_printed), ("here", column.is_measured))
    return [name for name, is_there in sides if is_there]


def _shown_cells(column: Column, row: Row) -> list[str]:
    cell = row.cells.get(column.name, Cell())
    values = {"paper": cell.published, "here": cell.measured}
    return [shown(values[side], column.form) for side in _sides(column)]


def _part_row(part: Part) -> list[str]:
    claimed = SIDES[part.claimed] if part.claimed != "near" else f"within {part.margin:g} of 0"
    difference = part.difference
    if difference is None:
        return [f"- {part.what}", "", "", claimed, "", str(part.verdict)]
    unit = f" {part.unit}" if part.unit else ""
    ends = difference.low, difference.high
    between = _signed(ends[0]) if difference.interval == "exact" else " to ".join(map(_signed, ends))
    return [
        f"- {part.what}",
        f"{_signed(difference.value)}{unit}",
        f"{between} ({difference.interval})",
        claimed,
        difference.over,
        str(part.verdict),
    ]


def _signed(value: float) -> str:
    """With its sign; that of 0 is always ``+``."""
    return f"{value + 0.0:+.3g}"  # -0.0 + 0.0 is 0.0


def _claim_dict(claim: Claim) -> dict[str, object]:
    return {
        "name": claim.name,
        "text": claim.text,
        "verdict": str(claim.verdict),
        "parts": [
            {
                "what": part.what,
                "claimed": part.claimed,
                "margin": part.margin,
                "unit": part.unit,
                "verdict": str(part.verdict),
                **_difference_dict(part.difference),
            }
            for part in claim.parts
        ],
    }


def _difference_dict(difference: Difference | None) -> dict[str, object]:
    if difference is None:
        return {"difference": None, "low": None, "high": None, "interval": "", "over": ""}
    ends = {"difference": difference.value, "low": difference.low, "high": difference.high}
    values = {name: _finite(value) for name, value in ends.items()}
    return {**values, "interval": difference.interval, "over": difference.over}


def _finite(value: Number) -> Number:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _markdown(rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table whose first row is the heading; numbers end at one edge."""
    lines = ["| " + " | ".join(_escaped(cell) for cell in row) + " |" for row in rows]
    numeric = [all(_is_number(row[place]) for row in rows[1:]) for place in range(len(rows[0]))]
    return "\n".join([lines[0], "|" + "|".join("---:" if right else "---" for right in numeric) + "|", *lines[1:]])


def _is_number(text: str) -> bool:
    return not text or text in {"inf", "-inf", "nan"} or text.lstrip("+-")[:1].isdigit()


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
