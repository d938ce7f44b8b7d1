"""One number for all that shapes prepared data, by which they are found again or made anew."""

import json
from collections.abc import Iterable
from hashlib import file_digest, sha256
from pathlib import Path

from headway.config.schema import RunConfig
from headway.corpus.pair import SentencePair
from headway.data.corpora import PARTS_OF_DATA, corpora_of, files_of
from headway.data.given import GivenVocabulary

VERSION = 3  # of what preparing does: another one means that everything is prepared again


def digest_of_files(config: RunConfig, data_dir: Path, *, settings: bytes) -> str:
    """One number for all that shapes the result; empty where a file cannot be read twice, or not at all."""
    digest = sha256(settings)
    corpora = (corpus for part in PARTS_OF_DATA for corpus in corpora_of(config.data, part))
    try:
        for path in (data_dir / name for corpus in corpora for name in files_of(corpus)):
            if not path.is_file():  # standard input or a pipe
                return ""
            with path.open("rb") as file:
                digest.update(file_digest(file, "sha256").digest())
    except OSError:  # reading the text will name what is wrong
        return ""
    return digest.hexdigest()


def digest_of_text(settings: bytes, *, cleaned: Path, texts: Iterable[SentencePair]) -> str:
    """The same for input that could be read once only: of the cleaned training text, validation and test."""
    digest = sha256(settings)
    with cleaned.open("rb") as file:
        digest.update(file_digest(file, "sha256").digest())
    for pair in texts:
        digest.update(json.dumps((pair.source, pair.target)).encode())
    return digest.hexdigest()


def settings_of(config: RunConfig, vocabulary: GivenVocabulary | None) -> bytes:
    """All settings that shape the result."""
    settings: dict[str, object] = {
        "version": VERSION,
        "data": config.data.model_dump(),
        "clean": config.clean.model_dump(),
        "text": config.text.model_dump(exclude={"bpe_dropout", "word_dropout"}),  # these are for training
        "vocab_sizes": (config.model.vocab_size, config.model.source_vocab_size),
        "seed": config.train.seed,
    }
    if config.is_parser:
        settings["parsing"] = config.parsing.model_dump(exclude={"constrained", "max_openings", "word_reward"})
    if config.reads != "pairs":
        settings["reads"] = config.reads
    if vocabulary is not None:
        settings["vocabulary"] = vocabulary.digest()
    return json.dumps(settings, sort_keys=True).encode()
