"""Files that are complete or absent, whatever happens while they are written."""

import os
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

SUFFIX = ".part"
LEFT_SECONDS = 3600  # nobody writes a file for so long without a byte


@contextmanager
def replace_file(path: Path, *, shared: bool = False) -> Generator[BinaryIO, None, None]:
    """Open a file beside ``path`` for writing, and put it in the place of ``path`` when the block ends well.

    The bytes are on the disk before the name changes, and the name before the block is left. When the block or the
    disk fails, the old file stays as it was, the new one is removed and the error goes on (for a disk that is full or
    cannot be written an OSError that names ``path``). After a kill the new file may lie there as ``NAME.part``; the
    next write of the same file takes its place. One process at a time may write a path; with ``shared`` any number may,
    each its own file, and the last to end stays.
    """
    beside = _own_name(path) if shared else path.with_name(path.name + SUFFIX)
    file = _opened(beside, path)
    try:
        yield file
        file.flush()
        os.fsync(file.fileno())
        file.close()
        beside.replace(path)
    except BaseException as error:
        if isinstance(error, OSError) and error.filename is None:  # a failed write does not know its file
            error.filename = str(path)
        with suppress(OSError):  # closing writes what is left in the buffer, and may fail as the block did
            file.close()
        beside.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def _opened(beside: Path, path: Path) -> BinaryIO:
    """The file beside; an error names the one that the user asked for."""
    try:
        return beside.open("wb")
    except OSError as error:
        error.filename = str(path)
        raise


def _own_name(path: Path) -> Path:
    """A new name beside ``path``, once what killed processes left there long ago is gone."""
    start = f"{path.name}."
    for other in path.parent.iterdir():
        if other.name.startswith(start) and other.name.endswith(SUFFIX):
            with suppress(OSError):  # another process may have removed it, or be its owner
                if time.time() - other.stat().st_mtime > LEFT_SECONDS:
                    other.unlink()
    return path.with_name(f"{start}{os.getpid()}-{os.urandom(4).hex()}{SUFFIX}")


def sync_folder(folder: Path) -> None:
    """Put a folder's names on the disk, where the system can (POSIX)."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
