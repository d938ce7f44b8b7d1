from collections.abc import Iterator

import pytest
import torch
from train_letters import final_state, letters_config, of_kind, run, write_corpus

from headway.train import run as run_module
from headway.train import threads
from headway.train.events import Notice, Started
from headway.train.threads import SettledThreads, settle_threads


class Words:
    num_tokens = 4001


@pytest.fixture(autouse=True)
def _same_threads_after() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def settled(monkeypatch, *, load, seconds, wanted=3):
    """What is settled where the machine has this load and a pass takes so long with so many threads."""
    monkeypatch.setattr(threads.os, "getloadavg", lambda: (load, 0.0, 0.0))
    monkeypatch.setattr(threads, "trial_seconds", lambda *_, **__: seconds[torch.get_num_threads()])
    torch.set_num_threads(wanted)
    return settle_threads(None, Words(), objective=None, threads=wanted, precision="bf16")


def test_a_busy_machine_gets_one_thread_and_says_why(monkeypatch):
    assert settled(monkeypatch, load=4.0, seconds={3: 2.5, 1: 0.25}) == SettledThreads(
        1,
        "other programs keep the cores busy, and a microbatch of 4,001 tokens took 2.5 s with 3 threads, 0.25 s with 1",
    )


@pytest.mark.parametrize(
    ("load", "seconds"),
    [
        (1.2, {}),  # nobody else computes: nothing is tried
        (4.0, {3: 0.04}),  # too short to matter: one thread is not tried
        (4.0, {3: 0.3, 1: 0.21}),  # others compute, and three threads still are no burden
        (4.0, {3: 0.3, 1: 0.6}),
    ],
)
def test_threads_stay_where_they_are_not_in_their_own_way(monkeypatch, load, seconds):
    assert settled(monkeypatch, load=load, seconds=seconds) is None
    assert torch.get_num_threads() == 3


def test_one_thread_is_not_tried_at_all(monkeypatch):
    assert settled(monkeypatch, load=9.0, seconds={}, wanted=1) is None


def test_what_was_settled_is_said_kept_and_not_asked_again(tmp_path, monkeypatch):
    data = write_corpus(tmp_path / "data")
    answers = iter([SettledThreads(1, "told so")])
    monkeypatch.setattr(run_module, "settle_threads", lambda *_, **__: next(answers))
    torch.set_num_threads(2)
    config = letters_config("train.threads=")
    events = run(config, data, tmp_path, stop_at=3)
    assert "train.threads is 1: told so" in [notice.text for notice in of_kind(events, Notice)]
    torch.set_num_threads(2)
    events += run(config, data, tmp_path)
    assert [started.threads for started in of_kind(events, Started)] == [1, 1]
    run(letters_config(), data, tmp_path / "said")
    assert final_state(tmp_path) == final_state(tmp_path / "said")


def test_a_number_that_was_given_is_not_questioned(tmp_path, monkeypatch):
    monkeypatch.setattr(run_module, "settle_threads", lambda *_, **__: pytest.fail("asked"))
    (started,) = of_kind(run(letters_config(), write_corpus(tmp_path / "data"), tmp_path, stop_at=1), Started)
    assert started.threads == 1
