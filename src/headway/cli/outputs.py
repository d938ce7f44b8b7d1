"""The file that a command writes: never one that it reads."""

from collections.abc import Mapping
from pathlib import Path

import click

from headway.corpus.lines import STANDARD_STREAM


def check_output(output: str | Path | None, inputs: Mapping[str, str | Path | None]) -> None:
    """Refuse to write over a file that is read, by whatever names: its text would be lost.

    ``inputs`` by the options that name them; a standard stream is no file.
    """
    if output is None or str(output) == STANDARD_STREAM or not Path(output).exists():
        return
    for what, file in inputs.items():
        if file and str(file) != STANDARD_STREAM and Path(file).exists() and Path(file).samefile(output):
            raise click.UsageError(
                f"--output and {what} are the same file, {output}; its text would be lost. Name another."
            )
