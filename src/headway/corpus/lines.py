r"""Lines of text files, plain or compressed. Only ``\n`` ends a line; one ``\r`` directly before it is absorbed.

So U+2028, U+0085, a vertical tab or a lone ``\r`` stay inside their line, and the number of lines is the number of
``\n`` (plus one when the last line has none). A UTF-8 byte order mark at the start of a file is absorbed too.
"""

import errno
import io
import os
import secrets
import stat
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import BinaryIO, TextIO

from headway.corpus.compression import (
    COMPRESSORS,
    DAMAGED,
    DECOMPRESSORS,
    NO_TEXT,
    SIGNATURES,
    FilePath,
    compression_of,
)
from headway.errors import CorpusError

STANDARD_STREAM = "-"
PARTS = ".headway-*.part"  # files that ``open_writer`` was writing when the process was killed
_BOM = b"\xef\xbb\xbf"
# The order matters: UTF-32's little-endian mark begins with UTF-16's.
_OTHER_ENCODINGS = {
    b"\xff\xfe\x00\x00": "UTF-32",
    b"\x00\x00\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}
_LONGEST_SIGNATURE = max(map(len, NO_TEXT))
_FULL_OR_BROKEN = {errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EIO, errno.EROFS}


def name_of(path: FilePath) -> str:
    """How messages name a file: as it was given, and ``-`` as standard input."""
    given = os.fspath(path)
    return "standard input" if given == STANDARD_STREAM else given


def read_lines(path: FilePath) -> Iterator[str]:
    r"""Yield the lines of a UTF-8 file without their line ends; ``-`` is standard input (plain text only).

    Streams: memory holds one line. The suffixes .gz .bz2 .xz .zst choose the decompression. The last line counts
    whether or not it ends in ``\n``; without one, its ``\r`` is part of the text. Nothing is opened before the
    first line is asked for.

    Raises:
        CorpusError: the file is missing, a directory, unreadable, damaged, cut short or not UTF-8.

    """
    with open_binary_reader(path) as stream:
        yield from _decode(stream, name_of(path))


@contextmanager
def open_binary_reader(path: FilePath) -> Generator[BinaryIO, None, None]:
    """Open a file for its bytes, decompressed by its suffix; ``-`` is standard input (plain bytes only).

    Raises:
        CorpusError: the file is missing, a directory, unreadable, or found to be damaged or cut short while it is read.

    """
    name = name_of(path)
    suffix = compression_of(path)
    try:
        if os.fspath(path) == STANDARD_STREAM:
            yield sys.stdin.buffer
            return
        with Path(path).open("rb") as raw:
            if suffix:
                _check_not_empty(raw)
                with DECOMPRESSORS[suffix](raw) as stream:
                    yield stream
            else:
                yield raw
    except EOFError as error:
        raise CorpusError(
            f"corpus/lines: {name} is cut short: its {suffix} data ends before the end mark. "
            f"Remedy: copy or download the file again."
        ) from error
    except DAMAGED as error:
        raise _damaged(name, suffix, error) from error
    except OSError as error:
        raise (_unreadable(name, error) if error.errno else _damaged(name, suffix, error)) from error


def _decode(stream: BinaryIO, name: str) -> Iterator[str]:
    r"""Decode a binary stream line by line; iterating over bytes breaks lines at ``\n`` only."""
    offset = 0  # of the line in the unpacked file, in bytes
    beginning = b""
    for number, line in enumerate(stream, 1):
        beginning = beginning or line[:_LONGEST_SIGNATURE]
        start = len(_BOM) if number == 1 and line.startswith(_BOM) else 0
        if start and len(line) == start:  # a byte order mark and nothing else is a file without lines
            return
        end = len(line)
        if line.endswith(b"\n"):
            end -= 2 if line.endswith(b"\r\n") else 1
        try:
            text = line[start:end].decode("utf-8")
        except UnicodeDecodeError as error:
            position = start + error.start
            raise _not_utf8(name, number, line, beginning, line_offset=offset, position=position) from error
        yield text
        offset += len(line)


def _not_utf8(name: str, number: int, line: bytes, beginning: bytes, *, line_offset: int, position: int) -> CorpusError:
    """Say what a line that is not UTF-8 looks like: another program's file or encoding, packed data, a foreign byte.

    ``beginning`` is that of the file; the first lines of an archive may be UTF-8 by chance.
    """
    for signature, what in NO_TEXT.items():
        if beginning.startswith(signature):
            return CorpusError(
                f"corpus/lines: {name} line {number:,}: found {what}, wanted UTF-8 text. Remedy: save it as text: a "
                f"table as tab-separated text in UTF-8 (.tsv), a document as plain text, or export it from your "
                f"translation tool as XLIFF; unpack an archive."
            )
    if number == 1:
        for mark, encoding in _OTHER_ENCODINGS.items():
            if line.startswith(mark):
                return CorpusError(
                    f"corpus/lines: {name} line 1: found {encoding} (byte order mark {mark.hex(' ')}), wanted UTF-8. "
                    f"Remedy: save it as UTF-8 in your editor, or iconv -f {encoding.lower()} -t utf-8 FILE > NEWFILE."
                )
        for signature, suffix in SIGNATURES.items():
            if line.startswith(signature):
                return CorpusError(
                    f"corpus/lines: {name} line 1: found compressed data ({suffix}), wanted UTF-8 text. "
                    f"Remedy: give the file a name that ends in {suffix}, or decompress it."
                )
    return CorpusError(
        f"corpus/lines: {name} line {number:,}, byte offset {line_offset + position:,}: found byte "
        f"0x{line[position]:02x}, which is not valid UTF-8. Remedy: convert the file from its own encoding, for "
        f"example iconv -f latin1 -t utf-8 FILE > NEWFILE."
    )


def _check_not_empty(raw: BinaryIO) -> None:
    """Refuse a compressed file of 0 bytes: gzip takes it for empty text, though even empty text has a header."""
    status = os.fstat(raw.fileno())
    if stat.S_ISREG(status.st_mode) and status.st_size == 0:
        raise EOFError("0 bytes")


def _damaged(name: str, suffix: str, error: Exception) -> CorpusError:
    return CorpusError(
        f"corpus/lines: {name} does not hold sound {suffix} data ({error}). "
        f"Remedy: copy or download it again; if it is plain text, rename it without {suffix}."
    )


def _unreadable(name: str, error: OSError) -> CorpusError:
    if isinstance(error, FileNotFoundError):
        return CorpusError(f"corpus/lines: {name} does not exist. Remedy: check the name and the folder.")
    if isinstance(error, IsADirectoryError):
        return CorpusError(f"corpus/lines: {name} is a directory, wanted a text file. Remedy: name a file inside it.")
    return CorpusError(
        f"corpus/lines: {name} cannot be read ({error.strerror}). "
        f"Remedy: check that it is a file that you may read and that its disk works."
    )


@contextmanager
def open_writer(path: FilePath) -> Generator[TextIO, None, None]:
    r"""Open a text file for writing UTF-8 with ``\n`` as line end; ``-`` is standard output (plain text only).

    The suffixes .gz .bz2 .xz .zst choose the compression. The text goes to a hidden temporary file beside ``path``
    that is flushed to the disk and renamed when the block ends well; when it does not, the temporary file is
    removed and an older file at ``path`` stays as it was. A path that exists and is neither file nor directory (a
    pipe, /dev/null) is written to directly.

    What is written comes back from ``read_lines``, but for what it absorbs: one ``\r`` before a ``\n``, and a byte
    order mark at the very start.

    Raises:
        CorpusError: the place cannot be written to, the disk is full, or a text holds half of a surrogate pair.

    """
    standard = os.fspath(path) == STANDARD_STREAM
    name = "standard output" if standard else os.fspath(path)
    file = nullcontext(sys.stdout.buffer) if standard else _beside(path)
    try:
        with file as raw, _text_over(raw, compression_of(path), name) as text:
            yield text
    except OSError as error:
        # Only what a disk says; an error of another file that the block itself works on keeps its own name.
        if error.errno not in _FULL_OR_BROKEN:
            raise
        raise _unwritable(name, error) from error


@contextmanager
def _text_over(raw: BinaryIO, suffix: str, name: str) -> Generator[TextIO, None, None]:
    """Text on top of ``raw``, which stays open; everything has reached ``raw`` when the block has ended well."""
    stream = COMPRESSORS[suffix](raw) if suffix else raw
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="\n", line_buffering=not suffix and raw.isatty())
    try:
        yield text
        text.flush()
    except UnicodeEncodeError as error:
        found = error.object[error.start]
        raise CorpusError(
            f"corpus/lines: {name}: found U+{ord(found):04X} in a text, half of a surrogate pair, which UTF-8 "
            f"cannot hold. Remedy: mend the text that it came from."
        ) from error
    finally:
        try:
            text.detach()  # flushes what was written before a failure, too
        finally:
            if suffix:
                stream.close()


