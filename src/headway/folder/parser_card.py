"""What the card of a parser tells otherwise than that of a translator: use, quality, limits."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from headway.config.schema import ParsingConfig
from headway.metrics.parseval import Figures, ParsevalScores

TagSource = Literal["given", "predicted", "hidden"]


@dataclass(frozen=True, slots=True)
class ParsedSet:
    """One set of sentences and the scores of their trees, with the tags of the references on them.

    ``tags``: it read them, wrote them, or did neither. ``num_repaired``: outputs that were no trees over their words.
    """

    name: str
    scores: ParsevalScores
    tags: TagSource
    num_repaired: int


def does_of(parsing: ParsingConfig) -> str:
    """What the model does."""
    tags = "the tags of their words given" if parsing.tags == "given" else "their words alone"
    return f"writes the constituency trees of sentences, {tags}"


def usage_of(parsing: ParsingConfig, folder_name: str) -> list[str]:
    """Commands, without their fence."""
    name = shlex.quote(folder_name)
    own = "" if parsing.tags == "given" else " --reference-tags"
    if parsing.tags == "given":
        first = f"echo 'The_DT dog_NN sleeps_VBZ ._.' | headway parse -m {name} --tagged"
    else:
        first = f"echo 'The dog sleeps .' | headway parse -m {name}"
    return [
        first,
        f"headway parse -m {name} --from-trees test.trees --precision float32 -o parses.trees",
        f"headway evaluate --task parsing --hypothesis parses.trees --reference test.trees{own}",
        f"headway describe {name}",
    ]


def quality_of(scored: Sequence[ParsedSet]) -> list[str]:
    """A table of labelled F1; every failed sentence counts as missed (the figure ``all``)."""
    lines = [
        "Labelled brackets by EVALB's COLLINS parameters, with the tags of the references on the trees; a failed "
        "sentence counts as missed. 95 % intervals are a bootstrap over sentences.",
        "",
        "| set | sentences | tags | F1 | recall | precision | F1 up to 40 words | outputs mended |",
        "|---|---:|---|---:|---:|---:|---:|---:|",
    ]
    for entry in scored:
        whole, short = entry.scores.all.every_length, entry.scores.all.up_to_cutoff
        name = " ".join(entry.name.split()).replace("<", "&lt;").replace("|", "\\|")
        lines.append(
            f"| {name} | {whole.num_sentences:,} | {_tags(entry)} | {_f1(whole)} | "
            f"{whole.recall:.2f} | {whole.precision:.2f} | {_f1(short)} | {entry.num_repaired:,} |"
        )
    return lines


def _tags(entry: ParsedSet) -> str:
    right = entry.scores.all.every_length.tagging_accuracy
    return f"predicted, {right:.2f} % right" if entry.tags == "predicted" else entry.tags


def limits_of(longest: int) -> list[str]:
    """What a user should know before trusting a tree."""
    return [
        f"- The longest source trained on has {longest:,} tokens; longer sentences are parsed whole, and worse.",
        "- Sentences unlike those of the treebank (their subjects, their tokenisation) are parsed worse, and nothing "
        "says so.",
        "- A well-formed tree may be wrong.",
    ]


def _f1(figures: Figures) -> str:
    interval = figures.f1_interval
    return f"{figures.f1:.2f}" if interval is None else f"{figures.f1:.2f} [{interval.low:.2f}, {interval.high:.2f}]"
