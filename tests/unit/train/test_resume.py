"""Stopped and resumed equals never stopped, to the bit: weights, moments, losses and the order of batches."""

import json
from itertools import pairwise

import pytest
from train_letters import final_state, letters_config, of_kind, run, write_corpus

from headway.config.toml import to_toml
from headway.errors import CheckpointError, ConfigError
from headway.train import loop, precision
from headway.train import run as run_module
from headway.train.events import Finished, Interrupted, Notice, Saved, Started, StepDone, Validated
from headway.train.run import recipe_changes
from headway.train.trial import trial_seconds

HORIZON = ("max_steps", "max_epochs", "max_minutes", "patience", "keep_last", "keep_best", "sharding", "init")
KINDS = {
    "float32": (),
    "bf16": ("train.precision=bf16",),
    "microbatches": ("train.microbatch_tokens=40",),
    "bf16, microbatches": ("train.precision=bf16", "train.microbatch_tokens=40"),
    "BPE-dropout": ("text.bpe_dropout=0.3",),
    "moving average": ("train.moving_average=0.8",),
    "cosine": ("train.schedule=cosine",),
    "weight decay": ("train.weight_decay=0.3",),
    "schedule free": ("train.optimizer=schedule_free", "train.schedule=constant", "train.weight_decay=0.1"),
    "Muon": ("train.optimizer=muon", "train.moving_average=0.6"),
}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("letters"))


@pytest.fixture(scope="module")
def straight(data, tmp_path_factory):
    """Runs never stopped, one of each kind, made when first asked for: (folder, events)."""
    made = {}

    def of(kind):
        if kind not in made:
            out = tmp_path_factory.mktemp("straight")
            made[kind] = out, run(letters_config(*KINDS[kind]), data, out)
        return made[kind]

    return of


def metrics(out):
    """What a run logged of each step and validation, times and speeds apart."""
    lines = (out / "training" / "metrics.jsonl").read_bytes().decode("utf-8").split("\n")
    assert lines.pop() == ""
    timed = ("seconds", "seconds_left", "tokens_per_second")
    return [{key: value for key, value in json.loads(line).items() if key not in timed} for line in lines]


def assert_equal_runs(out, other):
    """The same weights, training state and log, to the bit."""
    assert metrics(out) == metrics(other)
    assert final_state(out) == final_state(other)
    assert (out / "model.safetensors").read_bytes() == (other / "model.safetensors").read_bytes()


def epoch_ends(events):
    steps = of_kind(events, StepDone)
    return [after.step for before, after in pairwise(steps) if after.epoch > before.epoch]


def test_the_run_of_these_tests_has_epochs_validations_and_several_microbatches(straight):
    """Without these the promises below would be empty."""
    _, events = straight("float32")
    assert 2 < epoch_ends(events)[0] < 13
    assert [event.step for event in of_kind(events, Validated)] == [5, 10, 14]
    out, _ = straight("microbatches")
    assert final_state(out) != final_state(straight("float32")[0])
    for other in ("bf16", "BPE-dropout"):
        assert final_state(straight(other)[0]) != final_state(straight("float32")[0])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stop_at", ["first", "mid-epoch", "epoch end", "validation", "last but one", "last"])
def test_stopped_and_resumed_is_never_stopped(data, straight, tmp_path, kind, stop_at):
    whole, events = straight(kind)
    end = epoch_ends(events)[0]
    moments = {"first": 1, "mid-epoch": end - 2, "epoch end": end, "validation": 5, "last but one": 13, "last": 14}
    step = moments[stop_at]
    config = letters_config(*KINDS[kind])
    first = run(config, data, tmp_path, stop_at=step)
    assert first[-1] == Interrupted(step)
    assert isinstance(first[-2], Saved)
    second = run(config, data, tmp_path)
    assert of_kind(second, Started)[0].step == step
    assert [event.step for event in of_kind(second, StepDone)] == list(range(step + 1, 15))
    assert isinstance(second[-1], Finished)
    assert_equal_runs(tmp_path, whole)


