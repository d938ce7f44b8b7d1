"""The files, formats and tags that a run names: whether they are named as they must be."""

from pathlib import Path

from headway.config.data_config import CorpusConfig, DataConfig
from headway.config.schema import RunConfig
from headway.corpus.language import check_language
from headway.corpus.lines import STANDARD_STREAM
from headway.corpus.read import ONE_TEXT
from headway.data.corpora import PARTS_OF_DATA, corpora_of, files_of
from headway.errors import CorpusError, DataError


def check_files(config: RunConfig, data_dir: Path) -> None:
    """Raise CorpusError for a file that a recipe names and that is not there, before any is read."""
    for part in PARTS_OF_DATA:
        text = "training" if part == "train" else part
        several = part == "train" and bool(config.data.corpora)
        for number, corpus in enumerate(corpora_of(config.data, part)):
            for side, name in (("source", corpus.source), ("target", corpus.target)):
                if name and name != STANDARD_STREAM and not (data_dir / name).exists():
                    folder = "" if data_dir.exists() else f", and neither does the folder {data_dir}"
                    place = f"data.corpora.{number}.{side}"
                    change = place if several else f"--set data.{part}_{side}=FILE"
                    raise CorpusError(
                        f"data/named_files: {data_dir / name} does not exist{folder}; wanted {text} text. Remedy: name "
                        f"the folder that holds it with --data DIR, or another file ({change})."
                    )


def check_settings(config: RunConfig) -> None:
    """Raise DataError where files or tags are not named as they must be; CorpusError for what is no language code."""
    data = config.data
    for section, place in ((data, "data"), *((corpus, "data.corpora") for corpus in data.corpora)):
        check_language(section.source_language, name=f"{place}.source_language")
        check_language(section.target_language, name=f"{place}.target_language")
    for part in PARTS_OF_DATA:
        _check_named(data, part)
        for corpus in corpora_of(data, part) if config.is_parser else ():
            _check_one_file(corpus, part)
    _check_sides(config)
    names = [name for part in PARTS_OF_DATA for corpus in corpora_of(data, part) for name in files_of(corpus)]
    if names.count(STANDARD_STREAM) > 1:
        raise DataError(
            f"data/named_files: {names.count(STANDARD_STREAM)} files are standard input (-); wanted one at most, as it "
            "can be read only once. Name files for the others."
        )
    if config.text.shared_vocabulary and config.model.source_vocab_size is not None:
        raise DataError(
            f"data/named_files: model.source_vocab_size is {config.model.source_vocab_size}, but "
            "text.shared_vocabulary is true: both sides have one vocabulary. Take out the one, or set the other to "
            "false."
        )


def _check_sides(config: RunConfig) -> None:
    """A run that reads one text learns from such text, without tags, and no other does."""
    wants_one, is_pairs = config.reads in ONE_TEXT, config.reads == "pairs"
    for corpus in (corpus for part in PARTS_OF_DATA for corpus in corpora_of(config.data, part)):
        fits = corpus.format == config.reads if wants_one else corpus.format not in ONE_TEXT
        if fits and (is_pairs or not corpus.tag):
            continue
        wanted = f"format {config.reads}" if wants_one else f"none of the formats {', '.join(ONE_TEXT)}"
        tag = f", tag {corpus.tag}" if corpus.tag else ""
        raise DataError(
            f"data/named_files: {corpus.source}: found format {corpus.format}{tag}; a run whose model.architecture is "
            f"{config.model.architecture}, train.objective {config.train.objective} and train.next_sentence "
            f"{str(config.train.next_sentence).lower()} wants {wanted}{'' if is_pairs else ' and no tag'}. "
            "Set data.format, or one of these three."
        )


def _check_named(data: DataConfig, part: str) -> None:
    """A target needs its source, training needs text, and validation and test need tags that are trained."""
    source, target, tag = (getattr(data, f"{part}_{name}", "") for name in ("source", "target", "tag"))
    if not source and (target or (part == "train" and not data.corpora)):
        found = f"data.{part}_target is {target!r}, data.{part}_source is empty" if target else "it is empty"
        raise DataError(
            f"data/named_files: data.{part}_source must name a file; {found}. "
            f"Set data.{part}_source (and data.{part}_target for two files)."
        )
    known = dict.fromkeys(corpus.tag for corpus in data.training_corpora)
    if part != "train" and ((source and tag not in known) or (tag and not source)):
        raise DataError(
            f"data/named_files: data.{part}_tag is {tag!r} with data.{part}_source {source!r}; the training corpora "
            f"have the tags {', '.join(map(repr, known))}. Set data.{part}_tag to that of the text, or to nothing "
            "without."
        )


def _check_one_file(corpus: CorpusConfig, part: str) -> None:
    """A treebank is both sides."""
    if corpus.target:
        raise DataError(
            f"data/named_files: data.format is trees, and {part} text has two files ({corpus.source}, "
            f"{corpus.target}); wanted one of trees, which are both sides. Take the target file out."
        )
