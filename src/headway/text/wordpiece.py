"""WordPiece (Schuster and Nakajima 2012; Wu et al. 2016): a word is taken apart from the left, longest piece first."""

from collections.abc import Iterable, Sequence

from headway.text.alphabet import Alphabet
from headway.text.bpe import learn_merges
from headway.text.description import LONGEST_WORD
from headway.text.tokenizer import CONTROL_TOKENS, UNK_ID, Tokenizer


def learn_wordpiece(
    texts: Iterable[str], *, vocab_size: int, byte_fallback: bool = True, tags: Sequence[str] = ()
) -> Tokenizer:
    """Learn a vocabulary of at most ``vocab_size`` tokens, the four control tokens and the ``tags`` counted.

    Alphabet, determinism and errors are those of ``learn_bpe``. Departure: pieces are learnt by the frequency of
    pairs, as the `tokenizers` library does for WordPiece too, not by likelihood; and no ``##`` marks a piece inside a
    word, as the space before a word already tells where it starts, so no text can be taken for the mark.
    """
    import tokenizers  # noqa: PLC0415 - importing this room must be instant

    alphabet = Alphabet(byte_fallback=byte_fallback, tags=tags)
    learnt, _ = learn_merges(texts, alphabet, vocab_size=vocab_size)
    model = tokenizers.models.WordPiece(
        vocab={name: token_id for token_id, name in enumerate([*alphabet.reserved, *learnt])},
        unk_token=CONTROL_TOKENS[UNK_ID],
        max_input_chars_per_word=LONGEST_WORD,
        continuing_subword_prefix="",
    )
    return alphabet.assemble(model, isolate_unknown=True)
