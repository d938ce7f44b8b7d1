"""Plain tables of what happened to the data: filters, overlap, tokens, vocabulary. Texts to print, not printed here."""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from headway.text.printable import printable

if TYPE_CHECKING:
    from headway.corpus.clean import FilterRow
    from headway.corpus.overlap import Overlap
    from headway.data.prepared import CorpusReport, Dropped, Report
    from headway.metrics.accuracy import Accuracy, AccuracyComparison


# what a line of training text is -> what a line of other text may share with it, and how that is told
SAME = {
    "pair": {"pair": "same pair", "source": "same source", "target": "same target"},
    "line": {"pair": "same line"},
    "text": {"pair": "same text and label", "source": "same text, another label"},
}


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


def count(number: int, noun: str) -> str:
    """Write a number with its noun, ``1 pair`` or ``2,000 pairs``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def clip(text: str, *, width: int = 60) -> str:
    """Make a text fit a line: control characters become escapes, and a cut is told with the text's length."""
    shown = printable(text[:width])
    return shown if len(text) <= width else f"{shown}… ({len(text):,} characters)"


def accuracy_text(found: "Accuracy") -> str:
    """Tell how many texts got their label."""
    low, high = found.interval
    same = f"{found.most_frequent / found.total:.1%} by the most frequent label"
    return f"accuracy {found.share:.1%} [{low:.1%}, {high:.1%}] of {count(found.total, 'text')}; {same}"


def accuracy_comparison_text(found: "AccuracyComparison") -> str:
    """Tell how two classifiers differ on the same texts."""
    low, high = found.interval
    told = f"{found.only_this:,} right here alone, {found.only_baseline:,} in the baseline alone"
    chance = f"p = {found.p_value:.4f}" if found.p_value >= 1e-4 else "p < 0.0001"
    return f"against the baseline {found.difference:+.1%} [{low:+.1%}, {high:+.1%}], {chance}: {told}"


def render_report(report: "Report") -> str:
    """Tell all that preparing did: what was dropped and why, overlap, tokens, vocabulary.

    What a line of text is called, and how many sides it has, follow the text: pairs, lines of one text, labelled texts.
    """
    noun = _noun(report)
    parts = [
        render_cleaning(report.cleaning, num_read=report.pairs_read, num_kept=report.pairs_clean, noun=noun),
        *([render_corpora(report.corpora)] if len(report.corpora) > 1 else []),
        render_encoding(report),
        render_overlap("validation", report.validation_overlap, noun=noun),
    ]
    if report.test_overlap is not None:
        parts.append(render_overlap("test", report.test_overlap, noun=noun))
    return "\n\n".join(parts)


def _noun(report: "Report") -> str:
    """What one line of the training text is."""
    if report.labels:
        return "text"
    return "pair" if report.train.source_tokens else "line"


def render_cleaning(rows: "Sequence[FilterRow]", *, num_read: int, num_kept: int, noun: str = "pair") -> str:
    """Tell what each filter dropped, with its first examples and their lines in the file."""
    table = [
        ("filter", f"{noun}s dropped"),
        *((row.name, f"{row.dropped:,}" if row.active else "off") for row in rows),
        ("kept", f"{num_kept:,} of {num_read:,}"),
    ]
    examples = [
        f"  {row.name}, line {pair.line:,}: {_sides(pair.source, pair.target, noun=noun)}"
        for row in rows
        for pair in row.examples
    ]
    return "\n".join([columns(table, right={1}), *examples])


