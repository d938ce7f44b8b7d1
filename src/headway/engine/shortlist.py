"""A lexical shortlist: for each source token the target tokens that it may be translated with.

With it the engine looks for a sentence's output among some hundreds of tokens, not in the whole vocabulary: the idea of
candidate lists in Jean et al. 2015, section 3.3. Probabilities are then those among the tokens of the list.
"""

import hashlib
import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from headway.errors import EngineError
from headway.folder.contents import ModelFolder
from headway.folder.weights import Array, open_weights, write_weights
from headway.text.tokenizer import EOS_ID, Tokenizer

if TYPE_CHECKING:
    from headway_native import Shortlist as NativeShortlist

FORMAT_VERSION = 1
KIND = "shortlist"
MOST_ALLOWED = 8192  # a sentence with more is searched in the whole vocabulary: Shortlist::MOST of the engine
TYPES = {"offsets": np.dtype(np.int64), "tokens": np.dtype(np.int32), "always": np.dtype(np.int32)}

Offsets = npt.NDArray[np.int64]
Tokens = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Shortlist:
    """The tokens of source token s are ``tokens[offsets[s] : offsets[s + 1]]``; ``always`` are those of every sentence.

    ``vocabularies``: a digest of the source's and of the target's tokens, so that no model gets another's shortlist.
    """

    offsets: Offsets
    tokens: Tokens
    always: Tokens
    target_vocab_size: int
    vocabularies: tuple[str, str]

    @property
    def source_vocab_size(self) -> int:
        """The number of source tokens, those with no list counted."""
        return len(self.offsets) - 1

    def allowed(self, source: Sequence[int]) -> Tokens:
        """The tokens that the output of a source may have, in rising order; EOS is always among them.

        The engine's own is ``Shortlist::allowed`` in native/cpp/shortlist.cpp, which adds what the output must begin
        with; it takes the whole vocabulary where these are more than ``MOST_ALLOWED``.
        """
        parts = [self.tokens[self.offsets[token] : self.offsets[token + 1]] for token in set(source)]
        return np.unique(np.concatenate([*parts, self.always, np.array([EOS_ID], dtype=np.int32)]))

    def native(self) -> "NativeShortlist":
        """The same as the compiled engine has it. Raises ValueError for tokens outside the vocabulary."""
        from headway_native import Shortlist as NativeShortlist  # noqa: PLC0415

        return NativeShortlist(self.offsets, self.tokens, self.always, target_vocab=self.target_vocab_size)

    def write(self, path: Path) -> None:
        """Write the file, as a whole or not at all. Raises OSError."""
        metadata = {
            "kind": KIND,
            "format": str(FORMAT_VERSION),
            "source_vocabulary": self.vocabularies[0],
            "target_vocabulary": self.vocabularies[1],
            "target_vocab_size": str(self.target_vocab_size),
        }
        write_weights(path, {name: getattr(self, name) for name in TYPES}, metadata=metadata)


def shortlist_of(
    lists: Iterable[Collection[int]],
    always: Iterable[int],
    *,
    target_vocab_size: int,
    vocabularies: tuple[str, str],
) -> Shortlist:
    """A shortlist from one list of target tokens for each source token; without those ``always`` allowed."""
    kept_always = np.unique(np.fromiter(always, dtype=np.int64))
    rows = [np.fromiter(own, dtype=np.int64, count=len(own)) for own in lists]
    sources = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    # source id x target vocabulary + target id: sorted at once, and each pair once
    keys = np.unique(sources * target_vocab_size + np.concatenate([np.empty(0, dtype=np.int64), *rows]))
    sources, tokens = np.divmod(keys, target_vocab_size)
    is_own = ~np.isin(tokens, kept_always)
    counts = np.bincount(sources[is_own], minlength=len(rows))
    return Shortlist(
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        tokens[is_own].astype(np.int32),
        kept_always.astype(np.int32),
        target_vocab_size,
        vocabularies,
    )


def digests(folder: ModelFolder) -> tuple[str, str]:
    """What tells the vocabularies of a model from others: a digest of each side's tokens in their order."""
    return vocabulary_digest(folder.source_tokenizer), vocabulary_digest(folder.target_tokenizer)


def read_shortlist(path: Path, folder: ModelFolder) -> Shortlist:
    """The shortlist of a file for a model. Raises FolderError for a damaged file, EngineError for another model's."""
    weights = open_weights(path)
    metadata = weights.metadata
    if metadata.get("kind") != KIND or metadata.get("format") != str(FORMAT_VERSION):
        raise EngineError(
            f"engine/shortlist: {path} is no shortlist of version {FORMAT_VERSION} (found "
            f"{metadata.get('kind', 'something else')} of version {metadata.get('format', 'none')}). "
            f"Make one: headway shortlist -m {folder.path} SOURCE TARGET --out {path}"
        )
    found = metadata.get("source_vocabulary"), metadata.get("target_vocabulary")
    wanted = digests(folder)
    for side, one, other in zip(("source", "target"), found, wanted, strict=True):
        if one != other:
            raise EngineError(
                f"engine/shortlist: {path} was made for another {side} vocabulary (digest {one}) than that of "
                f"{folder.path} ({other}). Make one for this model: headway shortlist -m {folder.path} ..."
            )
    return _checked(path, weights.arrays(), folder, wanted)


def _checked(path: Path, arrays: dict[str, Array], folder: ModelFolder, vocabularies: tuple[str, str]) -> Shortlist:
    """The arrays of a file, once nothing in them can lead outside."""

    def refuse(what: str) -> EngineError:
        return EngineError(f"engine/shortlist: {path}: {what}. The file is damaged: make it again (headway shortlist).")

    for name, dtype in TYPES.items():
        if name not in arrays or arrays[name].dtype != dtype or arrays[name].ndim != 1:
            raise refuse(f"has no row of {dtype} numbers named {name}")
    offsets, tokens, always = (arrays[name] for name in TYPES)
    source_size, target_size = folder.source_tokenizer.vocab_size, folder.target_tokenizer.vocab_size
    if len(offsets) != source_size + 1:
        raise refuse(f"has {len(offsets):,} offsets; {source_size:,} source tokens ask for {source_size + 1:,}")
    if offsets[0] != 0 or offsets[-1] != len(tokens) or (np.diff(offsets) < 0).any():
        raise refuse(f"its offsets do not rise from 0 to its number of tokens, {len(tokens):,}")
    for name in ("tokens", "always"):
        if arrays[name].size and not 0 <= arrays[name].min() <= arrays[name].max() < target_size:
            raise refuse(
                f"{name} has ids from {arrays[name].min()} to {arrays[name].max()}; the vocabulary ends at "
                f"{target_size - 1}"
            )
    return Shortlist(offsets, tokens, always, target_size, vocabularies)


def vocabulary_digest(tokenizer: Tokenizer) -> str:
    """A digest of a vocabulary's tokens in their order."""
    names = json.dumps(list(tokenizer.names), ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(names.encode()).hexdigest()[:16]
