"""One update: the same however it is cut into microbatches, repeatable, and stopped before it can do harm."""

import pytest
import torch
from torch import nn

from headway.checkpoint.state import Progress, TrainingState, load_state, save_state
from headway.config.model_config import ModelConfig
from headway.config.train_config import TrainConfig
from headway.data.batch import Batch
from headway.errors import TrainingError
from headway.model.build import build_transformer, export_weights, load_weights
from headway.train.objective import Likelihood
from headway.train.optimizer import build_adam, export_moments, load_moments
from headway.train.step import microbatch_seed, train_step

VOCAB = 37
LIKELIHOOD = Likelihood(0.1)
LENGTHS = ((3, 1), (2, 9), (11, 4), (5, 7))  # of source and target, without EOS and BOS


def batch_of(numbers, *, seed=3):
    """The sentences of these numbers as one batch; a sentence is the same in every batch."""
    sources, targets = [], []
    for number in numbers:
        generator = torch.Generator().manual_seed(1000 * seed + number)
        source_length, target_length = LENGTHS[number % len(LENGTHS)]
        sources.append([*torch.randint(4, VOCAB, (source_length,), generator=generator).tolist(), 3])
        targets.append(torch.randint(4, VOCAB, (target_length,), generator=generator).tolist())
    return Batch(
        _padded(sources), _padded([[2, *target] for target in targets]), _padded([[*target, 3] for target in targets])
    )


def _padded(rows):
    width = max(map(len, rows))
    return torch.tensor([row + [0] * (width - len(row)) for row in rows])


def model_and_adam(*, dropout=0.0, seed=7):
    config = ModelConfig(
        vocab_size=VOCAB, d_model=12, d_ff=17, num_heads=3, num_encoder_layers=2, num_decoder_layers=2, dropout=dropout
    )
    model = build_transformer(config, seed=seed)
    model.train()
    return model, build_adam(model, TrainConfig())


class Told:
    """An objective whose sums are those of a function; it keeps what it gave."""

    def __init__(self, function):
        self.function = function
        self.given = []

    def num_predictions(self, batch):
        return batch.num_target_tokens

    def sums(self, model, batch, *, precision):
        self.given.append(self.function(model, batch, precision=precision))
        return self.given[-1]


def update(model, optimizer, batches, *, objective=LIKELIHOOD, precision="float32", learning_rate=1e-3, **more):
    return train_step(
        model,
        optimizer,
        batches=batches,
        learning_rate=learning_rate,
        objective=objective,
        precision=precision,
        **{"step": 1, "seed": 5} | more,
    )


def gradients(model):
    return {name: parameter.grad.clone() for name, parameter in model.named_parameters()}


def state_bytes(model, optimizer):
    """Weights and both moments, to the bit (NaN equals itself)."""
    arrays = {**export_weights(model), **export_moments(model, optimizer)}
    return {name: array.tobytes() for name, array in arrays.items()}


@pytest.mark.parametrize("cut", [[[0], [1], [2], [3]], [[0, 1], [2, 3]], [[2], [3, 0, 1]]], ids=["4x1", "2x2", "1+3"])
def test_a_step_s_gradient_does_not_depend_on_its_microbatches(cut):
    whole_model, whole_adam = model_and_adam()
    whole = update(whole_model, whole_adam, [batch_of([0, 1, 2, 3])])
    model, adam = model_and_adam()
    result = update(model, adam, [batch_of(numbers) for numbers in cut])
    assert (result.loss, result.nll) == pytest.approx((whole.loss, whole.nll), abs=1e-5)
    assert result.gradient_norm == pytest.approx(whole.gradient_norm, rel=1e-5)
    assert result.num_target_tokens == whole.num_target_tokens == 1 + 9 + 4 + 7 + 4
    wanted = gradients(whole_model)
    for name, gradient in gradients(model).items():
        torch.testing.assert_close(gradient, wanted[name], rtol=1e-5, atol=1e-5)


