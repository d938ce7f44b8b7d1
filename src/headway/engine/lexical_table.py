"""Lexical tables of other toolkits: a line ``target source probability``, tokens as their vocabularies write them.

Marian reads such a file as its shortlist (``lex.s2t``, as extract_lex writes it); NULL is the empty word.
"""

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from headway.corpus.lines import read_lines
from headway.engine.cooccurrence import Cooccurrence
from headway.errors import EngineError
from headway.text.tokenizer import EOS_ID, UNK_ID, Tokenizer

EMPTY_WORD = "NULL"
OTHER_NAMES = {"<unk>": UNK_ID, "<s>": EOS_ID, "</s>": EOS_ID, "<eos>": EOS_ID}
BLOCK = 1 << 16  # lines that are added up at once


@dataclass(frozen=True, slots=True)
class LexicalTable:
    """What was read: ``lines`` in all, ``used``, those with the empty word, and those with tokens not known here."""

    counts: Cooccurrence
    lines: int
    used: int
    empty: int
    unknown: int


def read_lexical_table(path: Path, source: Tokenizer, target: Tokenizer) -> LexicalTable:
    """Read a table for these vocabularies.

    Raises CorpusError for a file that cannot be read, EngineError for a line of another form (naming it), or when not
    one line has tokens of both vocabularies.
    """
    counts = Cooccurrence(source, target)
    source_ids, target_ids = _ids(source), _ids(target)
    keys: list[int] = []
    weights: list[float] = []
    lines = used = empty = unknown = 0

    def flush() -> None:
        counts.count(np.array(keys, dtype=np.int64), np.array(weights))
        keys.clear()
        weights.clear()

    for lines, line in enumerate(read_lines(path), start=1):
        target_token, source_token, probability = _fields(path, lines, line)
        if EMPTY_WORD in (target_token, source_token):
            empty += 1
        elif target_token not in target_ids or source_token not in source_ids:
            unknown += 1
        else:
            used += 1
            keys.append(source_ids[source_token] * target.vocab_size + target_ids[target_token])
            weights.append(probability)
        if len(keys) == BLOCK:
            flush()
    flush()
    if not used:
        raise EngineError(
            f"engine/lexical_table: {path}: of {lines:,} lines not one has tokens of this model's vocabularies; "
            "wanted 'target source probability', tokens as its tokenizer has them. Make the table with that tokenizer, "
            "or learn a shortlist from parallel text."
        )
    return LexicalTable(counts, lines, used, empty, unknown)


def _fields(path: Path, number: int, line: str) -> tuple[str, str, float]:
    fields = line.split(" ") if line.count(" ") == 2 else line.split()
    try:
        target_token, source_token, text = fields
        probability = float(text)
    except ValueError:
        probability = math.nan
        target_token = source_token = ""
    if not (target_token and source_token) or not 0.0 <= probability <= 1.0 + 1e-3:
        raise EngineError(
            f"engine/lexical_table: {path} line {number:,}: found {line[:80]!r}, wanted 'target source probability', "
            "the last from 0 to 1. Name a table as Marian's lex.s2t, or mend the line."
        )
    return target_token, source_token, probability


def _ids(tokenizer: Tokenizer) -> dict[str, int]:
    """Token ids by the names that tables have."""
    names = [name.removeprefix(" ") if tokenizer.imported else name for name in tokenizer.names]
    return OTHER_NAMES | {name: token_id for token_id, name in reversed(list(enumerate(names)))}
