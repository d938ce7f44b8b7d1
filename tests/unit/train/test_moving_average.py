"""The moving average by hand, and that it is what is validated, kept and written."""

import numpy as np
import pytest
import torch
from train_letters import letters_config, of_kind, run, write_corpus

from headway.checkpoint.average import average_weights
from headway.config.model_config import ModelConfig
from headway.errors import CheckpointError, ConfigError
from headway.folder.weights import read_weights
from headway.model.build import build_transformer, export_weights
from headway.train import finish as finish_module
from headway.train import loop
from headway.train.events import Finished, Interrupted, Notice, Validated
from headway.train.freeze import freeze
from headway.train.low_rank import add_low_rank, merged_weights
from headway.train.moving_average import MovingAverage, decay_of
from headway.train.session import in_place

AVERAGED = ("train.moving_average=0.8",)
SCHEDULE_FREE = ("train.optimizer=schedule_free", "train.schedule=constant")


def small_model():
    return build_transformer(
        ModelConfig(vocab_size=11, d_model=6, d_ff=7, num_heads=2, num_encoder_layers=1, num_decoder_layers=1)
    )


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("letters"))


@pytest.fixture(scope="module")
def watched(data, tmp_path_factory):
    """A run, its events, and what the model was at each validation: of training and of what validates."""
    made = {}

    def of(*overrides):
        if overrides not in made:
            seen, plain = {}, loop.validate

            def listening(session):
                counted = session.whole_model()
                seen[session.progress.step] = export_weights(session.model), export_weights(counted)
                return plain(session)

            out = tmp_path_factory.mktemp("watched")
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(loop, "validate", listening)
                made[overrides] = out, run(letters_config(*overrides), data, out), seen
        return made[overrides]

    return of


def test_the_first_decays_are_those_of_the_warm_up_by_hand():
    assert [decay_of(step, 0.5) for step in (1, 2, 7, 8, 9)] == pytest.approx([2 / 11, 3 / 12, 8 / 17, 0.5, 0.5])
    assert [decay_of(step, 0.999) for step in (1000, 10_000)] == pytest.approx([1001 / 1010, 0.999])
    assert decay_of(1, 0.0) == 0.0


def test_two_steps_by_hand():
    """0 and then 11: 11 x 9/11 = 9. Then 1: 9 x 3/12 + 1 x 9/12 = 3."""
    model = torch.nn.Linear(3, 2)
    for parameter in model.parameters():
        torch.nn.init.zeros_(parameter)
    average = MovingAverage(model, 0.5)
    for step, weight, wanted in ((1, 11.0, 9.0), (2, 1.0, 3.0)):
        for parameter in model.parameters():
            torch.nn.init.constant_(parameter, weight)
        average.update(step)
        for value in average.values.values():
            torch.testing.assert_close(value, torch.full_like(value, wanted))
        assert all(bool((parameter == weight).all()) for parameter in model.parameters())


def test_a_matrix_in_three_places_is_averaged_once_and_a_frozen_one_not_at_all():
    model = small_model()
    whole = MovingAverage(model, 0.9)
    assert list(whole.values) == [name for name, _ in model.named_parameters()]
    assert sum(value.shape == (11, 6) for value in whole.values.values()) == 1
    freeze(model, ["embeddings"])
    assert not any(value.shape == (11, 6) for value in MovingAverage(model, 0.9).values.values())


def test_an_average_shares_no_memory_with_the_model_and_is_put_back_to_the_bit():
    model = small_model()
    average = MovingAverage(model, 0.9)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.7)
    average.update(3)
    exported = average.export()
    assert all(key.startswith("average/") for key in exported)
    other = MovingAverage(model, 0.9)
    other.load(exported)
    for one in (average, other):
        one.update(4)
    assert {key: array.tobytes() for key, array in average.export().items()} == {
        key: array.tobytes() for key, array in other.export().items()
    }


def test_a_state_without_the_average_is_refused_by_name():
    model = small_model()
    average = MovingAverage(model, 0.9)
    exported = average.export()
    first = next(iter(exported))
    for faulty in ({}, {**exported, first: exported[first][:-1]}):
        with pytest.raises(CheckpointError, match=f"no array {first} of shape"):
            average.load(faulty)


def test_other_weights_stand_in_a_model_for_a_while_and_its_own_come_back_even_after_an_error():
    model = small_model()
    own = export_weights(model)
    others = {name: parameter.detach() + 1.0 for name, parameter in model.named_parameters() if "norm" in name}

    def use():
        with in_place(model, others):
            for name, array in export_weights(model).items():
                np.testing.assert_array_equal(array, others[name].numpy() if name in others else own[name])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        use()
    assert {name: array.tobytes() for name, array in export_weights(model).items()} == {
        name: array.tobytes() for name, array in own.items()
    }


