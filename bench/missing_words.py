"""Labelled text from plain text: which word has been taken out of a line.

    python bench/missing_words.py FILE OUT [--seed 1] [--lines N]

Each line once that has one of ``WORDS``, small words that say how the others belong together, behind its first word; of
several, one that the seed draws. A line of OUT is the word, a tab, the text with a low line in its place. A few hundred
such lines do not teach which word goes with which: what a model knows of it must come from other text.
"""

import argparse
from pathlib import Path
from random import Random

from headway.corpus.lines import open_writer, read_lines

WORDS = ("to", "of", "in", "for", "on", "at", "with", "from")
GAP = "_"


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
    """Label and text of each line that has one of the words, in their order."""
    rows: list[tuple[str, str]] = []
    for line in dict.fromkeys(lines):
        words = line.replace("\t", " ").split()
        places = [place for place, word in enumerate(words) if place and word in WORDS]
        if places:
            place = places[int(random.random() * len(places))]
            rows.append((words[place], " ".join([*words[:place], GAP, *words[place + 1 :]])))
    return rows


if __name__ == "__main__":
    main()
