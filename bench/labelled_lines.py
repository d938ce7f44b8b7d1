"""What makes labelled text from plain text: the command line of ``swapped_words.py`` and ``missing_words.py``."""

import argparse
from collections.abc import Callable
from pathlib import Path
from random import Random

from headway.corpus.lines import open_writer, read_lines

Labelled = Callable[[list[str], Random], list[tuple[str, str]]]  # lines -> label and text of those that it takes


def write_labelled(labelled: Labelled, arguments: list[str] | None, *, description: str | None) -> None:
    """Read FILE, write a label, a tab and a text a line to OUT."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lines", type=int, help="the most that are written")
    given = parser.parse_args(arguments)
    rows = labelled(list(read_lines(given.file)), Random(given.seed))[: given.lines]
    with open_writer(given.out) as writer:
        writer.writelines(f"{label}\t{text}\n" for label, text in rows)
