"""Text becomes token ids here, and ids become text again; nowhere else.

A vocabulary starts with four control tokens; tags, which a program puts before a sentence to tell the model something
about it, are reserved in the same way. Their names mix letters with punctuation, which no learnt token does, and they
are not registered with the library as tokens to look for in text; so no text can name them.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Self

from headway.errors import TextError

if TYPE_CHECKING:
    from tokenizers import Tokenizer as LibraryTokenizer

PAD_ID, UNK_ID, BOS_ID, EOS_ID = 0, 1, 2, 3
CONTROL_TOKENS = ("⟨pad⟩", "⟨unk⟩", "⟨bos⟩", "⟨eos⟩")
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
LONGEST_WORD = 1 << 20  # symbols; WordPiece makes a longer word one UNK, and no run of text comes near it
WORD_MARK = "\N{LOWER ONE EIGHTH BLOCK}"  # SentencePiece's sign for a space

# In a vocabulary of another toolkit any run of characters may be found in text, but never one with a space: its
# spaces have become word marks by then.
IMPORTED_CONTROL_TOKENS = ("⟨ pad ⟩", "⟨ unk ⟩", "⟨ bos ⟩", "⟨ eos ⟩")

# What a tokenizer of the library must hold for text to survive: nothing looked for in text, cut, padded or changed.
LAYOUT: dict[str, tuple[object, ...]] = {
    "added_tokens": ([],),
    "truncation": (None,),
    "padding": (None,),
    "post_processor": (None,),
}
NORMALIZERS: tuple[object, ...] = (None, {"type": "Prepend", "prepend": " "})
BYTES_OF_TEXT = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}

# What a model of the library must hold for its ids to be those of its own tokens: nothing left to chance, and no token
# found in text but by its own parts.
MODELS: dict[str, dict[str, object]] = {
    "BPE": {
        "dropout": None,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": False,
        "ignore_merges": False,
    },
    "WordPiece": {"continuing_subword_prefix": "", "max_input_chars_per_word": LONGEST_WORD},
    "Unigram": {},
}

IMPORTED_MAY_DIFFER = frozenset(["fuse_unk", "byte_fallback"])

_TAG = re.compile(r"⟨( ?)tag:([A-Za-z0-9][A-Za-z0-9._-]*)\1⟩")
_BYTE = re.compile(r"<0x([0-9A-F]{2})>")


class Tokenizer:
    """A learnt vocabulary that turns text into token ids and back.

    One space is put before a text that is not empty and taken away after decoding, so a word is the same token at the
    start of a sentence and inside it; a character vocabulary that knows no space goes without.
    With a byte-level vocabulary (``byte_fallback``) ``decode(encode(text)) == text`` for every text; with a vocabulary
    of characters, for every text of characters that it knows, and others become UNK. One that was imported from
    SentencePiece (``imported``) may normalise text first, and then promises neither.
    ``tags`` has the id of each reserved tag by its name: text never yields one, and in decoding they vanish.
    """

    def __init__(self, inner: "LibraryTokenizer") -> None:
        self._inner = inner
        description = json.loads(inner.to_str())
        steps = _pre_tokenizers(description["pre_tokenizer"])
        metaspace = next((step for step in steps if step.get("replacement") == WORD_MARK), None)
        self.imported: bool = metaspace is not None
        self.model: str = description["model"]["type"].lower()
        self._names = _names(description["model"])
        self.byte_fallback: bool = BYTES_OF_TEXT in steps
        _check_description(description, byte_level=self.byte_fallback, imported=self.imported)
        _check_names(self._names, imported=self.imported)
        self.tags: Mapping[str, int] = {
            match[2]: token_id for token_id, name in enumerate(self._names) if (match := _TAG.fullmatch(name))
        }
        if metaspace is not None:
            self._leading_space = metaspace.get("prepend_scheme", "always") != "never"
            self._pieces = _imported_pieces(self._names)
        else:
            self._leading_space = description["normalizer"] is not None
            self._pieces = _pieces_of(self._names, byte_level=self.byte_fallback)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Load what ``to_json`` gave; raises TextError when the JSON is damaged or describes something else.

        Read as well: a SentencePiece model as the library describes it (a Metaspace step, any normaliser), without
        added tokens and post-processor, whose first four tokens are ``IMPORTED_CONTROL_TOKENS``.
        """
        import tokenizers  # noqa: PLC0415 - importing this room must be instant

        try:
            inner = tokenizers.Tokenizer.from_str(text)
        except Exception as error:  # the library raises bare Exception, with its reason as the message
            raise TextError(
                f"text/tokenizer: tokenizer JSON cannot be read: {error}. Remedy: copy the model folder again."
            ) from error
        return cls(inner)

    def to_json(self) -> str:
        """Give the whole tokenizer as one JSON text, which the `tokenizers` library also reads."""
        return self._inner.to_str(pretty=False)

    @property
    def vocab_size(self) -> int:
        """Number of tokens, control tokens and tags counted."""
        return len(self._names)

    def tag_id(self, name: str) -> int:
        """Return the id of a tag; raises TextError, naming the tags there are, for another name."""
        try:
            return self.tags[name]
        except KeyError:
            raise TextError(
                f"text/tokenizer: the vocabulary has no tag {name!r}; found {', '.join(self.tags) or 'no tags'}. "
                "Remedy: use one of these, or a model that was trained with that tag."
            ) from None

    @property
    def parts_at_spaces(self) -> bool:
        """Whether a text with single spaces between its words has the ids of its words, one after the other."""
        return self._leading_space and not self.imported

    @property
    def names(self) -> Sequence[str]:
        """The tokens by id, as the vocabulary writes them."""
        return self._names

    @property
    def pieces(self) -> Sequence[bytes]:
        """The bytes that each token adds to a text, by id; joined, they are the text after its leading space."""
        return self._pieces

    def runs(self, text: str) -> list[str]:
        """The runs of a text that no token crosses, as the vocabulary writes them: a character is a byte, with bytes.

        Only for a tokenizer that was learnt here.
        """
        return self.prepared_runs(f" {text}" if self._leading_space and text else text)

    def prepared_runs(self, text: str) -> list[str]:
        """The same for a text that has its leading space already, as the pieces of its tokens have."""
        assert not self.imported, "runs are those of the text itself"
        return [run for run, _ in self._inner.pre_tokenizer.pre_tokenize_str(text)]

    def encode_run(self, run: str) -> list[int]:
        """Token ids of one run, as ``runs`` gives them."""
        return [token.id for token in self._inner.model.tokenize(run)] if run else []

    def encode(self, text: str) -> list[int]:
        """Token ids of ``text``, without BOS and EOS; raises TextError for a lone surrogate."""
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of each text, as ``encode`` gives them, computed on all cores."""
        for text in texts:
            check_encodable(text)
        return [encoding.ids for encoding in self._inner.encode_batch_fast(list(texts), add_special_tokens=False)]

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of token ids; PAD, BOS, EOS and tags vanish, UNK and broken UTF-8 become U+FFFD.

        Raises TextError for an id outside the vocabulary.
        """
        pieces = [self._pieces[self._checked(token_id)] for token_id in ids]
        text = b"".join(pieces).decode("utf-8", errors="replace")
        return text[1:] if self._leading_space and text.startswith(" ") else text

    def tokens(self, ids: Iterable[int]) -> list[str]:
        """One readable string an id, for display and alignment: the leading space is kept, half characters in hex."""
        return [self._readable(self._checked(token_id)) for token_id in ids]

    def _checked(self, token_id: int) -> int:
        if not 0 <= token_id < len(self._pieces):
            raise TextError(
                f"text/tokenizer: token id {token_id} is outside the vocabulary, which has ids 0 to "
                f"{len(self._pieces) - 1}. Remedy: decode with the tokenizer that encoded."
            )
        return token_id

    def _readable(self, token_id: int) -> str:
        if token_id < len(CONTROL_TOKENS):
            return CONTROL_TOKENS[token_id]
        piece = self._pieces[token_id]
        if not piece:
            return self._names[token_id]
        try:
            return piece.decode("utf-8")
        except UnicodeDecodeError:
            return f"⟨{piece.hex(' ').upper()}⟩"


