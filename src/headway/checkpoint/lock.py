"""One process at a time trains in a folder."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from headway.errors import CheckpointError

try:
    import fcntl
except ImportError:  # not a POSIX system: nothing to lock with
    fcntl = None

LOCK_FILE = "lock"


@contextmanager
def locked(folder: Path) -> Generator[None]:
    """Hold the folder within the block; the system lets go of it when the process ends, however it ends.

    Raises CheckpointError while another process holds it. Without POSIX locks nothing is held.
    """
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        if fcntl is not None:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise CheckpointError(
                    f"checkpoint/lock: another process is training in {folder.parent}. "
                    "Remedy: wait for it or stop it, or take another --out"
                ) from None
        yield
    finally:
        os.close(descriptor)
