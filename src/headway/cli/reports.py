"""Plain tables of what happened to the data: filters, overlap, tokens, vocabulary."""

from collections.abc import Collection, Sequence

from headway.corpus.clean import CleanReport
from headway.corpus.overlap import Overlap


def columns(rows: Sequence[Sequence[str]], *, right: Collection[int] = ()) -> str:
    """Lay out rows of equal length in aligned columns; those numbered in ``right`` (from 0) end at one edge."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines: list[str] = []
    for row in rows:
        cells = [
            cell.rjust(width) if number in right else cell.ljust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def clip(text: str, *, width: int = 60) -> str:
    """Make a text fit a line: control characters become escapes, and a cut is told with the text's length."""
    shown = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
    return shown if len(shown) <= width else f"{shown[: width - 1]}… ({len(text):,} characters)"


def render_cleaning(report: CleanReport) -> str:
    """Tell what each filter dropped, with its first examples and their lines in the file."""
    rows = [("filter", "dropped")]
    rows.extend((row.name, f"{row.dropped:,}" if row.active else "off") for row in report.rows())
    rows.append(("kept", f"{report.num_kept:,} of {report.num_read:,}"))
    lines = [columns(rows, right={1})]
    for row in report.rows():
        for pair in row.examples:
            lines.append(f"  {row.name}, line {pair.line:,}: {clip(pair.source)} | {clip(pair.target)}")
    return "\n".join(lines)


def render_overlap(name: str, overlap: Overlap) -> str:
    """Tell how many pairs of a validation or test text also stand in training."""
    total = f"{overlap.num_pairs:,}"
    head = (
        f"{name}: of {total} pairs, training has {overlap.pairs:,} whole, "
        f"{overlap.sources:,} sources and {overlap.targets:,} targets"
    )
    examples = [
        f"  {example.kind}, line {example.pair.line:,}, in training at line {example.training_line:,}: "
        f"{clip(example.pair.source)} | {clip(example.pair.target)}"
        for example in overlap.examples
    ]
    return "\n".join([head, *examples])