def check_encodable(text: str) -> None:
    """Raise TextError if ``text`` holds half of a UTF-16 pair, which is no character and has no UTF-8 form."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise TextError(
            f"text/tokenizer: lone surrogate U+{ord(text[error.start]):04X} at character {error.start + 1} of a text "
            f"of {len(text)}; only whole characters can be encoded. Remedy: read the text as UTF-8 with strict errors."
        ) from error


def byte_characters() -> dict[str, int]:
    """Give the 256 printable characters by which a byte-level vocabulary writes bytes, each with its byte.

    Bytes that are printable in Latin-1 stand for themselves, the others for U+0100 onwards in their order: the
    convention of GPT-2, which the `tokenizers` library follows.
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(0x100) if byte not in set(printable)]
    return {chr(byte): byte for byte in printable} | {chr(0x100 + rank): byte for rank, byte in enumerate(hidden)}


def tag_tokens(names: Sequence[str]) -> tuple[str, ...]:
    """Return the reserved tokens of tags; raises TextError for a name that is no tag or comes twice.

    A name has ASCII letters, digits, ``.``, ``_`` and ``-``, and starts with a letter or a digit.
    """
    tokens = tuple(f"⟨tag:{name}⟩" for name in names)
    for name, token in zip(names, tokens, strict=True):
        if not _TAG.fullmatch(token):
            raise TextError(
                f"text/tokenizer: {name!r} cannot be a tag; a tag has letters a to z, digits, '.', '_' and '-', and "
                "starts with a letter or a digit. Remedy: choose another name."
            )
        if tokens.count(token) > 1:
            raise TextError(f"text/tokenizer: tag {name!r} is named twice. Remedy: name each tag once.")
    return tokens