def test_a_mean_over_tokens_is_not_a_mean_of_means():
    """Trap 5: targets of 1 and 9 tokens with losses of 8 and 1 a token: 17 / 10, never (8 + 1) / 2."""
    model = nn.Linear(1, 1, bias=False)
    nn.init.ones_(model.weight)
    adam = torch.optim.Adam(model.parameters())

    def sums(model, batch, **_):
        per_token = 8.0 if batch.num_target_tokens == 1 else 1.0
        return (model.weight.sum() * per_token * batch.num_target_tokens).expand(2)

    ones = torch.ones(1, 9, dtype=torch.int64)
    batches = [Batch(ones, ones[:, :1], ones[:, :1]), Batch(ones, ones, ones)]
    result = update(model, adam, batches, objective=Told(sums))
    assert result.loss == pytest.approx(1.7)
    assert model.weight.grad.item() == pytest.approx(1.7)


def test_dropout_masks_follow_from_seed_step_and_microbatch_alone():
    def loss(*, step=1, seed=5, disturb=0):
        model, adam = model_and_adam(dropout=0.3)
        torch.manual_seed(disturb)
        return update(model, adam, [batch_of([0, 1]), batch_of([0, 1])], step=step, seed=seed).loss

    assert loss() == loss(disturb=99)
    assert len({loss(), loss(step=2), loss(seed=6)}) == 3


def test_equal_microbatches_of_a_step_have_unlike_masks():
    heard = Told(Likelihood(0.1).sums)
    model, adam = model_and_adam(dropout=0.3)
    update(model, adam, [batch_of([0, 1]), batch_of([0, 1])], objective=heard)
    assert heard.given[0][0] != heard.given[1][0]


def test_seeds_of_neighbouring_microbatches_are_unlike_and_valid():
    seeds = {microbatch_seed(seed, step, index) for seed in range(7) for step in range(11) for index in range(5)}
    assert len(seeds) == 7 * 11 * 5
    assert all(0 <= seed < 2**63 for seed in seeds)


@pytest.mark.parametrize("precision", ["float32", "bf16"])
def test_a_loss_that_is_not_finite_stops_before_anything_moves(precision):
    model, adam = model_and_adam()
    update(model, adam, [batch_of([0, 1])], precision=precision)
    with torch.no_grad():
        model.output.weight[9] = float("nan")
    before = state_bytes(model, adam)
    with pytest.raises(TrainingError, match="step 2: loss nan") as caught:
        update(model, adam, [batch_of([2]), batch_of([3])], step=2, precision=precision)
    assert state_bytes(model, adam) == before
    for remedy in ("train.learning_rate", "train.warmup_steps", "train.clip_norm", "train.precision"):
        assert remedy in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("[enforce fail at alloc_cpu.cpp:121] . DefaultCPUAllocator: can't allocate memory: you tried"),
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."),
        RuntimeError("MPS backend out of memory (MPS allocated: 17.9 GB)"),
    ],
    ids=["Python", "CPU", "CUDA", "MPS"],
)
def test_memory_that_runs_out_is_told_with_the_microbatch_and_what_to_set(error):
    def fail(model, batch, *, precision):
        raise error

    model, adam = model_and_adam()
    with pytest.raises(TrainingError, match=r"step 3: .*4 sentences of up to 12 tokens, 48 in all.*_tokens to 24 or"):
        update(model, adam, [batch_of(range(4))], step=3, objective=Told(fail))


def test_any_other_error_of_a_step_stays_what_it_is():
    def fail(model, batch, *, precision):
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")

    model, adam = model_and_adam()
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        update(model, adam, [batch_of(range(4))], objective=Told(fail))


def test_a_gradient_that_is_not_finite_stops_too_though_the_loss_is():
    model, adam = model_and_adam()
    update(model, adam, [batch_of([0, 1])])
    before = state_bytes(model, adam)
    steep = Told(lambda model, batch, **_: (model.output.weight.sum() * 0.0).sqrt().expand(2))
    with pytest.raises(TrainingError, match=r"loss 0\.0, gradient norm nan"):
        update(model, adam, [batch_of([2])], step=2, objective=steep)
    assert state_bytes(model, adam) == before


