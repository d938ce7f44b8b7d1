"""The encoder-decoder (Section 3).

Shapes: B sentences, S source positions, T target positions, D d_model, V vocabulary.
"""

from collections.abc import Sequence

from torch import Tensor, nn

from headway.model.decoder import Decoder
from headway.model.encoder import Encoder
from headway.model.translation_model import Looking, TranslationModel
from headway.nn.attention import allowed
from headway.nn.embedding import OutputProjection, TokenEmbedding
from headway.nn.masks import causal_mask, key_mask, windowed
from headway.nn.position import Position
from headway.nn.words import WordCounter, WordDistance


class Stem(nn.Module):
    """Token embeddings with positions, then dropout (Sections 3.4, 3.5 and 5.4)."""

    def __init__(
        self,
        embedding: TokenEmbedding,
        position: Position,
        *,
        dropout: nn.Module,
        counter: WordCounter | None = None,
    ) -> None:
        super().__init__()
        self.embedding = embedding
        self.position = position
        self.dropout = dropout
        self.counter = counter

    def words(self, token_BT: Tensor, before_B: Tensor | None = None) -> Tensor | None:
        """Which word each token is at (B, T), where words are counted; ``before_B`` have begun before, if any."""
        return None if self.counter is None else self.counter(token_BT, before_B)

    def forward(
        self, token_BT: Tensor, start: int = 0, *, kept_BT: Tensor | None = None, word_BT: Tensor | None = None
    ) -> Tensor:
        """What the first layer reads: (B, T, D). Where ``kept_BT`` is false the token itself is a zero vector.

        ``word_BT``: the word that each token is at, where words are counted; absent, they are counted from here.
        """
        x_BTD = self.embedding(token_BT)
        if kept_BT is not None:
            x_BTD = x_BTD.masked_fill(~kept_BT[..., None], 0.0)
        word_BT = self.words(token_BT) if word_BT is None else word_BT
        return self.dropout(self.position.embed(x_BTD, start, word_BT=word_BT))


class Transformer(TranslationModel):
    """Source and target tokens in, logits of the next target token out.

    ``window``: how far self-attention sees, in positions to a side; None is without end, as in the paper.
    ``word_distance``: what cross-attention's scores lose by distance in words; None is nothing, as in the paper.
    """

    def __init__(
        self,
        source_stem: Stem,
        target_stem: Stem,
        *,
        encoder: Encoder,
        decoder: Decoder,
        output: OutputProjection,
        window: int | None = None,
        word_distance: WordDistance | None = None,
    ) -> None:
        super().__init__()
        self.source_stem = source_stem
        self.target_stem = target_stem
        self.encoder = encoder
        self.decoder = decoder
        self.output = output
        self.window = window
        self.word_distance = word_distance

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
        mask_B11S = allowed(key_mask(source_mask_BS))
        memory_BSD = self.encode(source_BS, mask_B11S, kept_BS=source_kept_BS)
        words_BS = self.source_stem.words(source_BS)
        return self.decode(target_in_BT, memory_BSD, mask_B11S, source_word_BS=words_BS, kept_BT=target_kept_BT)

    def cross_bias(self, target_word_BT: Tensor | None, source_word_BS: Tensor | None) -> Tensor | None:
        """What is added to cross-attention's scores (B, H, T, S) between tokens at these words."""
        if self.word_distance is None:
            return None
        assert target_word_BT is not None, "both sides count their words"
        assert source_word_BS is not None, "both sides count their words"
        return self.word_distance(target_word_BT, source_word_BS)

    def looking(self) -> Sequence[Looking]:
        """Every decoder layer's attention over the source."""
        return [layer.cross_attention for layer in self.decoder.each_layer()]

    def encode(self, source_BS: Tensor, mask_B11S: Tensor | None, *, kept_BS: Tensor | None = None) -> Tensor:
        """The encoder's memory (B, S, D)."""
        mask = windowed(mask_B11S, source_BS.shape[1], window=self.window, device=source_BS.device)
        return self.encoder(self.source_stem(source_BS, kept_BT=kept_BS), mask, position=self.source_stem.position)

    def decode(
        self,
        target_in_BT: Tensor,
        memory_BSD: Tensor,
        mask_B11S: Tensor | None,
        *,
        source_word_BS: Tensor | None,
        kept_BT: Tensor | None = None,
    ) -> Tensor:
        """The decoder's vectors (B, T, D) over a memory, all positions at once.

        ``source_word_BS`` is ``source_stem.words`` of the source.
        """
        mask_TT = causal_mask(target_in_BT.shape[1], window=self.window, device=target_in_BT.device)
        return self.decoder(
            self.target_stem(target_in_BT, kept_BT=kept_BT),
            memory_BSD,
            self_mask=mask_TT,
            cross_mask=mask_B11S,
            position=self.target_stem.position,
            cross_bias_BHTS=self.cross_bias(self.target_stem.words(target_in_BT), source_word_BS),
        )
