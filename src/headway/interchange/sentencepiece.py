"""SentencePiece model files: read, checked, and turned into the JSON of a Headway tokenizer.

A file is one protocol-buffer message, ModelProto: pieces with scores, the trainer's settings and those of the
normaliser (https://github.com/google/sentencepiece, sentencepiece_model.proto).
"""

import base64
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headway.errors import InterchangeError
from headway.interchange.protobuf import Value, read_fields
from headway.text.description import LARGEST_SCORE, WORD_MARK
from headway.text.reserved import IMPORTED_CONTROL_TOKENS, IMPORTED_END, UNK_ID

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
KINDS = {
    NORMAL: "normal",
    UNKNOWN: "unknown",
    CONTROL: "control",
    USER_DEFINED: "user-defined",
    UNUSED: "unused",
    BYTE: "byte",
}
MODEL_TYPES = {1: "unigram", 2: "bpe", 3: "word", 4: "char"}

# ModelProto's fields, and those of its parts, by number
_PIECES, _TRAINER, _NORMALIZER = 1, 2, 3
_TEXT, _SCORE, _KIND = 1, 2, 3
_MODEL_TYPE, _SUFFIX, _BYTE_FALLBACK = 3, 24, 35
_CHARSMAP, _DUMMY_PREFIX, _REMOVE_SPACES, _ESCAPE = 2, 3, 4, 5


@dataclass(frozen=True, slots=True)
class SentencePiece:
    """One piece; ``kind`` is one of KINDS."""

    text: str
    score: float
    kind: int


@dataclass(frozen=True, slots=True)
class SentencePieceModel:
    """A Unigram model: what segments text, and how text is normalised before."""

    pieces: tuple[SentencePiece, ...]
    charsmap: bytes  # empty: none
    adds_prefix: bool
    removes_spaces: bool

    @property
    def scores(self) -> dict[str, float]:
        """The score of each piece that text can be made of."""
        return {piece.text: piece.score for piece in self.pieces if piece.kind == NORMAL}


def read_sentencepiece(data: bytes, name: str) -> SentencePieceModel:
    """Read the bytes of a model file; ``name`` stands in errors.

    Raises InterchangeError for a damaged file and for what Headway cannot do as SentencePiece does: another model than
    Unigram, byte pieces, user-defined pieces.
    """
    try:
        parts = list(read_fields(data))
        pieces = tuple(_piece(_bytes(value)) for number, value in parts if number == _PIECES)
        trainer = _last(parts, _TRAINER)
        normalizer = _last(parts, _NORMALIZER)
    except ValueError as error:
        raise InterchangeError(
            f"interchange/sentencepiece: {name} ({len(data):,} bytes) is not a SentencePiece model: {error}. "
            "Remedy: copy the file again from where it was whole."
        ) from error
    _check_model(pieces, trainer, normalizer, name)
    charsmap = normalizer.get(_CHARSMAP, b"")
    return SentencePieceModel(
        pieces,
        charsmap if isinstance(charsmap, bytes) else b"",
        bool(normalizer.get(_DUMMY_PREFIX, 1)),
        bool(normalizer.get(_REMOVE_SPACES, 1)),
    )


def tokenizer_json(model: SentencePieceModel, words: Sequence[str | None], tags: Mapping[str, str]) -> str:
    """The JSON of a tokenizer that segments as the model does, with the ids of a vocabulary.

    ``words`` are the vocabulary's tokens from id 4 on, as the other toolkit writes them; None is an id without a word.
    ``tags`` has the reserved token of each word that is a tag. Words that the model cannot make are found by no text
    but a run of unknown characters that equals one; pieces that the vocabulary lacks come last.
    """
    scores = model.scores
    vocabulary: list[tuple[str, float]] = [(name, 0.0) for name in IMPORTED_CONTROL_TOKENS]
    known = set[str]()
    for place, word in enumerate(words, start=len(vocabulary)):
        if word is None:
            vocabulary.append((f"  no word {place}", 0.0))
        elif word in tags:
            vocabulary.append((tags[word], 0.0))
        elif word in scores:
            vocabulary.append((word, scores[word]))
            known.add(word)
        else:
            vocabulary.append((f" {word}", 0.0))
    left = [(text, score) for text, score in scores.items() if text not in known]
    if left:
        vocabulary += [(IMPORTED_END, 0.0), *left]
    return json.dumps(
        {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": [],
            "normalizer": {"type": "Sequence", "normalizers": _normalizers(model)},
            "pre_tokenizer": _metaspace(model),
            "post_processor": None,
            "decoder": _metaspace(model),
            "model": {"type": "Unigram", "unk_id": UNK_ID, "vocab": vocabulary, "byte_fallback": False},
        },
        ensure_ascii=False,
    )


