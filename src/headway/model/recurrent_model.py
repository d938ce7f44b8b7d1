"""A recurrent encoder-decoder with additive attention (Bahdanau et al. 2015), stacked as Wu et al. 2016 stack theirs.

The encoder's layers read each sentence from both ends. The decoder's first layer asks the source; what it takes goes
into every layer above and into the readout, tanh(W_c [x; c]) (Luong et al. 2015, equation 5). There is no input
feeding: the first layer reads target tokens alone, so that a layer computes all positions in one call.
Residual connections stand around every layer, dropout on what a layer adds and on the readout.

Shapes: B sentences or rows, S source positions, T target positions, D d_model, R rows.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import cast

import torch
from torch import Tensor, nn

from headway.model.transformer import Stem
from headway.model.translation_model import Looking, SteppingModel
from headway.nn.additive_attention import AdditiveAttention, AdditiveMemory
from headway.nn.embedding import OutputProjection
from headway.nn.recurrent import Recurrence, Recurrent


class RecurrentEncoder(nn.Module):
    """A stack of layers of two directions."""

    def __init__(self, layers: Iterable[Recurrent], *, dropout: nn.Module) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.dropout = dropout

    def forward(self, x_BSD: Tensor, mask_BS: Tensor | None) -> Tensor:
        """The memory that the decoder reads: (B, S, D)."""
        for layer in self.layers:
            x_BSD = x_BSD + self.dropout(layer(x_BSD, mask_BS))
        return x_BSD


class RecurrentDecoder(nn.Module):
    """A stack of layers of one direction, the first of which asks the source for all."""

    def __init__(self, layers: Iterable[Recurrent], attention: AdditiveAttention, *, dropout: nn.Module) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.cross_attention = attention
        d_model = attention.query.in_features
        self.readout = nn.Linear(2 * d_model, d_model)
        self.dropout = dropout

    def each_layer(self) -> Iterator[Recurrent]:
        """The layers from the first to the last."""
        return (cast("Recurrent", layer) for layer in self.layers)

    def forward(self, x_BTD: Tensor, memory: AdditiveMemory) -> Tensor:
        """Hidden vectors (B, T, D), from which the softmax predicts the next token."""
        first, *others = self.each_layer()
        x_BTD = x_BTD + self.dropout(first(x_BTD))
        context_BTD = self.cross_attention(x_BTD, memory)
        for layer in others:
            x_BTD = x_BTD + self.dropout(layer(torch.cat((x_BTD, context_BTD), dim=-1)))
        return self._read(x_BTD, context_BTD)

    def step(
        self, x_B1D: Tensor, past: Sequence[Recurrence], *, memory: AdditiveMemory
    ) -> tuple[Tensor, tuple[Recurrence, ...]]:
        """One new position: its hidden vector (B, 1, D), and the state of each layer. ``past`` is empty at first."""
        context_B1D = torch.zeros_like(x_B1D)
        kept: list[Recurrence] = []
        for index, layer in enumerate(self.each_layer()):
            read = x_B1D if index == 0 else torch.cat((x_B1D, context_B1D), dim=-1)
            added_B1D, state = layer.step(read, past[index] if past else None)
            x_B1D = x_B1D + self.dropout(added_B1D)
            kept.append(state)
            if index == 0:
                context_B1D = self.cross_attention(x_B1D, memory)
        return self._read(x_B1D, context_B1D), tuple(kept)

    def _read(self, x_BTD: Tensor, context_BTD: Tensor) -> Tensor:
        return self.dropout(torch.tanh(self.readout(torch.cat((x_BTD, context_BTD), dim=-1))))


class RecurrentModel(SteppingModel[AdditiveMemory, Recurrence]):
    """Source and target tokens in, logits of the next target token out."""

    def __init__(
        self,
        source_stem: Stem,
        target_stem: Stem,
        *,
        encoder: RecurrentEncoder,
        decoder: RecurrentDecoder,
        output: OutputProjection,
    ) -> None:
        super().__init__()
        self.source_stem = source_stem
        self.target_stem = target_stem
        self.encoder = encoder
        self.decoder = decoder
        self.output = output

    def hidden(
        self,
        source_BS: Tensor,
        source_mask_BS: Tensor,
        target_in_BT: Tensor,
        *,
        source_kept_BS: Tensor | None = None,
        target_kept_BT: Tensor | None = None,
    ) -> Tensor:
        """The decoder's vectors, as ``TokenModel`` has them."""
        memory = self._memory(source_BS, source_mask_BS, source_kept_BS)
        return self.decoder(self.target_stem(target_in_BT, kept_BT=target_kept_BT), memory)

    def looking(self) -> Sequence[Looking]:
        """The one attention over the source."""
        return (self.decoder.cross_attention,)

    def remember(self, source_BS: Tensor, source_mask_BS: Tensor) -> AdditiveMemory:
        """Run the encoder, and project its memory."""
        return self._memory(source_BS, source_mask_BS)

    def step(
        self, token_R: Tensor, position: int, *, memory: AdditiveMemory, past: Sequence[Recurrence]
    ) -> tuple[Tensor, tuple[Recurrence, ...]]:
        """One new token: (R, D), and the state of each layer."""
        x_R1D, kept = self.decoder.step(self.target_stem(token_R[:, None], position), past, memory=memory)
        return x_R1D[:, 0], kept

    def _memory(self, source_BS: Tensor, mask_BS: Tensor, kept_BS: Tensor | None = None) -> AdditiveMemory:
        given = None if bool(mask_BS.all()) else mask_BS
        return self.decoder.cross_attention.memory(
            self.encoder(self.source_stem(source_BS, kept_BT=kept_BS), given), given
        )
