"""Labelled text from plain text: whether two neighbouring words of a line have changed places.

    python bench/swapped_words.py FILE OUT [--seed 1] [--lines N]

Lines of four words or more, each once; in half of them, drawn by the seed, two unlike neighbours change places. A line
of OUT is `whole` or `swapped`, a tab, the text. Whoever knows the language can tell them apart, and 500 such lines do
not teach it: what a model knows of it must come from other text.
"""

import argparse
from pathlib import Path
from random import Random

from headway.corpus.lines import open_writer, read_lines

FEWEST_WORDS = 4


def main(arguments: list[str] | None = None) -> None:
    """Write the labelled lines."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lines", type=int, help="the most that are written")
    given = parser.parse_args(arguments)
    rows = labelled(list(read_lines(given.file)), Random(given.seed))[: given.lines]
    with open_writer(given.out) as writer:
        writer.writelines(f"{label}\t{text}\n" for label, text in rows)


def labelled(lines: list[str], random: Random) -> list[tuple[str, str]]:
    """Label and text of each line that is long enough, in their order."""
    rows: list[tuple[str, str]] = []
    for line in dict.fromkeys(lines):
        words = line.replace("\t", " ").split()
        places = [place for place in range(len(words) - 1) if words[place].lower() != words[place + 1].lower()]
        if len(words) < FEWEST_WORDS or not places:
            continue
        is_swapped = random.random() < 0.5
        if is_swapped:
            place = places[int(random.random() * len(places))]
            words[place], words[place + 1] = words[place + 1], words[place]
        rows.append(("swapped" if is_swapped else "whole", " ".join(words)))
    return rows


if __name__ == "__main__":
    main()