def _pieces_of(names: list[str], *, byte_level: bool) -> list[bytes]:
    """Return the bytes that each token adds to a decoded text: none for control tokens and tags."""
    byte_of = byte_characters()
    pieces: list[bytes] = []
    try:
        for name in names:
            if _TAG.fullmatch(name):
                pieces.append(b"")
            elif byte_level and len(pieces) >= len(CONTROL_TOKENS):
                pieces.append(bytes(byte_of[character] for character in name))
            else:
                pieces.append(name.encode("utf-8"))
    except KeyError as error:
        raise _foreign(f"character {error.args[0]!r} in a byte-level vocabulary", "none") from error
    pieces[: len(CONTROL_TOKENS)] = _control_pieces()
    missing = set(range(256)) - {piece[0] for piece in pieces if len(piece) == 1}
    if byte_level and missing:
        raise _foreign(f"a byte-level vocabulary without byte {min(missing)}", "all 256")
    return pieces


def _imported_pieces(names: list[str]) -> list[bytes]:
    """The same for a vocabulary of SentencePiece: word marks are spaces, and ``<0x41>`` is a byte."""
    pieces: list[bytes] = []
    for name in names:
        byte = _BYTE.fullmatch(name)
        if byte is not None:
            pieces.append(bytes([int(byte[1], 16)]))
        else:
            pieces.append(b"" if _TAG.fullmatch(name) else name.replace(WORD_MARK, " ").encode("utf-8"))
    pieces[: len(CONTROL_TOKENS)] = _control_pieces()
    return pieces


def _control_pieces() -> list[bytes]:
    pieces = [b"" for _ in CONTROL_TOKENS]
    pieces[UNK_ID] = REPLACEMENT.encode("utf-8")
    return pieces


def _names(model: "Mapping[str, object]") -> list[str]:
    """Return the tokens of a model of the library by id."""
    vocabulary = model["vocab"]
    if isinstance(vocabulary, list):  # Unigram: pairs of token and score
        return [name for name, _ in vocabulary]
    assert isinstance(vocabulary, dict), "a vocabulary is a dict or a list of pairs"
    by_id = {token_id: name for name, token_id in vocabulary.items()}
    if sorted(by_id) != list(range(len(vocabulary))):
        raise _foreign("ids with gaps or repeats", f"0 to {len(vocabulary) - 1}")
    return [by_id[token_id] for token_id in range(len(vocabulary))]


def _check_names(names: list[str], *, imported: bool) -> None:
    wanted = IMPORTED_CONTROL_TOKENS if imported else CONTROL_TOKENS
    found = tuple(names[: len(wanted)])
    if found != wanted:
        raise _foreign(f"ids 0 to 3 as {found}", f"{wanted}")
    if len(set(names)) != len(names):
        raise _foreign(f"{len(names) - len(set(names))} tokens twice", "each once")
    if imported and any(match and not match[1] for match in map(_TAG.fullmatch, names)):
        raise _foreign("a tag that text can name", "⟨ tag:NAME ⟩ with spaces")


def _check_description(description: dict[str, object], *, byte_level: bool, imported: bool) -> None:
    """Refuse a tokenizer of the library that is not laid out as Headway's are."""
    for part, wanted in LAYOUT.items() if imported else [*LAYOUT.items(), ("normalizer", NORMALIZERS)]:
        if description[part] not in wanted:
            raise _foreign(f"{part} {description[part]}", " or ".join(map(str, wanted)))
    model = description["model"]
    kind = model.get("type") if isinstance(model, dict) else None
    if not isinstance(model, dict) or kind not in MODELS:
        raise _foreign(f"a {kind} model", " or ".join(MODELS))
    unknown = (IMPORTED_CONTROL_TOKENS if imported else CONTROL_TOKENS)[UNK_ID]
    found = model["unk_id"] if kind == "Unigram" else model["unk_token"]
    if found is None and not byte_level:
        raise _foreign("no unknown token and no step from text to bytes", f"{BYTES_OF_TEXT}")
    if found not in (None, unknown, UNK_ID):
        raise _foreign(f"unknown token {found}", unknown)
    for key, value in MODELS[str(kind)].items():
        if model[key] != value and not (imported and key in IMPORTED_MAY_DIFFER):
            raise _foreign(f"{kind} with {key} {model[key]}", f"{value}")


def _pre_tokenizers(description: object) -> list[dict[str, object]]:
    """Return the steps of a pre-tokenizer, of which a sequence has several."""
    if not isinstance(description, dict):
        return []
    if description.get("type") == "Sequence":
        return [step for inner in description["pretokenizers"] for step in _pre_tokenizers(inner)]
    return [description]


def _foreign(found: str, wanted: str) -> TextError:
    return TextError(
        f"text/tokenizer: tokenizer JSON was not written by Headway: found {found}, wanted {wanted}. "
        "Remedy: use the tokenizer of a Headway model folder."
    )