@contextmanager
def open_binary_writer(path: FilePath) -> Generator[BinaryIO, None, None]:
    """Open a file for bytes; they take the name ``path`` when the block ends well, as in ``open_writer``.

    Raises:
        CorpusError: the place cannot be written to, or the disk is full.

    """
    try:
        with _beside(path) as raw:
            yield raw
    except OSError as error:
        if error.errno not in _FULL_OR_BROKEN:
            raise
        raise _unwritable(os.fspath(path), error) from error


@contextmanager
def _beside(path: FilePath) -> Generator[BinaryIO, None, None]:
    """A binary file that takes its name only when the block has ended well."""
    try:
        place = Path(path).resolve()  # a link stays a link: the file that it points to is replaced
        direct = place.exists() and not place.is_file()
        part = place if direct else place.with_name(PARTS.replace("*", secrets.token_hex(8)))
        raw = part.open("wb" if direct else "xb")
    except OSError as error:
        raise _unwritable(os.fspath(path), error) from error
    try:
        yield raw
        raw.flush()
        if not direct:
            os.fsync(raw.fileno())
            raw.close()
            part.replace(place)
    except BaseException:
        with suppress(OSError):  # what is still in the buffer may not fit either
            raw.close()
        if not direct:
            part.unlink(missing_ok=True)
        raise
    raw.close()


def _unwritable(name: str, error: OSError) -> CorpusError:
    if isinstance(error, FileNotFoundError):
        return CorpusError(
            f"corpus/lines: {name} cannot be written: its folder does not exist. Remedy: create it (mkdir -p)."
        )
    if isinstance(error, IsADirectoryError):
        return CorpusError(
            f"corpus/lines: {name} is a directory, wanted a file to write. Remedy: name a file inside it."
        )
    return CorpusError(
        f"corpus/lines: {name} cannot be written ({error.strerror}). "
        f"Remedy: choose a place that you may write to, on a disk with space."
    )