def test_low_rank_additions_are_merged_as_they_are_averaged():
    model = small_model()
    add_low_rank(model, 2, alpha=3.0, seed=5)
    average = MovingAverage(model, 0.9)
    assert all(name.endswith((".down", ".up")) for name in average.values)
    for value in average.values.values():
        value.normal_(generator=torch.Generator().manual_seed(7))
    place = "decoder.layers.0.cross_attention.query"
    addition = average.values[f"{place}.up"] @ average.values[f"{place}.down"]
    wanted = model.get_parameter(f"{place}.linear.weight").detach() + 3.0 / 2 * addition
    with in_place(model, average.values):
        merged = merged_weights(model)
    np.testing.assert_allclose(merged[f"{place}.weight"], wanted.numpy(), rtol=1e-6, atol=1e-6)


def test_an_average_does_not_touch_the_training_itself(watched):
    plain, averaged = (watched(*overrides)[2] for overrides in ((), AVERAGED))
    assert list(plain) == list(averaged) == [5, 10, 14]
    for step in plain:
        for name, array in plain[step][0].items():
            np.testing.assert_array_equal(averaged[step][0][name], array)
            np.testing.assert_array_equal(plain[step][1][name], array)


@pytest.mark.parametrize("overrides", [AVERAGED, SCHEDULE_FREE], ids=["moving average", "schedule free"])
def test_what_is_validated_is_what_is_kept_and_not_what_is_in_training(watched, overrides):
    out, _, seen = watched(*overrides)
    kept = {path.name: read_weights(path) for path in (out / "training" / "weights").iterdir()}
    assert "weights-00000014.safetensors" in kept
    for step, (training, counted) in seen.items():
        assert any(not np.array_equal(training[name], counted[name]) for name in training)
        if (name := f"weights-{step:08d}.safetensors") in kept:
            for key, array in counted.items():
                np.testing.assert_array_equal(kept[name][key], array)


def test_the_average_that_counts_is_the_one_by_hand_over_all_steps(data, tmp_path, monkeypatch):
    weights, plain = [], loop.train_step

    def listening(model, optimizer, **more):
        if not weights:
            weights.append(export_weights(model))
        result = plain(model, optimizer, **more)
        weights.append(export_weights(model))
        return result

    monkeypatch.setattr(loop, "train_step", listening)
    run(letters_config(*AVERAGED), data, tmp_path)
    wanted = {name: array.astype(np.float64) for name, array in weights[0].items()}
    for step, after in enumerate(weights[1:], start=1):
        decay = min(0.8, (1 + step) / (10 + step))
        wanted = {name: decay * array + (1 - decay) * after[name] for name, array in wanted.items()}
    kept = read_weights(tmp_path / "training" / "weights" / "weights-00000014.safetensors")
    for name, array in wanted.items():
        np.testing.assert_allclose(kept[name], array, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("overrides", [AVERAGED, SCHEDULE_FREE], ids=["moving average", "schedule free"])
def test_the_folder_holds_the_mean_of_kept_weights_or_the_best_of_them(watched, overrides, monkeypatch):
    """The average of checkpoints is one of averaged weights, and it is what is measured at the end."""
    out, events, _ = watched(*overrides)
    written = read_weights(out / "model.safetensors")
    files = sorted((out / "training" / "weights").iterdir())
    candidates = [average_weights(files[-2:]), *map(read_weights, files)]
    assert any(all(np.array_equal(written[name], one[name]) for name in written) for one in candidates)
    (notice,) = [event.text for event in of_kind(events, Notice) if "averaged over steps" in event.text]
    assert notice
    assert isinstance(events[-1], Finished)


def test_at_the_end_the_checkpoints_average_is_measured_and_not_the_training_s(data, tmp_path, monkeypatch):
    seen, plain = [], finish_module.validate

    def listening(session):
        seen.append(export_weights(session.whole_model()))
        return plain(session)

    monkeypatch.setattr(finish_module, "validate", listening)
    run(letters_config(*AVERAGED), data, tmp_path)
    (measured,) = seen
    files = [tmp_path / "training" / "weights" / f"weights-{step:08d}.safetensors" for step in (12, 14)]
    for name, array in average_weights(files).items():
        np.testing.assert_array_equal(measured[name], array)


def test_an_average_begun_or_left_out_halfway_is_refused(data, tmp_path):
    run(letters_config(), data, tmp_path, stop_at=3)
    with pytest.raises(ConfigError, match=r"train\.moving_average was None, is 0\.8"):
        run(letters_config(*AVERAGED), data, tmp_path)


@pytest.mark.parametrize("schedule", ["linear", "cosine"])
def test_where_a_rate_reaches_zero_may_not_change_when_the_run_goes_on(data, tmp_path, schedule):
    overrides = (f"train.schedule={schedule}",)
    assert run(letters_config(*overrides), data, tmp_path, stop_at=3)[-1] == Interrupted(3)
    with pytest.raises(ConfigError, match=rf"train\.max_steps was 14, is 17 .*{schedule} reaches 0"):
        run(letters_config(*overrides, "train.max_steps=17"), data, tmp_path)
    events = run(letters_config(*overrides, "train.max_epochs=1", "train.max_minutes=59"), data, tmp_path)
    (told,) = [event.text for event in of_kind(events, Notice) if "falls to 0" in event.text]
    assert "train.max_epochs = 1 is about" in told
    assert "train.max_minutes = 59" in told
    assert of_kind(events, Validated)
