"""Sequences of symbols and the rule that makes a target of each: something to learn in seconds, drawn by a seed.

Shapes: B sentences, V symbols to draw from, L places of the longest sentence, S and T that with the one for BOS or EOS.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from headway.data.batch import Batch
from headway.text.tokenizer import BOS_ID, EOS_ID, PAD_ID

FIRST = EOS_ID + 1  # the ids before are reserved


@dataclass(frozen=True, slots=True)
class SymbolTask:
    """Sources of ``shortest`` to ``longest`` symbols, all lengths alike; targets repeat them, as they are or backwards.

    ``distinct``: no symbol comes twice in a sentence, so that one symbol tells which follows.
    """

    rule: Literal["copy", "reverse"]
    num_symbols: int
    shortest: int
    longest: int
    distinct: bool = False

    @property
    def vocab_size(self) -> int:
        """Symbols and reserved ids."""
        return FIRST + self.num_symbols

    def draw(self, num_sentences: int, generator: torch.Generator, *, length: int | None = None) -> Batch:
        """Sentences, all of one ``length`` where it is given, which may be longer than any of the task's."""
        shortest, longest = (self.shortest, self.longest) if length is None else (length, length)
        assert not self.distinct or longest <= self.num_symbols
        length_B1 = torch.randint(shortest, longest + 1, (num_sentences, 1), generator=generator)
        symbols_BL = self._symbols(num_sentences, longest, generator)
        place_L = torch.arange(longest)
        order_BL = torch.where(place_L < length_B1, length_B1 - 1 - place_L, place_L)
        target_BL = symbols_BL.gather(1, order_BL) if self.rule == "reverse" else symbols_BL
        target_out_BT = _ended(target_BL, length_B1)
        bos_B1 = torch.full((num_sentences, 1), BOS_ID)
        target_in_BT = torch.cat((bos_B1, target_BL.where(place_L < length_B1, PAD_ID)), dim=1)
        return Batch(_ended(symbols_BL, length_B1), target_in_BT, target_out_BT)

    def _symbols(self, num_sentences: int, longest: int, generator: torch.Generator) -> Tensor:
        if self.distinct:
            any_BV = torch.rand(num_sentences, self.num_symbols, generator=generator).argsort(dim=1)
            return any_BV[:, :longest] + FIRST
        return torch.randint(FIRST, self.vocab_size, (num_sentences, longest), generator=generator)


def _ended(symbols_BL: Tensor, length_B1: Tensor) -> Tensor:
    """Each sentence up to its length, then EOS, then padding."""
    place_S = torch.arange(symbols_BL.shape[1] + 1)
    longer_BS = torch.cat((symbols_BL, torch.full_like(length_B1, PAD_ID)), dim=1)
    ended_BS = longer_BS.where(place_S < length_B1, PAD_ID)
    return ended_BS.masked_fill(place_S == length_B1, EOS_ID)
