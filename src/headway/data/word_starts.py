"""Which tokens begin a word, for a model that counts the words of a sentence and of the tree over it."""

from headway.config.schema import ParsingConfig
from headway.text.tagged_words import PREFIX
from headway.text.tokenizer import BOS_ID, EOS_ID, Tokenizer
from headway.trees.symbols import symbol_ids


def source_word_starts(tokenizer: Tokenizer, parsing: ParsingConfig) -> list[int]:
    """Of sources: the first piece of each word, or its tag where no words are read; and EOS, after the last word."""
    if parsing.words:
        starts = [token_id for token_id, piece in enumerate(tokenizer.pieces) if piece.startswith(b" ")]
    else:
        starts = [token_id for name, token_id in tokenizer.tags.items() if name.startswith(PREFIX)]
    return [*starts, EOS_ID]


def target_word_starts(tokenizer: Tokenizer) -> list[int]:
    """Of trees: the first word is next after BOS, and another after each leaf; after the last it is the source's EOS.

    So a symbol is written at the word at which the source has the word that comes next.
    """
    return [BOS_ID, *symbol_ids(tokenizer.names).leaves]
