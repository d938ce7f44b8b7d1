"""Labelled text from plain text: whether two neighbouring words of a line have changed places.

    python bench/swapped_words.py FILE OUT [--seed 1] [--lines N]

Lines of four words or more, each once; in half of them, drawn by the seed, two unlike neighbours change places. A line
of OUT is `whole` or `swapped`, a tab, the text. Whoever knows the language can tell them apart, and 500 such lines do
not teach it: what a model knows of it must come from other text.
"""

from random import Random

from labelled_lines import write_labelled

FEWEST_WORDS = 4


def main(arguments: list[str] | None = None) -> None:
    """Write the labelled lines."""
    write_labelled(labelled, arguments, description=__doc__)


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
