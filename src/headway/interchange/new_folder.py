"""A new folder that is whole or not there: written beside its place, checked, then given its name."""

import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from headway.errors import InterchangeError
from headway.folder.atomic import sync_folder

SUFFIX = ".part"


def check_place(out: Path) -> Path:
    """The folder to write in, beside ``out``. Raises InterchangeError where ``out`` is neither new nor empty."""
    if out.is_symlink() or (out.exists() and not (out.is_dir() and not any(out.iterdir()))):
        raise InterchangeError(
            f"interchange/new_folder: {out} is there already and not an empty folder. "
            "Remedy: name a new folder with --out."
        )
    beside = out.with_name(out.name + SUFFIX)
    if beside.is_symlink() or beside.exists():
        raise InterchangeError(
            f"interchange/new_folder: {beside} is in the way: the folder is written there before it is whole. "
            "An export that was killed may have left it; delete it then, or name another folder with --out."
        )
    return beside


@contextmanager
def new_folder(out: Path) -> Generator[Path, None, None]:
    """A folder beside ``out`` to write in; when the block ends well it becomes ``out``, else nothing is kept."""
    beside = check_place(out)
    beside.mkdir(parents=True)
    try:
        yield beside
        _flush(beside)
        beside.rename(out)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise
    sync_folder(out.resolve().parent)


def _flush(path: Path) -> None:
    """Put every file on the disk before the folder takes its name."""
    for file in [*path.rglob("*")]:
        if file.is_file():
            with file.open("rb") as opened:
                os.fsync(opened.fileno())
    sync_folder(path)
