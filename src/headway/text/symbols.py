"""A closed vocabulary: texts are symbols with single spaces between, and each symbol is one token."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence

from headway.errors import TextError
from headway.text.reserved import CONTROL_TOKENS, UNK_ID, tag_tokens
from headway.text.runs import SYMBOLS
from headway.text.tokenizer import Tokenizer, check_encodable


def learn_symbols(texts: Iterable[str], *, vocab_size: int, tags: Sequence[str] = ()) -> Tokenizer:
    """All symbols of the texts, the most frequent first, after the control tokens and the ``tags``.

    ``decode(encode(text)) == text`` for every text of such symbols; others are UNK, whole. Equal texts give an equal
    tokenizer. Raises TextError when there are more symbols than fit into ``vocab_size``: none is left out in silence.
    """
    import tokenizers  # noqa: PLC0415 - importing this room must be instant

    reserved = (*CONTROL_TOKENS, *tag_tokens(tags))
    symbols = _ordered(_count(texts))
    if len(reserved) + len(symbols) > vocab_size:
        raise _too_many(len(symbols), len(reserved) + len(symbols), vocab_size, "model.vocab_size")
    inner = tokenizers.Tokenizer(
        tokenizers.models.WordLevel(
            vocab={name: token_id for token_id, name in enumerate([*reserved, *symbols])},
            unk_token=CONTROL_TOKENS[UNK_ID],
        )
    )
    inner.normalizer = tokenizers.normalizers.Prepend(" ")
    inner.pre_tokenizer = tokenizers.pre_tokenizers.Split(tokenizers.Regex(SYMBOLS), "isolated")
    inner.decoder = tokenizers.decoders.Sequence(
        [tokenizers.decoders.Fuse(), tokenizers.decoders.Strip(" ", 1, 0)],
    )
    return Tokenizer(inner)


def extend_symbols(
    tokenizer: Tokenizer, texts: Iterable[str], *, new_tokens: int, tags: Sequence[str] = ()
) -> Tokenizer:
    """The same vocabulary with what it lacks at its end: ``tags``, then symbols, the most frequent first.

    Old ids stay. Raises TextError when that is more than ``new_tokens``.
    """
    assert tokenizer.model == "wordlevel", "a vocabulary of symbols"
    known = frozenset(tokenizer.names)
    missing = [name for name in (*tag_tokens(tags), *_ordered(_count(texts))) if name not in known]
    if len(missing) > new_tokens:
        raise _too_many(len(missing), len(missing), new_tokens, "train.extend_vocabulary")
    description = json.loads(tokenizer.to_json())
    ids: dict[str, int] = description["model"]["vocab"]
    for symbol in missing:
        ids[symbol] = len(ids)
    return Tokenizer.from_json(json.dumps(description, ensure_ascii=False))


def _count(texts: Iterable[str]) -> Counter[str]:
    """How often each symbol is there, with the space before it."""
    counts = Counter[str]()
    for text in texts:
        check_encodable(text)
        counts.update(f" {symbol}" for symbol in text.split(" ") if symbol)
    return counts


def _ordered(counts: Counter[str]) -> list[str]:
    return sorted(counts, key=lambda symbol: (-counts[symbol], symbol))


def _too_many(count: int, needed: int, room: int, key: str) -> TextError:
    return TextError(
        f"text/symbols: found {count:,} symbols that need {needed:,} tokens, wanted {room:,} at most; every symbol is "
        f"a token of its own. Remedy: set {key} to {needed} or more, or strip what makes so many (functions of labels)."
    )