@pytest.mark.parametrize("kind", ["float32", "bf16"])
def test_stopped_after_every_single_step_is_never_stopped(data, straight, tmp_path, kind):
    config = letters_config(*KINDS[kind])
    for step in range(1, 15):
        assert run(config, data, tmp_path, stop_at=step)[-1] == Interrupted(step)
    run(config, data, tmp_path)
    assert_equal_runs(tmp_path, straight(kind)[0])


def test_a_finished_run_started_again_only_writes_its_folder_again(data, straight, tmp_path):
    config = letters_config()
    run(config, data, tmp_path)
    again = run(config, data, tmp_path)
    assert not of_kind(again, StepDone)
    assert not of_kind(again, Validated)
    assert isinstance(again[-1], Finished)
    assert_equal_runs(tmp_path, straight("float32")[0])


def test_a_resumed_run_sees_the_batches_that_a_run_never_stopped_sees(data, tmp_path, monkeypatch):
    """Trap 12."""
    seen = []
    plain = loop.train_step

    def listening(model, optimizer, *, batches, step, **more):
        seen.append((step, [(batch.source_BS.tolist(), batch.target_out_BT.tolist()) for batch in batches]))
        return plain(model, optimizer, batches=batches, step=step, **more)

    monkeypatch.setattr(loop, "train_step", listening)
    config = letters_config("train.microbatch_tokens=40")
    run(config, data, tmp_path / "straight")
    straight, seen[:] = list(seen), []
    for stop_at in (3, 4, None):
        run(config, data, tmp_path / "stopped", stop_at=stop_at)
    assert [step for step, _ in straight] == list(range(1, 15))
    assert seen == straight
    assert len({json.dumps(batches) for _, batches in straight}) == 14  # no two steps are alike


@pytest.mark.parametrize("bytes_left", [0, 1000, -1])
def test_a_damaged_newest_state_is_told_and_the_run_ends_as_if_nothing_had_been(data, straight, tmp_path, bytes_left):
    config = letters_config()
    run(config, data, tmp_path, stop_at=10)
    newest = max((tmp_path / "training" / "states").iterdir())
    assert newest.name == "state-00000010.safetensors"
    newest.write_bytes(newest.read_bytes()[:bytes_left])
    events = run(config, data, tmp_path)
    (notice,) = [event.text for event in of_kind(events, Notice) if "damaged" in event.text]
    assert str(newest) in notice
    assert of_kind(events, Started)[0].step == 8
    assert_equal_runs(tmp_path, straight("float32")[0])


def test_a_run_whose_states_are_all_damaged_does_not_begin_anew_unasked(data, tmp_path):
    config = letters_config()
    run(config, data, tmp_path, stop_at=10)
    for path in (tmp_path / "training" / "states").iterdir():
        path.write_bytes(b"")
    with pytest.raises(CheckpointError, match="--fresh"):
        run(config, data, tmp_path)
    events = run(config, data, tmp_path, fresh=True)
    assert of_kind(events, Started)[0].step == 0


def test_another_recipe_is_refused_and_every_changed_key_is_named(data, straight, tmp_path):
    run(letters_config(), data, tmp_path, stop_at=6)
    before = final_state(tmp_path)
    with pytest.raises(ConfigError) as caught:
        run(letters_config("model.d_ff=31", "train.label_smoothing=0.2"), data, tmp_path)
    for text in ("model.d_ff was 29, is 31", "train.label_smoothing was 0.1, is 0.2", "--fresh"):
        assert text in str(caught.value)
    assert final_state(tmp_path) == before
    run(letters_config(), data, tmp_path)
    assert_equal_runs(tmp_path, straight("float32")[0])


def test_how_long_a_run_goes_on_may_change(data, straight, tmp_path):
    run(letters_config("train.max_steps=10"), data, tmp_path)
    more = ("train.max_steps=14", "train.max_epochs=97", "train.max_minutes=59", "train.patience=7", "title=longer")
    events = run(letters_config(*more), data, tmp_path)
    assert of_kind(events, Started)[0].step == 10
    assert_equal_runs(tmp_path, straight("float32")[0])


