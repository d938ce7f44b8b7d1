"""What a head looks at: its attention in numbers, beside what chance would give.

Shapes: T queries, S keys.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from headway.inspection.ground import Ground

Weights = np.ndarray

MOSTLY = 0.5  # of the weight that equal attention gives elsewhere, the part that must have moved to the place
DEVIATIONS = 3.5  # above the mean of the head's own weights, shuffled


@dataclass(frozen=True, slots=True)
class Measured:
    """A mean over queries, and what equal attention to all that may be seen gives."""

    value: float
    chance: float


@dataclass(frozen=True, slots=True)
class Share:
    """How much of their weight the queries that can choose give to a place.

    ``chance``: what equal attention gives. ``deviations``: how many standard deviations the share lies above chance
    when each query's own weights are shuffled among all that it may see. ``queries``: how many have such a place, and
    may see others too.
    """

    value: float
    chance: float
    deviations: float
    queries: int


@dataclass(frozen=True, slots=True)
class Look:
    """A head's attention (T, S) in numbers; None where no query has a choice. Entropy is in nats."""

    weights_TS: Weights
    entropy: Measured | None
    distance: Measured | None
    shares: Mapping[str, Share]
    looks_at: str | None  # a key of PLACES: what it mostly does, if it mostly does one


def look(weights_TS: Weights, ground: Ground) -> Look:
    """Measure a head. Queries that may see one key only, and so have no choice, count for nothing."""
    visible_TS = ground.visible_TS
    seen_T = visible_TS.sum(axis=1)
    choosing_T = seen_T > 1
    shares = {
        name: share
        for name, place_TS in ground.places.items()
        if (share := _share(weights_TS, visible_TS, place_TS)) is not None
    }
    if not choosing_T.any():
        return Look(weights_TS, None, None, shares, None)
    own_TS = weights_TS[choosing_T]
    equal_TS = visible_TS[choosing_T] / seen_T[choosing_T, None]
    distance_TS = ground.distance_TS[choosing_T]
    return Look(
        weights_TS,
        Measured(_entropy(own_TS), _entropy(equal_TS)),
        Measured(_mean(own_TS, distance_TS), _mean(equal_TS, distance_TS)),
        shares,
        _label(shares, int(choosing_T.sum())),
    )


def _entropy(weights_TS: Weights) -> float:
    """The mean over queries of -sum p ln p."""
    logs_TS = np.log(np.where(weights_TS > 0, weights_TS, 1.0))
    return abs(float(-(weights_TS * logs_TS).sum(axis=1).mean()))


def _mean(weights_TS: Weights, distance_TS: np.ndarray) -> float:
    """The mean over queries of the mean distance by weight."""
    return float((weights_TS * distance_TS).sum(axis=1).mean())


def _share(weights_TS: Weights, visible_TS: np.ndarray, place_TS: np.ndarray) -> Share | None:
    """The mean over the queries that have the place and a choice; None where there is no such query.

    Of n weights in random order, k fall into the place: a sum drawn without putting back, of mean k/n (they sum to 1)
    and variance k (n - k) / (n - 1) times that of the n weights.
    """
    in_place_T, seen_T = place_TS.sum(axis=1), visible_TS.sum(axis=1)
    counted_T = (in_place_T > 0) & (in_place_T < seen_T)
    if not counted_T.any():
        return None
    k, n = in_place_T[counted_T].astype(float), seen_T[counted_T].astype(float)
    own_TS = weights_TS[counted_T]
    value = float((own_TS * place_TS[counted_T]).sum(axis=1).mean())
    chance = float((k / n).mean())
    spread = np.maximum((own_TS**2).sum(axis=1) / n - 1.0 / n**2, 0.0)
    deviation = math.sqrt(float((k * (n - k) / (n - 1) * spread).sum())) / len(n)
    deviations = (value - chance) / deviation if deviation > 1e-9 else 0.0
    return Share(value, chance, deviations, len(n))


def _label(shares: Mapping[str, Share], num_choosing: int) -> str | None:
    """The place that the head mostly looks at.

    It gets at least MOSTLY of the weight that equal attention gives to the rest, which shuffled weights would not give
    it but by DEVIATIONS, and at least half of the queries that can choose have such a place. Of several, the one that
    gets most of what it could.
    """
    moved = {
        name: (share.value - share.chance) / (1.0 - share.chance)
        for name, share in shares.items()
        if share.deviations >= DEVIATIONS and 2 * share.queries >= num_choosing
    }
    name = max(moved, key=lambda place: moved[place], default=None)
    return name if name is not None and moved[name] >= MOSTLY else None
