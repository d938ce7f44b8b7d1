"""A row that is a trained parser: its trees for the sentences of a treebank, scored as Section 6.3's are."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from headway.checkpoint.run_folder import RECIPE_FILE
from headway.config.schema import RunConfig
from headway.errors import PaperError
from headway.folder.contents import TRAINING_FOLDER, WEIGHTS_FILE, ModelFolder
from headway.metrics.parseval import Figures, score_trees, with_reference_tags
from headway.model.size import count_parameters
from headway.paper.events import RowStopped
from headway.paper.trained_row import METRICS_FILE
from headway.paper.work import Making, Values
from headway.train.events import Interrupted, Notice, Stage
from headway.train.run import recipe_changes, train
from headway.translate.parser import Parser
from headway.trees.brackets import read_trees
from headway.trees.strip import strip
from headway.trees.tree import Tree

CHUNK = 64  # sentences between two looks at whether the user asked to stop


@dataclass(frozen=True, slots=True)
class Reading:
    """How sentences are parsed: the paper's beam and length penalty (Section 6.3) unless otherwise said."""

    beam_size: int = 21
    length_penalty: float = 0.3


@dataclass(frozen=True, slots=True)
class Scored:
    """Labelled F1 of the figure ``all`` with the middle 95 % of the resamples, of so many sentences."""

    f1: float
    low: float | None
    high: float | None
    sentences: int


@dataclass(frozen=True, slots=True)
class ParserRow:
    """What was measured of a parser. ``curve``: minutes and F1 of each validation, empty where they are not known."""

    every_length: Scored
    up_to_cutoff: Scored
    tags_given: bool
    repaired: int
    parameters: int
    trees: int  # that it was trained on
    steps: int
    minutes: float
    seed: int
    curve: tuple[tuple[float, float], ...]

    @classmethod
    def read(cls, values: Mapping[str, object]) -> "ParserRow":
        """From a record, whose keys are the fields."""
        plain = json.loads(json.dumps(values))
        plain["every_length"], plain["up_to_cutoff"] = (
            Scored(**plain[key]) for key in ("every_length", "up_to_cutoff")
        )
        plain["curve"] = tuple((minutes, f1) for minutes, f1 in plain["curve"])
        return cls(**plain)


def train_parser(
    config: RunConfig, data_dir: Path, *, out_dir: Path, trees: Path, reading: Reading, should_stop: Callable[[], bool]
) -> Making:
    """Train, or go on, and measure on the trees; the values are ``ParserRow``'s. None when it was asked to stop."""
    changes = recipe_changes(config, out_dir / TRAINING_FOLDER / RECIPE_FILE)
    if changes:
        yield Notice(f"{out_dir} holds a run with another {changes[0].key}; it begins anew")
    for event in train(config, data_dir, out_dir=out_dir, fresh=bool(changes), should_stop=should_stop):
        yield event
        if isinstance(event, Interrupted):
            return None
    return (yield from measure_parser(out_dir, trees=trees, reading=reading, should_stop=should_stop))


def measure_parser(folder: Path, *, trees: Path, reading: Reading, should_stop: Callable[[], bool]) -> Making:
    """Parse the sentences of a treebank with a model folder and score the trees; the values are ``ParserRow``'s.

    None when it was asked to stop. Raises PaperError where no tree has words, and as ``Parser.from_folder``,
    ``read_trees``.
    """
    yield Stage(f"parsing the sentences of {trees.name} with beam {reading.beam_size}")
    parser = Parser.from_folder(folder)
    references = _plain_trees(trees, parser)
    found: list[Tree | None] = []
    repaired = 0
    for start in range(0, len(references), CHUNK):
        if should_stop():
            yield RowStopped(folder.name)
            return None
        part = references[start : start + CHUNK]
        parses = parser.parse(
            [tree.words() for tree in part],
            tags=[tree.tags() for tree in part] if parser.needs_tags else None,
            beam_size=reading.beam_size,
            length_penalty=reading.length_penalty,
        )
        found += [parse.tree for parse in parses]
        repaired += sum(parse.repairs.total > 0 for parse in parses)
    scores = score_trees(with_reference_tags(found, references), references)
    config = ModelFolder.open(folder).config
    return {
        "every_length": _scored(scores.all.every_length),
        "up_to_cutoff": _scored(scores.all.up_to_cutoff),
        "tags_given": parser.needs_tags,
        "repaired": repaired,
        "parameters": count_parameters(config.model).total,
        "trees": config.training.pairs,
        "steps": config.training.steps,
        "minutes": config.training.seconds / 60,
        "seed": config.training.seed,
        "curve": _curve(folder),
    }


def digest_of(path: Path) -> str:
    """What tells one file from another, whatever its name; of a model folder, its weights.

    Raises PaperError for one that cannot be read.
    """
    file = path / WEIGHTS_FILE if path.is_dir() else path
    try:
        with file.open("rb") as stream:
            digest = sha256()
            while block := stream.read(2**20):
                digest.update(block)
    except OSError as error:
        raise PaperError(
            f"paper/parser_row: {file} cannot be read ({error.strerror}); wanted a parser's model folder and a "
            "treebank. Remedy: check the names after --model, --trees and --data."
        ) from error
    return digest.hexdigest()


def _plain_trees(path: Path, parser: Parser) -> list[Tree]:
    """The trees as the parser's recipe reads them; those without words are left out."""
    parsing = parser.parsing
    stripped = [
        strip(tree, functions=parsing.functions == "strip", traces=parsing.traces == "strip")
        for tree in read_trees(path)
    ]
    trees = [tree for tree in stripped if tree is not None]
    if not trees:
        raise PaperError(
            f"paper/parser_row: {path} holds no tree with words, and there is nothing to score. "
            "Remedy: name a treebank in Penn brackets."
        )
    return trees


def _scored(figures: Figures) -> Values:
    interval = figures.f1_interval
    return {
        "f1": figures.f1,
        "low": None if interval is None else interval.low,
        "high": None if interval is None else interval.high,
        "sentences": figures.num_sentences,
    }


def _curve(folder: Path) -> Sequence[tuple[float, float]]:
    """Minutes and F1 of each validation, as the run's own log has them; nothing where there is no log."""
    path = folder / TRAINING_FOLDER / METRICS_FILE
    if not path.is_file():
        return ()
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    validations = [record for record in records if record["event"] == "validation"]
    return [(record["seconds"] / 60, record["f1"]) for record in validations]