def test_what_a_run_keeps_and_how_it_measures_may_change_and_the_latter_is_told(data, straight, tmp_path):
    run(letters_config(), data, tmp_path, stop_at=6)
    assert not of_kind(run(letters_config("train.keep_best=7"), data, tmp_path, stop_at=7), Notice)
    more = ("train.keep_last=3", "search.beam_size=1", "evaluate.lowercase=true", "train.sharding=fsdp")
    events = run(letters_config(*more), data, tmp_path)
    assert of_kind(events, Started)[0].step == 7
    (notice,) = [event.text for event in of_kind(events, Notice) if "measured otherwise" in event.text]
    assert "search.beam_size was 2, is 1; evaluate.lowercase was False, is True" in notice
    assert "keep_last" not in notice
    assert final_state(tmp_path) == final_state(straight("float32")[0])


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")  # of values of other types
@pytest.mark.parametrize("section", ["data", "clean", "text", "model", "train", "search", "evaluate"])
def test_keys_that_shape_the_weights_may_not_change_and_all_others_may(tmp_path, section):
    """What may change is named by hand: a section of ``HORIZON_KEYS`` stands for itself, not for keys that begin so."""
    may_change = {"search", "evaluate"} | {f"train.{key}" for key in HORIZON}
    path = tmp_path / "recipe.toml"
    path.write_text(to_toml(letters_config()), encoding="utf-8")
    old = letters_config()
    for key in type(getattr(old, section)).model_fields:
        changed = getattr(old, section).model_copy(update={key: "another"})
        named = [change.key for change in recipe_changes(old.model_copy(update={section: changed}), path)]
        assert named == ([] if {section, f"{section}.{key}"} & may_change else [f"{section}.{key}"])


def test_fresh_begins_anew_and_gives_the_same_again(data, straight, tmp_path):
    run(letters_config("model.d_ff=31"), data, tmp_path, stop_at=6)
    events = run(letters_config(), data, tmp_path, fresh=True)
    assert [event.step for event in of_kind(events, StepDone)] == list(range(1, 15))
    assert_equal_runs(tmp_path, straight("float32")[0])


def test_other_training_text_is_refused_and_the_old_goes_on(data, straight, tmp_path):
    mine = write_corpus(tmp_path / "data")
    out = tmp_path / "out"
    run(letters_config(), mine, out, stop_at=6)
    write_corpus(mine, seed=6)
    kept = {path: path.read_bytes() for path in sorted((out / "training" / "data").rglob("*")) if path.is_file()}
    with pytest.raises(CheckpointError, match="have changed since step 6"):
        run(letters_config(), mine, out)
    assert {path: path.read_bytes() for path in kept} == kept  # what headway average takes the vocabulary from
    write_corpus(mine)
    run(letters_config(), mine, out)
    assert_equal_runs(out, straight("float32")[0])


def test_precision_auto_is_settled_once_and_kept(data, straight, tmp_path, monkeypatch):
    answers = iter([precision.Settled("bf16", "told so")])
    monkeypatch.setattr(run_module, "settle_precision", lambda *_, **__: next(answers))
    config = letters_config("train.precision=auto")
    for stop_at in (3, 7, None):
        (started,) = of_kind(run(config, data, tmp_path, stop_at=stop_at), Started)
        assert started.precision == "bf16"
    assert final_state(tmp_path) == final_state(straight("bf16")[0])


def test_settling_the_precision_leaves_the_run_as_it_was(data, straight, tmp_path, monkeypatch):
    def passed(*values, **settings):  # as long as any other: of equals the first, float32
        assert trial_seconds(*values, **settings) > 0
        return 1.0

    monkeypatch.setattr(precision, "trial_seconds", passed)
    run(letters_config("train.precision=auto"), data, tmp_path)
    assert final_state(tmp_path) == final_state(straight("float32")[0])
