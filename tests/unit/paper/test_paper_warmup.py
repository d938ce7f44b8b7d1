"""Gradients before the first step, the exponent of depth, and the runs with and without warm-up."""

import pytest
import torch
from studies import make_study, parts_of
from torch.nn import functional

from headway.model.build import build_transformer
from headway.paper import warmup
from headway.paper.verdict import Verdict
from headway.train.schedule import learning_rate


def test_the_exponent_of_a_power_law_is_its_own():
    depths = (2, 3, 7, 11)
    assert warmup.exponent(depths, [5.0 * depth**-0.5 for depth in depths]) == pytest.approx(-0.5)
    assert warmup.exponent(depths, [0.3] * 4) == pytest.approx(0.0)


@pytest.mark.parametrize("placement", ["post", "pre"])
def test_the_gradient_is_that_of_torch_s_own_cross_entropy(placement):
    run = warmup.small_run(placement, 2, steps=1, warmup_steps=1, seed=3)
    model, batch = build_transformer(run.model, seed=3), run.held_out(13)
    logits = model(batch.source_BS, batch.source_mask_BS, batch.target_in_BT)
    loss = functional.cross_entropy(logits.flatten(0, 1), batch.target_out_BT.flatten(), ignore_index=0)
    weight = dict(model.named_parameters())["decoder.layers.1.feed_forward.outer.weight"]
    (gradient,) = torch.autograd.grad(loss, weight)
    found = warmup.last_gradient(run, num_sentences=13)
    assert found == pytest.approx(gradient.square().sum().sqrt().item(), rel=1e-4)


def test_without_warm_up_the_first_step_has_the_peak_rate_and_both_end_at_it():
    with_it, without = (warmup.small_run("post", 1, steps=20, warmup_steps=steps, seed=1).train for steps in (8, 1))
    rates = [[learning_rate(step, train, d_model=64) for step in (1, 4, 8, 20)] for train in (with_it, without)]
    peak = warmup.RATE
    assert rates == [pytest.approx([peak / 8, peak / 2, peak, peak]), pytest.approx([peak] * 4)]


def test_a_quick_study_has_its_rows_and_parts(tmp_path):
    _, table = make_study("warmup", tmp_path)
    assert [row.name for row in table.rows] == ["post-norm", "pre-norm"]
    post, pre = (row.cells["exponent"].measured for row in table.rows)
    assert pre < post - 0.2
    assert set(parts_of(table)) == {
        "post-norm, exponent of depth",
        "exponent, pre-norm against post-norm",
        "depth 4, norm, post-norm against pre-norm",
        "post-norm, loss without against with",
        "pre-norm, loss without against with",
    }


def test_verdicts_follow_the_rows():
    size = warmup.Sizes(depths=(2, 8), trained_depth=2, steps=1, warmup_steps=1, seeds=range(1, 4))
    noise = (0.0, 0.001, -0.001)
    rows = {
        f"warmup-start-{placement}-{depth}": {
            "norms": [(1.0 if placement == "post" else depth**-0.5) + x for x in noise]
        }
        for placement in ("post", "pre")
        for depth in size.depths
    }
    losses = {("post", "with"): 0.1, ("post", "without"): 2.5, ("pre", "with"): 0.1, ("pre", "without"): 0.12}
    for (placement, warmed), loss in losses.items():
        for seed, x in zip(size.seeds, noise, strict=True):
            rows[f"warmup-{placement}-{warmed}-seed{seed}"] = {"loss": loss + 3 * x * (warmed == "with")}
    gradients, need = warmup._claims(size, rows)
    assert gradients.verdict == need.verdict == Verdict.HOLDS
    assert gradients.parts[1].difference.value == pytest.approx(-0.5, abs=0.01)
    assert need.parts[0].difference.value == pytest.approx(2.4)
