"""What the symbols of a vocabulary do in a tree: some open a node, as many close one, and the others are leaves."""

from collections.abc import Sequence
from dataclasses import dataclass

from headway.trees.linear import closing_of


@dataclass(frozen=True, slots=True)
class SymbolIds:
    """Symbols by their ids. The n-th of ``closing`` closes what the n-th of ``opening`` opens."""

    opening: tuple[int, ...]
    closing: tuple[int, ...]
    leaves: tuple[int, ...]


def symbol_ids(names: Sequence[str]) -> SymbolIds:
    """The symbols among the tokens of a vocabulary, by id: their names begin with a space.

    A symbol opens when its closing one is there too; the others that do not close are leaves. A tag that is the label
    of phrases as well has no leaf of its own.
    """
    ids = {name.removeprefix(" "): token_id for token_id, name in enumerate(names) if name.startswith(" ")}
    opening = {symbol: token_id for symbol, token_id in ids.items() if closing_of(symbol) in ids}
    closing = {closing_of(symbol): ids[closing_of(symbol)] for symbol in opening}
    return SymbolIds(
        tuple(opening.values()),
        closing=tuple(closing.values()),
        leaves=tuple(token_id for symbol, token_id in ids.items() if symbol not in opening and symbol not in closing),
    )
