"""What is found in a validation, and when it is told: each kind on a scale of its own."""

from types import SimpleNamespace

import pytest
from looks import look_of, signs_of

from headway.train.distributed import ALONE
from headway.train.history import History
from headway.train.kinds import find
from headway.train.score_faults import shortfall
from headway.train.watchdog import Watchdog

BEFORE = (signs_of(10), signs_of(20))


def found(signs, *before, **more):
    return {name: trouble.value for name, trouble in find(look_of(signs, *before, **more)).items()}


def test_a_healthy_validation_shows_nothing():
    assert found(signs_of(30), *BEFORE) == {}


# The learning rate


@pytest.mark.parametrize(
    ("change", "kind", "value"),
    [
        ({"training_nll": 1.0}, "loss-rises", 0.5),
        ({"training_nll": 2.9}, "loss-rises", 2.4),
        ({"training_nll": 0.6, "gradient_norm": 7.0}, "gradients-grow", 7.0),
    ],
)
def test_what_a_learning_rate_too_high_shows_has_a_kind_and_a_scale(change, kind, value):
    assert found(signs_of(30, **change), *BEFORE) == {kind: pytest.approx(value)}


def test_a_loss_at_the_level_of_guessing_is_stuck_on_the_scale_of_nats():
    stuck = {"training_nll": 2.95, "nll": 2.95}
    assert found(signs_of(30, **stuck), signs_of(10, **stuck), signs_of(20, **stuck)) == {"stuck": 2.95}


@pytest.mark.parametrize("change", [{"training_nll": 1.0}, {"training_nll": 0.6, "gradient_norm": 7.0}])
def test_before_twice_the_warm_up_no_learning_rate_is_too_high(change):
    assert found(signs_of(9, **change), signs_of(6), signs_of(8)) == {}
    assert found(signs_of(10, **change), signs_of(6), signs_of(8)) != {}


def watchdog_of(tmp_path, group=ALONE):
    return Watchdog(SimpleNamespace(folder=tmp_path, group=group))


def test_a_loss_that_rises_is_told_though_gradients_that_grew_were_told_before(tmp_path):
    """Seven times the gradients must not outweigh two nats."""
    watchdog, told = watchdog_of(tmp_path), []
    for change in ({"training_nll": 0.6, "gradient_norm": 7.0}, {"training_nll": 2.5}, {"training_nll": 2.6}):
        told += watchdog._told(30, find(look_of(signs_of(30, **change), *BEFORE)))
    assert [warning.kind for warning in told] == ["gradients-grow", "loss-rises"]


# BLEU against accuracy

LOW = {"bleu_shortfall": 5.0}


def test_a_low_bleu_is_told_where_it_lasts_and_at_once_where_it_is_grave_and_the_model_has_learnt():
    assert found(signs_of(30, **LOW), *BEFORE, bleu=16.0) == {}
    assert "scores" in found(signs_of(30, **LOW), signs_of(20, **LOW), bleu=16.0)
    grave = {"bleu_shortfall": 10.0}
    assert "scores" in found(signs_of(30, **grave), *BEFORE, bleu=8.0)
    assert found(signs_of(30, nll=2.5, **grave), *BEFORE, bleu=8.0) == {}


@pytest.mark.parametrize(
    ("kind", "change", "outputs"),
    [
        ("empty", {"empty": 11}, [""] * 11),
        ("repeats", {"looping": 11}, ["AB AB AB AB"] * 11),
        ("cut", {"cut": 11}, ["AB CD EF GH IJ"] * 11),
        ("length", {"length_ratio": 0.4}, ["AB CD"] * 11),
    ],
)
def test_a_low_bleu_is_left_to_the_kind_that_knows_its_cause(kind, change, outputs):
    signs, before = signs_of(30, **LOW, **change), signs_of(20, **LOW, **change)
    assert set(found(signs, before, outputs=outputs, bleu=16.0)) == {kind}


def test_a_length_that_characters_do_not_confirm_is_no_cause():
    signs, before = signs_of(30, **LOW, length_ratio=0.2), signs_of(20, **LOW, length_ratio=0.2)
    assert "scores" in found(signs, before, outputs=["ABCDEFGHIJ"] * 11, bleu=16.0)


def test_the_shortfall_is_how_many_times_bleu_is_expected():
    assert shortfall(20.0, 80.0) == 4.0
    assert shortfall(0.0, 80.0) == pytest.approx(800.0)
    assert shortfall(0.0, 9.9) == 0.0


# Several processes


def test_the_first_process_alone_reads_a_history(tmp_path, monkeypatch):
    read = []
    monkeypatch.setattr(History, "read", lambda path: read.append(path) or History())
    watchdog_of(tmp_path, SimpleNamespace(is_first=False)).step(SimpleNamespace())
    assert read == []
    watchdog_of(tmp_path)
    assert read == [tmp_path / "metrics.jsonl"]
