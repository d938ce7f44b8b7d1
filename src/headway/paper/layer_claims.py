"""What Table 1 and the text beside it claim of layer types, set against what was measured."""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

from headway.paper.difference import over_seeds
from headway.paper.layer_kinds import LayerKind, path_exponent
from headway.paper.layer_measure import Orders
from headway.paper.layer_time import ATTENTION, RECURRENT
from headway.paper.slope import Points, against
from headway.paper.verdict import Claim, Difference, Part

MARGIN = 0.05  # of an exponent
RATIO_MARGIN = 0.01  # of counted by printed, between any two sizes


def order_claims(kind: LayerKind, orders: Orders) -> list[Claim]:
    """Judge the three printed orders of a row: operations, sequential operations, maximum path length."""
    operations = [
        _exponent(letter, orders.core[letter], exponent)
        for letter, exponent in kind.exponents.items()
        if letter in orders.core
    ]
    assert kind.chain is not None, "a printed row has one"
    grows = {"n": kind.chain}
    sequential = [_exponent(letter, points, grows.get(letter, 0.0)) for letter, points in orders.chain.items()]
    path = [_exponent(letter, points, path_exponent(kind, letter)) for letter, points in orders.path.items()]
    operations.append(_same_ratio(orders.ratio))
    return [
        Claim(kind.name, f"O({kind.operations}) operations a layer", tuple(operations)),
        Claim(kind.name, f"O({kind.sequential}) sequential operations", tuple(sequential)),
        Claim(kind.name, f"O({kind.maximum_path}) maximum path length", tuple(path)),
    ]


def _exponent(letter: str, points: Points, exponent: float) -> Part:
    return Part(f"exponent of {letter}, less {exponent:g}", against(points, exponent), "near", MARGIN)


def _same_ratio(ratio: Sequence[float]) -> Part:
    """The counted operations are one multiple of the printed order, whatever the sizes."""
    mean = sum(ratio) / len(ratio)
    low, high = (end / mean - 1.0 for end in (min(ratio), max(ratio)))
    difference = Difference(max(-low, high), low, high, f"{len(ratio)} sizes", "range")
    return Part(f"counted, less {mean:.3g} x printed, as a share", difference, "near", RATIO_MARGIN)


def speed_claim(rounds: Sequence[Mapping[str, Mapping[int, float]]], d_model: int) -> Claim:
    """Section 4: self-attention is faster than recurrence where sentences are shorter than d; n up to d / 2."""
    parts: list[Part] = []
    for length in sorted(rounds[0][ATTENTION]):
        if length > d_model // 2:
            continue
        these, those = ([math.log(each[name][length]) for each in rounds] for name in (ATTENTION, RECURRENT))
        difference = over_seeds(these, those, of="rounds") if len(rounds) > 1 else None
        parts.append(Part(f"n = {length:,}: log of seconds, attention less LSTM", difference, "below"))
    text = "self-attention is faster than a recurrent layer where n is smaller than d"
    return Claim("speed", text, tuple(parts))


def crossing(ours: Mapping[int, float], theirs: Mapping[int, float]) -> float | None:
    """The length from which ours takes longer than theirs, between two measured ones as power laws; None: nowhere.

    The last such place counts: at short lengths both may be all overhead.
    """
    lengths = sorted(set(ours) & set(theirs))
    gaps = [(math.log(length), math.log(ours[length] / theirs[length])) for length in lengths]
    for (x_before, before), (x, gap) in reversed(list(pairwise(gaps))):
        if before < 0.0 <= gap:
            return math.exp(x_before + (x - x_before) * before / (before - gap))
    return None


def fastest(rounds: Sequence[Mapping[str, Mapping[int, float]]]) -> dict[str, dict[int, float]]:
    """The least seconds of all rounds, by name and length: whatever else runs only makes them more."""
    return {
        name: {length: min(each[name][length] for each in rounds) for length in row} for name, row in rounds[0].items()
    }
