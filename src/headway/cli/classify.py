"""``headway classify``: the label of each line, by a model that was trained on labelled texts."""

import json
from itertools import islice
from pathlib import Path

import click

from headway.cli.options import format_option
from headway.cli.outputs import check_output
from headway.cli.reports import count
from headway.corpus.lines import STANDARD_STREAM, open_writer, read_lines
from headway.translate.compute import DEVICES

LINES_HELD = 1000


@click.command("classify")
@click.argument("file", default=STANDARD_STREAM)
@click.option("-m", "--model", required=True, type=click.Path(path_type=Path), help="The folder of a classifier.")
@click.option("-o", "--output", default=STANDARD_STREAM, help="Write to this file (.gz .bz2 .xz .zst too).")
@format_option("lines: labels only. jsonl: the probability of each label too.")
@click.option("--device", default="auto", type=click.Choice(DEVICES), help="Where to compute.")
@click.option("--threads", type=click.IntRange(min=1), help="CPU threads. [one a core]")
def command(*, file: str, model: Path, output: str, output_format: str, device: str, threads: int | None) -> None:
    """Tell the label of each line of FILE, or of standard input: n lines in, n labels out, in order."""
    from headway.translate.classifier import TextClassifier

    check_output(output, {"FILE": file})
    classifier = TextClassifier.from_folder(model, device, threads=threads)
    lines, num_cut = read_lines(file), 0
    with open_writer(output) as writer:
        while some := list(islice(lines, LINES_HELD)):
            for text, found in zip(some, classifier.classify(some), strict=True):
                num_cut += found.is_cut
                record: dict[str, object] = {"text": text, "label": found.label, "probabilities": found.probabilities}
                record["is_cut"] = found.is_cut
                line = found.label if output_format == "lines" else json.dumps(record, ensure_ascii=False)
                writer.write(line + "\n")
    if num_cut:
        click.echo(f"headway: {count(num_cut, 'line')} longer than the model has positions for, cut", err=True)
