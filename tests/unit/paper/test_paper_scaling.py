"""The study of scaled scores: what it draws, what its models begin with, and what its verdicts rest on."""

from statistics import fmean

import pytest
import torch
from studies import make_study, parts_of

from headway.nn.attention import MultiHeadAttention
from headway.paper import scaling
from headway.paper.events import RowKept, RowStopped
from headway.paper.verdict import Verdict


@pytest.mark.parametrize("d_k", [4, 67])
def test_queries_and_keys_begin_with_components_of_variance_1_whatever_d_k(d_k):
    model = scaling.build(scaling.small_run("unscaled", d_k, steps=1, seed=1))
    normal = torch.randn(211, 64, generator=torch.Generator().manual_seed(97))
    layers = [module for module in model.modules() if isinstance(module, MultiHeadAttention)]
    assert len(layers) == 3
    for layer in layers:
        assert layer.query.out_features == d_k
        for projection in (layer.query, layer.key):
            assert projection(normal).var().item() == pytest.approx(1.0, rel=0.35 if d_k == 4 else 0.1)


def test_kinds_of_one_seed_begin_with_equal_queries_and_read_equal_sentences():
    runs = [scaling.small_run(kind, 11, steps=1, seed=5) for kind in scaling.KINDS]
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
    assert parts["d_k 64, unscaled against scaled"].unit == "nats"
    assert parts["d_k 4, unscaled against additive"].claimed == "near"
    assert {claim.name for claim in table.claims} == {"variance", "gradient", "loss"}
    assert set(table.plots) == set(table.points) == {"scaling-slope.svg", "scaling-loss.svg"}
    assert table.notes[0].startswith("--quick")
    events, again = make_study("scaling", tmp_path)
    assert again == table
    assert [event.is_new for event in events if isinstance(event, RowKept)] == [False] * (2 + 2 * 3 * 2)


def test_the_table_is_the_mean_of_what_the_rows_hold(tmp_path):
    _, table = make_study("scaling", tmp_path)
    runs = [scaling.small_run("additive", 64, steps=2, seed=seed) for seed in (1, 2)]
    losses = [scaling._train(run, lambda: False)["loss"] for run in runs]
    assert table.rows[1].cells["loss, additive"].measured == pytest.approx(fmean(losses))


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
