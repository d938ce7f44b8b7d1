"""Text becomes token ids here, and ids become text again; nowhere else."""

import codecs
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Self, cast

from headway.errors import TextError
from headway.text.charsmap import Charsmap
from headway.text.description import WORD_MARK, Description, describe, foreign, without_charsmap
from headway.text.reserved import BOS_ID, CONTROL_TOKENS, EOS_ID, IMPORTED_END, PAD_ID, UNK_ID, tag_name

if TYPE_CHECKING:
    from tokenizers import Tokenizer as LibraryTokenizer

__all__ = ["BOS_ID", "CONTROL_TOKENS", "EOS_ID", "PAD_ID", "UNK_ID", "Tokenizer", "byte_characters", "check_encodable"]

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"

_BYTE = re.compile(r"<0x([0-9A-F]{2})>")


class Tokenizer:
    """A learnt vocabulary that turns text into token ids and back.

    One space is put before a text that is not empty and taken away after decoding, so a word is the same token at the
    start of a sentence and inside it; a character vocabulary that knows no space goes without.
    With a byte-level vocabulary (``byte_fallback``) ``decode(encode(text)) == text`` for every text; with a vocabulary
    of characters, for every text of characters that it knows, and others become UNK. One that was imported from
    SentencePiece (``imported``) may normalise text first, and then promises neither. Its segmenter may know pieces that
    the vocabulary lacks, which are UNK, and its vocabulary tokens that the segmenter lacks: a run of unknown characters
    that is one of these has its id.
    ``tags`` has the id of each reserved tag by its name: text never yields one, and in decoding they vanish.
    """

    def __init__(self, inner: "LibraryTokenizer", description: Description | None = None) -> None:
        self._inner = inner
        if description is None:
            description = describe(inner.to_str())
        self.model: str = description.model
        self.byte_fallback: bool = description.byte_level
        self.imported: bool = description.imported
        self._leading_space = description.leading_space
        self._names = description.names
        self._values = description.values
        self._charsmap = Charsmap(description.charsmap) if description.charsmap else None
        self._rare: Mapping[str, int] = {}
        if self.imported:
            self._names = description.names[: _end_of(description.names)]
            self._rare = {name[1:]: place for place, name in enumerate(self._names) if name.startswith(" ")}
        tags = {tag_name(name, imported=self.imported): token_id for token_id, name in enumerate(self._names)}
        self.tags: Mapping[str, int] = {name: token_id for name, token_id in tags.items() if name is not None}
        if self.imported:
            self._pieces = _imported_pieces(self._names)
        else:
            self._pieces = _pieces_of(self._names, byte_level=self.byte_fallback)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Load what ``to_json`` gave; raises TextError when the JSON is damaged or describes something else.

        Read as well: a SentencePiece model as the library describes it (a Metaspace step, SentencePiece's normalizers),
        without added tokens and post-processor, whose first four tokens are ``IMPORTED_CONTROL_TOKENS`` and whose tags
        are those of ``tag_tokens(names, imported=True)`` (text/reserved.py).
        """
        description = describe(text)
        try:
            inner = _library_tokenizer(description)
        except BaseException as error:  # the library raises bare Exception, with its reason as the message
            if not isinstance(error, Exception) and not _is_panic(error):
                raise
            raise TextError(
                f"text/tokenizer: tokenizer JSON cannot be read: {error}. Remedy: copy the model folder again."
            ) from error
        return cls(inner, description)

    def to_json(self) -> str:
        """Give the whole tokenizer as one JSON text, which the `tokenizers` library also reads."""
        if self.imported:
            return json.dumps(self._values, ensure_ascii=False, separators=(",", ":"))
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
        if self._charsmap is not None:
            texts = [self._charsmap.apply(text) for text in texts]
        encode = self._inner.encode_batch if self._rare else self._inner.encode_batch_fast  # which gives ids alone
        try:
            encodings = encode(list(texts), add_special_tokens=False)
        except BaseException as error:
            if not _is_panic(error):
                raise
            raise TextError(
                f"text/tokenizer: the tokenizer's normaliser is damaged: {error}. Remedy: copy the model folder again."
            ) from error
        if self.imported:
            return [self._known(encoding.ids, encoding.tokens) for encoding in encodings]
        return [encoding.ids for encoding in encodings]

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

    def _known(self, ids: list[int], tokens: list[str]) -> list[int]:
        """The ids of an imported segmentation, within the vocabulary."""
        if UNK_ID not in ids and max(ids, default=0) < len(self._names):
            return ids
        return [
            self._rare.get(token, UNK_ID) if token_id == UNK_ID or token_id >= len(self._names) else token_id
            for token_id, token in zip(ids, tokens, strict=True)
        ]

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


def _library_tokenizer(description: Description) -> "LibraryTokenizer":
    """The library's object of what was checked, and nothing else."""
    import tokenizers  # noqa: PLC0415 - importing this room must be instant

    values = without_charsmap(description.values) if description.charsmap else description.values
    if description.imported or description.model != "bpe":
        return tokenizers.Tokenizer.from_str(json.dumps(values))
    # A vocabulary in Python's hands is given as it is: as JSON it would be written and read again, at every start.
    model = cast(dict[str, Any], values["model"])
    inner = tokenizers.Tokenizer.from_str(json.dumps({**values, "model": {**model, "vocab": {}, "merges": []}}))
    merges = [(left, right) for left, right in model["merges"]]
    inner.model = tokenizers.models.BPE(model["vocab"], merges, unk_token=model["unk_token"])
    return inner


def _is_panic(error: BaseException) -> bool:
    """Tell whether compiled code failed: what it raises is no Exception, and its class cannot be imported."""
    return type(error).__name__ == "PanicException"


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
    """Return the bytes that each token adds to a decoded text: none for control tokens and tags."""
    texts = ["" if tag_name(name) else name for name in names]
    texts[: len(CONTROL_TOKENS)] = [""] * len(CONTROL_TOKENS)
    pieces = _bytes_of(texts) if byte_level else [text.encode("utf-8") for text in texts]
    pieces[: len(CONTROL_TOKENS)] = _control_pieces()
    missing = set(range(256)) - {piece[0] for piece in pieces if len(piece) == 1}
    if byte_level and missing:
        raise foreign(f"a byte-level vocabulary without byte {min(missing)}", "all 256")
    return pieces


def _bytes_of(names: list[str]) -> list[bytes]:
    """The bytes of names in which characters stand for bytes, all in one go: a vocabulary is read at every start."""
    text = "".join(names)
    by_byte = sorted(byte_characters().items(), key=lambda pair: pair[1])
    try:
        whole, _ = codecs.charmap_encode(text, "strict", codecs.charmap_build("".join(name for name, _ in by_byte)))
    except UnicodeEncodeError as error:
        raise foreign(f"character {text[error.start]!r} in a byte-level vocabulary", "none") from error
    ends = list(accumulate(map(len, names)))
    return [whole[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def _imported_pieces(names: list[str]) -> list[bytes]:
    """The same for a vocabulary of SentencePiece: word marks are spaces, and ``<0x41>`` is a byte."""
    pieces: list[bytes] = []
    for name in names:
        byte = _BYTE.fullmatch(name)
        if byte is not None:
            pieces.append(bytes([int(byte[1], 16)]))
        else:
            word = name.removeprefix(" ").replace(WORD_MARK, " ")
            pieces.append(b"" if tag_name(name, imported=True) else word.encode("utf-8"))
    pieces[: len(CONTROL_TOKENS)] = _control_pieces()
    return pieces


def _control_pieces() -> list[bytes]:
    pieces = [b"" for _ in CONTROL_TOKENS]
    pieces[UNK_ID] = REPLACEMENT.encode("utf-8")
    return pieces


def _end_of(names: list[str]) -> int:
    """How many tokens of an imported model are the vocabulary's; the segmenter may know more behind the mark."""
    return names.index(IMPORTED_END) if IMPORTED_END in names else len(names)
