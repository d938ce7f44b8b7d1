"""A row that is a trained parser: its trees for the sentences of a treebank, scored as Section 6.3's are."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from headway.config.schema import ParsingConfig, RunConfig
from headway.data.prepared import Prepared
from headway.data.treebank import read_treebank
from headway.errors import PaperError
from headway.folder.contents import CONFIG_FILE, TRAINING_FOLDER, WEIGHTS_FILE, ModelFolder
from headway.metrics.parseval import Figures
from headway.model.size import count_parameters
from headway.paper.events import RowStopped
from headway.paper.trained_row import begins_anew
from headway.paper.work import Making, Values
from headway.train.events import Finished, Interrupted, Stage
from headway.train.metrics_log import METRICS_FILE, read_validations
from headway.train.run import train
from headway.translate.compute import Compute
from headway.translate.evaluate_parser import parse_sources, score_parses
from headway.translate.kind import check_kind
from headway.translate.parser import Parse, Parser

CHUNK = 64  # sentences between two looks at whether the user asked to stop


@dataclass(frozen=True, slots=True)
class Reading:
    """How sentences are parsed: the paper's beam and length penalty (Section 6.3) unless otherwise said.

    ``corpus_tag``: the corpus that a parser of several should take them for.
    """

    beam_size: int = 21
    length_penalty: float = 0.3
    corpus_tag: str = ""


@dataclass(frozen=True, slots=True)
class Treebank:
    """Sentences with their trees, as a parser's recipe reads them; those without words are not scored."""

    name: str
    sources: tuple[str, ...]
    references: tuple[str, ...]

    @classmethod
    def read(cls, path: Path, parsing: ParsingConfig) -> "Treebank":
        """Read a file of trees. Raises PaperError where none has words, and as ``read_treebank``."""
        pairs = list(read_treebank(path, parsing))
        if not any(pair.source for pair in pairs):
            raise PaperError(
                f"paper/parser_row: none of the trees in {path} ({len(pairs):,}) has words; wanted trees to score a "
                "parser on. Remedy: name a treebank in Penn brackets."
            )
        return cls(path.name, tuple(pair.source for pair in pairs), tuple(pair.target for pair in pairs))

    @property
    def digest(self) -> str:
        """What tells these sentences and trees from others."""
        return sha256(json.dumps([self.sources, self.references]).encode("utf-8")).hexdigest()


@dataclass(frozen=True, slots=True)
class Scored:
    """Labelled F1 of the figure ``all`` with the middle 95 % of the resamples, of so many sentences."""

    f1: float
    low: float | None
    high: float | None
    sentences: int


@dataclass(frozen=True, slots=True)
class ParserRow:
    """What was measured of a parser. Zero: not known. ``curve``: minutes and F1 of each validation, if it has a log."""

    every_length: Scored
    up_to_cutoff: Scored
    tags: str
    repaired: int
    empty: int  # trees without words
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
    name: str,
    config: RunConfig,
    data_dir: Path,
    *,
    out_dir: Path,
    prepared: Prepared,
    treebank: Treebank,
    reading: Reading,
    should_stop: Callable[[], bool],
) -> Making:
    """Train, or go on, and measure; the values are ``ParserRow``'s. None when it was asked to stop.

    ``prepared`` are the data in the run's own folder. A run that began with another recipe or other data, or has gone
    beyond the budget, begins anew.
    """
    fresh = begins_anew(config, out_dir, digest=prepared.report.digest)
    for event in train(config, data_dir, out_dir=out_dir, fresh=fresh, should_stop=should_stop):
        if not isinstance(event, Finished):
            yield event
        if isinstance(event, Interrupted):
            return None
    return (yield from measure_parser(name, out_dir, treebank=treebank, reading=reading, should_stop=should_stop))


def measure_parser(
    name: str, folder: Path, *, treebank: Treebank, reading: Reading, should_stop: Callable[[], bool]
) -> Making:
    """Parse the sentences with a model folder and score the trees; the values are ``ParserRow``'s.

    None when it was asked to stop. Raises as ``Parser.from_folder``.
    """
    yield Stage(f"parsing {len(treebank.sources):,} sentences of {treebank.name} with beam {reading.beam_size}")
    parser = Parser.from_folder(folder, compute=Compute(engine="torch"))
    parser.search = parser.search.model_copy(
        update={"beam_size": reading.beam_size, "length_penalty": reading.length_penalty}
    )
    parses: list[Parse] = []
    for start in range(0, len(treebank.sources), CHUNK):
        if should_stop():
            yield RowStopped(name)
            return None
        parses += parse_sources(parser, treebank.sources[start : start + CHUNK], corpus_tags=reading.corpus_tag)
    found = score_parses(parses, treebank.sources, treebank.references, parser=parser)
    config = ModelFolder.open(folder).config
    validations = read_validations(folder / TRAINING_FOLDER / METRICS_FILE)
    return {
        "every_length": _scored(found.scores.all.every_length),
        "up_to_cutoff": _scored(found.scores.all.up_to_cutoff),
        "tags": found.tags,
        "repaired": found.num_repaired,
        "empty": found.num_empty,
        "parameters": count_parameters(config.model).total,
        "trees": config.training.pairs,
        "steps": config.training.steps,
        "minutes": config.training.seconds / 60,
        "seed": config.training.seed,
        "curve": [(each["seconds"] / 60, each["f1"]) for each in validations if each.get("f1") is not None],
    }


def parsing_of(folder: Path) -> ParsingConfig:
    """How a model folder's parser reads trees. Raises FolderError, and TranslationError for a model of another kind."""
    model = ModelFolder.open(folder)
    check_kind(model, "parse")
    assert model.config.parsing is not None
    return model.config.parsing


def digest_of_model(folder: Path) -> str:
    """What tells one model folder from another: all of it that shapes what the model writes."""
    digest = sha256()
    for path in sorted((folder / CONFIG_FILE, folder / WEIGHTS_FILE, *folder.glob("*tokenizer.json"))):
        digest.update(path.name.encode("utf-8"))
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _scored(figures: Figures) -> Values:
    interval = figures.f1_interval
    return {
        "f1": figures.f1,
        "low": None if interval is None else interval.low,
        "high": None if interval is None else interval.high,
        "sentences": figures.num_sentences,
    }
