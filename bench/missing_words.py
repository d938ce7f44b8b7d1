"""Labelled text from plain text: which word has been taken out of a line.

    python bench/missing_words.py FILE OUT [--seed 1] [--lines N]

Each line once that has one of ``WORDS``, small words that say how the others belong together, behind its first word; of
several, one that the seed draws. A line of OUT is the word, a tab, the text with a low line in its place. A few hundred
such lines do not teach which word goes with which: what a model knows of it must come from other text.
"""

from random import Random

from labelled_lines import write_labelled

WORDS = ("to", "of", "in", "for", "on", "at", "with", "from")
GAP = "_"


def main(arguments: list[str] | None = None) -> None:
    """Write the labelled lines."""
    write_labelled(labelled, arguments, description=__doc__)


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