def test_clipping_shortens_a_long_gradient_and_leaves_a_short_one():
    free_model, free_adam = model_and_adam()
    norm = update(free_model, free_adam, [batch_of([0, 1])]).gradient_norm
    clipped_model, clipped_adam = model_and_adam()
    result = update(clipped_model, clipped_adam, [batch_of([0, 1])], clip_norm=norm / 3)
    assert result.gradient_norm == norm  # what is told is the length before
    for name, gradient in gradients(free_model).items():
        torch.testing.assert_close(gradients(clipped_model)[name], gradient / 3, rtol=1e-4, atol=1e-7)
    untouched_model, untouched_adam = model_and_adam()
    update(untouched_model, untouched_adam, [batch_of([0, 1])], clip_norm=norm * 3)
    assert state_bytes(untouched_model, untouched_adam) == state_bytes(free_model, free_adam)


def test_the_first_update_is_adam_s_by_hand():
    """After one step both moments are corrected to g and g squared: w moves by rate * g / (|g| + epsilon)."""
    model, adam = model_and_adam()
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    update(model, adam, [batch_of([0, 1])], learning_rate=0.25)
    for name, parameter in model.named_parameters():
        gradient = parameter.grad
        is_clear = gradient.abs() > 1e-6  # where the gradient is next to nothing, epsilon and rounding decide
        wanted = before[name] - 0.25 * gradient / (gradient.abs() + 1e-9)
        torch.testing.assert_close(parameter[is_clear], wanted[is_clear], rtol=1e-3, atol=1e-5)


def test_padding_counts_neither_as_token_nor_in_the_loss():
    model, adam = model_and_adam()
    batch = batch_of([0, 1])
    result = update(model, adam, [batch])
    assert result.num_target_tokens == 1 + 1 + 9 + 1
    assert result.num_tokens == result.num_target_tokens + 3 + 1 + 2 + 1
    assert result.num_padded_tokens == 2 * 4 + 2 * 10


def test_three_way_sharing_survives_saving_and_loading(tmp_path):
    """Trap 8: five steps, save, load, one more step; one matrix before and after, and the same bits."""
    model, adam = model_and_adam(dropout=0.1)
    for step in range(1, 6):
        update(model, adam, [batch_of([step, step + 1])], step=step)
    tensors = {f"model/{name}": array for name, array in export_weights(model).items()}
    tensors |= export_moments(model, adam)
    progress = Progress(step=5, precision="float32", threads=1, data_digest="d")
    save_state(tmp_path, TrainingState(progress, tensors))

    state, _ = load_state(tmp_path)
    loaded, loaded_adam = model_and_adam(dropout=0.1, seed=8)
    load_weights(loaded, state.part("model"))
    load_moments(loaded, loaded_adam, moments=state.tensors, step=5)
    for one in (model, loaded):
        tables = [value for name, value in one.state_dict().items() if tuple(value.shape) == (VOCAB, 12)]
        assert len(tables) == 3
        assert len({table.data_ptr() for table in tables}) == 1
    held = [parameter for group in loaded_adam.param_groups for parameter in group["params"]]
    assert len(held) == len({id(parameter) for parameter in held}) == len(list(model.parameters()))

    batch = batch_of([0, 1])
    logits = []
    for one in (model, loaded):
        one.eval()
        with torch.inference_mode():
            hidden_BTD = one.hidden(batch.source_BS, batch.source_mask_BS, batch.target_in_BT)
            logits.append(hidden_BTD @ one.output.weight.T)
        one.train()
    assert torch.equal(*logits)
    for one, its_adam in ((model, adam), (loaded, loaded_adam)):
        update(one, its_adam, [batch_of([6, 7])], step=6)
    assert state_bytes(loaded, loaded_adam) == state_bytes(model, adam)
