"""What training sees of a model, whatever its architecture.

Shapes: B sentences, S source positions, T target positions, D d_model.
"""

from torch import Tensor, nn

from headway.nn.embedding import OutputProjection


class TokenModel(nn.Module):
    """The interface: vectors from which the softmax predicts the next target token, and the softmax's matrix."""

    output: OutputProjection

    def hidden(
        self,
        source_BS: Tensor,
        source_mask_BS: Tensor,
        target_in_BT: Tensor,
        *,
        source_kept_BS: Tensor | None = None,
        target_kept_BT: Tensor | None = None,
    ) -> Tensor:
        """The vectors (B, T, D) before the softmax: position t predicts the token after target_in[t].

        Padding after the last target token is not masked: no earlier position sees it. A token that is not kept keeps
        its place, but its embedding is zero; absent, all are kept.
        """
        raise NotImplementedError
