"""What is trained on: two passes as the papers define them, tokens cut as told, and the same run however it is cut."""

import re

import numpy as np
import pytest
import torch
from test_step import LENGTHS, batch_of, gradients, model_and_adam, update
from torch.nn.functional import cross_entropy, kl_div
from train_letters import final_state, letters_config, of_kind, run, write_corpus

from headway.config.load import load_text
from headway.config.train_config import TrainConfig
from headway.data.batch import Batch
from headway.data.prepared import read_prepared
from headway.errors import ConfigError
from headway.folder.contents import ModelFolder
from headway.model.build import build_transformer, load_weights
from headway.train.events import StepDone, Validated
from headway.train.objective import OBJECTIVES, Agreement, Likelihood, build_objective
from headway.train.precision import settle_precision
from headway.train.validate import store_losses

ALL = 1.0 - 1e-9  # of the tokens: a number below 1 that no draw reaches


def objective(name, **settings):
    return build_objective(TrainConfig(consistency=name, **settings))


def logits_of(model, batch, **kept):
    """Of the real target tokens, in one forward pass."""
    hidden_BTD = model.hidden(batch.source_BS, batch.source_mask_BS, batch.target_in_BT, **kept)
    return model.output(hidden_BTD)[batch.target_out_BT != 0]


def smoothed(logits, batch, *, label_smoothing=0.1):
    real = batch.target_out_BT[batch.target_out_BT != 0]
    return cross_entropy(logits, real, reduction="sum", label_smoothing=label_smoothing)


def divergence(logits, other):
    return kl_div(other.log_softmax(-1), logits.log_softmax(-1), reduction="sum", log_target=True)


def twice(batch):
    return Batch(*(torch.cat((rows, rows)) for rows in (batch.source_BS, batch.target_in_BT, batch.target_out_BT)))


# R-Drop


@pytest.mark.parametrize("alpha", [None, 0.7])
def test_r_drop_is_half_of_the_paper_s_loss(alpha):
    """Liang et al. 2021: L(p) + L(q) + alpha / 2 (KL(p || q) + KL(q || p)), alpha 5 for translation."""
    model, _ = model_and_adam(dropout=0.3)
    batch = batch_of([0, 1, 2])
    settings = {} if alpha is None else {"consistency_weight": alpha}
    torch.manual_seed(3)
    sums = objective("rdrop", **settings).sums(model, batch, precision="float32")
    torch.manual_seed(3)
    first, second = logits_of(model, twice(batch)).chunk(2)
    assert divergence(first, second) > 0.01
    agreement = (alpha or 5.0) / 2 * (divergence(first, second) + divergence(second, first))
    wanted = smoothed(first, batch) + smoothed(second, batch) + agreement
    nll = smoothed(first, batch, label_smoothing=0.0) + smoothed(second, batch, label_smoothing=0.0)
    torch.testing.assert_close(2 * sums, torch.stack((wanted, nll)), rtol=1e-5, atol=1e-5)


def test_r_drop_without_dropout_is_likelihood_alone():
    batch = batch_of([0, 1, 2, 3])
    results = []
    for one in (objective("none"), objective("rdrop")):
        model, adam = model_and_adam()
        results.append((update(model, adam, [batch], objective=one), gradients(model)))
    (plain, plain_gradients), (dropped, dropped_gradients) = results
    assert (dropped.loss, dropped.nll) == pytest.approx((plain.loss, plain.nll), abs=2e-6)
    assert dropped.num_target_tokens == plain.num_target_tokens
    for name, gradient in dropped_gradients.items():
        torch.testing.assert_close(gradient, plain_gradients[name], rtol=1e-4, atol=1e-6)


def test_a_model_trained_with_r_drop_disagrees_less_with_itself():
    """And both have learnt."""
    disagreements = {}
    for name in ("none", "rdrop"):
        model, adam = model_and_adam(dropout=0.2)
        nlls = [
            update(model, adam, [batch_of([0, 1, 2, 3])], objective=objective(name), step=step, learning_rate=3e-3).nll
            for step in range(1, 61)
        ]
        assert nlls[-1] < 0.7 * nlls[0]
        torch.manual_seed(1)
        with torch.no_grad():
            first, second = logits_of(model, twice(batch_of([0, 1, 2, 3]))).chunk(2)
        disagreements[name] = (divergence(first, second) + divergence(second, first)).item()
    assert disagreements["rdrop"] < 0.6 * disagreements["none"]


