"""Compressed files, chosen by the suffix of their name: .gz .bz2 .xz .zst."""

import bz2
import gzip
import io
import lzma
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

FilePath = str | os.PathLike[str]

# Compressed zstd bytes taken at a time. Four of them can unfold into 128 KiB, so memory stays below 128 MiB.
_CHUNK = 4096

# What the decompressors raise for data that is damaged or not theirs. (bz2 raises an OSError without a number.)
DAMAGED = (zlib.error, lzma.LZMAError, gzip.BadGzipFile)


class _ZstdReader(io.RawIOBase):
    """The bytes inside a zstd file of one or more frames; a file that ends inside a frame is an EOFError.

    The library's own stream reader takes the end of a truncated file for the end of the text, so it is not used.
    """

    def __init__(self, compressed: BinaryIO) -> None:
        import zstandard  # noqa: PLC0415 - a compiled library that only .zst files need

        self._compressed = compressed
        self._library_error: type[Exception] = zstandard.ZstdError
        self._new_frame = zstandard.ZstdDecompressor().decompressobj
        self._frame = self._new_frame()
        self._unfolded = b""
        self._position = 0  # in the unfolded bytes

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        while self._position == len(self._unfolded):
            if not self._unfold():
                return 0
        with memoryview(buffer).cast("B") as view:
            piece = self._unfolded[self._position : self._position + len(view)]
            view[: len(piece)] = piece
        self._position += len(piece)
        return len(piece)

    def _unfold(self) -> bool:
        """Decompress the next chunk; False at the end of the file."""
        chunk = self._frame.unused_data or self._compressed.read(_CHUNK)
        if not chunk:
            if self._frame.eof:
                return False
            raise EOFError("the file ends inside a zstd frame")
        if self._frame.eof:
            self._frame = self._new_frame()
        try:
            self._unfolded, self._position = self._frame.decompress(chunk), 0
        except self._library_error as error:
            raise zlib.error(str(error)) from error
        return True


def _read_gzip(raw: BinaryIO) -> BinaryIO:
    return cast(BinaryIO, gzip.GzipFile(fileobj=raw, mode="rb"))


def _read_bz2(raw: BinaryIO) -> BinaryIO:
    return cast(BinaryIO, bz2.BZ2File(raw, "rb"))


def _read_xz(raw: BinaryIO) -> BinaryIO:
    return cast(BinaryIO, lzma.LZMAFile(raw, "rb"))


def _read_zstd(raw: BinaryIO) -> BinaryIO:
    return io.BufferedReader(_ZstdReader(raw))


def _write_gzip(raw: BinaryIO) -> BinaryIO:
    # No name and no time inside, so that the same text gives the same bytes.
    return cast(BinaryIO, gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0))


def _write_bz2(raw: BinaryIO) -> BinaryIO:
    return cast(BinaryIO, bz2.BZ2File(raw, "wb"))


def _write_xz(raw: BinaryIO) -> BinaryIO:
    return cast(BinaryIO, lzma.LZMAFile(raw, "wb"))


def _write_zstd(raw: BinaryIO) -> BinaryIO:
    import zstandard  # noqa: PLC0415 - a compiled library that only .zst files need

    return cast(BinaryIO, zstandard.ZstdCompressor(write_checksum=True).stream_writer(raw, closefd=False))


# Each wraps a binary stream; closing the wrapper of a writer ends the compressed data and leaves the stream below open.
DECOMPRESSORS: dict[str, Callable[[BinaryIO], BinaryIO]] = {
    ".gz": _read_gzip,
    ".bz2": _read_bz2,
    ".xz": _read_xz,
    ".zst": _read_zstd,
}
COMPRESSORS: dict[str, Callable[[BinaryIO], BinaryIO]] = {
    ".gz": _write_gzip,
    ".bz2": _write_bz2,
    ".xz": _write_xz,
    ".zst": _write_zstd,
}

# How compressed data begins, for the hint when a file's name does not say that it is compressed.
SIGNATURES = {b"\x1f\x8b": ".gz", b"BZh": ".bz2", b"\xfd7zXZ\x00": ".xz", b"\x28\xb5\x2f\xfd": ".zst"}
# How files of other programs begin that are taken for text now and then.
NO_TEXT = {
    b"PK\x03\x04": "a zip archive or an office file (docx, xlsx, ods, epub)",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": "an office file (doc, xls)",
    b"%PDF-": "a PDF",
}


def compression_of(path: FilePath) -> str:
    """The compression suffix of a file name in lower case (``.gz``), or the empty string."""
    suffix = Path(path).suffix.lower()
    return suffix if suffix in DECOMPRESSORS else ""
