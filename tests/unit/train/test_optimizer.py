"""Each optimizer against its article written out in NumPy, what it keeps, and that it learns."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from torch import nn

from headway.config.model_config import ModelConfig
from headway.config.train_config import TrainConfig
from headway.data.batch import Batch
from headway.errors import CheckpointError
from headway.model.build import build_transformer, export_weights, load_weights
from headway.train.freeze import freeze
from headway.train.muon import Together
from headway.train.objective import build_objective
from headway.train.optimizer import (
    OPTIMIZERS,
    build_optimizer,
    counted_weights,
    export_moments,
    load_moments,
)
from headway.train.parameters import decay_groups, hidden_matrices, trained_parameters
from headway.train.schedule import learning_rate
from headway.train.schedule_free import ScheduleFree
from headway.train.step import train_step

BETA1, BETA2, EPSILON, DECAY = 0.9, 0.98, 1e-9, 0.07
RATES = (0.02, 0.05, 0.03, 0.01)
NAMES = list(OPTIMIZERS)
# by name: what the recipe needs beside the optimizer's name
NEEDED = {"schedule_free": {"schedule": "constant"}}


def settings_of(name, **more):
    return TrainConfig(optimizer=name, **NEEDED.get(name, {}), **more)


class Parts(nn.Module):
    """A hidden matrix, one outside of the stacks, and a vector."""

    def __init__(self):
        super().__init__()
        random = torch.Generator().manual_seed(3)
        self.encoder = nn.Linear(7, 13)
        self.embedding = nn.Embedding(11, 5)
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.copy_(torch.randn(parameter.shape, generator=random))


def gradients_of(model, step):
    """Some gradients, the same each time."""
    random = np.random.default_rng(step)
    return {
        name: random.normal(size=tuple(parameter.shape)).astype(np.float32)
        for name, parameter in model.named_parameters()
    }


def run_steps(name, rates=RATES, **more):
    """The model after a step at each rate, and its optimizer."""
    model = Parts()
    optimizer = build_optimizer(model, settings_of(name, **more))
    for step, rate in enumerate(rates, start=1):
        for key, gradient in gradients_of(model, step).items():
            model.get_parameter(key).grad = torch.from_numpy(gradient)
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.step()
    return model, optimizer


def adam_by_hand(rates, decay):
    """Algorithm 1 of Kingma and Ba, with the decay of Loshchilov and Hutter, in float64."""
    model = Parts()
    weights = {name: array.astype(np.float64) for name, array in export_weights(model).items()}
    first = {name: np.zeros_like(array) for name, array in weights.items()}
    second = {name: np.zeros_like(array) for name, array in weights.items()}
    for step, rate in enumerate(rates, start=1):
        for name, gradient in gradients_of(model, step).items():
            first[name] = BETA1 * first[name] + (1 - BETA1) * gradient
            second[name] = BETA2 * second[name] + (1 - BETA2) * np.square(gradient, dtype=np.float64)
            corrected = first[name] / (1 - BETA1**step), second[name] / (1 - BETA2**step)
            shrink = rate * decay * weights[name] if weights[name].ndim == 2 else 0.0
            weights[name] = weights[name] - shrink - rate * corrected[0] / (np.sqrt(corrected[1]) + EPSILON)
    return weights


def schedule_free_by_hand(rates, decay):
    """Algorithm 1 of Defazio et al., with all three sequences kept, in float64: x, y and z."""
    model = Parts()
    x = {name: array.astype(np.float64) for name, array in export_weights(model).items()}
    z = dict(x)
    second = {name: np.zeros_like(array) for name, array in x.items()}
    for step, rate in enumerate(rates, start=1):
        share = rate**2 / sum(earlier**2 for earlier in rates[:step])
        for name, gradient in gradients_of(model, step).items():
            y = (1 - BETA1) * z[name] + BETA1 * x[name]
            second[name] = BETA2 * second[name] + (1 - BETA2) * np.square(gradient, dtype=np.float64)
            way = gradient / (np.sqrt(second[name] / (1 - BETA2**step)) + EPSILON)
            z[name] = z[name] - rate * way - (rate * decay * y if y.ndim == 2 else 0.0)
            x[name] = (1 - share) * x[name] + share * z[name]
    y = {name: (1 - BETA1) * z[name] + BETA1 * x[name] for name in x}
    return x, y, z


def orthogonal_by_hand(matrix):
    """Newton-Schulz of Jordan et al. in float64, five steps, on the shorter side's Gram matrix."""
    x = matrix / np.linalg.norm(matrix)
    if matrix.shape[0] > matrix.shape[1]:
        x = x.T
    for _ in range(5):
        gram = x @ x.T
        x = 3.4445 * x + (-4.7750 * gram + 2.0315 * gram @ gram) @ x
    return x.T if matrix.shape[0] > matrix.shape[1] else x