# Cutoff


@pytest.mark.parametrize("alpha", [None, 0.7])
def test_cutoff_is_simcut_s_loss(monkeypatch, alpha):
    """Gao et al. 2022: L(p) + alpha KL(p || q), q of the sentences with tokens cut; alpha 3."""
    model, _ = model_and_adam()
    batch = batch_of([0, 1, 2])
    settings = {} if alpha is None else {"consistency_weight": alpha}
    seen = {}
    plain = model.hidden
    monkeypatch.setattr(model, "hidden", lambda *given, **kept: seen.update(kept) or plain(*given, **kept))
    torch.manual_seed(3)
    sums = objective("cutoff", cutoff_share=0.4, **settings).sums(model, batch, precision="float32")
    whole, cut = zip(*(kept.chunk(2) for kept in (seen["source_kept_BS"], seen["target_kept_BT"])), strict=True)
    assert all(kept.all() for kept in whole)
    assert all(0.2 < kept.float().mean() < 0.8 for kept in cut)
    monkeypatch.undo()
    first, second = logits_of(model, batch), cut_logits(model, batch, *cut)
    assert divergence(first, second) > 0.1
    wanted = smoothed(first, batch) + (alpha or 3.0) * divergence(first, second)
    nll = smoothed(first, batch, label_smoothing=0.0)
    torch.testing.assert_close(sums, torch.stack((wanted, nll)), rtol=1e-5, atol=1e-5)


def cut_logits(model, batch, source_kept_BS, target_kept_BT):
    """Logits where the outputs of the embeddings are zero for cut tokens, by hooks: not by the model's own means."""
    hooks = [
        stem.embedding.register_forward_hook(lambda _module, _given, x, kept=kept: x * kept[..., None])
        for stem, kept in ((model.source_stem, source_kept_BS), (model.target_stem, target_kept_BT))
    ]
    try:
        return logits_of(model, batch)
    finally:
        for hook in hooks:
            hook.remove()


def test_what_a_cut_token_was_cannot_be_told_and_where_it_stands_can():
    model, _ = model_and_adam()
    model.eval()
    batch = batch_of([2, 2])
    source_kept_BS, target_kept_BT = torch.ones_like(batch.source_BS) > 0, torch.ones_like(batch.target_in_BT) > 0
    source_kept_BS[:, 5] = target_kept_BT[:, 3] = False
    kept = {"source_kept_BS": source_kept_BS, "target_kept_BT": target_kept_BT}
    before = logits_of(model, batch, **kept)
    other = Batch(batch.source_BS.clone(), batch.target_in_BT.clone(), batch.target_out_BT)
    other.source_BS[:, 5], other.target_in_BT[:, 3] = 11, 13
    assert torch.equal(logits_of(model, other, **kept), before)
    assert not torch.equal(logits_of(model, other), logits_of(model, batch))
    source_kept_BS[:, 5], source_kept_BS[:, 6] = True, False
    assert not torch.equal(logits_of(model, batch, **kept), before)


def test_a_mask_that_keeps_all_changes_no_bit():
    model, _ = model_and_adam(dropout=0.2)
    batch = batch_of([0, 1, 2])
    kept = {"source_kept_BS": batch.source_BS >= 0, "target_kept_BT": batch.target_in_BT >= 0}
    logits = []
    for given in ({}, kept):
        torch.manual_seed(5)
        logits.append(logits_of(model, batch, **given))
    assert torch.equal(*logits)


def heard_masks(monkeypatch, batch, share):
    """Which tokens the second pass reads, of source and target."""
    model, _ = model_and_adam()
    seen = {}
    plain = model.hidden
    monkeypatch.setattr(model, "hidden", lambda *given, **kept: seen.update(kept) or plain(*given, **kept))
    objective("cutoff", cutoff_share=share).sums(model, batch, precision="float32")
    return [seen[name].chunk(2)[1] for name in ("source_kept_BS", "target_kept_BT")]


def test_bos_and_the_source_s_eos_are_never_cut(monkeypatch):
    batch = batch_of([0, 1, 2, 3])
    source_kept_BS, target_kept_BT = heard_masks(monkeypatch, batch, ALL)
    assert torch.equal(source_kept_BS, batch.source_BS == 3)
    assert torch.equal(target_kept_BT, batch.target_in_BT == 2)


