"""``headway parse``: sentences in, trees out."""

import json
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headway.cli.computing import computing_options, load_parser
from headway.cli.options import format_option, tag_option
from headway.cli.outputs import check_output
from headway.cli.reports import count
from headway.corpus.lines import STANDARD_STREAM, name_of, open_writer, read_lines
from headway.errors import TranslationError
from headway.translate.compute import Compute

if TYPE_CHECKING:
    from headway.translate.parser import Parse, Parser
    from headway.trees.tree import Tree

    Sentence = tuple[list[str], list[str] | None]

CHUNK = 512  # sentences in memory
_NAMED = 10  # line numbers that a warning names


@dataclass
class Notes:
    """What a user must hear of after the last sentence, by its number from 1."""

    repaired: list[int] = field(default_factory=list[int])
    cut: list[int] = field(default_factory=list[int])
    long: list[int] = field(default_factory=list[int])
    unknown: list[int] = field(default_factory=list[int])

    def add(self, number: int, parse: "Parse") -> None:
        """Take in one parse."""
        for numbers, holds in (
            (self.repaired, parse.repairs.total),
            (self.cut, parse.is_cut),
            (self.long, parse.is_long),
            (self.unknown, parse.num_unknown),
        ):
            if holds:
                numbers.append(number)

    def tell(self) -> None:
        """Print one line on standard error for each kind of thing that happened."""
        for numbers, what in (
            (self.repaired, "whose output was no tree over its words, mended (docs/parsing.md)"),
            (self.cut, "whose output reached the length limit; the trees may be poor"),
            (self.long, "longer than any that the model was trained on; the trees may be poor"),
            (self.unknown, "with words or tags outside the model's vocabulary, which it saw as unknown"),
        ):
            if numbers:
                named = ", ".join(f"{number:,}" for number in numbers[:_NAMED])
                more = ", ..." if len(numbers) > _NAMED else ""
                click.echo(f"headway: {count(len(numbers), 'sentence')} {what}: number {named}{more}", err=True)


@click.command("parse")
@click.argument("file", default=STANDARD_STREAM)
@click.option(
    "-m",
    "--model",
    "models",
    required=True,
    multiple=True,
    type=click.Path(path_type=Path),
    help="The model folder; of several the mean probabilities count.",
)
@click.option("-o", "--output", default=STANDARD_STREAM, help="Write to this file (.gz ...), or folder of drawings.")
@format_option("lines: trees only. jsonl: scores and what had to be mended too.")
@click.option("--tags", "tags_file", metavar="FILE", help="The tags of each line's words, line by line.")
@click.option("--tagged", is_flag=True, help="Words come with their tags: the_DT dog_NN.")
@click.option("--from-trees", is_flag=True, help="FILE holds trees: their words, and tags if the model reads any.")
@click.option("--beam-size", type=click.IntRange(min=1), help="Hypotheses side by side; 1 is greedy. [the model's]")
@click.option("--length-penalty", type=click.FloatRange(min=0.0), help="0 is neutral. [the model's]")
@click.option(
    "--word-reward",
    type=click.FloatRange(min=0.0),
    help="Nats by which unfinished trees are ranked higher for each word they have. [the model's]",
)
@click.option("--unconstrained", is_flag=True, help="Take what the model writes, and mend it; else search among trees.")
@click.option("--pretty", is_flag=True, help="Trees over several lines, indented, with a blank line after each.")
@click.option(
    "--draw",
    type=click.Choice(["text", "svg"]),
    help="Drawings in place of brackets. svg: a file a sentence, 1.svg, 2.svg ..., in the folder --output.",
)
@tag_option
@computing_options
@click.option("--batch-tokens", type=click.IntRange(min=1), help="Padded source tokens times beam computed at once.")
def command(  # noqa: PLR0913 - one parameter an option
    *,
    file: str,
    models: tuple[Path, ...],
    output: str,
    output_format: str,
    tags_file: str | None,
    tagged: bool,
    from_trees: bool,
    beam_size: int | None,
    length_penalty: float | None,
    word_reward: float | None,
    unconstrained: bool,
    pretty: bool,
    draw: str | None,
    tag: str | None,
    compute: Compute,
    batch_tokens: int | None,
) -> None:
    """Parse FILE, or standard input: a sentence a line, cut into words by spaces. A tree a line comes out, in order.

    Round brackets may stand as they are or as -LRB- and -RRB-. An empty line gives an empty line.

    Example: echo 'The dog sleeps .' | headway parse -m runs/parser
    """
    _check_options(file, tags_file, tagged=tagged, from_trees=from_trees)
    check_output(output, {"FILE": file, "--tags": tags_file})
    form = _form(output_format, pretty=pretty, draw=draw)
    if draw == "svg" and output == STANDARD_STREAM:
        raise click.UsageError("--draw svg writes a file a sentence; name a folder for them with --output.")
    parser = _load(models, compute, unconstrained=unconstrained)
    if word_reward and not parser.constrained:
        raise click.UsageError("--word-reward would have no effect without search among trees; leave it out.")
    sentences = _trees(file, parser) if from_trees else _sentences(file, tags_file, tagged=tagged)
    if parser.needs_tags and not (tags_file or tagged or from_trees):
        raise TranslationError(
            f"cli/parse: the model in {models[0]} reads a tag with every word, and none are given. "
            "Give --tags FILE, --tagged with word_TAG, or --from-trees with a file of trees."
        )
    notes, number = Notes(), 0
    with _writing(output, form) as write:
        while chunk := list(islice(sentences, CHUNK)):
            parses = parser.parse(
                [words for words, _ in chunk],
                tags=None if chunk[0][1] is None else [tags or [] for _, tags in chunk],
                beam_size=beam_size,
                length_penalty=length_penalty,
                word_reward=word_reward,
                batch_tokens=batch_tokens,
                corpus_tags=tag or "",
            )
            for parse in parses:
                number += 1
                notes.add(number, parse)
                write(number, parse)
    notes.tell()


