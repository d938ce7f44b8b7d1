"""The model folder, all that translating needs: configuration, weights, tokenizer and card. No code, no pickle."""

import json
import os
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError

from headway import __version__
from headway.config.data_config import TextConfig
from headway.config.model_config import ModelConfig
from headway.config.schema import ParsingConfig, SearchConfig
from headway.config.section import Count, Section
from headway.errors import FolderError, TextError
from headway.folder.atomic import replace_file
from headway.folder.weights import Array, read_weights, stream_weights
from headway.text.tokenizer import Tokenizer

FORMAT_VERSION = 1
CONFIG_FILE = "config.json"
WEIGHTS_FILE = "model.safetensors"
CARD_FILE = "README.md"
TRAINING_FOLDER = "training"  # beside them in a run's folder: data, states, weights, the recipe, metrics.jsonl
SHARED_TOKENIZER_FILE = "tokenizer.json"
SOURCE_TOKENIZER_FILE = "source_tokenizer.json"
TARGET_TOKENIZER_FILE = "target_tokenizer.json"
PACKED_FILE = "packed-{precision}.safetensors"  # what the compiled engine made of the weights, at its first use


class TrainingSummary(Section):
    """How the weights came to be, in numbers. Zero or empty: not known."""

    steps: Annotated[int, Field(ge=0)] = 0
    epochs: Annotated[float, Field(ge=0.0)] = 0.0
    seconds: Annotated[float, Field(ge=0.0)] = 0.0
    precision: str = ""
    seed: Annotated[int, Field(ge=0)] = 0
    pairs: Annotated[int, Field(ge=0)] = 0  # that passed the filters and were trained on
    parent: str = ""  # the model folder whose weights the run began with


class FolderConfig(Section):
    """What ``config.json`` says."""

    format_version: Count = FORMAT_VERSION
    headway_version: str = __version__
    source_language: str = ""
    target_language: str = ""
    model: ModelConfig  # with the real vocabulary sizes
    search: SearchConfig = Field(default_factory=SearchConfig)
    text: TextConfig = Field(default_factory=TextConfig)
    max_source_tokens: Count  # the longest source trained on, EOS counted; longer input is split
    tags: tuple[str, ...] = ()  # that sources were trained with, "" among them if some had none; empty: none had one
    parsing: ParsingConfig | None = None  # of a parser: how its sources and outputs are written; else absent
    labels: tuple[str, ...] = ()  # that texts are told apart by, in the order of the model's classes; empty: none
    training: TrainingSummary = Field(default_factory=TrainingSummary)


@dataclass(frozen=True)
class ModelFolder:
    """A model folder whose files are all there and whose configuration is valid; the rest is read when asked for."""

    path: Path
    config: FolderConfig

    @classmethod
    def open(cls, path: Path) -> "ModelFolder":
        """Open a folder. Raises FolderError when it is missing, incomplete, of a newer format or not valid."""
        if not path.exists():
            raise FolderError(
                f"folder: {path} does not exist; looked there for a model folder ({CONFIG_FILE}, {WEIGHTS_FILE}, "
                f"{SHARED_TOKENIZER_FILE}). Train one with `headway train --out {path} ...`, or name another with -m."
            )
        if not path.is_dir():
            raise FolderError(
                f"folder: {path} is a file; a model folder holding {CONFIG_FILE} is wanted. "
                f"Name the folder, not a file in it."
            )
        _require(path, CONFIG_FILE)
        config = _read_config(path / CONFIG_FILE)
        for name in (WEIGHTS_FILE, *_tokenizer_files(shared=config.text.shared_vocabulary)):
            _require(path, name)
        return cls(path, config)

    def weights(self) -> dict[str, Array]:
        """Read the arrays of the model, memory-mapped. Raises FolderError when the file is damaged."""
        return read_weights(self.path / WEIGHTS_FILE)

    @cached_property
    def source_tokenizer(self) -> Tokenizer:
        """The tokenizer of the source side; with a shared vocabulary the same object as the target side's."""
        return self._tokenizer(_tokenizer_files(shared=self.config.text.shared_vocabulary)[0])

    @cached_property
    def target_tokenizer(self) -> Tokenizer:
        """The tokenizer of the target side."""
        if self.config.text.shared_vocabulary:
            return self.source_tokenizer
        return self._tokenizer(TARGET_TOKENIZER_FILE)

    def _tokenizer(self, name: str) -> Tokenizer:
        path = self.path / name
        try:
            tokenizer = Tokenizer.from_json(path.read_text(encoding="utf-8"))
        except (TextError, UnicodeDecodeError) as error:
            raise FolderError(
                f"folder: {path} ({path.stat().st_size:,} bytes) is not a tokenizer: {_one_line(error)}. "
                f"Copy the folder again from where it was whole, or train again."
            ) from error
        model = self.config.model
        wanted = model.vocab_size
        if name == SOURCE_TOKENIZER_FILE and model.source_vocab_size is not None:
            wanted = model.source_vocab_size
        if tokenizer.vocab_size != wanted:
            raise FolderError(
                f"folder: {path} has {tokenizer.vocab_size:,} tokens; {CONFIG_FILE} says {wanted:,}. "
                f"The files are of different models: copy the folder again as a whole."
            )
        return tokenizer


