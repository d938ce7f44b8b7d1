"""Exponents of power laws, fitted to measured points."""

import math
from collections.abc import Mapping
from itertools import pairwise

from headway.paper.verdict import Difference

DIGITS = 9  # of an exponent: what is beyond is the rounding of logarithms
Points = Mapping[float, float]  # size -> what was measured there


def slope(points: Points) -> float:
    """The exponent of a power law through these points, by least squares of the logarithms."""
    pairs = [(math.log(size), math.log(value)) for size, value in points.items()]
    x_mean, y_mean = (sum(side) / len(pairs) for side in zip(*pairs, strict=True))
    steepness = sum((x - x_mean) * (y - y_mean) for x, y in pairs) / sum((x - x_mean) ** 2 for x, _ in pairs)
    return round(steepness, DIGITS)


def local_slopes(points: Points) -> list[float]:
    """The exponent between each size and the next."""
    pairs = sorted((math.log(size), math.log(value)) for size, value in points.items())
    return [round((y - y_before) / (x - x_before), DIGITS) for (x_before, y_before), (x, y) in pairwise(pairs)]


def against(points: Points, exponent: float) -> Difference:
    """The fitted exponent minus a claimed one; the interval is from the least local exponent to the greatest.

    Counts have no chance in them, so what the interval tells is how far from a power law they are.
    """
    found = local_slopes(points)
    sizes = sorted(points)
    over = f"{len(points)} sizes from {sizes[0]:,g} to {sizes[-1]:,g}"
    return Difference(slope(points) - exponent, min(found) - exponent, max(found) - exponent, over, "range")