def render_corpora(corpora: "Sequence[CorpusReport]") -> str:
    """Tell what became of each corpus, what its filters dropped, and how much of an epoch it is."""
    total = sum(corpus.pairs * corpus.weight for corpus in corpora)
    rows = [["corpus", "tag", "read", "kept", "held out", "too many tokens", "training", "weight", "of an epoch"]]
    for corpus in corpora:
        numbers = (corpus.pairs_read, corpus.pairs_clean, corpus.held_out, corpus.too_long.count, corpus.pairs)
        share = corpus.pairs * corpus.weight / total
        counts = [f"{number:,}" for number in numbers]
        rows.append([clip(corpus.name), corpus.tag or "-", *counts, f"{corpus.weight:g}", f"{share:.1%}"])
    lines = [columns(rows, right=range(2, 9))]
    for corpus in corpora:
        for row in corpus.cleaning:
            if row.dropped:
                places = ", ".join(f"{pair.line:,}" for pair in row.examples)
                lines.append(f"  {clip(corpus.name)}, {row.name}: {row.dropped:,} dropped, first at line {places}")
        lines += _left_out(clip(corpus.name), {"too many tokens": corpus.too_long})
    return "\n".join(lines)


def render_overlap(name: str, overlap: "Overlap", *, noun: str = "pair") -> str:
    """Tell how many pairs, lines or labelled texts of a validation or test text also stand in training."""
    sides = {
        "pair": f" whole, {count(overlap.sources, 'source')}, {count(overlap.targets, 'target')}",
        "text": f" with their labels, {overlap.sources:,} with any",
        "line": "",
    }
    head = (
        f"overlap: of {count(overlap.num_pairs, f'{name} {noun}')} the training text also holds "
        f"{overlap.pairs:,}{sides[noun]}"
    )
    same = SAME[noun]
    examples = [
        f"  {same[example.kind]}, line {example.pair.line:,}, in "
        f"{example.corpus or 'training'} at line {example.training_line:,}: "
        f"{_sides(example.pair.source, example.pair.target, noun=noun)}"
        for example in overlap.examples
        if example.kind in same
    ]
    return "\n".join([head, *examples])


def render_encoding(report: "Report") -> str:
    """Tell pairs (or lines, texts), tokens, what was left out of training and validation, and the vocabulary's size."""
    noun = _noun(report)
    tokens = {"pair": ("source tokens", "target tokens"), "text": ("tokens",), "line": ("tokens",)}[noun]
    rows = [["", f"{noun}s", *tokens, "too many tokens", "empty"]]
    for name, encoded in (("training", report.train), ("validation", report.validation)):
        counted = {
            "pair": (encoded.source_tokens, encoded.target_tokens),
            "text": (encoded.source_tokens,),
            "line": (encoded.target_tokens,),
        }[noun]
        numbers = (encoded.pairs, *counted, encoded.too_long.count, encoded.empty.count)
        rows.append([name, *(f"{number:,}" for number in numbers)])
    lines = [columns(rows, right=range(1, len(rows[0])))]
    for name, encoded in (("training", report.train), ("validation", report.validation)):
        lines += _left_out(name, {"too many tokens": encoded.too_long, "empty": encoded.empty})
    for part, gaps in report.gaps.items():
        lines += _left_out(part, {"units that lack a side": gaps})
    if report.held_out:
        lines.append(f"validation: {count(report.held_out, noun)} held out of the training text")
    source, target = report.source_vocab_size, report.target_vocab_size
    sizes = f"{target:,} tokens" + (f", {source:,} of the source side" if source != target else "")
    trainable = report.pairs_clean - report.held_out
    sample = (
        f", learnt from {report.learnt_pairs:,} of {trainable:,} {noun}s" if report.learnt_pairs < trainable else ""
    )
    lines.append(f"vocabulary: {sizes}{sample}")
    if report.labels:
        lines.append(f"labels: {', '.join(map(clip, report.labels[:10]))}{' ...' if len(report.labels) > 10 else ''}")
    return "\n".join(lines)


def _left_out(name: str, reasons: "Mapping[str, Dropped]") -> list[str]:
    return [
        f"  {name}, {reason}: {dropped.count:,} left out, first at line "
        + ", ".join(f"{line:,}" for line in dropped.lines)
        for reason, dropped in reasons.items()
        if dropped.lines  # of several corpora together there are none: each tells its own
    ]


def _sides(source: str, target: str, *, noun: str) -> str:
    return clip(target) if noun == "line" else f"{clip(source)} | {clip(target)}"
