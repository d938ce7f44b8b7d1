"""The vocabulary of a MarianMT folder: vocab.json gives the ids, source.spm and target.spm take text apart.

Hugging Face's MarianTokenizer looks the pieces up in vocab.json, which may lack some and have others besides.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from headway.errors import InterchangeError, TextError
from headway.interchange.marian import Rows
from headway.interchange.marian_config import MarianModel, cannot
from headway.interchange.sentencepiece import SentencePieceModel, read_sentencepiece, tokenizer_json
from headway.interchange.source_folder import SourceFolder
from headway.text.reserved import BOS_ID, CONTROL_TOKENS, tag_tokens
from headway.text.tokenizer import Tokenizer

CONFIG_FILE = "tokenizer_config.json"
SOURCE_MODEL, TARGET_MODEL = "source.spm", "target.spm"
WORDS_FILE, TARGET_WORDS_FILE = "vocab.json", "target_vocab.json"
ADDED_FILE = "added_tokens.json"

_SPECIAL = {"pad_token": "<pad>", "unk_token": "<unk>", "eos_token": "</s>"}
_LANGUAGE = re.compile(r">>(.+)<<")


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Both tokenizers, one object if they are one, and the rows of Marian's tables by our ids."""

    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    source_rows: Rows
    target_rows: Rows
    tags: tuple[str, ...]
    notices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Words:
    """One vocab.json: row -> word, and the rows of what has a meaning of its own."""

    by_row: Mapping[int, str]
    size: int
    pad: int
    unk: int
    eos: int

    def order(self, start: int, segmented: frozenset[str]) -> Rows:
        """Our ids: four control tokens, then the other rows in their order.

        The row that decoding starts from may have another meaning as well; then our BOS has a copy that no output has.
        """
        is_copy = start in (self.pad, self.unk, self.eos) or self.by_row.get(start) in segmented
        first = [self.pad, self.unk, start, self.eos]
        taken = {self.pad, self.unk, self.eos} | (set() if is_copy else {start})
        rest = [row for row in range(self.size) if row not in taken]
        return Rows(np.array([*first, *rest], dtype=np.int64), (BOS_ID,) if is_copy else ())

    def names(self, rows: Rows) -> list[str | None]:
        """The words from our id 4 on."""
        return [self.by_row.get(int(row)) for row in rows.row_V[len(CONTROL_TOKENS) :]]


def read_vocabulary(folder: SourceFolder, marian: MarianModel, shapes: tuple[int, int]) -> Vocabulary:
    """Read the tokenizer of a MarianMT folder.

    ``shapes`` are the rows that the weights really have, of source and target: config.json is not to be trusted with
    sizes. Raises InterchangeError for files that are missing or damaged, or do not fit the model.
    """
    for name, found, wanted in zip(
        ("vocab_size", "decoder_vocab_size"), (marian.source_vocab_size, marian.target_vocab_size), shapes, strict=True
    ):
        if found != wanted:
            raise cannot(name, found, f"{wanted}, the rows of the table in the weights")
    config = folder.read_json_if_there(CONFIG_FILE)
    separate = config.get("separate_vocabs", False)
    if not isinstance(separate, bool) or (separate and marian.shares):
        raise cannot("separate_vocabs", separate, "false, as the tables are shared", file=CONFIG_FILE)
    special = {key: _token(config, key) for key in _SPECIAL}
    source_words = _read_words(folder, WORDS_FILE, marian.source_vocab_size, special)
    target_file = TARGET_WORDS_FILE if separate else WORDS_FILE
    target_words = _read_words(folder, target_file, marian.target_vocab_size, special)
    for name, found, wanted in (
        (special["pad_token"], target_words.pad, marian.pad_id),
        (special["eos_token"], target_words.eos, marian.eos_id),
    ):
        if found != wanted:
            raise cannot(name, found, f"{wanted}, as config.json has it", file=target_file)
    _check_added(folder, source_words)

    data = {name: folder.read_bytes(name) for name in (SOURCE_MODEL, TARGET_MODEL)}
    source_model = read_sentencepiece(data[SOURCE_MODEL], str(folder.path / SOURCE_MODEL))
    target_model = read_sentencepiece(data[TARGET_MODEL], str(folder.path / TARGET_MODEL))
    segmented = frozenset(source_model.scores) | frozenset(target_model.scores)
    target_rows = target_words.order(marian.start_id, segmented)
    source_rows = target_rows if marian.shares and marian.ties else source_words.order(source_words.pad, segmented)
    tags, notices = _tags(source_words)
    source_tokenizer = _tokenizer(source_model, source_words.names(source_rows), tags, SOURCE_MODEL)
    if data[SOURCE_MODEL] == data[TARGET_MODEL] and source_rows is target_rows:
        target_tokenizer = source_tokenizer
    else:
        target_tokenizer = _tokenizer(target_model, target_words.names(target_rows), tags, TARGET_MODEL)
    notices += _differences(source_model, source_words, SOURCE_MODEL, WORDS_FILE)
    notices += _differences(target_model, target_words, TARGET_MODEL, target_file)
    return Vocabulary(
        source_tokenizer,
        target_tokenizer,
        source_rows,
        target_rows,
        tuple(source_tokenizer.tags),
        tuple(dict.fromkeys(notices)),
    )