def test_the_share_of_tokens_that_is_cut_is_the_one_asked_for(monkeypatch):
    rows = torch.full((101, 97), 7)
    torch.manual_seed(4)
    for kept in heard_masks(monkeypatch, Batch(rows, rows, rows), 0.05):
        assert (~kept).float().mean().item() == pytest.approx(0.05, abs=0.01)  # four and a half deviations


def test_masks_follow_from_seed_step_and_microbatch_alone():
    def loss(*, step=1, seed=5, disturb=0):
        model, adam = model_and_adam()
        torch.manual_seed(disturb)
        given = objective("cutoff", cutoff_share=0.4)
        return update(model, adam, [batch_of([0, 1]), batch_of([2])], objective=given, step=step, seed=seed).loss

    assert loss() == loss(disturb=99)
    assert len({loss(), loss(step=2), loss(seed=6)}) == 3


# Any objective


@pytest.mark.parametrize("name", ["rdrop", "cutoff"])
@pytest.mark.parametrize("cut", [[[0], [1], [2], [3]], [[0, 1], [2, 3]], [[2], [3, 0, 1]]], ids=["4x1", "2x2", "1+3"])
def test_a_step_s_gradient_does_not_depend_on_its_microbatches(name, cut):
    """Without dropout, and with all tokens cut: what is drawn follows the microbatch."""
    given = objective(name, **({"cutoff_share": ALL} if name == "cutoff" else {}))
    whole_model, whole_adam = model_and_adam()
    whole = update(whole_model, whole_adam, [batch_of([0, 1, 2, 3])], objective=given)
    model, adam = model_and_adam()
    result = update(model, adam, [batch_of(numbers) for numbers in cut], objective=given)
    assert (result.loss, result.nll) == pytest.approx((whole.loss, whole.nll), abs=1e-5)
    assert result.num_target_tokens == whole.num_target_tokens == sum(target for _, target in LENGTHS) + 4
    wanted = gradients(whole_model)
    for key, gradient in gradients(model).items():
        torch.testing.assert_close(gradient, wanted[key], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_a_microbatch_that_fills_a_gap_adds_nothing(name):
    """One source token, no target token."""
    model, _ = model_and_adam(dropout=0.2)
    gap = Batch(torch.tensor([[3]]), torch.tensor([[2]]), torch.tensor([[0]]))
    sums = objective(name).sums(model, gap, precision="float32")
    sums[0].backward()
    assert sums.tolist() == [0.0, 0.0]
    assert not any(parameter.grad.any() for parameter in model.parameters())


@pytest.mark.parametrize("name", OBJECTIVES)
def test_bf16_is_near_float32(name):
    model, _ = model_and_adam(dropout=0.2)
    losses = []
    for precision in ("float32", "bf16"):
        torch.manual_seed(6)
        sums = objective(name).sums(model, batch_of([0, 1, 2, 3]), precision=precision)
        sums[0].backward()
        losses.append(sums)
    assert losses[1].dtype == torch.float32
    torch.testing.assert_close(losses[1], losses[0], rtol=0.02, atol=0)


def test_the_number_format_is_settled_on_the_objective_itself():
    asked = []

    class Heard:
        def sums(self, model, batch, *, precision):
            asked.append(precision)
            return Likelihood(0.1).sums(model, batch, precision=precision)

    model, _ = model_and_adam()
    found = settle_precision(model, batch_of([0, 1]), objective=Heard(), device=torch.device("cpu"))
    tokens = batch_of([0, 1]).num_tokens
    assert re.fullmatch(rf"a microbatch of {tokens} tokens took \S+ s in {found.precision} and .*", found.reason)
    assert set(asked) == {"float32", "bf16"}
    assert all(parameter.grad is None for parameter in model.parameters())


# Recipes and runs


def test_the_recipe_chooses_and_the_papers_weights_are_its_defaults():
    assert objective("none", label_smoothing=0.2) == Likelihood(0.2)
    dropped, cut = objective("rdrop"), objective("cutoff")
    assert isinstance(dropped, Agreement)
    assert (dropped.cutoff_share, cut.cutoff_share) == (0.0, 0.05)
    assert dropped == objective("rdrop", consistency_weight=5.0) != objective("rdrop", consistency_weight=4.0)
    assert cut == objective("cutoff", consistency_weight=3.0) != objective("cutoff", cutoff_share=0.1)


@pytest.mark.parametrize(
    ("overrides", "told"),
    [
        (["train.consistency_weight=3"], "consistency_weight is 3 and consistency is none; set train.consistency to"),
        (["train.consistency=rdrop", "train.cutoff_share=0.1"], "cutoff_share is 0.1 and consistency is rdrop"),
        (["train.consistency=rdrop", "model.dropout=0"], "its two passes are equal"),
        (["train.consistency=cutoff", "model.dropout=0", "train.cutoff_share=0"], "its two passes are equal"),
        (["train.consistency=twice"], "wanted 'none', 'rdrop' or 'cutoff'"),
        (["train.consistency=rdrop", "train.consistency_weight=0"], "found 0, wanted more than 0"),
        (["train.consistency=cutoff", "train.cutoff_share=1.0"], "found 1.0, wanted less than 1"),
    ],
)
def test_settings_that_contradict_one_another_are_refused(overrides, told):
    with pytest.raises(ConfigError) as caught:
        load_text("", overrides=overrides)
    assert told in str(caught.value)


@pytest.mark.parametrize(
    "overrides",
    [
        ["train.consistency=cutoff", "model.dropout=0"],
        ["train.consistency=rdrop", "model.dropout=0", "model.attention_dropout=0.1"],
        ["train.consistency=rdrop", "model.dropout=0", "model.activation_dropout=0.1"],
    ],
)
def test_any_difference_of_the_passes_will_do(overrides):
    assert load_text("", overrides=overrides).train.consistency != "none"


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("letters"))


