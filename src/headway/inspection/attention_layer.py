"""The three kinds of attention of an encoder-decoder, layer by layer (Section 3.2.3)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from headway.model.transformer import Transformer
from headway.nn.attention import MultiHeadAttention

KINDS: dict[str, Callable[[Transformer], Iterator[MultiHeadAttention]]] = {
    "encoder": lambda model: (layer.self_attention for layer in model.encoder.each_layer()),
    "decoder": lambda model: (layer.self_attention for layer in model.decoder.each_layer()),
    "cross": lambda model: (layer.cross_attention for layer in model.decoder.each_layer()),
}
TITLES = {
    "encoder": "Encoder self-attention",
    "decoder": "Decoder self-attention",
    "cross": "Attention of the decoder over the source",
}


@dataclass(frozen=True, slots=True)
class AttentionLayer:
    """The attention of one layer; layers count from 1."""

    kind: str
    layer: int
    attention: MultiHeadAttention


def attention_layers(model: Transformer) -> list[AttentionLayer]:
    """All of a model, kind by kind, from the first layer to the last."""
    return [
        AttentionLayer(kind, number, attention)
        for kind, modules in KINDS.items()
        for number, attention in enumerate(modules(model), start=1)
    ]
