"""The toolkits whose models Headway reads and writes, by name. To add one, write its functions and add a row."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from headway.errors import InterchangeError
from headway.folder.contents import ModelFolder
from headway.interchange.ctranslate2_export import export_ctranslate2, is_ctranslate2
from headway.interchange.huggingface_export import export_huggingface
from headway.interchange.huggingface_import import Imported, import_huggingface, is_huggingface
from headway.interchange.verification import Exported


@dataclass(frozen=True, slots=True)
class Format:
    """What can be done with a toolkit's models; None where it cannot.

    ``is_one`` tells whether a folder looks like its; ``read`` takes the folder, the new one and whether pickles may be
    read; ``write`` takes ours, the new one and sentences to verify by.
    """

    is_one: Callable[[Path], bool]
    read: Callable[[Path, Path, bool], Imported] | None
    write: Callable[[ModelFolder, Path, Sequence[str]], Exported] | None


FORMATS: dict[str, Format] = {
    "ctranslate2": Format(is_ctranslate2, None, export_ctranslate2),  # first: it has a config.json too
    "huggingface": Format(is_huggingface, import_huggingface, export_huggingface),
}


def import_model(path: Path, out: Path, *, source_format: str | None = None, unsafe: bool = False) -> Imported:
    """Make a model folder from another toolkit's; its format, where none is named, is found by looking."""
    name = source_format or next((name for name, known in FORMATS.items() if known.is_one(path)), None)
    read = FORMATS[_known(name, path, "read")].read
    assert read is not None
    return read(path, out, unsafe)


def export_model(folder: ModelFolder, out: Path, *, target_format: str, sentences: Sequence[str]) -> Exported:
    """Make another toolkit's folder from ours, verified on ``sentences``."""
    architecture = folder.config.model.architecture
    if architecture != "transformer":
        raise InterchangeError(
            f"interchange/formats: {folder.path}: the model's architecture is {architecture}; other toolkits' formats "
            "are written for transformer alone. Remedy: use it with headway."
        )
    if folder.config.parsing is not None:
        raise InterchangeError(
            f"interchange/formats: {folder.path} is a parser, whose output is made into trees by headway alone; other "
            "toolkits' formats are written for translators. Remedy: use it with headway parse."
        )
    write = FORMATS[_known(target_format, folder.path, "write")].write
    assert write is not None
    return write(folder, out, sentences)


def _known(name: str | None, path: Path, what: str) -> str:
    able = [known for known, row in FORMATS.items() if getattr(row, what) is not None]
    if name not in able:
        raise InterchangeError(
            f"interchange/formats: {path}: found {f'the format {name}' if name else 'no format that is known'}; "
            f"wanted one of {', '.join(able)}. Remedy: name a folder of one of these."
        )
    return name