def _read_words(folder: SourceFolder, name: str, size: int, special: Mapping[str, str]) -> _Words:
    words = folder.read_json(name)
    by_row: dict[int, str] = {}
    for word, row in words.items():
        if type(row) is not int or not 0 <= row < size:
            raise cannot(repr(word[:40]), row, f"a token id from 0 to {size - 1}", file=name)
        if row in by_row:
            raise cannot(repr(word[:40]), row, f"an id of its own; {by_row[row][:40]!r} has it", file=name)
        by_row[row] = word
    rows: dict[str, int] = {}
    for key, word in special.items():
        row = words.get(word)
        if not isinstance(row, int):
            raise cannot(f"{key} {word[:40]!r}", "no such word", "an id", file=name)
        rows[key] = row
    return _Words(by_row, size, rows["pad_token"], rows["unk_token"], rows["eos_token"])


def _token(config: Mapping[str, object], key: str) -> str:
    """The name of a special token, written as a string or as an object with its content."""
    found = config.get(key, _SPECIAL[key])
    if isinstance(found, dict):
        found = found.get("content")
    if not isinstance(found, str) or not found:
        raise cannot(key, found, "a word", file=CONFIG_FILE)
    return found


def _check_added(folder: SourceFolder, words: _Words) -> None:
    """Words that were added beside the vocabulary are looked for in text before SentencePiece sees it."""
    known = set(words.by_row.values())
    added = [word for word in folder.read_json_if_there(ADDED_FILE) if word not in known]
    if added:
        raise cannot(repr(added[0][:40]), f"one of {len(added)} added words", "none", file=ADDED_FILE)


def _tags(words: _Words) -> tuple[dict[str, str], list[str]]:
    """The reserved token of each word like ``>>fra<<``, and a notice of those that cannot be tags."""
    tags: dict[str, str] = {}
    unfit: list[str] = []
    for word in words.by_row.values():
        match = _LANGUAGE.fullmatch(word)
        if match is None:
            continue
        try:
            tags[word] = tag_tokens([match[1]], imported=True)[0]
        except TextError:
            unfit.append(word)
    if not unfit:
        return tags, []
    return tags, [f"{len(unfit)} words like a language tag cannot be asked for with --tag (first: {unfit[0][:40]})"]


def _tokenizer(model: SentencePieceModel, words: Sequence[str | None], tags: Mapping[str, str], name: str) -> Tokenizer:
    try:
        return Tokenizer.from_json(tokenizer_json(model, words, tags))
    except TextError as error:
        raise InterchangeError(
            f"interchange/marian_vocabulary: {name} with {WORDS_FILE} gives no tokenizer: {error}"
        ) from error


def _differences(model: SentencePieceModel, words: _Words, model_file: str, words_file: str) -> list[str]:
    """Tell of pieces that are UNK, as they are in the original."""
    known = set(words.by_row.values())
    count = sum(text not in known for text in model.scores)
    return (
        [f"{count:,} pieces of {model_file} are not in {words_file} and become UNK, as they do there"] if count else []
    )