@pytest.mark.parametrize("decay", [0.0, DECAY])
def test_adam_is_its_article_s_and_decays_matrices_alone(decay):
    model, _ = run_steps("adam", weight_decay=decay)
    for name, wanted in adam_by_hand(RATES, decay).items():
        np.testing.assert_allclose(export_weights(model)[name], wanted, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("decay", [0.0, DECAY])
def test_schedule_free_is_its_article_s(decay):
    model, optimizer = run_steps("schedule_free", weight_decay=decay)
    x, y, z = schedule_free_by_hand(RATES, decay)
    kept = export_moments(model, optimizer)
    for name, mean in counted_weights(model, optimizer).items():
        np.testing.assert_allclose(mean.numpy(), x[name], rtol=2e-5, atol=2e-6)
        np.testing.assert_allclose(export_weights(model)[name], y[name], rtol=2e-5, atol=2e-6)
        np.testing.assert_allclose(kept[f"base/{name}"], z[name], rtol=2e-5, atol=2e-6)
    assert set(x) == set(counted_weights(model, optimizer))
    assert np.abs(x["encoder.weight"] - y["encoder.weight"]).max() > 1e-3  # they are not one and the same


@pytest.mark.parametrize("decay", [0.0, DECAY])
def test_muon_is_its_article_s_within_bf16_and_adam_has_the_rest(decay):
    model, _ = run_steps("muon", weight_decay=decay)
    weight = export_weights(Parts())["encoder.weight"].astype(np.float64)
    momentum, moved = np.zeros_like(weight), 0.0
    for step, rate in enumerate(RATES, start=1):
        gradient = gradients_of(model, step)["encoder.weight"]
        momentum = 0.95 * momentum + 0.05 * gradient
        way = orthogonal_by_hand(0.95 * momentum + 0.05 * gradient)
        weight = weight - rate * decay * weight - rate * 0.2 * math.sqrt(13) * way
        moved += rate * 0.2 * math.sqrt(13)
    np.testing.assert_allclose(export_weights(model)["encoder.weight"], weight, rtol=0, atol=0.02 * moved)
    by_adam = adam_by_hand(RATES, decay)
    for name in ("encoder.bias", "embedding.weight"):
        np.testing.assert_allclose(export_weights(model)[name], by_adam[name], rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("shape", [(13, 7), (7, 13), (11, 11), (29, 3)])
def test_a_matrix_of_muon_moves_alike_in_every_direction_whatever_its_gradient_s_size(shape):
    """The singular values of a move, in units of rate x 0.2 sqrt(longer side), are near 1."""
    for scale in (1e-6, 1.0, 1e6):
        model = nn.Module()
        model.encoder = nn.Linear(shape[1], shape[0], bias=False)
        model.encoder.weight.data.zero_()
        model.encoder.weight.grad = scale * torch.randn(shape, generator=torch.Generator().manual_seed(5))
        optimizer = build_optimizer(model, settings_of("muon"))
        for group in optimizer.param_groups:
            group["lr"] = 0.5
        optimizer.step()
        moved = model.encoder.weight.detach().double() / (0.5 * 0.2 * math.sqrt(max(shape)))
        singular = torch.linalg.svdvals(moved)
        assert float(singular.min()) > 0.6
        assert float(singular.max()) < 1.3


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(1e-4, 0.1), min_size=1, max_size=13), st.integers(0, 1000))
def test_what_schedule_free_counts_is_the_mean_of_all_its_steps_weighted_by_their_rates_squared(rates, seed):
    random = torch.Generator().manual_seed(seed)
    parameter = nn.Parameter(torch.randn(5, 3, generator=random))
    optimizer = ScheduleFree(decay_groups([parameter], 0.01), beta1=BETA1, beta2=BETA2, epsilon=EPSILON)
    total, weight = torch.zeros(5, 3, dtype=torch.float64), 0.0
    for rate in rates:
        parameter.grad = torch.randn(5, 3, generator=random)
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.step()
        total += rate**2 * optimizer.state[parameter]["base"].double()
        weight += rate**2
        torch.testing.assert_close(optimizer.mean(parameter).double(), total / weight, rtol=1e-4, atol=1e-5)


