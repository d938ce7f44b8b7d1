"""The part file of one process: finished chunks one after another, and a journal beside it that says which.

A journal is lines of JSON: first what the part is of (input, settings, share), then one line a chunk with its bytes,
their digest and what is to be told. A chunk is on the disk before its line is. So, whenever a process is killed, all
that the journal names is there, and what it does not name is done again.
"""

import json
import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO

from headway.bulk.job import Result
from headway.errors import TranslationError

try:
    import fcntl
except ImportError:  # not a POSIX system: nothing to lock with
    fcntl = None

FORMAT = "headway-part-1"
_LONGEST_SHOWN = 24  # characters of a setting in a message


@dataclass(frozen=True, slots=True)
class Entry:
    """One finished chunk of a part: which, its lines, its bytes in the part file, their digest, what is to be told."""

    chunk: int
    lines: int
    size: int
    digest: str
    notes: dict[str, list[int]]


def part_path(out: str, index: int, count: int) -> Path:
    """The part file of process ``index`` (from 1) of ``count``."""
    return Path(f"{out}.part-{index}-of-{count}")


def journal_path(part: Path) -> Path:
    """The journal of a part file."""
    return part.with_name(part.name + ".journal")


class Part:
    """A part file that this process alone writes; ``entries`` are its finished chunks."""

    def __init__(self, data: BinaryIO, journal: BinaryIO, entries: list[Entry]) -> None:
        self._data = data
        self._journal = journal
        self.entries = entries

    def append(self, chunk: int, result: Result) -> None:
        """Put a finished chunk on the disk."""
        data = "".join(record + "\n" for record in result.records).encode("utf-8")
        entry = Entry(chunk, len(result.records), len(data), sha256(data).hexdigest(), result.notes)
        self._data.write(data)
        _to_disk(self._data)
        self._journal.write(_line([entry.chunk, entry.lines, entry.size, entry.digest, entry.notes]))
        _to_disk(self._journal)
        self.entries.append(entry)


@contextmanager
def open_part(path: Path, header: dict[str, str], chunks: range) -> Generator[Part]:
    """Go on with a part file, or begin it; what its journal says is verified, and what is not whole is cut off.

    Raises TranslationError for a part of another input or other settings, for a file that is no part, and while
    another process writes it.
    """
    journal_file = journal_path(path)
    try:
        descriptor = os.open(journal_file, os.O_RDWR | os.O_CREAT, 0o644)
    except FileNotFoundError:
        raise TranslationError(
            f"bulk/part: {path} cannot be written: its folder does not exist. Remedy: create it (mkdir -p)."
        ) from None
    with os.fdopen(descriptor, "r+b") as journal:
        _lock(journal, path)
        found, entries, ends = _read_journal(journal_file, journal.read())
        if found is None:
            if path.exists():
                raise _no_part(path)
            journal.truncate(0)
            journal.seek(0)
            journal.write(_line(header))
            _to_disk(journal)
            ends = [journal.tell()]
        else:
            check_header(path, found, header)
        with path.open("r+b" if path.exists() else "x+b") as data:
            sound = _count_sound(data, entries, chunks)
            data.truncate(data.seek(sum(entry.size for entry in entries[:sound])))
            journal.truncate(journal.seek(ends[sound]))
            yield Part(data, journal, entries[:sound])


def read_part(path: Path) -> tuple[dict[str, str], list[Entry]] | None:
    """The header and finished chunks of a part, None where it has not begun. Raises TranslationError for no part."""
    try:
        content = journal_path(path).read_bytes()
    except FileNotFoundError:
        return None
    header, entries, _ = _read_journal(journal_path(path), content)
    return None if header is None else (header, entries)


def read_text(path: Path, entries: list[Entry]) -> Iterator[str]:
    """The text of each finished chunk. Raises TranslationError where it is not what the journal says."""
    with path.open("rb") as data:
        for entry in entries:
            content = data.read(entry.size)
            if sha256(content).hexdigest() != entry.digest:
                raise TranslationError(
                    f"bulk/part: {path} is not as it was written: chunk {entry.chunk + 1:,} differs from its digest. "
                    "Remedy: give the command that wrote this part once more; it does again what is damaged."
                )
            yield content.decode("utf-8")


def check_header(path: Path, found: dict[str, str], wanted: dict[str, str]) -> None:
    """Refuse a part of another input or other settings. Raises TranslationError that names what differs."""
    different = [name for name in {**wanted, **found} if found.get(name) != wanted.get(name)]
    if different:
        named = "; ".join(
            f"{name}: there {_shown(found.get(name))}, now {_shown(wanted.get(name))}" for name in different
        )
        raise TranslationError(
            f"bulk/part: {path} was begun otherwise: {named}. Remedy: give the same input and settings, remove the "
            "parts of the other run, or take another -o."
        )


def _count_sound(data: BinaryIO, entries: list[Entry], chunks: range) -> int:
    """How many entries from the first on are chunks of this share whose bytes are there as they were written."""
    for number, entry in enumerate(entries):
        is_next = number < len(chunks) and entry.chunk == chunks[number]
        if not is_next or sha256(data.read(entry.size)).hexdigest() != entry.digest:
            return number
    return len(entries)


def _read_journal(path: Path, content: bytes) -> tuple[dict[str, str] | None, list[Entry], list[int]]:
    """The header, the entries, and where header and entries end in the journal; what follows the last is not whole."""
    lines = content.split(b"\n")[:-1]
    if not lines:  # killed before the header was there
        return None, [], []
    header = _object(lines[0])
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise _no_part(path)
    entries: list[Entry] = []
    ends = [len(lines[0]) + 1]
    for line in lines[1:]:
        entry = _entry(_object(line))
        if entry is None:
            break
        entries.append(entry)
        ends.append(ends[-1] + len(line) + 1)
    return header, entries, ends


def _entry(values: Any) -> Entry | None:  # noqa: ANN401 - whatever the JSON holds
    """One line of a journal, None where it is not whole."""
    kinds = (int, int, int, str, dict)
    if not isinstance(values, list) or [type(value) for value in values] != list(kinds):
        return None
    entry = Entry(*values)
    return entry if entry.size >= 0 else None


def _object(line: bytes) -> Any:  # noqa: ANN401 - whatever the JSON holds
    """The value of a line of JSON, None where it is none."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _line(value: object) -> bytes:
    return json.dumps(value).encode("ascii") + b"\n"


def _to_disk(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def _lock(journal: BinaryIO, path: Path) -> None:
    """Hold a part until its journal is closed, however the process ends. Without POSIX locks nothing is held."""
    if fcntl is None:
        return
    try:
        fcntl.flock(journal, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise TranslationError(
            f"bulk/part: another process is writing {path}. Remedy: wait for it or stop it, or take another --shard."
        ) from None


def _no_part(path: Path) -> TranslationError:
    return TranslationError(
        f"bulk/part: {path} exists and is no part that Headway began. Remedy: move it away, or take another -o."
    )


def _shown(value: str | None) -> str:
    if value is None:
        return "nothing"
    return value if len(value) <= _LONGEST_SHOWN else value[:_LONGEST_SHOWN] + "..."
