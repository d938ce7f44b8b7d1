"""A language model: the decoder alone, as Liu et al. 2018 and GPT (Radford et al. 2018) have it.

A layer is masked self-attention and feed-forward: the encoder's layer under the decoder's mask. There is no source, so
nothing looks at one.

Shapes: B sentences or rows, S source positions, T positions, D d_model, V vocabulary.
"""

from torch import Tensor

from headway.model.encoder import Encoder
from headway.model.token_model import TokenModel
from headway.model.transformer import Stem
from headway.nn.embedding import OutputProjection
from headway.nn.masks import causal_mask


class LanguageModel(TokenModel):
    """The tokens of a text in, logits of the next one out.

    ``window``: how far self-attention sees, in positions; None is without end.
    """

    def __init__(
        self, target_stem: Stem, decoder: Encoder, *, output: OutputProjection, window: int | None = None
    ) -> None:
        super().__init__()
        self.target_stem = target_stem
        self.decoder = decoder
        self.output = output
        self.window = window

    def forward(self, token_BT: Tensor) -> Tensor:
        """Logits (B, T, V): position t predicts the token after token[t]. A text begins with BOS."""
        return self.output(self._vectors(token_BT))

    def hidden(
        self,
        source_BS: Tensor,
        source_mask_BS: Tensor,
        target_in_BT: Tensor,
        *,
        source_kept_BS: Tensor | None = None,
        target_kept_BT: Tensor | None = None,
    ) -> Tensor:
        """As ``TokenModel`` has it; whatever the source is, it is not looked at."""
        return self._vectors(target_in_BT, target_kept_BT)

    def _vectors(self, token_BT: Tensor, kept_BT: Tensor | None = None) -> Tensor:
        mask_TT = causal_mask(token_BT.shape[1], window=self.window, device=token_BT.device)
        x_BTD = self.target_stem(token_BT, kept_BT=kept_BT)
        return self.decoder(x_BTD, mask_TT, position=self.target_stem.position)
