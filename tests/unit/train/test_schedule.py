"""The learning rate against the paper's worked numbers, and its shape as a law."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from headway.config.learning_rate import FALLING
from headway.config.train_config import TrainConfig
from headway.train.schedule import SCHEDULES, early_end, learning_rate, noam

STEPS = st.integers(1, 3000)


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


@pytest.mark.parametrize(
    ("name", "rates"),
    [
        # of the steps 1, 5, 10, 11, 30, 50, 70 and 89, 90: a peak of 0.6 at step 10, the end at 90
        ("linear", [0.06, 0.3, 0.6, 0.5925, 0.45, 0.3, 0.15, 0.0075, 0.0]),
        ("cosine", [0.06, 0.3, 0.6, 0.599768712, 0.512132034, 0.3, 0.087867966, 0.000231288, 0.0]),
        ("constant", [0.06, 0.3, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6]),
        ("noam", [0.06, 0.3, 0.6, 0.572077553, 0.346410162, 0.268328157, 0.226778684, 0.201120606, 0.2]),
    ],
)
def test_the_rates_of_each_schedule_by_hand(name, rates):
    train = TrainConfig(schedule=name, learning_rate=0.6, warmup_steps=10, max_steps=90)
    found = [learning_rate(step, train, d_model=512) for step in (1, 5, 10, 11, 30, 50, 70, 89, 90)]
    assert found == pytest.approx(rates, rel=1e-5, abs=1e-12)


def test_every_schedule_that_the_recipe_may_name_is_there():
    (names,) = [TrainConfig.model_fields["schedule"].annotation]
    assert set(names.__args__) == set(SCHEDULES)


@pytest.mark.parametrize("name", SCHEDULES)
@given(step=STEPS, warmup_steps=STEPS, more=STEPS, d_model=st.integers(1, 4096))
def test_without_a_peak_every_schedule_has_the_paper_s_and_none_is_above_it_or_below_zero(
    name, step, warmup_steps, more, d_model
):
    def rate(at):
        return SCHEDULES[name](at, d_model=d_model, warmup_steps=warmup_steps, max_steps=warmup_steps + more)

    peak = (d_model * warmup_steps) ** -0.5
    assert rate(warmup_steps) == pytest.approx(peak, rel=1e-12)
    assert 0.0 <= rate(step) <= peak * (1 + 1e-12)
    assert rate(min(step, warmup_steps)) == pytest.approx(
        noam(min(step, warmup_steps), d_model=d_model, warmup_steps=warmup_steps)
    )


@pytest.mark.parametrize("name", FALLING)
@given(step=STEPS, warmup_steps=STEPS, more=STEPS)
def test_linear_and_cosine_fall_all_the_way_to_zero_at_the_last_step(name, step, warmup_steps, more):
    end = warmup_steps + more
    train = TrainConfig(schedule=name, warmup_steps=warmup_steps, max_steps=end)
    assert learning_rate(end, train, d_model=7) == pytest.approx(0.0, abs=1e-15)
    step = warmup_steps + step % more
    assert learning_rate(step, train, d_model=7) > learning_rate(step + 1, train, d_model=7)


@pytest.mark.parametrize("name", FALLING)
@pytest.mark.parametrize("max_steps", [3999, 4000])
def test_a_fall_without_a_step_to_fall_in_is_refused(name, max_steps):
    with pytest.raises(ValidationError, match=rf"warmup_steps \(4,000\) to max_steps \({max_steps:,}\)"):
        TrainConfig(schedule=name, max_steps=max_steps)
    assert TrainConfig(max_steps=max_steps).schedule == "noam"


def test_an_end_that_comes_before_the_rate_is_zero_is_told():
    def told(**more):
        return early_end(TrainConfig(warmup_steps=10, max_steps=90, **more), epoch_steps=lambda: 11)

    (text,) = told(schedule="linear", max_epochs=8)
    assert "train.max_steps = 90" in text
    assert "train.max_epochs = 8 is about 88 steps" in text
    (text,) = told(schedule="cosine", max_minutes=1.5)
    assert "train.max_minutes = 1.5" in text
    (text,) = told(schedule="linear", early_stopping="chrf", max_minutes=1.5)
    assert "train.max_minutes = 1.5 may come first and train.early_stopping = chrf may come first:" in text
    assert told(schedule="linear", max_epochs=9) == []
    assert told(schedule="linear") == []
    assert told(schedule="constant", max_epochs=1, max_minutes=0.1, early_stopping="loss") == []


def test_the_steps_of_an_epoch_are_counted_only_where_they_matter():
    def never():
        raise AssertionError

    for more in ({"schedule": "linear"}, {"schedule": "noam", "max_epochs": 3}):
        assert early_end(TrainConfig(**more), epoch_steps=never) == []
