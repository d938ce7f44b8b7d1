"""What search, validation and alignment see of a model that translates, whatever its architecture.

Shapes: B sentences or rows, S source positions, T target positions, D d_model, V vocabulary, R rows.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

from torch import Tensor

from headway.model.token_model import TokenModel
from headway.nn.attention import Recorder
from headway.nn.sequence import Past


class Looking(Protocol):
    """A layer that looks at the source; while it has a recorder, this hears its weights (B, H, T, S)."""

    recorder: Recorder | None


class TranslationModel(TokenModel):
    """The interface: source and target tokens in, logits of the next target token out."""

    def forward(self, source_BS: Tensor, source_mask_BS: Tensor, target_in_BT: Tensor) -> Tensor:
        """Logits (B, T, V): position t predicts the token after target_in[t]."""
        return self.output(self.hidden(source_BS, source_mask_BS, target_in_BT))

    def looking(self) -> Sequence[Looking]:
        """The layers that look at the source, from the first to the last."""
        raise NotImplementedError


MemoryT = TypeVar("MemoryT", bound=Past)
PastT = TypeVar("PastT", bound=Past)


class SteppingModel(TranslationModel, ABC, Generic[MemoryT, PastT]):
    """A model that can go on by one token from what it has kept, so that one Predictor serves all of its kind."""

    @abstractmethod
    def remember(self, source_BS: Tensor, source_mask_BS: Tensor) -> MemoryT:
        """Read the source once, and make it ready to be looked at."""

    @abstractmethod
    def step(
        self, token_R: Tensor, position: int, *, memory: MemoryT, past: Sequence[PastT]
    ) -> tuple[Tensor, tuple[PastT, ...]]:
        """The vectors (R, D) that predict the token after ``token_R``, which stands at ``position``, and what to keep.

        ``past`` is what each layer kept of the tokens before; empty before the first.
        """
