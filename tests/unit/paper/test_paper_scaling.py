"""The study of scaled scores: what it draws, what its models begin with, and what its verdicts rest on."""

import math
from dataclasses import replace
from statistics import fmean

import pytest
import torch
from studies import make_study, parts_of, workshop

from headway.nn.attention import MultiHeadAttention
from headway.paper import scaling, small_run
from headway.paper.events import RowBegun, RowKept, RowStopped
from headway.paper.small_run import train_and_measure
from headway.paper.verdict import Verdict

ALIKE = {1: 0.0, 2: 0.01}  # what seeds add to a loss, the same for all kinds


@pytest.mark.parametrize("d_k", [4, 67])
def test_queries_and_keys_begin_with_components_of_variance_1_whatever_d_k(d_k):
    model = scaling.build(scaling.small_run("unscaled", d_k, rate=1e-3, steps=1, seed=1))
    normal = torch.randn(211, 64, generator=torch.Generator().manual_seed(97))
    layers = [module for module in model.modules() if isinstance(module, MultiHeadAttention)]
    assert len(layers) == 3
    for layer in layers:
        assert layer.query.out_features == d_k
        for projection in (layer.query, layer.key):
            assert projection(normal).var().item() == pytest.approx(1.0, rel=0.35 if d_k == 4 else 0.1)


def test_kinds_of_one_seed_begin_with_equal_queries_and_read_equal_sentences():
    runs = [scaling.small_run(kind, 11, rate=1e-3, steps=1, seed=5) for kind in scaling.KINDS]
    models = [scaling.build(run) for run in runs]
    for model in models[1:]:
        assert torch.equal(
            model.encoder.layers[0].self_attention.query.weight, models[0].encoder.layers[0].self_attention.query.weight
        )
    assert all(torch.equal(run.held_out(3).source_BS, runs[0].held_out(3).source_BS) for run in runs)


def test_a_quick_study_has_its_rows_and_verdicts_and_is_not_made_twice(tmp_path):
    _, table = make_study("scaling", tmp_path)
    assert [row.name for row in table.rows] == ["d_k 4", "d_k 64"]
    parts = parts_of(table)
    assert parts["d_k 64, variance / d_k - 1"].verdict == Verdict.HOLDS
    (large,) = [part for what, part in parts.items() if what.startswith("d_k 64, unscaled against scaled")]
    assert large.unit == "nats"
    # of two rates each is an end, and a quick study has no more
    assert parts["d_k 4, unscaled against additive, unscaled and additive at the end of the rates"].claimed == "near"
    assert {claim.name for claim in table.claims} == {"variance", "gradient", "loss"}
    assert set(table.plots) == set(table.points) == {"scaling-slope.svg", "scaling-loss.svg"}
    assert table.notes[0].startswith("--quick")
    events, again = make_study("scaling", tmp_path)
    assert again == table
    assert [event.is_new for event in events if isinstance(event, RowKept)] == [False] * (2 + 2 * 3 * 2 + 2 * 3 * 2)


def test_the_table_is_the_mean_of_what_the_rows_hold(tmp_path):
    _, table = make_study("scaling", tmp_path)
    cells = table.rows[1].cells
    rate = cells["rate, additive"].measured
    runs = [scaling.small_run("additive", 64, rate=rate, steps=2, seed=seed) for seed in (1, 2)]
    losses = [train_and_measure(scaling.build(run), run, lambda: False, num_tested=500)["loss"] for run in runs]
    assert cells["loss, additive"].measured == pytest.approx(fmean(losses))


def test_rates_are_tried_on_other_sentences_than_those_of_the_runs_that_are_reported(tmp_path):
    size = scaling.sizes(workshop(tmp_path, quick=False))
    assert scaling.TRIAL_SEED not in size.seeds
    trial, *runs = (
        scaling.small_run("scaled", 5, rate=1e-3, steps=2, seed=seed) for seed in (scaling.TRIAL_SEED, *size.seeds)
    )
    tried = {tuple(sentence) for sentence in trial.held_out(500).source_BS.tolist() if sentence[5]}  # 5 symbols or more
    for run in runs:
        assert not tried & {tuple(sentence) for sentence in run.held_out(500).source_BS.tolist()}


