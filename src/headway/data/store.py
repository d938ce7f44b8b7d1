"""Pairs of token id sequences on disk, memory-mapped: a corpus may be larger than memory.

A store is a folder: ``source.ids``, ``source.offsets``, ``target.ids``, ``target.offsets`` (little-endian numbers) and
``store.json``, which says how many and of what type, and with what weights they come in an epoch
(``data/mixture.py``). Sentence i of a side is ``ids[offsets[i] : offsets[i + 1]]``.
A store holds neither BOS nor EOS, and no length counts them: ``data/loader.py`` adds them.
"""

import json
import mmap
import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter

from headway.data.encoder import Ragged
from headway.data.mixture import Mixture, Share
from headway.errors import DataError
from headway.folder.atomic import sync_folder
from headway.text.tokenizer import CONTROL_TOKENS, UNK_ID

FORMAT = "headway-store"
VERSION = 2
DESCRIPTION = "store.json"
ID_TYPES = {"uint16": np.dtype("<u2"), "uint32": np.dtype("<u4")}
OFFSET_TYPE = np.dtype("<i8")
SIDES = ("source", "target")
BUFFERED_TOKENS = 1 << 20
REMEDY = "Prepare the data again (headway prepare)."

Ids = NDArray[np.uint16] | NDArray[np.uint32]
Lengths = NDArray[np.int32]


class _SideWriter:
    """One side of a store while it is written."""

    def __init__(self, folder: Path, side: str, vocab_size: int) -> None:
        self.vocab_size = vocab_size
        self.type_name = "uint16" if vocab_size <= 1 << 16 else "uint32"
        self.num_tokens = 0
        self._ids: list[int] = []
        self._lengths: list[int] = []
        self._files: list[BinaryIO] = []
        for kind in ("ids", "offsets"):
            self._files.append((folder / f"{side}.{kind}").open("wb"))
        self._files[1].write(np.zeros(1, OFFSET_TYPE).tobytes())

    def append(self, ids: Sequence[int]) -> None:
        self._ids.extend(ids)
        self._lengths.append(len(ids))
        if len(self._ids) + len(self._lengths) >= BUFFERED_TOKENS:
            self.flush()

    def extend(self, texts: Ragged) -> None:
        self.flush()
        self._write(texts)

    def flush(self) -> None:
        if self._lengths:
            ids = np.asarray(self._ids, np.int64)
            assert not len(ids) or ids.min() >= 0, "a token id outside the vocabulary"
            self._write(Ragged(ids.astype(np.uint32), np.asarray(self._lengths, np.int64)))
            self._ids.clear()
            self._lengths.clear()

    def _write(self, texts: Ragged) -> None:
        ids = texts.ids
        assert not len(ids) or ids.max() < self.vocab_size, "a token id outside the vocabulary"
        assert (ids[ids < len(CONTROL_TOKENS)] == UNK_ID).all(), "a control id in a sentence"
        ends = self.num_tokens + np.cumsum(texts.lengths)
        self._files[0].write(ids.astype(ID_TYPES[self.type_name]).tobytes())
        self._files[1].write(ends.astype(OFFSET_TYPE).tobytes())
        self.num_tokens += len(ids)

    def finish(self) -> None:
        self.flush()
        for file in self._files:
            file.flush()
            os.fsync(file.fileno())

    def close(self) -> None:
        """Close the files; what a full disk does not take at this point is lost with the rest of the store."""
        for file in self._files:
            with suppress(OSError):
                file.close()