def test_the_matrices_of_muon_are_those_of_attention_and_feed_forward_and_each_parameter_has_one_optimizer():
    model = letters_model(positions="t5", output_bias=True, attention_bias=True, activation="swiglu")
    hidden = {id(parameter) for parameter in hidden_matrices(model)}
    names = [name for name, parameter in model.named_parameters() if id(parameter) in hidden]
    assert len(names) == len(hidden) == 12 + 6
    assert all(name.endswith(".weight") for name in names)
    assert all("attention." in name or "feed_forward." in name for name in names)
    optimizer = build_optimizer(model, settings_of("muon"))
    held = [id(parameter) for group in optimizer.param_groups for parameter in group["params"]]
    assert sorted(held) == sorted(id(parameter) for parameter in model.parameters())


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("frozen", [["encoder", "decoder"], ["embeddings", "norms"]])
def test_what_is_frozen_has_no_part_in_any_optimizer(name, frozen):
    model = letters_model()
    freeze(model, frozen)
    optimizer = build_optimizer(model, settings_of(name, weight_decay=0.5))
    held = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
    assert held == {id(parameter) for _, parameter in trained_parameters(model)}
    before = export_weights(model)
    copy_steps(model, optimizer, settings_of(name, learning_rate=0.01, warmup_steps=1), steps=2)
    moved = {key for key, array in export_weights(model).items() if not np.array_equal(array, before[key])}
    assert moved == {key for key, _ in trained_parameters(model)}


@pytest.mark.parametrize("name", NAMES)
def test_decay_is_of_matrices_and_embeddings_and_of_no_norm_and_no_bias(name):
    model = letters_model(attention_bias=True)
    optimizer = build_optimizer(model, settings_of(name, weight_decay=0.125))
    decaying = {id(each) for group in optimizer.param_groups if group["weight_decay"] for each in group["params"]}
    assert {key for key, each in model.named_parameters() if id(each) not in decaying} == {
        key for key, _ in model.named_parameters() if key.endswith(".bias") or ".norm." in key
    }
    assert {group["weight_decay"] for group in optimizer.param_groups} == {0.125, 0.0}
    assert id(model.output.weight) in decaying


def test_without_decay_adam_is_the_one_group_it_was():
    optimizer = build_optimizer(letters_model(), TrainConfig())
    assert type(optimizer) is torch.optim.Adam
    (group,) = optimizer.param_groups
    assert (group["weight_decay"], group["decoupled_weight_decay"], group["fused"]) == (0.0, False, True)
    assert (group["betas"], group["eps"]) == ((0.9, 0.98), 1e-9)


KEPT = {
    "adam": {"first", "second"},
    "schedule_free": {"base", "second", "schedule_free"},
    "muon": {"first", "second", "momentum"},
}


@pytest.mark.parametrize("name", NAMES)
def test_what_an_optimizer_keeps_is_put_back_to_the_bit(name):
    config = settings_of(name, learning_rate=0.01, warmup_steps=3, weight_decay=0.1)
    model = letters_model()
    optimizer = build_optimizer(model, config)
    copy_steps(model, optimizer, config, steps=5)
    kept = export_moments(model, optimizer)
    assert {key.partition("/")[0] for key in kept} == KEPT[name]
    other = letters_model(seed=8)
    load_weights(other, export_weights(model))
    its_optimizer = build_optimizer(other, config)
    load_moments(other, its_optimizer, moments=kept, step=5)
    for one, its in ((model, optimizer), (other, its_optimizer)):
        copy_steps(one, its, config, steps=3, after=5)
    mine, theirs = (
        {**export_weights(one), **export_moments(one, its), **counted_arrays(one, its)}
        for one, its in ((model, optimizer), (other, its_optimizer))
    )
    assert {key: array.tobytes() for key, array in mine.items()} == {
        key: array.tobytes() for key, array in theirs.items()
    }


@pytest.mark.parametrize("name", NAMES)
def test_a_state_that_lacks_an_array_or_has_one_of_another_shape_is_refused_by_its_name(name):
    model = letters_model()
    optimizer = build_optimizer(model, settings_of(name))
    kept = export_moments(model, optimizer)
    for key in kept:
        lacking = {other: array for other, array in kept.items() if other != key}
        with pytest.raises(CheckpointError, match=rf"wants an array {key} of shape .*; there is none\."):
            load_moments(model, optimizer, moments=lacking, step=1)
        with pytest.raises(CheckpointError, match=rf"wants an array {key} of shape .*; it has shape \(0,\)"):
            load_moments(model, optimizer, moments={**kept, key: np.zeros(0, dtype=np.float32)}, step=1)


