"""Where a token stands (Section 3.5). ``start`` is 0 in training and the number of cached tokens in decoding.

Position may enter in three places: ``embed`` adds to the embeddings, ``rotate`` turns queries and keys, ``bias`` adds
to the scores of self-attention. Cross-attention has no positions: source and target are not on one line.

Shapes: B sentences, T query positions, S key positions, D d_model, H query heads, G heads of keys, K d_k,
E = K / 2 pairs of numbers.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from headway.config.positions import BASE, MAX_DISTANCE, NUM_BUCKETS, alibi_slopes
from headway.errors import ModelError


def sinusoids(num_positions: int, d_model: int) -> Tensor:
    """PE(pos, 2i) = sin(pos / 10000^(2i/d_model)), PE(pos, 2i+1) = cos(the same); float32, interleaved as printed."""
    position_T1 = torch.arange(num_positions, dtype=torch.float64)[:, None]
    even_E = torch.arange(0, d_model, 2, dtype=torch.float64)
    angle_TE = position_T1 / BASE ** (even_E / d_model)
    table_TD = torch.empty(num_positions, d_model, dtype=torch.float64)
    table_TD[:, 0::2] = angle_TE.sin()
    table_TD[:, 1::2] = angle_TE.cos()[:, : d_model // 2]
    return table_TD.float()


class Position(nn.Module):
    """The interface of every scheme. Each place does nothing unless the scheme fills it."""

    def embed(self, x_BTD: Tensor, start: int, *, word_BT: Tensor | None = None) -> Tensor:
        """X with what marks the positions start, start + 1, ... added; ``word_BT``: the word that each token is at."""
        return x_BTD

    def rotate(self, q_BHTK: Tensor, k_BGTK: Tensor, start: int) -> tuple[Tensor, Tensor]:
        """Queries and keys of the positions start, start + 1, ... turned to where they stand."""
        return q_BHTK, k_BGTK

    def bias(self, num_queries: int, num_keys: int, start: int) -> Tensor | None:
        """What is added to the scores: float32, (H, T, S), or None.

        The queries stand at start, start + 1, ...; the last key stands where the last query does.
        """
        return None

    def span(self, num_queries: int, num_keys: int, start: int) -> "Span":
        """A stretch of positions, with its bias computed once for all layers of a stack."""
        return Span(self, num_keys, start, self.bias(num_queries, num_keys, start))


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of positions in which self-attention works: what one pass of a stack hands to its layers."""

    position: Position
    num_keys: int  # how many of the latest positions are seen, the new ones counted
    start: int
    bias_HTS: Tensor | None

    def rotate(self, q_BHTK: Tensor, k_BGTK: Tensor) -> tuple[Tensor, Tensor]:
        """New queries and keys turned to where they stand."""
        return self.position.rotate(q_BHTK, k_BGTK, self.start)


class Sinusoidal(Position):
    """Fixed waves added to the embeddings; the table grows with the longest sentence met."""

    def __init__(self, d_model: int, max_positions: int) -> None:
        super().__init__()
        self.register_buffer("table_TD", sinusoids(max_positions, d_model), persistent=False)

    def embed(self, x_BTD: Tensor, start: int, *, word_BT: Tensor | None = None) -> Tensor:
        """X with the waves of positions start, start + 1, ... added."""
        return x_BTD + self.waves(start, start + x_BTD.shape[1])

    def waves(self, start: int, stop: int) -> Tensor:
        """Those of the positions from ``start`` to before ``stop``: (T, D)."""
        if stop > self.table_TD.shape[0]:
            # Training goes on with a table that grew in validation, so it must not be an inference tensor.
            with torch.inference_mode(mode=False):
                self.table_TD = sinusoids(2 * stop, self.table_TD.shape[1]).to(self.table_TD)
        return self.table_TD[start:stop]


