"""A tokenizer gets new tokens from new text, and keeps every old one under its id."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from headway.errors import TextError
from headway.text.bpe import SMALLEST_COUNT, Merges
from headway.text.reserved import tag_tokens
from headway.text.symbols import extend_symbols
from headway.text.tokenizer import Tokenizer, check_encodable

FIRST_STAND_IN = 0x10000  # characters from here on stand for tokens while merges are learnt
END_OF_RUN = "\n"
RUNS_AT_ONCE = 1000  # given to the learner in one string


def extend_tokenizer(
    tokenizer: Tokenizer,
    texts: Iterable[str],
    *,
    new_tokens: int | None = None,
    vocab_size: int | None = None,
    tags: Sequence[str] = (),
) -> Tokenizer:
    """Add tokens learnt from ``texts`` to a BPE tokenizer: at most ``new_tokens``, or up to ``vocab_size`` in all.

    Old ids stay, so embeddings keep their rows and get new ones at the end: the ``tags`` that are new, then characters
    that a vocabulary without byte fallback lacked, then tokens. New merges come after all old ones, so text is first
    taken apart as before. Equal input gives an equal tokenizer; few patterns give fewer tokens. A closed vocabulary
    (``text/symbols.py``) gets the symbols that it lacks.
    Raises TextError for another kind of model, and when tags and characters alone are more than was asked for.
    """
    assert (new_tokens is None) != (vocab_size is None), "one of new_tokens and vocab_size"
    if tokenizer.model == "wordlevel":
        room = new_tokens if new_tokens is not None else (vocab_size or 0) - tokenizer.vocab_size
        return extend_symbols(tokenizer, texts, new_tokens=room, tags=tags)
    if tokenizer.model != "bpe" or tokenizer.imported:
        kind = f"imported {tokenizer.model}" if tokenizer.imported else tokenizer.model
        raise TextError(
            f"text/extend: the vocabulary is {kind}; only a BPE learnt here can be extended: in another, new pieces "
            "change how old text is taken apart. Remedy: keep the vocabulary, or train anew with text.model = bpe."
        )
    size = tokenizer.vocab_size
    room = new_tokens if new_tokens is not None else (vocab_size or 0) - size
    new_tags = [token for token in tag_tokens(tags) if token not in tokenizer.names]
    rows = _Rows(tokenizer)
    for text in texts:
        rows.add(text)
    characters = sorted(rows.names[size:])
    least = len(new_tags) + len(characters)
    if room < least:
        raise TextError(
            f"text/extend: vocabulary of {size + room} tokens is too small; the minimum is {size + least}: {size} old "
            f"tokens, {len(new_tags)} new tags and {len(characters)} characters that it lacks. "
            f"Remedy: ask for {size + least} or more."
        )
    return _extended(tokenizer, [*new_tags, *characters], rows, room=room - least)


class _Rows:
    """Runs of text as rows of stand-ins, one character a token, with how often each row is there.

    A character that the vocabulary lacks counts as a token whose number comes after all that there are.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.names = list(tokenizer.names)
        self._tokenizer = tokenizer
        self._symbols = {name: token_id for token_id, name in enumerate(self.names) if len(name) == 1}
        self._row_of: dict[str, str] = {}
        self._counts = Counter[str]()

    def add(self, text: str) -> None:
        """Count the runs of one text."""
        check_encodable(text)
        for run in self._tokenizer.runs(text):
            row = self._row_of.get(run)
            if row is None:
                row = self._row_of[run] = "".join(chr(FIRST_STAND_IN + token_id) for token_id in self._ids(run))
            self._counts[row] += 1

    def name_of(self, row: str) -> str:
        """What the stand-ins of a row are together."""
        return "".join(self.names[ord(character) - FIRST_STAND_IN] for character in row)

    def merges(self, number: int) -> Merges:
        """Learn up to ``number`` merges of stand-ins, the most frequent first."""
        import tokenizers  # noqa: PLC0415 - importing this room must be instant

        inner = tokenizers.Tokenizer(tokenizers.models.BPE())
        inner.pre_tokenizer = tokenizers.pre_tokenizers.Split(END_OF_RUN, "removed")
        alphabet = {character for row in self._counts for character in row}
        trainer = tokenizers.trainers.BpeTrainer(
            vocab_size=len(alphabet) + number, min_frequency=SMALLEST_COUNT, special_tokens=[], show_progress=False
        )
        inner.train_from_iterator(self._repeated(), trainer)
        return [(left, right) for left, right in json.loads(inner.to_str())["model"]["merges"]]

    def _repeated(self) -> Iterator[str]:
        for row, count in self._counts.items():
            full, rest = divmod(count, RUNS_AT_ONCE)
            for part in [RUNS_AT_ONCE] * full + [rest]:
                yield END_OF_RUN.join([row] * part)

    def _ids(self, run: str) -> Iterator[int]:
        known = ""
        for character in run:
            if character in self._symbols and self._symbols[character] < self._tokenizer.vocab_size:
                known += character
                continue
            yield from self._tokenizer.encode_run(known)
            known = ""
            if character not in self._symbols:
                self._symbols[character] = len(self.names)
                self.names.append(character)
            yield self._symbols[character]
        yield from self._tokenizer.encode_run(known)


def _extended(tokenizer: Tokenizer, names: list[str], rows: _Rows, *, room: int) -> Tokenizer:
    """The tokenizer with these names, ``room`` tokens learnt from rows, and the merges that make them."""
    description = json.loads(tokenizer.to_json())
    model = description["model"]
    ids: dict[str, int] = model["vocab"]
    for name in names:
        ids[name] = len(ids)
    for left, right in rows.merges(room):  # none makes a token that was there: BPE would have made it before
        merge = rows.name_of(left), rows.name_of(right)
        ids.setdefault("".join(merge), len(ids))
        model["merges"].append(list(merge))
    return Tokenizer.from_json(json.dumps(description, ensure_ascii=False))
