"""What the libraries below a training process do with memory.

A step takes and frees the same large blocks as the one before. The C library gives such blocks back to the system, and
the system hands out new ones page by page, filled with zeros first. And oneDNN keeps the code of its matrix products
for the last 1,024 shapes: batches of text have ever new shapes, which it hardly meets again.
"""

import ctypes
import os
import sys
from collections.abc import Callable

# of glibc's malloc.h
TRIM_THRESHOLD, MMAP_THRESHOLD, ARENA_MAX = -1, -3, -8
LARGEST = 2**31 - 1  # a threshold is a C int
SHAPES = {"ONEDNN_PRIMITIVE_CACHE_CAPACITY": "64", "LRU_CACHE_CAPACITY": "64"}  # oneDNN's own, and PyTorch's before it


def settle_memory() -> None:
    """For the whole process: keep what is freed for the next step, and the code of few shapes.

    What the environment says of the shapes is left as it is. To be called before the first matrix product; shapes that
    were met before stay, and without glibc freed memory is left to the C library there is.
    """
    for name, value in SHAPES.items():
        os.environ.setdefault(name, value)
    keep_freed_memory()


def keep_freed_memory() -> bool:
    """Ask the C library to; False where it is not glibc, and nothing has changed."""
    mallopt = _mallopt()
    if mallopt is None:
        return False
    settings = ((TRIM_THRESHOLD, LARGEST), (MMAP_THRESHOLD, LARGEST), (ARENA_MAX, 1))
    accepted = [mallopt(name, value) == 1 for name, value in settings]
    return all(accepted)


def _mallopt() -> Callable[[int, int], int] | None:
    if sys.platform != "linux":
        return None
    library = ctypes.CDLL(None)
    return library.mallopt if hasattr(library, "gnu_get_libc_version") else None
