"""paper/layer_time.py and the rounds of layer_measure.py, by a clock that the test moves."""

import math
from itertools import chain, repeat

import pytest

from headway.errors import PaperError
from headway.paper.layer_measure import measure_round, timing_order
from headway.paper.layer_time import (
    ATTENTION,
    BLOCK,
    FEWEST,
    LONG,
    LONG_FROM,
    RECURRENT,
    STORED_UP_TO,
    TIMED,
    block_seconds,
    check_width,
    seconds,
)
from headway.train.events import Stage


class Machine:
    """Runs that take the given seconds, one after another, and the clock that shows them."""

    def __init__(self, *durations):
        self.now, self.runs, self.durations = 71.0, 0, iter(durations)

    def run(self):
        self.now += next(self.durations)
        self.runs += 1

    def clock(self):
        return self.now

    def measured(self, **given):
        return block_seconds(self.run, clock=self.clock, **given)


def test_passes_that_were_held_up_do_not_change_what_a_round_says():
    machine = Machine(0.03, *chain.from_iterable((0.002, 0.011, 0.002) for _ in range(50)))
    assert machine.measured() == pytest.approx(0.002)


def test_short_passes_go_on_until_the_block_is_full_and_the_warm_up_is_not_of_it():
    machine = Machine(0.9, *repeat(0.003, 1000))
    assert machine.measured() == pytest.approx(0.003)
    assert machine.runs == 1 + 67  # 67 x 0.003 is the first above 0.2
    assert BLOCK == 0.2


def test_a_block_has_three_passes_however_long_they_are_so_that_one_hiccup_is_left_out():
    machine = Machine(0.7, 0.5, 6.0, 0.6)
    assert machine.measured() == pytest.approx(0.6)
    assert machine.runs == 1 + FEWEST


def test_a_warm_up_that_was_held_up_is_no_long_pass():
    machine = Machine(60.0, *repeat(0.3, 3))
    assert machine.measured() == pytest.approx(0.3)


def test_a_long_pass_is_taken_once_and_short_ones_are_not():
    machine = Machine(LONG + 0.5)
    assert machine.measured(long=LONG) == pytest.approx(LONG + 0.5)
    assert machine.runs == 1
    machine = Machine(LONG - 0.5, *repeat(0.4, 3))
    assert machine.measured(long=LONG) == pytest.approx(0.4)


@pytest.mark.parametrize(("length", "long"), [(128, math.inf), (LONG_FROM - 1, math.inf), (LONG_FROM, LONG)])
def test_only_long_sentences_have_passes_that_are_taken_once(length, long, monkeypatch):
    asked = []
    monkeypatch.setattr("headway.paper.layer_time.block_seconds", lambda run, **given: asked.append(given) or 7.0)
    assert seconds("convolution, k = 3", 2, length) == 7.0
    assert asked == [{"block": BLOCK, "long": long}]


def made(number, lengths):
    """The values of a round and what was timed in it, in its order; 17 d + n seconds stand for a time."""
    timed = []

    def timer(name, d_model, length):
        timed.append((name, length))
        return 17.0 * d_model + length

    making = measure_round(5, lengths, number=number, timer=timer)
    stages = []
    while True:
        try:
            stages.append(next(making))
        except StopIteration as stop:
            assert all(isinstance(stage, Stage) for stage in stages)
            return stop.value["seconds"], timed


def test_the_two_layers_that_are_compared_are_timed_next_to_each_other_at_each_length_and_in_turn_first():
    lengths = (3, 7, 11)
    firsts = []
    for number in range(1, 5):
        _, timed = made(number, lengths)
        for length in lengths:
            pair = [place for place, (name, n) in enumerate(timed) if n == length and name in (ATTENTION, RECURRENT)]
            assert pair[1] - pair[0] == 1
        firsts.append({name for name, _ in timed if name in (ATTENTION, RECURRENT) and timed.index((name, 3)) == 0})
        assert [n for _, n in timed] == sorted(n for _, n in timed)  # no length waits for all others of another layer
    assert firsts == [{ATTENTION}, {RECURRENT}, {ATTENTION}, {RECURRENT}]


def test_a_round_has_every_layer_at_every_length_that_it_is_given():
    found, timed = made(1, (3, 2 * STORED_UP_TO))
    assert list(found) == list(TIMED)
    assert sorted(timing_order(2)) == sorted(TIMED)
    assert len(timed) == len(set(timed)) == 2 * len(TIMED) - 1
    assert found["LSTM"] == {"3": 88.0, str(2 * STORED_UP_TO): 85.0 + 2 * STORED_UP_TO}
    assert found["with stored weights"] == {"3": 88.0}


@pytest.mark.parametrize("d_model", [2, 3, 61, 64, 128, 192])
def test_every_layer_can_be_timed_at_the_widths_that_pass(d_model):
    check_width(d_model)
    for name in TIMED:
        assert seconds(name, d_model, 5, block=0.0) >= 0.0


@pytest.mark.parametrize(
    ("d_model", "remedy"), [(65, "64 or --width 128"), (100, "64 or --width 128"), (1000, "960 or --width 1024")]
)
def test_other_widths_are_refused_with_the_nearest_that_pass(d_model, remedy):
    with pytest.raises(PaperError, match=r"paper/layer_time: .*wanted a multiple of 64") as error:
        check_width(d_model)
    assert str(error.value).endswith(f"Remedy: --width {remedy}.")