class Words(Position):
    """Waves added to the embeddings: half of the numbers say at which place a token stands, half at which word.

    So a source and a target over the same words have equal waves where they are at the same word, however many tokens
    it has on each side. Departure: the paper's waves say the place alone.
    """

    def __init__(self, d_model: int, max_positions: int) -> None:
        super().__init__()
        self.place = Sinusoidal(d_model - d_model // 2, max_positions)
        self.word = Sinusoidal(d_model // 2, max_positions)

    def embed(self, x_BTD: Tensor, start: int, *, word_BT: Tensor | None = None) -> Tensor:
        """X with the waves of places and words added."""
        assert word_BT is not None, "the words of the tokens go with them"
        num_sentences, num_tokens, _ = x_BTD.shape
        place_TE = self.place.waves(start, start + num_tokens)
        # No token is at a later word than there are tokens so far: the table is as long for words as for places.
        word_BTE = self.word.waves(0, start + num_tokens + 1)[word_BT]
        return x_BTD + torch.cat([place_TE.expand(num_sentences, -1, -1), word_BTE], dim=2)


class Learned(Position):
    """A trained vector a position (Table 3, row E)."""

    def __init__(self, d_model: int, max_positions: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(max_positions, d_model))

    def embed(self, x_BTD: Tensor, start: int, *, word_BT: Tensor | None = None) -> Tensor:
        """X with the vectors of positions start, start + 1, ... added; beyond the table is a ModelError."""
        stop = start + x_BTD.shape[1]
        if stop > self.weight.shape[0]:
            raise ModelError(
                f"nn/position: position {stop} lies beyond the learned table of {self.weight.shape[0]} positions. "
                "Remedy: train with a larger model.max_positions, or with model.positions = sinusoidal"
            )
        return x_BTD + self.weight[start:stop]


class NoPosition(Position):
    """Order is left to the causal mask."""


class Rotary(Position):
    """Queries and keys turned by angles that grow with the position (Su et al. 2021, RoPE).

    Numbers 2i and 2i + 1 of a head are one pair, as the article prints it, and turn by position / 10000^(2i / d_k). So
    a score depends on the distance of query and key alone. Angles are float64, waves and turning float32; the table
    grows with the longest sentence met.
    """

    def __init__(self, d_k: int, max_positions: int) -> None:
        super().__init__()
        self.register_buffer("wave_TK", sinusoids(max_positions, d_k), persistent=False)

    def rotate(self, q_BHTK: Tensor, k_BGTK: Tensor, start: int) -> tuple[Tensor, Tensor]:
        """Queries and keys of the positions start, start + 1, ... turned to where they stand."""
        wave_TK = self._waves(start, start + q_BHTK.shape[2])
        return _turn(q_BHTK, wave_TK), _turn(k_BGTK, wave_TK)

    def _waves(self, start: int, stop: int) -> Tensor:
        """Sine and cosine in turn. In a model made bf16 the table is made anew: its angles stay exact."""
        num_rows, d_k = self.wave_TK.shape
        if stop > num_rows or self.wave_TK.dtype != torch.float32:
            num_rows = 2 * stop if stop > num_rows else num_rows
            with torch.inference_mode(mode=False):  # as in Sinusoidal
                self.wave_TK = sinusoids(num_rows, d_k).to(self.wave_TK.device)
        return self.wave_TK[start:stop]


def _turn(x_BHTK: Tensor, wave_TK: Tensor) -> Tensor:
    """Every pair of numbers turned by its angle; in float32, given back in the type that came."""
    sine_TE, cosine_TE = wave_TK[:, 0::2], wave_TK[:, 1::2]
    first_BHTE, second_BHTE = x_BHTK[..., 0::2].float(), x_BHTK[..., 1::2].float()
    turned = (first_BHTE * cosine_TE - second_BHTE * sine_TE, first_BHTE * sine_TE + second_BHTE * cosine_TE)
    return torch.stack(turned, dim=-1).flatten(start_dim=-2).to(x_BHTK.dtype)


class Alibi(Position):
    """A score loses slope x distance, with a slope a head that is not trained (Press et al. 2021, ALiBi).

    The decoder sees the past alone, as in the article; in the encoder the distance |i - j| counts alike to both sides.
    """

    slope_H: Tensor

    def __init__(self, num_heads: int) -> None:
        super().__init__()
        self.register_buffer("slope_H", torch.tensor(alibi_slopes(num_heads)), persistent=False)

    def bias(self, num_queries: int, num_keys: int, start: int) -> Tensor:
        """-slope |i - j|: (H, T, S)."""
        distance_TS = relative_positions(num_queries, num_keys, start, device=self.slope_H.device).abs()
        return -self.slope_H.float()[:, None, None] * distance_TS


class RelativeBuckets(Position):
    """A trained number a head and bucket of distances (Raffel et al. 2020, T5), one table for all layers of a stack.

    Departure from T5: scores are still divided by sqrt(d_k).
    """

    def __init__(self, num_heads: int, *, causal: bool) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(NUM_BUCKETS, num_heads))
        self.causal = causal

    def bias(self, num_queries: int, num_keys: int, start: int) -> Tensor:
        """The numbers of each pair's bucket: (H, T, S)."""
        offset_TS = relative_positions(num_queries, num_keys, start, device=self.weight.device)
        bucket_TS = relative_buckets(offset_TS, causal=self.causal)
        return self.weight[bucket_TS].permute(2, 0, 1).float()


def relative_positions(num_queries: int, num_keys: int, start: int, *, device: torch.device) -> Tensor:
    """How far key j stands after query i, j - i: (T, S), whole numbers."""
    stop = start + num_queries
    query_T1 = torch.arange(start, stop, device=device)[:, None]
    key_S = torch.arange(stop - num_keys, stop, device=device)
    return key_S - query_T1


def relative_buckets(offset_TS: Tensor, *, causal: bool) -> Tensor:
    """T5's bucket of each offset j - i.

    Causal: one bucket a distance to the past below 16, then wider by a constant factor up to the distance 128. Else the
    past has the first 16 buckets in this way, with 8 for single distances, and the future the other 16.
    """
    if causal:
        num_buckets = NUM_BUCKETS
        first_TS = torch.zeros_like(offset_TS)
        distance_TS = (-offset_TS).clamp(min=0)
    else:
        num_buckets = NUM_BUCKETS // 2
        first_TS = torch.where(offset_TS > 0, num_buckets, 0)
        distance_TS = offset_TS.abs()
    exact = num_buckets // 2
    ratio_TS = distance_TS.clamp(min=exact).float() / exact
    wide_TS = exact + (ratio_TS.log() / math.log(MAX_DISTANCE / exact) * (num_buckets - exact)).long()
    far_TS = wide_TS.clamp(max=num_buckets - 1)
    return first_TS + torch.where(distance_TS < exact, distance_TS, far_TS)


@dataclass(frozen=True, slots=True)
class Stack:
    """The stack of layers that a scheme is made for."""

    d_model: int
    num_heads: int
    d_k: int
    max_positions: int
    causal: bool  # the decoder's


POSITIONS: dict[str, Callable[[Stack], Position]] = {
    "sinusoidal": lambda stack: Sinusoidal(stack.d_model, stack.max_positions),
    "learned": lambda stack: Learned(stack.d_model, stack.max_positions),
    "none": lambda _: NoPosition(),
    "rope": lambda stack: Rotary(stack.d_k, stack.max_positions),
    "alibi": lambda stack: Alibi(stack.num_heads),
    "t5": lambda stack: RelativeBuckets(stack.num_heads, causal=stack.causal),
    "words": lambda stack: Words(stack.d_model, stack.max_positions),
}
OF_ANY_TEXT = tuple(scheme for scheme in POSITIONS if scheme != "words")  # the schemes that ask nothing of the tokens
