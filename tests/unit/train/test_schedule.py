"""The learning rate against the paper's worked numbers, and its shape as a law."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.train.schedule import noam


@pytest.mark.parametrize(
    ("step", "d_model", "rate"),
    [
        (1, 512, 1.74693e-7),
        (4000, 512, 6.98771e-4),
        (100_000, 512, 1.39754e-4),
        (4000, 1024, 4.94106e-4),
    ],
)
def test_the_rates_of_the_paper_s_schedule(step, d_model, rate):
    assert noam(step, d_model=d_model, warmup_steps=4000) == pytest.approx(rate, rel=4e-6)


def test_the_first_step_has_a_rate_above_zero():
    assert noam(1, d_model=512, warmup_steps=4000) > 0


def test_a_peak_that_is_given_is_reached_at_the_end_of_the_warm_up():
    assert noam(2000, d_model=128, warmup_steps=2000, peak=0.005) == pytest.approx(0.005, rel=1e-12)
    assert noam(1000, d_model=128, warmup_steps=2000, peak=0.005) == pytest.approx(0.0025, rel=1e-12)
    assert noam(8000, d_model=128, warmup_steps=2000, peak=0.005) == pytest.approx(0.0025, rel=1e-12)


@given(st.integers(1, 50_000), st.integers(1, 10_000), st.integers(1, 4096))
def test_it_rises_up_to_the_warm_up_and_falls_after(step, warmup_steps, d_model):
    here, following = (noam(s, d_model=d_model, warmup_steps=warmup_steps) for s in (step, step + 1))
    assert following > here if step < warmup_steps else following < here


@given(st.integers(1, 50_000), st.integers(1, 10_000))
def test_the_paper_s_own_peak_given_as_a_number_changes_nothing(step, warmup_steps):
    plain = noam(step, d_model=512, warmup_steps=warmup_steps)
    peak = (512 * warmup_steps) ** -0.5
    assert noam(step, d_model=512, warmup_steps=warmup_steps, peak=peak) == pytest.approx(plain, rel=1e-12)