def write_folder(
    path: Path,
    *,
    config: FolderConfig,
    weights: Mapping[str, Array],
    source_tokenizer: Tokenizer,
    target_tokenizer: Tokenizer,
    card: str,
) -> ModelFolder:
    """Write a model folder; the same object as both tokenizers is a shared vocabulary.

    Every file is whole on the disk, beside its place, before the first takes its place; ``config.json`` comes last and
    the old one goes first. So a full disk leaves the old folder as it was, and a kill never leaves a folder that looks
    whole and is not. Raises FolderError when the path is a file, OSError when the disk is full.
    """
    shared = source_tokenizer is target_tokenizer
    assert shared == config.text.shared_vocabulary, "the tokenizers and text.shared_vocabulary must agree"
    check_place(path)
    path.mkdir(parents=True, exist_ok=True)
    texts = {CONFIG_FILE: config.model_dump_json(indent=2) + "\n", CARD_FILE: card}
    tokenizers = (source_tokenizer,) if shared else (source_tokenizer, target_tokenizer)
    for name, tokenizer in zip(_tokenizer_files(shared=shared), tokenizers, strict=True):
        texts[name] = tokenizer.to_json()
    with ExitStack() as stack:  # leaves in reverse: what was opened first, config.json, is renamed last
        files = {name: stack.enter_context(replace_file(path / name)) for name in (*texts, WEIGHTS_FILE)}
        for name, text in texts.items():
            files[name].write(text.encode("utf-8"))
        stream_weights(files[WEIGHTS_FILE], weights, metadata={"headway_version": config.headway_version})
        for file in files.values():
            file.flush()
            os.fsync(file.fileno())
        (path / CONFIG_FILE).unlink(missing_ok=True)
    # Files of the other kind of vocabulary, and packed weights, would otherwise outlive the model they belonged to.
    others = [path / name for name in _tokenizer_files(shared=not shared)]
    for other in (*others, *path.glob(PACKED_FILE.format(precision="*"))):
        other.unlink(missing_ok=True)
    return ModelFolder(path, config)


def check_place(path: Path) -> None:
    """Refuse a place where writing a model folder would replace files that are not a model's.

    Raises FolderError for a file, or for a folder with a README.md or config.json and no model or training in it.
    """
    if path.exists() and not path.is_dir():
        raise FolderError(f"folder: {path} is a file; a folder for the model is wanted. Name another with --out.")
    taken = [name for name in (CARD_FILE, CONFIG_FILE) if (path / name).exists()]
    if taken and not (path / WEIGHTS_FILE).exists() and not (path / TRAINING_FOLDER).exists():
        raise FolderError(
            f"folder: {path} holds a {taken[0]} and no model; a model's files would replace it. "
            f"Name an empty or a new folder with --out."
        )


def _tokenizer_files(*, shared: bool) -> tuple[str, ...]:
    return (SHARED_TOKENIZER_FILE,) if shared else (SOURCE_TOKENIZER_FILE, TARGET_TOKENIZER_FILE)


def _require(path: Path, name: str) -> None:
    if not (path / name).is_file():
        found = ", ".join(sorted(entry.name for entry in path.iterdir())[:10]) or "nothing"
        if (path / TRAINING_FOLDER).is_dir():
            raise FolderError(
                f"folder: {path} has no file {name}: the training in it has not ended (or the file was lost). Give the "
                f"train command again to go on, or take the weights so far: headway average -m {path} --out FOLDER"
            )
        raise FolderError(
            f"folder: {path} has no file {name}; found {found}. It is not a model folder, or one whose writing or "
            f"copying did not end. Copy it again, train it again, or name another with -m."
        )


def _read_config(path: Path) -> FolderConfig:
    size = path.stat().st_size
    try:
        raw: Any = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise FolderError(
            f"folder: {path} ({size:,} bytes) is not JSON: {_one_line(error)}. "
            f"Copy the folder again from where it was whole, or train again."
        ) from error
    version = raw.get("format_version") if isinstance(raw, dict) else None
    if isinstance(version, int) and version > FORMAT_VERSION:
        raise FolderError(
            f"folder: {path} has format_version {version}, written by Headway {raw.get('headway_version', '?')}; "
            f"this is Headway {__version__}, which reads up to {FORMAT_VERSION}. Update: `pip install -U headway`."
        )
    try:
        return FolderConfig.model_validate_json(json.dumps(raw))
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"]) or "the whole"
        raise FolderError(
            f"folder: {path}: {key}: {_one_line(first['msg'])}; found {str(first['input'])[:80]!r}. "
            f"Restore the file as Headway wrote it, or copy the folder again."
        ) from error


def _one_line(error: object) -> str:
    return " ".join(str(error).split())
