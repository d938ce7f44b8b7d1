"""The folder of another toolkit's model: a few files of known names, of bounded size, that may come from anywhere."""

import json
from dataclasses import dataclass
from pathlib import Path

from headway.errors import InterchangeError

LARGEST_FILE = 1 << 28  # bytes of a vocabulary or a configuration; the largest known have some 5 MB


@dataclass(frozen=True, slots=True)
class SourceFolder:
    """A folder to read from. Nothing in it is run, and only files of the names asked for are opened."""

    path: Path

    @classmethod
    def open(cls, path: Path) -> "SourceFolder":
        """Open a folder; raises InterchangeError where there is none."""
        if not path.is_dir():
            found = "a file" if path.exists() else "nothing"
            raise InterchangeError(
                f"interchange/source_folder: {path}: found {found}; wanted a folder with another toolkit's model. "
                "Remedy: name the folder that holds its config.json."
            )
        return cls(path)

    def has(self, name: str) -> bool:
        """Whether there is a plain file of this name."""
        return (self.path / name).is_file()

    def read_bytes(self, name: str) -> bytes:
        """The bytes of a file; raises InterchangeError for one that is missing or too large."""
        path = self.path / name
        if not path.is_file():
            found = ", ".join(sorted(entry.name for entry in self.path.iterdir())[:10]) or "nothing"
            raise InterchangeError(
                f"interchange/source_folder: {self.path} has no file {name}; found {found}. "
                "Remedy: download or copy the whole model."
            )
        size = path.stat().st_size
        if size > LARGEST_FILE:
            raise InterchangeError(
                f"interchange/source_folder: {path} has {size:,} bytes; wanted {LARGEST_FILE:,} at most. "
                "Remedy: copy the file again; one of this name is never so large."
            )
        return path.read_bytes()

    def read_json(self, name: str) -> dict[str, object]:
        """The object of a JSON file; raises InterchangeError for anything else."""
        data = self.read_bytes(name)
        try:
            values: object = json.loads(data.decode("utf-8"))
        except (ValueError, RecursionError) as error:
            reason = " ".join(str(error).split())
            raise InterchangeError(
                f"interchange/source_folder: {self.path / name} ({len(data):,} bytes) is not JSON: {reason}. "
                "Remedy: copy the file again from where it was whole."
            ) from error
        if not isinstance(values, dict):
            raise InterchangeError(
                f"interchange/source_folder: {self.path / name} holds {str(values)[:40]}; wanted an object. "
                "Remedy: copy the file again from where it was whole."
            )
        return values

    def read_json_if_there(self, name: str) -> dict[str, object]:
        """The same, empty where there is no such file."""
        return self.read_json(name) if self.has(name) else {}
