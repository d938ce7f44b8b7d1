"""Byte-pair encoding (Sennrich et al. 2016), learnt from text of any script without a segmenter."""

import json
from collections.abc import Iterable, Sequence

from headway.text.alphabet import Alphabet
from headway.text.tokenizer import CONTROL_TOKENS, UNK_ID, Tokenizer

SMALLEST_COUNT = 2  # a pair of tokens seen once is no pattern

Merges = list[tuple[str, str]]


def learn_bpe(
    texts: Iterable[str], *, vocab_size: int, byte_fallback: bool = True, tags: Sequence[str] = ()
) -> Tokenizer:
    """Learn a vocabulary of at most ``vocab_size`` tokens, the four control tokens and the ``tags`` counted.

    With ``byte_fallback`` the alphabet is the 256 bytes, so nothing is ever unknown; without it, the characters of
    ``texts``. Equal texts give an equal tokenizer, on any number of threads. A corpus with too few patterns gives a
    smaller one. Raises TextError when the alphabet does not fit into ``vocab_size``.
    """
    import tokenizers  # noqa: PLC0415 - importing this room must be instant

    alphabet = Alphabet(byte_fallback=byte_fallback, tags=tags)
    learnt, merges = learn_merges(texts, alphabet, vocab_size=vocab_size)
    model = tokenizers.models.BPE(
        vocab={name: token_id for token_id, name in enumerate([*alphabet.reserved, *learnt])},
        merges=merges,
        unk_token=None if byte_fallback else CONTROL_TOKENS[UNK_ID],
    )
    return alphabet.assemble(model)


def learn_merges(texts: Iterable[str], alphabet: Alphabet, *, vocab_size: int) -> tuple[list[str], Merges]:
    """The names of the symbols and of the learnt tokens, in the order of their ids, and the merges by priority.

    ``vocab_size`` counts the reserved tokens, which are not among the names. Raises TextError when it is too small.
    """
    import tokenizers  # noqa: PLC0415 - importing this room must be instant

    alphabet.check_size(vocab_size, finished=False)
    inner = tokenizers.Tokenizer(tokenizers.models.BPE())
    inner.pre_tokenizer = alphabet.runs()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=max(vocab_size - len(alphabet.reserved), 0),
        min_frequency=SMALLEST_COUNT,
        initial_alphabet=alphabet.symbols if alphabet.byte_fallback else [],
        special_tokens=[],
        show_progress=False,
    )
    inner.train_from_iterator(alphabet.spaced(texts), trainer)
    alphabet.check_size(vocab_size, finished=True)
    model = json.loads(inner.to_str())["model"]
    names = sorted(model["vocab"], key=model["vocab"].__getitem__)
    return names, [(left, right) for left, right in model["merges"]]
