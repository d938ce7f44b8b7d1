"""``headway generate``: a language model goes on from prompts."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headway.cli.options import format_option
from headway.cli.outputs import check_output
from headway.cli.search_options import generation_options
from headway.corpus.lines import STANDARD_STREAM, open_writer, read_lines
from headway.translate.compute import DEVICES
from headway.translate.decoding import Decoding
from headway.translate.generator import MAX_TOKENS

if TYPE_CHECKING:
    from headway.translate.generator import Continuation, Generator

LINES_HELD = 1000  # prompts of a file in memory at once


@click.command("generate")
@click.argument("file", required=False)
@click.option("-m", "--model", required=True, type=click.Path(path_type=Path), help="The folder of a language model.")
@click.option("--prompt", "prompts", multiple=True, help="Go on from this text; may be repeated. Absent: from nothing.")
@click.option("-o", "--output", default=STANDARD_STREAM, help="Write to this file (.gz .bz2 .xz .zst too).")
@format_option("jsonl: more.")
@generation_options
@click.option("--n-best", type=click.IntRange(min=1), default=1, help="Texts of each prompt; with --sample, draws.")
@click.option("--max-tokens", type=click.IntRange(min=1), default=MAX_TOKENS, show_default=True, help="The most added.")
@click.option("--device", default="auto", type=click.Choice(DEVICES), help="Where to compute.")
@click.option("--threads", type=click.IntRange(min=1), help="CPU threads. [one a core]")
@click.option("--batch-tokens", type=click.IntRange(min=1), help="Padded tokens times beam computed at once.")
def command(  # noqa: PLR0913 - click gives one argument an option
    *,
    file: str | None,
    model: Path,
    prompts: tuple[str, ...],
    output: str,
    output_format: str,
    decoding: Decoding,
    n_best: int,
    max_tokens: int,
    device: str,
    threads: int | None,
    batch_tokens: int | None,
) -> None:
    """Go on from each prompt: --prompt TEXT, or the lines of FILE (- is standard input).

    \b
    headway generate -m FOLDER --prompt "A man is" --sample --top-p 0.9
    headway generate -m FOLDER prompts.txt --format jsonl --n-best 4
    """  # noqa: D301 - click wants the character that the escape stands for
    if prompts and file is not None:
        raise click.UsageError(f"found both --prompt and the file {file}; wanted one. Leave the other out.")
    from headway.translate.generator import Generator

    check_output(output, {"FILE": file})
    decoding = replace(decoding, n_best=n_best)
    generator = Generator.from_folder(model, device, threads=threads)
    lines = iter(prompts or ("",)) if file is None else read_lines(file)
    with open_writer(output) as writer:
        for prompt, texts in _generated(generator, lines, decoding, max_tokens, batch_tokens):
            records = _as_json(prompt, texts) if output_format == "jsonl" else [text.text for text in texts]
            writer.writelines(f"{record}\n" for record in records)


def _generated(
    generator: "Generator", lines: Iterator[str], decoding: Decoding, max_tokens: int, batch_tokens: int | None
) -> Iterator[tuple[str, "Sequence[Continuation]"]]:
    """Each prompt with its texts, some prompts in memory at a time."""
    while some := list(islice(lines, LINES_HELD)):
        found = generator.generate(some, decoding=decoding, max_tokens=max_tokens, batch_tokens=batch_tokens)
        yield from zip(some, found, strict=True)


def _as_json(prompt: str, texts: "Sequence[Continuation]") -> list[str]:
    """One object a prompt."""
    results = [
        {
            "text": text.text,
            "score": text.score,
            "log_prob": text.log_prob,
            "tokens": text.tokens,
            "is_cut": text.is_cut,
            "count": text.count,
        }
        for text in texts
    ]
    return [json.dumps({"prompt": prompt, "texts": results}, ensure_ascii=False)]
