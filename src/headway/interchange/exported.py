"""A folder that ``headway export --to huggingface`` wrote, read back: the model that was exported."""

import json
import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from pydantic import ValidationError

from headway.config.model_config import ModelConfig
from headway.errors import InterchangeError, TextError
from headway.folder.contents import FolderConfig
from headway.folder.weights import Array
from headway.interchange.huggingface_export import OWN_KEY, SCALE_KEY, SOURCE_FOLDER, TARGET_FOLDER
from headway.interchange.huggingface_tokenizer import TOKENIZER_FILE, read_tokenizer
from headway.interchange.marian import Rows, from_marian
from headway.interchange.marian_config import MarianModel
from headway.interchange.marian_vocabulary import WORDS_FILE
from headway.interchange.norm_scale import scale_norms
from headway.interchange.source_folder import SourceFolder
from headway.text.tokenizer import Tokenizer


def is_exported(source: SourceFolder, values: Mapping[str, object]) -> bool:
    """Whether the folder has our tokenizers; raises InterchangeError where they stand beside a foreign config.json."""
    if source.has(WORDS_FILE):
        return False
    has_tokenizer = source.has(TOKENIZER_FILE) or source.has(f"{SOURCE_FOLDER}/{TOKENIZER_FILE}")
    if has_tokenizer and OWN_KEY not in values:
        raise InterchangeError(
            f"interchange/exported: {source.path} has a {TOKENIZER_FILE} and no {WORDS_FILE}, and its config.json no "
            f"key {OWN_KEY!r}; wanted SentencePiece models with a {WORDS_FILE}, or what `headway export` wrote. "
            "Remedy: where the model was trained by Headway, use the folder that it was exported from."
        )
    return has_tokenizer


def read_exported(
    source: SourceFolder, values: Mapping[str, object], marian: MarianModel, arrays: Mapping[str, Array]
) -> tuple[FolderConfig, dict[str, Array], Tokenizer, Tokenizer]:
    """Our configuration, weights and tokenizers of source and target, one object where they are one.

    What shapes the weights is what config.json says to Hugging Face, and the weights themselves; the rest, such as
    languages, search and tags, is what it says to Headway. Raises InterchangeError where files do not fit together.
    """
    config = _own_config(source.path, values)
    rows = [Rows(np.arange(size)) for size in (marian.source_vocab_size, marian.target_vocab_size)]
    weights, model = from_marian(arrays, marian.model, source_rows=rows[0], target_rows=rows[1])
    weights = scale_norms(weights, model, 1.0 / _own_scale(source.path, values))
    model = ModelConfig.model_validate({**model.model_dump(), "norm_epsilon": config.model.norm_epsilon})
    source_size = model.source_vocab_size or model.vocab_size
    if config.text.shared_vocabulary:
        source_tokenizer = target_tokenizer = _tokenizer(source, TOKENIZER_FILE, model.vocab_size, source_size)
        model = model.model_copy(update={"source_vocab_size": None})  # a table of its own, of no size of its own
    else:
        source_tokenizer = _tokenizer(source, f"{SOURCE_FOLDER}/{TOKENIZER_FILE}", source_size)
        target_tokenizer = _tokenizer(source, f"{TARGET_FOLDER}/{TOKENIZER_FILE}", model.vocab_size)
    return config.model_copy(update={"model": model}), weights, source_tokenizer, target_tokenizer


def _own_config(path: Path, values: Mapping[str, object]) -> FolderConfig:
    try:
        return FolderConfig.model_validate_json(json.dumps(values[OWN_KEY]))
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join([OWN_KEY, *(str(part) for part in first["loc"])])
        raise InterchangeError(
            f"interchange/exported: {path / 'config.json'}: {key}: {' '.join(first['msg'].split())}; found "
            f"{str(first['input'])[:80]!r}. Remedy: restore it as `headway export` wrote it, or export again."
        ) from error


def _own_scale(path: Path, values: Mapping[str, object]) -> float:
    """By what power of two the numbers between sub-layers are larger there."""
    found = values.get(SCALE_KEY, 1.0)
    if isinstance(found, int | float) and 2.0**-20 <= found <= 2.0**20 and math.frexp(found)[0] == 0.5:
        return float(found)
    raise InterchangeError(
        f"interchange/exported: {path / 'config.json'}: {SCALE_KEY}: found {str(found)[:80]!r}; wanted a power of two. "
        "Remedy: restore it as `headway export` wrote it, or export again."
    )


def _tokenizer(source: SourceFolder, name: str, *sizes: int) -> Tokenizer:
    """The tokenizer of the tables that have so many rows."""
    try:
        tokenizer = read_tokenizer(source.read_json(name))
    except TextError as error:
        raise InterchangeError(f"interchange/exported: {source.path / name}: {error}") from error
    rows = next((size for size in sizes if size != tokenizer.vocab_size), None)
    if rows is not None:
        raise InterchangeError(
            f"interchange/exported: {source.path / name} has {tokenizer.vocab_size:,} tokens; the weights have "
            f"{rows:,} rows. Remedy: copy the folder again as a whole, or export again."
        )
    return tokenizer
