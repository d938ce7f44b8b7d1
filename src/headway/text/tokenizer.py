"""Text becomes token ids here, and ids become text again; nowhere else.

A vocabulary starts with four control tokens. Their names mix letters with punctuation, which no learnt token does, and
they are not registered with the library as tokens to look for in text; so no text can name them.
"""

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Self

from headway.errors import TextError

if TYPE_CHECKING:
    from tokenizers import Tokenizer as LibraryTokenizer

PAD_ID, UNK_ID, BOS_ID, EOS_ID = 0, 1, 2, 3
CONTROL_TOKENS = ("⟨pad⟩", "⟨unk⟩", "⟨bos⟩", "⟨eos⟩")
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"

# What a tokenizer of the library must hold for text to survive: nothing looked for in text, cut, padded or changed.
LAYOUT: dict[str, tuple[object, ...]] = {
    "added_tokens": ([],),
    "truncation": (None,),
    "padding": (None,),
    "post_processor": (None,),
    "normalizer": (None, {"type": "Prepend", "prepend": " "}),
}
BYTES_OF_TEXT = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}


class Tokenizer:
    """A learnt vocabulary that turns text into token ids and back.

    One space is put before a text that is not empty and taken away after decoding, so a word is the same token at the
    start of a sentence and inside it; a character vocabulary that knows no space goes without.
    With a byte-level vocabulary (``byte_fallback``) ``decode(encode(text)) == text`` for every text; with a vocabulary
    of characters, for every text of characters that it knows, and others become UNK.
    """

    def __init__(self, inner: "LibraryTokenizer") -> None:
        self._inner = inner
        description = json.loads(inner.to_str())
        _check_description(description)
        vocabulary: dict[str, int] = description["model"]["vocab"]
        self._names = sorted(vocabulary, key=vocabulary.__getitem__)
        self._leading_space = description["normalizer"] is not None
        self.byte_fallback: bool = description["model"]["unk_token"] is None
        self._pieces = _pieces_of(self._names, byte_level=self.byte_fallback)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Load what ``to_json`` gave; raises TextError when the JSON is damaged or describes something else."""
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
        """Number of tokens, the four control tokens counted."""
        return len(self._names)

    def encode(self, text: str) -> list[int]:
        """Token ids of ``text``, without BOS and EOS; raises TextError for a lone surrogate."""
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of each text, as ``encode`` gives them, computed on all cores."""
        for text in texts:
            check_encodable(text)
        return [encoding.ids for encoding in self._inner.encode_batch_fast(list(texts), add_special_tokens=False)]

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of token ids; PAD, BOS and EOS vanish, UNK and broken UTF-8 become U+FFFD.

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


def _pieces_of(names: list[str], *, byte_level: bool) -> list[bytes]:
    """Return the bytes that each token adds to a decoded text."""
    controls = [b"" for _ in CONTROL_TOKENS]
    controls[UNK_ID] = REPLACEMENT.encode("utf-8")
    learnt = names[len(CONTROL_TOKENS) :]
    if not byte_level:
        return controls + [name.encode("utf-8") for name in learnt]
    byte_of = byte_characters()
    try:
        return controls + [bytes(byte_of[character] for character in name) for name in learnt]
    except KeyError as error:
        raise _foreign(f"character {error.args[0]!r} in a byte-level vocabulary", "none") from error


def _check_description(description: dict[str, object]) -> None:
    """Refuse a tokenizer of the library that is not laid out as Headway's are."""
    for part, wanted in LAYOUT.items():
        if description[part] not in wanted:
            raise _foreign(f"{part} {description[part]}", " or ".join(map(str, wanted)))
    model = description["model"]
    if not isinstance(model, dict) or model.get("type") != "BPE":
        raise _foreign("a model that is not BPE", "BPE")
    if model["dropout"] is not None:
        raise _foreign(f"BPE dropout {model['dropout']}", "none")
    if model["unk_token"] is None and BYTES_OF_TEXT not in _pre_tokenizers(description["pre_tokenizer"]):
        raise _foreign("no step from text to bytes before a byte-level vocabulary", f"{BYTES_OF_TEXT}")
    by_id = {token_id: name for name, token_id in model["vocab"].items()}
    if sorted(by_id) != list(range(len(model["vocab"]))):
        raise _foreign("ids with gaps or repeats", f"0 to {len(model['vocab']) - 1}")
    found = tuple(by_id.get(token_id) for token_id in range(len(CONTROL_TOKENS)))
    if found != CONTROL_TOKENS:
        raise _foreign(f"ids 0 to 3 as {found}", f"{CONTROL_TOKENS}")


def _pre_tokenizers(description: object) -> list[object]:
    """Return the steps of a pre-tokenizer, of which a sequence has several."""
    if isinstance(description, dict) and description.get("type") == "Sequence":
        return list(description["pretokenizers"])
    return [description]


def _foreign(found: str, wanted: str) -> TextError:
    return TextError(
        f"text/tokenizer: tokenizer JSON was not written by Headway: found {found}, wanted {wanted}. "
        "Remedy: use the tokenizer of a Headway model folder."
    )
