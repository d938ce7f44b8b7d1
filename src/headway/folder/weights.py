"""Named arrays in one safetensors file: written whole or not at all, read without running anything.

The file is plain safetensors, readable by any tool for that format: eight bytes of header size, a JSON header, the
arrays. Headway adds a CRC-32 of the arrays to the header's metadata, so that a damaged byte is found when reading.
"""

import json
import math
import sys
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from headway.errors import FolderError
from headway.folder.atomic import replace_file

CHECKSUM_KEY = "crc32"
CHUNK_BYTES = 1 << 24
Array = npt.NDArray[Any]

NUMPY_TYPES: dict[str, type[np.generic]] = {
    "F64": np.float64,
    "F32": np.float32,
    "F16": np.float16,
    "I64": np.int64,
    "I32": np.int32,
    "I16": np.int16,
    "I8": np.int8,
    "U64": np.uint64,
    "U32": np.uint32,
    "U16": np.uint16,
    "U8": np.uint8,
    "BOOL": np.bool_,
}
SAFETENSORS_TYPES = {np.dtype(numpy_type): name for name, numpy_type in NUMPY_TYPES.items()}


def write_weights(path: Path, tensors: Mapping[str, Array], *, metadata: Mapping[str, str] | None = None) -> None:
    """Write named arrays, of any shape and memory layout, and a metadata table of strings.

    The file is written beside and renamed, so ``path`` holds the old content or the new, never a part.
    Raises FolderError for an array type the format has no name for, OSError for a full disk.
    """
    with replace_file(path) as file:
        stream_weights(file, tensors, metadata=metadata)


def stream_weights(file: BinaryIO, tensors: Mapping[str, Array], *, metadata: Mapping[str, str] | None = None) -> None:
    """Write to an open file what ``write_weights`` writes to a path; no array is held a second time in memory."""
    arrays = {name: _plain(name, tensors[name]) for name in tensors}
    # The widest numbers first: every array then begins at a multiple of its own item size.
    order = sorted(arrays, key=lambda name: (-arrays[name].itemsize, name))
    checksum = 0
    for name in order:
        checksum = zlib.crc32(_bytes(arrays[name]), checksum)
    header: dict[str, object] = {"__metadata__": {**(metadata or {}), CHECKSUM_KEY: f"{checksum:08x}"}}
    offset = 0
    for name in order:
        array = arrays[name]
        header[name] = {
            "dtype": SAFETENSORS_TYPES[array.dtype.newbyteorder("=")],
            "shape": list(array.shape),
            "data_offsets": [offset, offset + array.nbytes],
        }
        offset += array.nbytes
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
    text += b" " * (-len(text) % 8)
    file.write(len(text).to_bytes(8, "little"))
    file.write(text)
    for name in order:
        file.write(_bytes(arrays[name]))


def read_weights(path: Path) -> dict[str, Array]:
    """Read every array of a file, memory-mapped: pages are loaded when touched, and a change stays in memory.

    Raises FolderError, with the file's size and a remedy, when the file is missing, not safetensors, shorter or longer
    than its header says, or differs from the checksum that Headway wrote into it.
    """
    return open_weights(path).arrays()


def read_metadata(path: Path) -> dict[str, str]:
    """Read the table of strings that was given when the file was written. Raises FolderError as ``read_weights``."""
    return open_weights(path).metadata


@dataclass(frozen=True, slots=True)
class WeightsFile:
    """A file whose header was read: ``metadata`` is the table of strings that was given when it was written.

    ``digest`` tells one layout (names, types, shapes, places) from another.
    """

    path: Path
    metadata: dict[str, str]
    digest: str
    checksum: str | None  # of the arrays, where Headway wrote the file
    _entries: dict[str, dict[str, Any]]
    _start: int

    def arrays(self) -> dict[str, Array]:
        """Every array, as ``read_weights`` gives them."""
        data = np.memmap(self.path, dtype=np.uint8, mode="c")[self._start :]
        if self.checksum is not None:
            _check_sum(self.path, data, self.checksum)
        return {name: _view(self.path, name, data, entry) for name, entry in self._entries.items()}


def open_weights(path: Path) -> WeightsFile:
    """Read the header of a file, once its layout is checked. Raises FolderError as ``read_weights``."""
    entries, start = _read_header(path)
    metadata: dict[str, str] = entries.pop("__metadata__", {})
    checksum = metadata.pop(CHECKSUM_KEY, None)
    digest = f"{zlib.crc32(json.dumps(entries, sort_keys=True).encode()):08x}"
    return WeightsFile(path, metadata, digest, checksum, entries, start)


def _read_header(path: Path) -> tuple[dict[str, dict[str, Any]], int]:
    """Return header and position of the first array, once the safetensors library has checked the whole layout."""
    from safetensors import SafetensorError, safe_open  # noqa: PLC0415 - a compiled library, loaded where it is needed

    if not path.exists():
        raise FolderError(
            f"folder/weights: {path} does not exist; a safetensors file is wanted. "
            f"Name a file that exists, or copy the model folder again."
        )
    try:
        with safe_open(str(path), framework="numpy"):
            pass
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            return json.loads(file.read(length)), 8 + length
    except (SafetensorError, OSError, ValueError) as error:
        reason = str(error).replace("\n", " ")
        raise _damaged(path, f"cannot be read as safetensors: {reason}") from error


def _damaged(path: Path, what: str) -> FolderError:
    size = f"{path.stat().st_size:,} bytes" if path.is_file() else "not a file"
    return FolderError(
        f"folder/weights: {path} ({size}) {what}. The file is truncated, damaged or of another format; nothing in it "
        f"was run. Copy it again from where it was whole, or train again."
    )


def _check_sum(path: Path, data_bytes: npt.NDArray[np.uint8], wanted: str) -> None:
    checksum = 0
    for start in range(0, len(data_bytes), CHUNK_BYTES):
        checksum = zlib.crc32(data_bytes[start : start + CHUNK_BYTES].data, checksum)
    if f"{checksum:08x}" != wanted:
        raise _damaged(path, f"is damaged: the checksum of its arrays is {checksum:08x}, its header says {wanted}")


def _view(path: Path, name: str, data_bytes: npt.NDArray[np.uint8], entry: dict[str, Any]) -> Array:
    if entry["dtype"] not in NUMPY_TYPES:
        raise FolderError(
            f"folder/weights: {path}: array {name!r} has type {entry['dtype']}, which NumPy has not; "
            f"wanted one of {', '.join(NUMPY_TYPES)}. Convert the file to F32."
        )
    dtype = np.dtype(NUMPY_TYPES[entry["dtype"]])
    begin, _ = entry["data_offsets"]
    shape = tuple(entry["shape"])
    size = math.prod(shape) * dtype.itemsize
    array = data_bytes[begin : begin + size].view(np.ndarray).view(dtype).reshape(shape)
    if sys.byteorder == "big":
        array = array.byteswap()
    return array if array.flags.aligned else array.copy()


def _plain(name: str, tensor: Array) -> Array:
    """Return the array in C order and little-endian, copied only where it is not so already."""
    array = np.asarray(tensor, order="C")
    if array.dtype.newbyteorder("=") not in SAFETENSORS_TYPES:
        raise FolderError(
            f"folder/weights: array {name!r} has type {array.dtype}, which safetensors cannot hold; "
            f"wanted one of {', '.join(str(dtype) for dtype in SAFETENSORS_TYPES)}. Convert it before writing."
        )
    return array.astype(array.dtype.newbyteorder("<"), copy=False)


def _bytes(array: Array) -> memoryview:
    return array.reshape(-1).view(np.uint8).data