def test_every_kind_and_d_k_takes_the_rate_of_its_own_best_trial_for_all_seeds(tmp_path, monkeypatch):
    best = {("scaled", 4): 2e-3, ("unscaled", 64): 2e-3}  # the others do better with 1e-3

    def measured(_, run, should_stop, *, num_tested):
        assert not should_stop()
        model, rate = run.model, run.train.learning_rate
        is_best = rate == best.get((model.attention_score, model.d_k), 1e-3)
        return {"loss": 0.3 if is_best else 0.7, "accuracy": 0.5, "steps": run.train.max_steps}

    monkeypatch.setattr(small_run, "train_and_measure", measured)
    events, table = make_study("scaling", tmp_path)
    found = {
        (kind, d_k): row.cells[f"rate, {kind}"].measured
        for d_k, row in zip((4, 64), table.rows, strict=True)
        for kind in scaling.KINDS
    }
    assert found == {(kind, d_k): best.get((kind, d_k), 1e-3) for d_k in (4, 64) for kind in scaling.KINDS}
    assert {row.cells[f"loss, {kind}"].measured for row in table.rows for kind in scaling.KINDS} == {0.3}
    begun = [event for event in events if isinstance(event, RowBegun)]
    assert [event.number for event in begun] == list(range(1, 27))
    assert {event.total for event in begun} == {26}
    assert begun[2].name == "scaling-scaled-4-rate0.001"


def test_a_trial_that_broke_off_or_has_no_number_gives_no_rate():
    size = scaling.Sizes(widths=(7,), rates=(1e-3, 2e-3, 4e-3), num_pairs=1, num_draws=1, steps=9, seeds=range(1, 3))
    trials = {1e-3: (0.9, 9), 2e-3: (math.nan, 9), 4e-3: (0.1, 3)}
    rows = {
        f"scaling-{kind}-7-rate{rate:g}": {"loss": loss, "steps": steps}
        for kind in scaling.KINDS
        for rate, (loss, steps) in trials.items()
    }
    grids = {(kind, 7): size.rates for kind in scaling.KINDS}
    assert scaling.best_rates(size, grids, rows) == {(kind, 7): 1e-3 for kind in scaling.KINDS}
    for name, row in rows.items():
        rows[name] = {**row, "steps": 2}
    assert scaling.best_rates(size, grids, rows) == {(kind, 7): 1e-3 for kind in scaling.KINDS}


def test_a_rate_at_an_end_of_the_grid_is_told_of():
    size = scaling.Sizes(widths=(7, 11), rates=(1e-3, 2e-3, 4e-3), num_pairs=1, num_draws=1, steps=9, seeds=range(1, 3))
    middle = {(kind, d_k): 2e-3 for kind in scaling.KINDS for d_k in size.widths}
    grids = dict.fromkeys(middle, size.rates)
    assert len(scaling._rate_notes(size, grids, middle)) == 1
    _, told = scaling._rate_notes(size, grids, {**middle, ("additive", 11): 4e-3})
    assert told.endswith("may lie beyond: additive at d_k 11.")
    _, grown = scaling._rate_notes(size, {**grids, ("additive", 11): (5e-4, *size.rates)}, middle)
    assert grown == "Further ones, as the best lay at an end: additive at d_k 11 (0.0005)."


def test_a_grid_grows_where_its_best_rate_lies_at_an_end_and_no_further_than_that(tmp_path, monkeypatch):
    best = {"scaled": 1.5e-3, "unscaled": 1.1e-4, "additive": 8e-3}  # 1e-3 or 2e-3; below all; above the grid

    def measured(_, run, should_stop, *, num_tested):
        kind = run.model.attention_score
        distance = math.log(run.train.learning_rate / best[kind])
        return {"loss": distance**2 + (kind == "unscaled"), "accuracy": 0.5, "steps": run.train.max_steps}

    monkeypatch.setattr(small_run, "train_and_measure", measured)
    quick = scaling.sizes(workshop(tmp_path))
    monkeypatch.setattr(scaling, "sizes", lambda _: replace(quick, growths=3))
    events, table = make_study("scaling", tmp_path)
    tried = {event.name for event in events if isinstance(event, RowKept) and "-4-rate" in event.name}
    rates = {kind: {name.partition("rate")[2] for name in tried if f"-{kind}-" in name} for kind in scaling.KINDS}
    assert rates["unscaled"] == {"0.000125", "0.00025", "0.0005", "0.001", "0.002"}  # three times
    assert rates["additive"] == {"0.001", "0.002", "0.004", "0.008", "0.016"}  # until the best is within
    cells = table.rows[0].cells
    assert (cells["rate, unscaled"].measured, cells["rate, additive"].measured) == (1.25e-4, 8e-3)
    numbers = [event.number for event in events if isinstance(event, RowBegun)]
    assert numbers == list(range(1, len(numbers) + 1))
    parts = parts_of(table)
    part = parts["d_k 64, unscaled against scaled, unscaled at the end of the rates"]
    assert part.difference.low > 0
    assert part.verdict == Verdict.NOT_SETTLED  # a lower rate might be better still
    assert any("may lie beyond: " in note and "unscaled at d_k 4" in note for note in table.notes)


