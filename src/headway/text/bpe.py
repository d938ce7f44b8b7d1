"""Byte-pair encoding (Sennrich et al. 2016), learnt from text of any script without a segmenter."""

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from headway.errors import TextError
from headway.text.tokenizer import CONTROL_TOKENS, UNK_ID, Tokenizer, byte_characters, check_encodable

if TYPE_CHECKING:
    from tokenizers import Tokenizer as LibraryTokenizer
    from tokenizers.pre_tokenizers import PreTokenizer

LONGEST_RUN = 64  # characters; learning takes time quadratic in a run's length
SMALLEST_COUNT = 2  # a pair of tokens seen once is no pattern

# What a token never crosses, in this order: a run of Han and Kana (with the long vowel mark, which belongs to no
# script), a run of other letters with their marks, one digit, a run of anything else, white space. A space before a
# run belongs to it.
_IDEOGRAPH = r"[\p{Han}\p{Hiragana}\p{Katakana}\u30FC\uFF70]"
RUNS = "|".join(
    [
        rf" ?{_IDEOGRAPH}{{1,{LONGEST_RUN}}}",
        rf" ?(?!{_IDEOGRAPH})\p{{L}}(?:(?!{_IDEOGRAPH})[\p{{L}}\p{{M}}]){{0,{LONGEST_RUN - 1}}}",
        r" ?\p{N}",
        rf" ?(?:(?!{_IDEOGRAPH})[^\s\p{{L}}\p{{N}}]){{1,{LONGEST_RUN}}}",
        rf"\s{{1,{LONGEST_RUN}}}(?!\S)",
        r"\s",
    ]
)


def learn_bpe(texts: Iterable[str], *, vocab_size: int, byte_fallback: bool = True) -> Tokenizer:
    """Learn a vocabulary of at most ``vocab_size`` tokens, the four control tokens counted.

    With ``byte_fallback`` the alphabet is the 256 bytes, so nothing is ever unknown; without it, the characters of
    ``texts``. Equal texts give an equal tokenizer, on any number of threads. A corpus with too few patterns gives a
    smaller one. Raises TextError when the alphabet does not fit into ``vocab_size``.
    """
    byte_minimum = len(CONTROL_TOKENS) + 256
    if byte_fallback and vocab_size < byte_minimum:
        raise _too_small(vocab_size, byte_minimum, "256 bytes")
    alphabet = {" "} if byte_fallback else set[str]()
    inner = _train(_prefixed(texts, alphabet), vocab_size - len(CONTROL_TOKENS), byte_level=byte_fallback)
    minimum = len(CONTROL_TOKENS) + len(alphabet)
    if not byte_fallback and vocab_size < minimum:
        raise _too_small(vocab_size, minimum, f"{len(alphabet)} different characters")
    return _assemble(inner, byte_level=byte_fallback, leading_space=" " in alphabet)


def _too_small(found: int, minimum: int, alphabet: str) -> TextError:
    return TextError(
        f"text/bpe: vocabulary of {found} tokens is too small; the minimum is {minimum}: "
        f"{len(CONTROL_TOKENS)} control tokens and {alphabet}. Remedy: set model.vocab_size to {minimum} or more."
    )


def _prefixed(texts: Iterable[str], alphabet: set[str]) -> Iterator[str]:
    """Each text that is not empty, after one space if the alphabet has a space; ``alphabet`` grows on the way.

    Texts are held back until the first space is seen, so texts without any space get none.
    """
    held: list[str] = []
    for text in texts:
        check_encodable(text)
        if " " not in alphabet:
            alphabet.update(text)
            held.append(text)
            continue
        yield from (f" {earlier}" for earlier in held if earlier)
        held.clear()
        alphabet.update(text)
        if text:
            yield f" {text}"
    prefix = " " if " " in alphabet else ""
    yield from (f"{prefix}{earlier}" for earlier in held if earlier)


def _pre_tokenizer(*, byte_level: bool) -> "PreTokenizer":
    from tokenizers import Regex, pre_tokenizers  # noqa: PLC0415 - importing this room must be instant

    runs = pre_tokenizers.Split(Regex(RUNS), "isolated")
    if not byte_level:
        return runs
    return pre_tokenizers.Sequence([runs, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def _train(texts: Iterator[str], vocab_size: int, *, byte_level: bool) -> "LibraryTokenizer":
    """Return the library's tokenizer with the learnt tokens alone; the alphabet is in it, whatever ``vocab_size``."""
    import tokenizers  # noqa: PLC0415 - importing this room must be instant

    inner = tokenizers.Tokenizer(tokenizers.models.BPE())
    inner.pre_tokenizer = _pre_tokenizer(byte_level=byte_level)
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=max(vocab_size, 0),
        min_frequency=SMALLEST_COUNT,
        initial_alphabet=list(byte_characters()) if byte_level else [],
        special_tokens=[],
        show_progress=False,
    )
    inner.train_from_iterator(texts, trainer)
    return inner


def _assemble(trained: "LibraryTokenizer", *, byte_level: bool, leading_space: bool) -> Tokenizer:
    """Put the learnt tokens and merges behind the four control tokens, with what prepares text and undoes it."""
    import tokenizers  # noqa: PLC0415 - importing this room must be instant
    from tokenizers import decoders  # noqa: PLC0415 - the same

    model = json.loads(trained.to_str())["model"]
    learnt = sorted(model["vocab"], key=model["vocab"].__getitem__)
    inner = tokenizers.Tokenizer(
        tokenizers.models.BPE(
            vocab={name: token_id for token_id, name in enumerate([*CONTROL_TOKENS, *learnt])},
            merges=[(left, right) for left, right in model["merges"]],
            unk_token=None if byte_level else CONTROL_TOKENS[UNK_ID],
        )
    )
    inner.pre_tokenizer = _pre_tokenizer(byte_level=byte_level)
    join = decoders.ByteLevel() if byte_level else decoders.Fuse()
    if leading_space:
        inner.normalizer = tokenizers.normalizers.Prepend(" ")
        inner.decoder = decoders.Sequence([join, decoders.Strip(" ", 1, 0)])
    else:
        inner.decoder = join
    return Tokenizer(inner)