def _form(output_format: str, *, pretty: bool, draw: str | None) -> str:
    """How trees are written: lines, jsonl, pretty, text or svg."""
    given = _names({"--format jsonl": output_format == "jsonl", "--pretty": pretty, "--draw": draw is not None})
    if len(given) > 1:
        raise click.UsageError(
            f"{' and '.join(given)}: found {len(given)} ways to write a tree, wanted one. Leave out the others."
        )
    return draw or ("pretty" if pretty else output_format)


@contextmanager
def _writing(output: str, form: str) -> "Generator[Callable[[int, Parse], None]]":
    """What writes the tree of a sentence, by its number, in this form; nothing but a line end where there is none."""
    from headway.trees.brackets import pretty_print
    from headway.trees.draw import draw_svg, draw_text

    if form == "svg":
        folder = Path(output)
        folder.mkdir(parents=True, exist_ok=True)

        def draw(number: int, parse: "Parse") -> None:
            if parse.tree is not None:
                (folder / f"{number}.svg").write_text(draw_svg(parse.tree), encoding="utf-8")

        yield draw
        return
    forms: dict[str, Callable[[Tree], str]] = {
        "lines": str,
        "pretty": lambda tree: f"{pretty_print(tree)}\n",
        "text": lambda tree: f"{draw_text(tree)}\n",
    }
    with open_writer(output) as file:

        def write(_: int, parse: "Parse") -> None:
            if form == "jsonl":
                file.write(f"{_as_json(parse)}\n")
            else:
                file.write(f"{'' if parse.tree is None else forms[form](parse.tree)}\n")

        yield write


def _as_json(parse: "Parse") -> str:
    """One object a sentence; without words there is neither a tree nor a score."""
    has_words = parse.tree is not None
    record = {
        "tree": str(parse.tree) if has_words else None,
        "score": parse.score if has_words else None,
        "log_prob": parse.log_prob if has_words else None,
        "num_symbols": len(parse.symbols),
        "num_repairs": parse.repairs.total,
        "is_cut": parse.is_cut,
        "is_long": parse.is_long,
        "num_unknown": parse.num_unknown,
    }
    return json.dumps(record, ensure_ascii=False)


def _check_options(file: str, tags_file: str | None, *, tagged: bool, from_trees: bool) -> None:
    """Refuse tags from two places, and standard input for two things."""
    given = _names({"--tags": bool(tags_file), "--tagged": tagged, "--from-trees": from_trees})
    if len(given) > 1:
        raise click.UsageError(f"{' and '.join(given)} say where tags come from; wanted one.")
    if tags_file == STANDARD_STREAM == file:
        raise click.UsageError("Standard input cannot be both sentences and tags; name a file for one of them.")


def _names(options: dict[str, bool]) -> list[str]:
    """Those that are given."""
    return [name for name, is_given in options.items() if is_given]


def _load(models: tuple[Path, ...], compute: Compute, *, unconstrained: bool) -> "Parser":
    if sys.stderr.isatty():
        click.echo("loading the model ...", err=True)
    return load_parser(models, compute, constrained=False if unconstrained else None)


def _trees(file: str, parser: "Parser") -> "Iterator[Sentence]":
    """The words of each tree, without what the parser's treebank was stripped of; its tags where the parser reads tags.

    One that predicts them would be held to given ones, and measured as what it is not.
    """
    from headway.data.treebank import plain_tree
    from headway.trees.brackets import read_trees

    for tree in read_trees(file):
        plain = plain_tree(tree, parser.parsing)
        words, tags = ([], []) if plain is None else (list(plain.words()), list(plain.tags()))
        yield words, tags if parser.needs_tags else None


def _sentences(file: str, tags_file: str | None, *, tagged: bool) -> "Iterator[Sentence]":
    """The words of each sentence as a reader sees them, and its tags where they are given."""
    from headway.cli.records import line_pairs
    from headway.text.tagged_words import split_tagged
    from headway.trees.escape import unescape_word

    lines = read_lines(file)
    if tags_file is not None:
        for line, row in line_pairs(lines, read_lines(tags_file), names=(name_of(file), name_of(tags_file))):
            yield [unescape_word(word) for word in _parts(line)], _parts(row)
        return
    for number, line in enumerate(lines, start=1):
        if tagged:
            words, tags = split_tagged(" ".join(_parts(line)), where=f"{name_of(file)} line {number:,}")
            yield [unescape_word(word) for word in words], tags
        else:
            yield [unescape_word(word) for word in _parts(line)], None


def _parts(line: str) -> list[str]:
    """What stands between spaces and tabs; other white space (U+00A0, say) is part of a word."""
    return [part for part in line.replace("\t", " ").split(" ") if part]
