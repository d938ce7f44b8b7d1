"""Which model it was: a digest of what a model folder translates with."""

import hashlib
from hashlib import sha256
from pathlib import Path

from headway.folder.contents import (
    CONFIG_FILE,
    SHARED_TOKENIZER_FILE,
    SOURCE_TOKENIZER_FILE,
    TARGET_TOKENIZER_FILE,
    WEIGHTS_FILE,
    ModelFolder,
)

_FILES = (CONFIG_FILE, WEIGHTS_FILE, SHARED_TOKENIZER_FILE, SOURCE_TOKENIZER_FILE, TARGET_TOKENIZER_FILE)


def model_digest(folder: Path) -> str:
    """A digest of configuration, weights and tokenizers; a copy in another place has the same. Raises FolderError."""
    ModelFolder.open(folder)
    whole = sha256()
    for name in _FILES:
        if (folder / name).is_file():
            whole.update(f"{name} {file_digest(folder / name)}\n".encode())
    return whole.hexdigest()


def file_digest(path: Path) -> str:
    """A digest of a file's bytes. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