def test_a_state_of_adam_is_not_one_of_another_optimizer():
    model = letters_model()
    kept = export_moments(model, build_optimizer(model, TrainConfig()))
    for name in ("schedule_free", "muon"):
        with pytest.raises(CheckpointError, match=r"wants an array (base|momentum)/"):
            load_moments(model, build_optimizer(model, settings_of(name)), moments=kept, step=1)


@pytest.mark.parametrize(
    ("chosen", "told"),
    [
        ({"optimizer": "schedule_free"}, "schedule is noam; set train.schedule to constant"),
        ({"optimizer": "schedule_free", "schedule": "linear", "max_steps": 9000}, "schedule is linear"),
        ({"optimizer": "schedule_free", "schedule": "constant", "moving_average": 0.99}, "moving_average is 0.99"),
        ({"optimizer": "schedule_free", "schedule": "constant", "beta1": 0.0}, "beta1, which is 0; set train.beta1"),
        ({"optimizer": "muon", "sharding": "fsdp"}, "set train.sharding to none"),
        ({"optimizer": "muon", "lora_rank": 3}, "take train.lora_rank out"),
        ({"weight_decay": -0.1}, "weight_decay"),
        ({"moving_average": 1.0}, "moving_average"),
        ({"optimizer": "sgd"}, "optimizer"),
    ],
)
def test_settings_that_do_not_go_together_are_refused_with_the_way_out(chosen, told):
    with pytest.raises(ValidationError, match=told):
        TrainConfig(**chosen)


def test_two_optimizers_together_are_set_and_cleared_as_one():
    model, optimizer = run_steps("muon")
    assert isinstance(optimizer, Together)
    assert [type(part) for part in optimizer.parts] == [torch.optim.Muon, torch.optim.Adam]
    assert {part.param_groups[0]["lr"] for part in optimizer.parts} == {RATES[-1]}
    optimizer.zero_grad()
    assert all(parameter.grad is None for parameter in model.parameters())


@pytest.mark.parametrize("name", NAMES)
def test_each_optimizer_learns_to_copy(name):
    """From log(19) = 2.9 nats, a token drawn at random, to next to nothing, at one rate for all three."""
    config = settings_of(name, learning_rate=0.02, warmup_steps=20)
    model = letters_model()
    optimizer = build_optimizer(model, config)
    copy_steps(model, optimizer, config, steps=250)
    counted = counted_arrays(model, optimizer)
    if counted:
        load_weights(model, {name.removeprefix("counted/"): array for name, array in counted.items()})
    assert copy_loss(model, batch_to_copy(0)) < 0.15


def letters_model(*, seed=7, **more):
    config = ModelConfig(
        vocab_size=19, d_model=16, d_ff=23, num_heads=2, num_encoder_layers=1, num_decoder_layers=1, dropout=0.0, **more
    )
    return build_transformer(config, seed=seed)


def batch_to_copy(number):
    """Thirty-one sources of five tokens, each its own target."""
    tokens = torch.randint(4, 19, (31, 5), generator=torch.Generator().manual_seed(number))
    begin, end = torch.full((31, 1), 2), torch.full((31, 1), 3)
    return Batch(torch.cat([tokens, end], 1), torch.cat([begin, tokens], 1), torch.cat([tokens, end], 1))


def copy_steps(model, optimizer, config, *, steps, after=0):
    model.train()
    for step in range(after + 1, after + steps + 1):
        train_step(
            model,
            optimizer,
            batches=[batch_to_copy(step)],
            step=step,
            seed=1,
            learning_rate=learning_rate(step, config, d_model=16),
            objective=build_objective(TrainConfig(label_smoothing=0.0)),
            precision="float32",
        )


def copy_loss(model, batch):
    model.eval()
    with torch.inference_mode():
        logits = model(batch.source_BS, batch.source_mask_BS, batch.target_in_BT)
        return float(nn.functional.cross_entropy(logits.flatten(0, 1), batch.target_out_BT.flatten()))


def counted_arrays(model, optimizer):
    return {f"counted/{name}": value.numpy() for name, value in counted_weights(model, optimizer).items()}