class StoreWriter:
    """Writes a store pair by pair; the folder is complete or absent.

    Until the block ends well everything lies in ``NAME.part``, which a failing block removes and the next writer
    overwrites after a kill. A store that was there before is replaced. OSError when the disk is full.
    """

    def __init__(self, folder: Path, *, source_vocab_size: int, target_vocab_size: int) -> None:
        self._folder = folder
        self._beside = folder.with_name(folder.name + ".part")
        self._vocab_sizes = (source_vocab_size, target_vocab_size)
        self._sides: list[_SideWriter] = []
        self._num_pairs = 0
        self._mixture: Mixture | None = None

    def __enter__(self) -> Self:
        shutil.rmtree(self._beside, ignore_errors=True)
        self._beside.mkdir(parents=True)
        self._sides = [
            _SideWriter(self._beside, side, size) for side, size in zip(SIDES, self._vocab_sizes, strict=True)
        ]
        return self

    def append(self, source: Sequence[int], target: Sequence[int]) -> None:
        """Add one pair of ids, without BOS and EOS."""
        self._sides[0].append(source)
        self._sides[1].append(target)
        self._num_pairs += 1

    def extend(self, sources: Ragged, targets: Ragged) -> None:
        """Add many pairs."""
        assert len(sources.lengths) == len(targets.lengths), "as many sources as targets"
        self._sides[0].extend(sources)
        self._sides[1].extend(targets)
        self._num_pairs += len(sources.lengths)

    def mix(self, mixture: Mixture) -> None:
        """Say what the pairs are of and how often they come in an epoch; without it, each comes once."""
        self._mixture = mixture

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._finish()
        finally:
            for side in self._sides:
                side.close()
            shutil.rmtree(self._beside, ignore_errors=True)

    def _finish(self) -> None:
        description: dict[str, object] = {"format": FORMAT, "version": VERSION, "pairs": self._num_pairs}
        for name, side in zip(SIDES, self._sides, strict=True):
            side.finish()
            description[name] = {"tokens": side.num_tokens, "type": side.type_name, "vocab_size": side.vocab_size}
        shares = self._mixture.shares if self._mixture else (Share(self._num_pairs, Fraction(1)),)
        assert sum(share.pairs for share in shares) == self._num_pairs, "every pair is of one corpus"
        description["mixture"] = [(share.pairs, str(share.weight)) for share in shares]
        with (self._beside / DESCRIPTION).open("wb") as file:
            file.write(json.dumps(description, indent=2).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        sync_folder(self._beside)
        if self._folder.exists():
            # Without its description an old store is no store, so that half of one is never opened.
            (self._folder / DESCRIPTION).unlink(missing_ok=True)
            shutil.rmtree(self._folder)
        self._beside.rename(self._folder)
        sync_folder(self._folder.parent)


@dataclass(frozen=True, slots=True)
class Store:
    """An open store. Arrays are views of the files, read only; lengths are in tokens, without BOS and EOS."""

    source_ids: Ids
    source_offsets: NDArray[np.int64]
    source_lengths: Lengths
    target_ids: Ids
    target_offsets: NDArray[np.int64]
    target_lengths: Lengths
    mixture: Mixture
    maps: tuple[mmap.mmap, ...] = ()

    @staticmethod
    def open(folder: Path) -> "Store":
        """Map the files of a folder. DataError, naming the file, when one is missing, cut or does not fit."""
        description = _read_description(folder)
        maps: list[mmap.mmap] = []
        sides = [_open_side(folder, name, description, maps) for name in SIDES]
        store = Store(*sides[0], *sides[1], _mixture(folder, description), tuple(maps))
        store.release()
        return store

    def __len__(self) -> int:
        return len(self.source_lengths)

    def release(self) -> None:
        """Give back the memory of the files that have been read so far; what is read again comes from them again.

        The system would do so only when memory is short, and counts it as the process's until then.
        """
        if hasattr(mmap, "MADV_DONTNEED"):  # not on Windows
            for each in self.maps:
                each.madvise(mmap.MADV_DONTNEED)

    def source(self, index: int) -> Ids:
        """The source ids of a pair, counted from 0."""
        return self.source_ids[self.source_offsets[index] : self.source_offsets[index + 1]]

    def target(self, index: int) -> Ids:
        """The target ids of a pair, counted from 0."""
        return self.target_ids[self.target_offsets[index] : self.target_offsets[index + 1]]


def _read_description(folder: Path) -> dict[str, object]:
    path = folder / DESCRIPTION
    try:
        description = json.loads(path.read_bytes())
    except OSError as error:
        raise DataError(f"data/store: cannot read {path}: {error.strerror}; a store has this file. {REMEDY}") from error
    except ValueError as error:  # not JSON, not UTF-8
        raise DataError(f"data/store: {path} is not JSON ({error}). {REMEDY}") from error
    if not isinstance(description, dict) or description.get("format") != FORMAT:
        raise DataError(f"data/store: {path} does not describe a store; wanted the format {FORMAT!r}. {REMEDY}")
    if description.get("version") != VERSION:
        found = description.get("version")
        raise DataError(f"data/store: {path} has store version {found}; this Headway reads {VERSION}. {REMEDY}")
    return description


def _open_side(
    folder: Path, side: str, description: dict[str, object], maps: list[mmap.mmap]
) -> tuple[Ids, NDArray[np.int64], Lengths]:
    """The arrays of a side; the files they lie in are added to ``maps``."""
    entry = description.get(side)
    fields = entry if isinstance(entry, dict) else {}
    num_pairs, num_tokens, type_name = description.get("pairs"), fields.get("tokens"), fields.get("type")
    if not isinstance(num_pairs, int) or not isinstance(num_tokens, int) or type_name not in ID_TYPES:
        raise DataError(f"data/store: {folder / DESCRIPTION} lacks the counts or the type of the {side}. {REMEDY}")
    offsets = _map(folder / f"{side}.offsets", OFFSET_TYPE, num_pairs + 1, maps)
    ids = _map(folder / f"{side}.ids", ID_TYPES[type_name], num_tokens, maps)
    lengths = np.empty(num_pairs, np.int32)  # a sentence of 2^31 tokens would not fit into a batch
    for first in range(0, num_pairs, BUFFERED_TOKENS):
        differences = np.diff(offsets[first : first + BUFFERED_TOKENS + 1])
        if differences.min() < 0 or differences.max() > np.iinfo(np.int32).max:
            raise _not_cut(folder, side, num_tokens)
        lengths[first : first + BUFFERED_TOKENS] = differences
    if offsets[0] != 0 or offsets[-1] != num_tokens:
        raise _not_cut(folder, side, num_tokens)
    return ids, offsets, lengths


def _not_cut(folder: Path, side: str, num_tokens: int) -> DataError:
    return DataError(f"data/store: {folder / side}.offsets does not cut {num_tokens:,} ids into sentences. {REMEDY}")


def _mixture(folder: Path, description: dict[str, object]) -> Mixture:
    """The corpora that the description tells of."""
    try:
        shares = TypeAdapter(list[tuple[int, str]]).validate_python(description.get("mixture"))
        mixture = Mixture(tuple(Share(pairs, Fraction(weight)) for pairs, weight in shares))
    except (ValueError, ZeroDivisionError) as error:
        raise DataError(
            f"data/store: {folder / DESCRIPTION} has no list of corpora, or one that cannot be read. {REMEDY}"
        ) from error
    sizes = [share.pairs for share in mixture.shares]
    if sum(sizes) != description["pairs"] or any(share.pairs < 0 or share.weight <= 0 for share in mixture.shares):
        raise DataError(
            f"data/store: {folder / DESCRIPTION} has {description['pairs']} pairs and corpora of {sizes}. {REMEDY}"
        )
    return mixture


def _map(path: Path, dtype: np.dtype, count: int, maps: list[mmap.mmap]) -> NDArray:
    try:
        size = path.stat().st_size
        if size != count * dtype.itemsize:
            wanted = count * dtype.itemsize
            raise DataError(f"data/store: {path} has {size:,} bytes; {DESCRIPTION} asks for {wanted:,}. {REMEDY}")
        if not count:  # an empty file cannot be mapped
            return np.empty(0, dtype)
        with path.open("rb") as file:
            maps.append(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        return np.frombuffer(maps[-1], dtype, count)
    except OSError as error:
        raise DataError(f"data/store: cannot read {path}: {error.strerror}. {REMEDY}") from error
