"""Where a token stands (Section 3.5). ``start`` is 0 in training and the number of cached tokens in decoding.

Shapes: B sentences, T positions, D d_model.
"""

import torch
from torch import Tensor, nn

from headway.errors import ModelError


def sinusoids(num_positions: int, d_model: int) -> Tensor:
    """PE(pos, 2i) = sin(pos / 10000^(2i/d_model)), PE(pos, 2i+1) = cos(the same); float32, interleaved as printed."""
    position_T1 = torch.arange(num_positions, dtype=torch.float64)[:, None]
    even_E = torch.arange(0, d_model, 2, dtype=torch.float64)
    angle_TE = position_T1 / 10000.0 ** (even_E / d_model)
    table_TD = torch.empty(num_positions, d_model, dtype=torch.float64)
    table_TD[:, 0::2] = angle_TE.sin()
    table_TD[:, 1::2] = angle_TE.cos()[:, : d_model // 2]
    return table_TD.float()


class Sinusoidal(nn.Module):
    """Fixed waves added to the embeddings; the table grows with the longest sentence met."""

    def __init__(self, d_model: int, max_positions: int) -> None:
        super().__init__()
        self.register_buffer("table_TD", sinusoids(max_positions, d_model), persistent=False)

    def embed(self, x_BTD: Tensor, start: int) -> Tensor:
        """X with the waves of positions start, start + 1, ... added."""
        stop = start + x_BTD.shape[1]
        if stop > self.table_TD.shape[0]:
            # Training goes on with a table that grew in validation, so it must not be an inference tensor.
            with torch.inference_mode(mode=False):
                self.table_TD = sinusoids(2 * stop, x_BTD.shape[2]).to(self.table_TD)
        return x_BTD + self.table_TD[start:stop]


class Learned(nn.Module):
    """A trained vector a position (Table 3, row E)."""

    def __init__(self, d_model: int, max_positions: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(max_positions, d_model))

    def embed(self, x_BTD: Tensor, start: int) -> Tensor:
        """X with the vectors of positions start, start + 1, ... added; beyond the table is a ModelError."""
        stop = start + x_BTD.shape[1]
        if stop > self.weight.shape[0]:
            raise ModelError(
                f"nn/position: position {stop} lies beyond the learned table of {self.weight.shape[0]} positions. "
                "Remedy: train with a larger model.max_positions, or with model.positions = sinusoidal"
            )
        return x_BTD + self.weight[start:stop]


class NoPosition(nn.Module):
    """Order is left to the causal mask."""

    def __init__(self, d_model: int, max_positions: int) -> None:
        super().__init__()

    def embed(self, x_BTD: Tensor, start: int) -> Tensor:
        """X itself."""
        return x_BTD


Position = Sinusoidal | Learned | NoPosition
POSITIONS: dict[str, type[Sinusoidal] | type[Learned] | type[NoPosition]] = {
    "sinusoidal": Sinusoidal,
    "learned": Learned,
    "none": NoPosition,
}
