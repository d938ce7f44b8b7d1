"""One interface for every layer that mixes positions: self-attention, recurrent, convolutional (Section 4, Table 1).

Shapes: B sentences, T positions, D d_model, R rows under way.
"""

from abc import ABC, abstractmethod
from typing import Generic, Protocol, Self, TypeVar

from torch import Tensor, nn


class Past(Protocol):
    """What a layer keeps of the positions before. A value: every operation gives a new one."""

    def select(self, rows_R: Tensor) -> Self:
        """The given rows in the given order."""
        ...


PastT = TypeVar("PastT", bound=Past)


class SequenceLayer(nn.Module, ABC, Generic[PastT]):
    """Vectors of a sequence into vectors of the same sequence, all at once or one position after another.

    ``causal``: position i reads the positions up to i; else all of its sentence. Residual connections and norms stand
    around a layer, never in it.
    """

    causal: bool

    @abstractmethod
    def forward(self, x_BTD: Tensor, /, mask_BT: Tensor | None = None) -> Tensor:
        """All positions at once: (B, T, D).

        ``mask_BT`` is True at the real positions, which stand before the padding; absent, all are real. What padding
        holds never changes a real position; what comes out at padding means nothing.
        """

    @abstractmethod
    def step(self, x_B1D: Tensor, past: PastT | None, /) -> tuple[Tensor, PastT]:
        """One new position of a causal layer: its vector (B, 1, D), and the past with it. None: it is the first."""
