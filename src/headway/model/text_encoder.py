"""An encoder alone, as BERT is one (Devlin et al. 2019): it predicts hidden tokens, and tells classes apart.

Shapes: B texts, T positions, D d_model, V vocabulary, C classes.
"""

from torch import Tensor, nn

from headway.model.encoder import Encoder
from headway.model.token_model import TokenModel
from headway.model.transformer import Stem
from headway.nn.attention import allowed
from headway.nn.embedding import OutputProjection
from headway.nn.masks import key_mask, windowed


class Classifier(nn.Module):
    """Logits of C classes from the first vector of a text: a layer with tanh, dropout, a layer."""

    def __init__(self, d_model: int, num_classes: int, *, dropout: nn.Module) -> None:
        super().__init__()
        self.dense = nn.Linear(d_model, d_model)
        self.dropout = dropout
        self.output = nn.Linear(d_model, num_classes)

    def forward(self, first_BD: Tensor) -> Tensor:
        """Logits (B, C)."""
        return self.output(self.dropout(self.dense(first_BD).tanh()))


class TextEncoder(TokenModel):
    """A text that begins with BOS and ends in EOS in, a vector a token out.

    Departures from BERT: the softmax over tokens has no layer of its own before it, two lines have no vectors that tell
    them apart (EOS stands between them), and positions, norms and activation are those of the configuration.
    ``window``: how far self-attention sees, to either side; None is without end. ``classifier``: None tells no classes.
    """

    def __init__(
        self,
        source_stem: Stem,
        encoder: Encoder,
        *,
        output: OutputProjection,
        classifier: Classifier | None = None,
        window: int | None = None,
    ) -> None:
        super().__init__()
        self.source_stem = source_stem
        self.encoder = encoder
        self.output = output
        self.classifier = classifier
        self.window = window

    def forward(self, token_BT: Tensor) -> Tensor:
        """Vectors (B, T, D) of texts that are padded with 0."""
        mask_B11T = allowed(key_mask(token_BT != 0))
        mask = windowed(mask_B11T, token_BT.shape[1], window=self.window, device=token_BT.device)
        return self.encoder(self.source_stem(token_BT), mask, position=self.source_stem.position)

    def classes(self, hidden_BTD: Tensor) -> Tensor:
        """Logits (B, C) of texts with these vectors; the model must have a classifier."""
        assert self.classifier is not None, "a model that tells classes apart"
        return self.classifier(hidden_BTD[:, 0])