@pytest.mark.parametrize(
    ("unscaled", "at_end", "verdicts"),
    [
        (0.9, [], ["does not hold", "holds", "holds"]),
        (0.9, [("scaled", 64), ("additive", 64)], ["does not hold", "holds", "holds"]),  # only the worse can turn it
        (0.9, [("unscaled", 64)], ["does not hold", "open", "open"]),
        (0.1, [], ["does not hold", "does not hold", "does not hold"]),
        (0.1, [("scaled", 64), ("unscaled", 64)], ["does not hold", "does not hold", "open"]),
        (0.5, [], ["holds", "not settled", "not settled"]),
        (0.5, [("additive", 4)], ["open", "not settled", "not settled"]),
        (0.5, [("unscaled", 4)], ["open", "not settled", "not settled"]),
    ],
)
def test_a_rate_at_an_end_settles_nothing_where_a_better_one_might_turn_the_verdict(
    unscaled, at_end, verdicts, tmp_path
):
    size = scaling.sizes(workshop(tmp_path))
    rows = {
        f"scaling-{kind}-{d_k}-seed{seed}": {"loss": (unscaled if kind == "unscaled" else 0.5) + ALIKE[seed]}
        for kind in scaling.KINDS
        for d_k in (4, 64)
        for seed in size.seeds
    }
    asked = ((4, "additive"), (64, "additive"), (64, "scaled"))
    parts = [scaling._loss_part(size, rows, *each, at_end) for each in asked]
    told = [str(part.verdict).removesuffix(" at this scale") if part.settles else "open" for part in parts]
    assert told == verdicts
    assert all(part.what.endswith("at the end of the rates") is not part.settles for part in parts)


def test_a_stopped_study_goes_on_after_its_last_finished_row(tmp_path):
    asked = iter([False] * 2 * 2 + [True])  # two steps a run: the third run is given up
    events, table = make_study("scaling", tmp_path, should_stop=lambda: next(asked))
    assert table is None
    assert isinstance(events[-1], RowStopped)
    kept = [event.name for event in events if isinstance(event, RowKept)]
    assert len(kept) == 4
    events, table = make_study("scaling", tmp_path)
    assert table is not None
    assert [event.name for event in events if isinstance(event, RowKept) and not event.is_new] == kept


def test_a_study_that_was_stopped_while_its_grids_grew_goes_on_to_the_same_table(tmp_path, monkeypatch):
    def measured(_, run, should_stop, *, num_tested):
        if should_stop():
            return None
        return {"loss": run.train.learning_rate, "accuracy": 0.5, "steps": run.train.max_steps}

    monkeypatch.setattr(small_run, "train_and_measure", measured)
    quick = scaling.sizes(workshop(tmp_path))
    monkeypatch.setattr(scaling, "sizes", lambda _: replace(quick, growths=2))
    _, whole = make_study("scaling", tmp_path / "whole")
    tried = 2 * 3 * 2  # in the first round
    asked = iter([False] * (tried + 4) + [True] * 1000)
    events, table = make_study("scaling", tmp_path / "stopped", should_stop=lambda: next(asked))
    assert table is None
    assert isinstance(events[-1], RowStopped)
    _, table = make_study("scaling", tmp_path / "stopped")
    assert table.rows == whole.rows
    assert table.claims == whole.claims
