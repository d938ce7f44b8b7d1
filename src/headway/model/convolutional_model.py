"""A convolutional encoder-decoder (Gehring et al. 2017, ConvS2S).

A layer is a convolution to twice d_model, gated to d_model (Dauphin et al. 2017), added to what came in and scaled by
sqrt(0.5); those of the decoder see no later position and ask the source, each by an attention of its own.
Departure: every vector has d_model numbers, so that no matrices stand between stacks; weights are not normalised, and
gradients of the encoder not scaled by the number of attentions, which Adam's steps do not depend on.

Shapes: B sentences or rows, S source positions, T target positions, D d_model, E = 2 D, R rows.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from torch import Tensor, nn
from torch.nn import functional

from headway.model.transformer import Stem
from headway.model.translation_model import Looking, SteppingModel
from headway.nn.attention import allowed
from headway.nn.cache import KeyValue
from headway.nn.convolution import Convolution, Inputs
from headway.nn.embedding import OutputProjection
from headway.nn.masks import key_mask
from headway.nn.multi_step_attention import ROOT_HALF, MultiStepAttention


@dataclass(frozen=True, slots=True)
class Source:
    """What the decoder looks at: z and (z + e) sqrt(0.5) of the source, one head of each, and where they are real."""

    memory: KeyValue
    mask_B11S: Tensor | None

    def select(self, rows_R: Tensor) -> "Source":
        """The given rows in the given order."""
        mask = None if self.mask_B11S is None else self.mask_B11S.index_select(0, rows_R)
        return Source(self.memory.select(rows_R), mask)


def gated(x_BTE: Tensor) -> Tensor:
    """Gated linear unit: the first half of the numbers times the sigmoid of the second, (B, T, D)."""
    return functional.glu(x_BTE, dim=-1)


class ConvolutionalEncoderLayer(nn.Module):
    """(GLU(convolution(Dropout(x))) + x) sqrt(0.5)."""

    def __init__(self, convolution: Convolution, *, dropout: nn.Module) -> None:
        super().__init__()
        self.convolution = convolution
        self.dropout = dropout

    def forward(self, x_BSD: Tensor, mask_BS: Tensor | None) -> Tensor:
        """One layer: (B, S, D)."""
        return (gated(self.convolution(self.dropout(x_BSD), mask_BS)) + x_BSD) * ROOT_HALF


class ConvolutionalDecoderLayer(nn.Module):
    """As the encoder's, causal, and with what the source gives added before x is."""

    def __init__(self, convolution: Convolution, attention: MultiStepAttention, *, dropout: nn.Module) -> None:
        super().__init__()
        self.convolution = convolution
        self.cross_attention = attention
        self.dropout = dropout

    def forward(self, x_BTD: Tensor, target_BTD: Tensor, *, source: Source) -> Tensor:
        """All positions at once: (B, T, D). ``target_BTD`` is what the first layer read."""
        return self._join(x_BTD, self.convolution(self.dropout(x_BTD)), target_BTD, source)

    def step(self, x_B1D: Tensor, target_B1D: Tensor, *, past: Inputs | None, source: Source) -> tuple[Tensor, Inputs]:
        """One new position: (B, 1, D), and the latest inputs of the convolution."""
        y_B1E, kept = self.convolution.step(self.dropout(x_B1D), past)
        return self._join(x_B1D, y_B1E, target_B1D, source), kept

    def _join(self, x_BTD: Tensor, y_BTE: Tensor, target_BTD: Tensor, source: Source) -> Tensor:
        h_BTD = gated(y_BTE)
        context_BTD = self.cross_attention(h_BTD, target_BTD, memory=source.memory, mask_B11S=source.mask_B11S)
        h_BTD = (h_BTD + context_BTD) * ROOT_HALF
        return (h_BTD + x_BTD) * ROOT_HALF


class ConvolutionalEncoder(nn.Module):
    """A stack of layers."""

    def __init__(self, layers: Iterable[ConvolutionalEncoderLayer]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, x_BSD: Tensor, mask_BS: Tensor | None) -> Tensor:
        """What the decoder's queries are compared with: z, (B, S, D)."""
        for layer in self.layers:
            x_BSD = layer(x_BSD, mask_BS)
        return x_BSD


class ConvolutionalDecoder(nn.Module):
    """A stack of layers, and dropout after the last."""

    def __init__(self, layers: Iterable[ConvolutionalDecoderLayer], *, dropout: nn.Module) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.dropout = dropout

    def each_layer(self) -> Iterator[ConvolutionalDecoderLayer]:
        """The layers from the first to the last."""
        return (cast("ConvolutionalDecoderLayer", layer) for layer in self.layers)

    def forward(self, target_BTD: Tensor, source: Source) -> Tensor:
        """Hidden vectors (B, T, D), from which the softmax predicts the next token."""
        x_BTD = target_BTD
        for layer in self.each_layer():
            x_BTD = layer(x_BTD, target_BTD, source=source)
        return self.dropout(x_BTD)

    def step(self, target_B1D: Tensor, past: Sequence[Inputs], *, source: Source) -> tuple[Tensor, tuple[Inputs, ...]]:
        """One new position: its hidden vector (B, 1, D), and the latest inputs of each layer; none before the first."""
        x_B1D = target_B1D
        kept: list[Inputs] = []
        for index, layer in enumerate(self.each_layer()):
            x_B1D, inputs = layer.step(x_B1D, target_B1D, past=past[index] if past else None, source=source)
            kept.append(inputs)
        return self.dropout(x_B1D), tuple(kept)


class ConvolutionalModel(SteppingModel[Source, Inputs]):
    """Source and target tokens in, logits of the next target token out."""

    def __init__(
        self,
        source_stem: Stem,
        target_stem: Stem,
        *,
        encoder: ConvolutionalEncoder,
        decoder: ConvolutionalDecoder,
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
        source = self._source(source_BS, source_mask_BS, source_kept_BS)
        return self.decoder(self.target_stem(target_in_BT, kept_BT=target_kept_BT), source)

    def looking(self) -> Sequence[Looking]:
        """The attention of every decoder layer."""
        return [layer.cross_attention for layer in self.decoder.each_layer()]

    def remember(self, source_BS: Tensor, source_mask_BS: Tensor) -> Source:
        """Run the encoder."""
        return self._source(source_BS, source_mask_BS)

    def step(
        self, token_R: Tensor, position: int, *, memory: Source, past: Sequence[Inputs]
    ) -> tuple[Tensor, tuple[Inputs, ...]]:
        """One new token: (R, D), and the latest inputs of each layer."""
        x_R1D, kept = self.decoder.step(self.target_stem(token_R[:, None], position), past, source=memory)
        return x_R1D[:, 0], kept

    def _source(self, source_BS: Tensor, mask_BS: Tensor, kept_BS: Tensor | None = None) -> Source:
        mask_B11S = allowed(key_mask(mask_BS))
        read_BSD = self.source_stem(source_BS, kept_BT=kept_BS)
        z_BSD = self.encoder(read_BSD, None if mask_B11S is None else mask_BS)
        value_BSD = (z_BSD + read_BSD) * ROOT_HALF
        return Source(KeyValue(z_BSD[:, None], value_BSD[:, None]), mask_B11S)