@pytest.fixture(scope="module", params=["rdrop", "cutoff"])
def straight(request, data, tmp_path_factory):
    """A run never stopped, in bf16 and microbatches: overrides, folder, events."""
    overrides = (f"train.consistency={request.param}", "train.precision=bf16", "train.microbatch_tokens=40")
    out = tmp_path_factory.mktemp("straight")
    return overrides, out, run(letters_config(*overrides), data, out)


@pytest.mark.parametrize("stop_at", [1, 5, 8, 13])
def test_stopped_and_resumed_is_never_stopped(straight, data, tmp_path, stop_at):
    overrides, whole, events = straight
    run(letters_config(*overrides), data, tmp_path, stop_at=stop_at)
    second = run(letters_config(*overrides), data, tmp_path)
    assert final_state(tmp_path) == final_state(whole)
    told = {event.step: (event.loss, event.nll) for event in of_kind(events, StepDone)}
    again = {event.step: (event.loss, event.nll) for event in of_kind(second, StepDone)}
    assert again == {step: told[step] for step in range(stop_at + 1, 15)}


def test_a_run_learns_with_it(straight):
    _, _, events = straight
    nll = [event.nll for event in of_kind(events, StepDone)]
    assert np.mean(nll[-3:]) < np.mean(nll[:3]) - 0.5


def test_validation_measures_the_plain_likelihood(data, tmp_path):
    config = letters_config("train.consistency=cutoff", "train.cutoff_share=0.5", "train.average=none")
    validated = of_kind(run(config, data, tmp_path), Validated)[-1]
    folder = ModelFolder.open(tmp_path)
    model = build_transformer(folder.config.model)
    load_weights(model, {name: np.array(array) for name, array in folder.weights().items()})
    store = read_prepared(tmp_path / "training" / "data").store("validation")
    loss = store_losses(model, store, batch_tokens=100, measure=Likelihood(0.1), precision="float32")[0]
    assert validated.loss == pytest.approx(loss, abs=1e-5)


def test_a_run_goes_on_with_its_own_objective_alone(data, tmp_path):
    run(letters_config("train.consistency=rdrop"), data, tmp_path, stop_at=2)
    with pytest.raises(ConfigError, match=r"train\.consistency was 'rdrop', is 'cutoff'"):
        run(letters_config("train.consistency=cutoff"), data, tmp_path)
    with pytest.raises(ConfigError, match=r"train\.consistency_weight was .*, is 4\.0"):
        run(letters_config("train.consistency=rdrop", "train.consistency_weight=4"), data, tmp_path)