def _normalizers(model: SentencePieceModel) -> list[dict[str, object]]:
    steps: list[dict[str, object]] = []
    if model.charsmap:
        table = base64.b64encode(model.charsmap).decode("ascii")
        steps.append({"type": "Precompiled", "precompiled_charsmap": table})
    if model.removes_spaces:
        steps.append({"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "})
        steps.append({"type": "Strip", "strip_left": True, "strip_right": True})
    if model.adds_prefix:
        steps.append({"type": "Prepend", "prepend": WORD_MARK})
    return [*steps, {"type": "Replace", "pattern": {"String": " "}, "content": WORD_MARK}]


def _metaspace(model: SentencePieceModel) -> dict[str, object]:
    """The step that makes it a model of SentencePiece; the marks are there already, so it adds none."""
    scheme = "always" if model.adds_prefix else "never"
    return {"type": "Metaspace", "replacement": WORD_MARK, "prepend_scheme": scheme, "split": False}


def _piece(data: bytes) -> SentencePiece:
    fields = dict(read_fields(data))
    text, score, kind = _bytes(fields.get(_TEXT, b"")).decode("utf-8"), fields.get(_SCORE, 0.0), fields.get(_KIND, 1)
    if not text:
        raise ValueError("a piece without text")
    if not isinstance(score, float) or not math.isfinite(score) or abs(score) > LARGEST_SCORE:
        raise ValueError(f"piece {text[:40]!r} with score {score!r}")
    if not isinstance(kind, int) or kind not in KINDS:
        raise ValueError(f"piece {text[:40]!r} of kind {kind!r}")
    return SentencePiece(text, score, kind)


def _bytes(value: Value) -> bytes:
    if not isinstance(value, bytes):
        raise ValueError(f"a number, {value!r}, where a part was wanted")
    return value


def _last(parts: Sequence[tuple[int, Value]], number: int) -> dict[int, Value]:
    """The fields of the last part with this number, as protocol buffers have it."""
    found = [value for place, value in parts if place == number]
    return dict(read_fields(_bytes(found[-1]))) if found else {}


def _check_model(
    pieces: Sequence[SentencePiece], trainer: Mapping[int, Value], normalizer: Mapping[int, Value], name: str
) -> None:
    """Refuse what would be segmented otherwise than SentencePiece does it."""
    kind = MODEL_TYPES.get(int(trainer.get(_MODEL_TYPE, 1)) if isinstance(trainer.get(_MODEL_TYPE, 1), int) else 0)
    if kind != "unigram":
        raise _cannot(name, f"a {kind or trainer[_MODEL_TYPE]} model", "unigram")
    if trainer.get(_BYTE_FALLBACK) or any(piece.kind == BYTE for piece in pieces):
        raise _cannot(name, "byte_fallback: byte pieces", "none: text may name them as well")
    user_defined = [piece.text for piece in pieces if piece.kind == USER_DEFINED]
    if user_defined:
        raise _cannot(name, f"{len(user_defined):,} user-defined pieces (first: {user_defined[0][:40]!r})", "none")
    if trainer.get(_SUFFIX):
        raise _cannot(name, "treat_whitespace_as_suffix true", "false")
    if not normalizer.get(_ESCAPE, 1):
        raise _cannot(name, "escape_whitespaces false", "true")
    texts = [piece.text for piece in pieces if piece.kind == NORMAL]
    if not texts:
        raise _cannot(name, "no piece", "one or more")
    if len(set(texts)) < len(texts):
        raise _cannot(name, f"{len(texts) - len(set(texts)):,} pieces twice", "each once")
    spaced = next((text for text in texts if " " in text), None)
    if spaced is not None:
        raise _cannot(name, f"piece {spaced[:40]!r} with a space", f"{WORD_MARK} in its place")


def _cannot(name: str, found: str, wanted: str) -> InterchangeError:
    return InterchangeError(
        f"interchange/sentencepiece: {name}: found {found}; wanted {wanted}. "
        "Headway cannot segment text as this model does; use it where it was made."
    )
