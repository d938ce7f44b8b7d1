"""paper/slope.py: power laws have their exponents; what is none shows in the interval."""

import pytest

from headway.paper.slope import against, local_slopes, slope


@pytest.mark.parametrize("exponent", [-1.0, 0.0, 0.5, 2.0])
def test_a_power_law_has_its_exponent_whatever_its_factor(exponent):
    points = {size: 7.0 * size**exponent for size in (3, 5, 11, 29)}
    assert slope(points) == pytest.approx(exponent)
    assert local_slopes(points) == pytest.approx([exponent] * 3)
    found = against(points, 2.0)
    assert (found.low, found.value, found.high) == pytest.approx((exponent - 2.0,) * 3)
    assert found.over == "4 sizes from 3 to 29"


def test_the_interval_is_from_the_least_local_exponent_to_the_greatest():
    points = {1.0: 1.0, 2.0: 2.0, 4.0: 8.0}  # exponent 1, then 2
    assert local_slopes(points) == pytest.approx([1.0, 2.0])
    found = against(points, 1.0)
    assert (found.low, found.value, found.high) == pytest.approx((0.0, 0.5, 1.0))
