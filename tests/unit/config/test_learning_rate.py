"""The peak of the learning rate against numbers worked out by hand from the paper's equation 3."""

import pytest

from headway.config.learning_rate import peak_rate


@pytest.mark.parametrize(
    ("d_model", "warmup_steps", "rate"), [(512, 4000, 6.98771e-4), (1024, 4000, 4.94106e-4), (25, 4, 0.1), (1, 1, 1.0)]
)
def test_without_a_rate_the_peak_is_the_paper_s(d_model, warmup_steps, rate):
    assert peak_rate(d_model, warmup_steps) == pytest.approx(rate, rel=1e-6)


def test_a_rate_that_is_given_is_the_peak_whatever_model_and_warm_up_are():
    assert peak_rate(25, 4, given=0.005) == 0.005
