"""Where a run ends, what it keeps, averages and logs, and what a kill between two writes leaves behind."""

import json
import math

import numpy as np
import pytest
import torch
from train_letters import PAIRS, final_state, letters_config, of_kind, run, write_corpus

from headway.checkpoint.keep import weights_path
from headway.checkpoint.state import Progress, Scores, load_state
from headway.config.train_config import TrainConfig
from headway.data.batching import plan
from headway.data.loader import collate
from headway.data.prepared import read_prepared
from headway.errors import ConfigError, TrainingError
from headway.folder.contents import ModelFolder
from headway.folder.weights import read_weights
from headway.model.build import build_transformer, load_weights
from headway.train import finish, loop
from headway.train.events import Finished, Interrupted, Notice, Started, StepDone, Validated
from headway.train.loss import smoothed_loss
from headway.train.step import train_step
from headway.train.validate import Seen, Validation

UNREMARKABLE = Seen(1.0, 0.5, length_ratio=1.0)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("letters"))


@pytest.fixture(scope="module")
def finished(data, tmp_path_factory):
    out = tmp_path_factory.mktemp("finished")
    return out, run(letters_config(), data, out)


def records(out, event):
    lines = (out / "training" / "metrics.jsonl").read_bytes().decode("utf-8").split("\n")
    return [record for record in map(json.loads, filter(None, lines)) if record["event"] == event]


def test_the_log_holds_every_step_and_validation_once_with_all_that_was_told(finished):
    out, events = finished
    steps, validations = records(out, "step"), records(out, "validation")
    assert [record["step"] for record in steps] == list(range(1, 15))
    assert [record["step"] for record in validations] == [5, 10, 14]
    told = of_kind(events, StepDone)[6]
    for key in ("loss", "nll", "learning_rate", "gradient_norm", "tokens_per_second", "padding", "seconds_left"):
        assert steps[6][key] == getattr(told, key)
    assert [len(record["samples"]) for record in validations] == [3, 3, 3]
    assert validations[-1]["bleu"] == of_kind(events, Validated)[-1].bleu


def test_the_learning_rates_told_are_the_schedule_s(finished):
    rates = [event.learning_rate for event in of_kind(finished[1], StepDone)]
    assert rates == pytest.approx([0.02 * min(step / 5, (5 / step) ** 0.5) for step in range(1, 15)])


def test_an_epoch_takes_every_pair_once(finished):
    store = read_prepared(finished[0] / "training" / "data").store("train")
    steps = plan(store.source_lengths, store.target_lengths, batch_tokens=100, seed=1, epoch=0)
    assert sorted(index for step in steps for rows in step for index in rows) == list(range(PAIRS))
    ends = [event.step for event in of_kind(finished[1], StepDone) if event.epoch == 1]
    assert ends[0] == len(steps)


def test_the_loss_and_perplexity_of_a_validation_by_hand(finished):
    """Sentence by sentence, by the plain loss: perplexity is exp of the mean of -log p, without smoothing."""
    out, events = finished
    folder, store = ModelFolder.open(out), read_prepared(out / "training" / "data").store("validation")
    model = build_transformer(folder.config.model)
    load_weights(model, read_weights(weights_path(out / "training" / "weights", 14)))
    model.eval()
    sums, count = torch.zeros(2, dtype=torch.float64), 0
    for number in range(len(store)):
        batch = collate(store, np.array([number]))
        with torch.inference_mode():
            hidden_1TD = model.hidden(batch.source_BS, batch.source_mask_BS, batch.target_in_BT)
            weight_VD, target_T = model.output.weight, batch.target_out_BT[0]
            sums += smoothed_loss(hidden_1TD[0], weight_VD, target_N=target_T, label_smoothing=0.1)
        count += len(target_T)
    told = of_kind(events, Validated)[-1]
    assert told.loss == pytest.approx(sums[0].item() / count, rel=1e-5)
    assert told.perplexity == pytest.approx(math.exp(sums[1].item() / count), rel=1e-5)


def test_the_longest_source_of_training_is_written_into_the_folder(finished, data):
    folder = ModelFolder.open(finished[0])
    sources = (data / "train.en").read_text(encoding="utf-8").split("\n")[:-1]
    assert folder.config.max_source_tokens == max(len(folder.source_tokenizer.encode(text)) for text in sources) + 1


def test_the_last_and_the_best_weights_stay_and_two_states(finished):
    out, events = finished
    scores = {event.step: (-event.bleu, event.loss) for event in of_kind(events, Validated)}
    best = sorted(scores, key=lambda step: (*scores[step], step))[:2]
    kept = sorted({12, 14, *best})
    assert sorted((out / "training" / "weights").iterdir()) == [
        weights_path(out / "training" / "weights", step) for step in kept
    ]
    names = sorted(path.name for path in (out / "training" / "states").iterdir())
    assert names == ["state-00000012.safetensors", "state-00000014.safetensors"]


@pytest.mark.parametrize(
    ("by", "values", "kept"),
    [
        ("bleu", {10: 31.0, 14: 37.0, 0: 41.0}, "average"),
        ("bleu", {10: 31.0, 14: 37.0, 0: 37.0}, "average"),
        ("bleu", {10: 41.0, 14: 37.0, 0: 31.0}, 10),
        ("loss", {10: 2.5, 14: 2.25, 0: 2.0}, "average"),
        ("loss", {10: 2.5, 14: 2.25, 0: 2.75}, 14),
    ],
)
@pytest.mark.parametrize("average", ["last", "best"])
def test_the_average_is_taken_where_it_validates_at_least_as_well(
    data, tmp_path, monkeypatch, by, values, kept, average
):
    """``values``: step -> what its validation is made to say; 0 stands for the average."""

    def scores(session, step):
        value = values.get(step, 3.0 if by == "loss" else 29.0)
        plain = {"loss": 2.0, "bleu": 1.0, "chrf": 1.0, by: value}
        return Validation(Scores(step=session.progress.step, perplexity=7.0, **plain), UNREMARKABLE)

    monkeypatch.setattr(loop, "validate", lambda session: scores(session, session.progress.step))
    monkeypatch.setattr(finish, "validate", lambda session: scores(session, 0))
    config = letters_config(f"train.best_by={by}", f"train.average={average}", "train.checkpoint_every=5")
    events = run(config, data, tmp_path)
    (notice,) = [event.text for event in of_kind(events, Notice) if "averaged" in event.text]
    assert "averaged over steps 10, 14;" in notice or (average == "best" and "over steps 14, 10;" in notice)
    weights = {step: read_weights(weights_path(tmp_path / "training" / "weights", step)) for step in (10, 14)}
    final = ModelFolder.open(tmp_path).weights()
    for name, array in final.items():
        one, two = (weights[step][name] for step in (10, 14))
        mean = ((one.astype(np.float64) + two.astype(np.float64)) / 2).astype(np.float32)
        wanted = mean if kept == "average" else weights[kept][name]
        assert array.tobytes() == wanted.tobytes()


def test_no_average_keeps_the_best_step(data, tmp_path):
    events = run(letters_config("train.average=none", "train.best_by=loss"), data, tmp_path)
    losses = {event.step: event.loss for event in of_kind(events, Validated)}
    best = min(losses, key=losses.__getitem__)
    wanted = read_weights(weights_path(tmp_path / "training" / "weights", best))
    for name, array in ModelFolder.open(tmp_path).weights().items():
        assert array.tobytes() == wanted[name].tobytes()


@pytest.mark.parametrize(
    ("limits", "epoch_steps", "left"),
    [
        ({"max_steps": 400}, None, 2010.0),
        ({"max_steps": 400, "max_epochs": 2}, 100, 10.0),
        ({"max_steps": 400, "max_epochs": 5}, 100, 2010.0),
        ({"max_steps": 400, "max_epochs": 2}, 90, 0.0),
        ({"max_steps": 400, "max_minutes": 40.0}, None, 410.0),
    ],
)
def test_the_time_left_is_that_of_the_first_end_by_hand(limits, epoch_steps, left):
    progress = Progress(
        step=199, epoch=1, epoch_step=99, seconds=1990.0, precision="float32", threads=1, data_digest=""
    )
    train = TrainConfig(warmup_steps=1, **limits)
    assert loop.seconds_left(progress, train, epoch_steps=epoch_steps) == pytest.approx(left)


def test_weights_that_an_update_made_infinite_are_neither_validated_nor_kept(data, tmp_path, monkeypatch):
    def overflow(model, *arguments, **settings):
        result = train_step(model, *arguments, **settings)
        if settings["step"] == 8:
            with torch.no_grad():
                next(iter(model.parameters()))[0, 0] = math.inf
        return result

    monkeypatch.setattr(loop, "train_step", overflow)
    with pytest.raises(TrainingError, match=r"after step 8 the norm of all weights is (inf|nan).*last training state"):
        run(letters_config(), data, tmp_path)
    state, _ = load_state(tmp_path / "training" / "states")
    assert state.progress.step == 5
    assert all(np.isfinite(array).all() for array in state.tensors.values())


STOPS_EARLY = ("train.early_stopping=loss", "train.best_by=loss", "train.patience=2", "train.validate_every=3")


def falling(monkeypatch, losses):
    """Let validations say these losses, one after the other."""
    answers = iter(losses)
    monkeypatch.setattr(
        loop,
        "validate",
        lambda session: Validation(
            Scores(step=session.progress.step, loss=next(answers), perplexity=7.0, bleu=1.0, chrf=1.0), UNREMARKABLE
        ),
    )


def test_an_average_of_the_last_step_alone_is_that_step_though_another_validates_better(data, tmp_path, monkeypatch):
    falling(monkeypatch, [1.0, 3.0, 5.0])
    run(letters_config("train.average_count=1", "train.best_by=loss"), data, tmp_path)
    wanted = read_weights(weights_path(tmp_path / "training" / "weights", 14))
    for name, array in ModelFolder.open(tmp_path).weights().items():
        assert array.tobytes() == wanted[name].tobytes()


def test_early_stopping_waits_for_patience_validations_without_a_better_one(data, tmp_path, monkeypatch):
    falling(monkeypatch, [5.0, 3.0, 3.0, 4.0, 1.0])
    events = run(letters_config(*STOPS_EARLY, "train.max_steps=97"), data, tmp_path)
    assert of_kind(events, StepDone)[-1].step == 12  # 3: 5.0, 6: 3.0, the best; 9 and 12 bring nothing better
    assert [event.is_best for event in of_kind(events, Validated)] == [True, True, False, False]
    assert isinstance(events[-1], Finished)
    again = run(letters_config(*STOPS_EARLY, "train.max_steps=97"), data, tmp_path)
    assert not of_kind(again, StepDone)


def test_validations_of_the_warm_up_take_no_patience(data, tmp_path, monkeypatch):
    losses = [1.0, *[3.0] * 7]
    long = (*STOPS_EARLY, "train.max_steps=97", "train.warmup_steps=12")
    falling(monkeypatch, losses)
    whole = run(letters_config(*long), data, tmp_path / "whole")
    assert of_kind(whole, StepDone)[-1].step == 18  # 6, 9 and 12 are warm-up; 15 and 18 bring nothing better than 3
    falling(monkeypatch, losses)
    for stop in (7, 12, 16):
        begun = run(letters_config(*long), data, tmp_path / "stopped", stop_at=stop)
        assert of_kind(begun, StepDone)[-1].step == stop
    rest = run(letters_config(*long), data, tmp_path / "stopped")
    assert [event.step for event in of_kind(rest, StepDone)] == [17, 18]
    for name, array in ModelFolder.open(tmp_path / "whole").weights().items():
        assert array.tobytes() == ModelFolder.open(tmp_path / "stopped").weights()[name].tobytes()


def test_a_run_that_stopped_early_goes_on_with_more_patience(data, tmp_path, monkeypatch):
    falling(monkeypatch, [5.0, 3.0, 3.0, 4.0, 1.0, 2.0, 2.0, 2.0])
    run(letters_config(*STOPS_EARLY, "train.max_steps=97"), data, tmp_path)
    events = run(letters_config(*STOPS_EARLY, "train.max_steps=97", "train.patience=3"), data, tmp_path)
    assert of_kind(events, StepDone)[-1].step == 24  # 15: 1.0, the best; 18, 21 and 24 bring nothing better


def test_a_run_ends_after_its_epochs(data, tmp_path):
    events = run(letters_config("train.max_epochs=1", "train.max_steps=97"), data, tmp_path)
    store = read_prepared(tmp_path / "training" / "data").store("train")
    steps = plan(store.source_lengths, store.target_lengths, batch_tokens=100, seed=1, epoch=0)
    assert of_kind(events, StepDone)[-1].step == len(steps)
    assert of_kind(events, Validated)[-1].step == len(steps)
    assert ModelFolder.open(tmp_path).config.training.epochs == 1.0


def test_a_run_ends_after_its_minutes_and_those_of_earlier_sessions_count(data, tmp_path):
    events = run(letters_config("train.max_minutes=1e-9"), data, tmp_path)
    assert [event.step for event in of_kind(events, StepDone)] == [1]
    assert isinstance(events[-1], Finished)
    stopped = tmp_path / "stopped"
    run(letters_config(), data, stopped, stop_at=3)
    events = run(letters_config("train.max_minutes=1e-9"), data, stopped)
    assert of_kind(events, Started)[0].step == 3
    assert not of_kind(events, StepDone)
    assert [event.step for event in of_kind(events, Validated)] == [3]


def test_the_time_told_never_runs_backwards_across_sessions(data, tmp_path):
    for stop_at in (4, 9, None):
        run(letters_config(), data, tmp_path, stop_at=stop_at)
    seconds = [record["seconds"] for record in records(tmp_path, "step")]
    assert seconds == sorted(seconds)
    assert len(seconds) == 14


class Killed(BaseException):
    """Stands for a kill: nothing after it may run."""


@pytest.mark.parametrize("at", [4, 5, 8, 12, 14])
@pytest.mark.parametrize("where", ["keep_weights", "save", "drop_weights"])
def test_a_run_cut_off_between_two_writes_goes_on_as_if_never_stopped(data, finished, tmp_path, monkeypatch, at, where):
    """Before the weights of a step, before its state, and before old weights are removed."""
    plain = getattr(loop.Session, where)

    def cut(session):
        if session.progress.step == at:
            raise Killed
        return plain(session)

    with monkeypatch.context() as patch:
        patch.setattr(loop.Session, where, cut)
        with pytest.raises(Killed):
            run(letters_config(), data, tmp_path)
    run(letters_config(), data, tmp_path)
    assert final_state(tmp_path) == final_state(finished[0])
    assert (tmp_path / "model.safetensors").read_bytes() == (finished[0] / "model.safetensors").read_bytes()
    for event in ("step", "validation"):
        logged, wanted = ([record["step"] for record in records(out, event)] for out in (tmp_path, finished[0]))
        assert logged == wanted
    kept, wanted = (
        sorted(path.name for path in (out / "training" / "weights").iterdir()) for out in (tmp_path, finished[0])
    )
    assert kept == wanted


def test_a_last_validation_told_but_not_yet_saved_stands_in_the_log_once(data, finished, tmp_path, monkeypatch):
    """Step 14's state is on the disk before its validation, as checkpoint_every divides it; then the kill."""
    config = letters_config("train.checkpoint_every=7")
    plain = loop.Session.keep_weights

    def cut(session):
        if session.progress.step == 14 and session.progress.validations[-1].step == 14:
            raise Killed
        return plain(session)

    with monkeypatch.context() as patch:
        patch.setattr(loop.Session, "keep_weights", cut)
        with pytest.raises(Killed):
            run(config, data, tmp_path)
    assert [record["step"] for record in records(tmp_path, "validation")] == [5, 10, 14]
    events = run(config, data, tmp_path)
    assert of_kind(events, Started)[0].step == 14
    assert [record["step"] for record in records(tmp_path, "validation")] == [5, 10, 14]


@pytest.mark.parametrize("torn", [b'{"event": "step", "st', b'{"step": \xff', b"\n\n[]\n", b"\x00\x00\x00"])
def test_a_torn_last_line_of_the_log_is_mended(data, tmp_path, torn):
    run(letters_config(), data, tmp_path, stop_at=6)
    with (tmp_path / "training" / "metrics.jsonl").open("ab") as file:
        file.write(torn)
    run(letters_config(), data, tmp_path)
    assert [record["step"] for record in records(tmp_path, "step")] == list(range(1, 15))


def test_a_loss_that_is_not_finite_ends_the_run_with_its_last_state_whole(data, tmp_path, monkeypatch):
    plain = loop.train_step

    def poison(model, optimizer, *, step, **more):
        if step == 6:
            with torch.no_grad():
                model.output.weight[5] = float("inf")
        return plain(model, optimizer, step=step, **more)

    with monkeypatch.context() as patch:
        patch.setattr(loop, "train_step", poison)
        with pytest.raises(TrainingError, match="step 6"):
            run(letters_config(), data, tmp_path)
    (started,) = of_kind(run(letters_config(), data, tmp_path, stop_at=7), Started)
    assert started.step == 5


def test_separate_vocabularies_train_stop_and_resume(data, tmp_path):
    config = letters_config("text.shared_vocabulary=false", "model.embedding_sharing=target")
    run(config, data, tmp_path / "straight")
    assert run(config, data, tmp_path / "stopped", stop_at=7)[-1] == Interrupted(7)
    run(config, data, tmp_path / "stopped")
    assert final_state(tmp_path / "stopped") == final_state(tmp_path / "straight")


@pytest.mark.parametrize("key", ["train.batch_tokens", "train.microbatch_tokens"])
def test_a_sentence_longer_than_a_step_is_told_before_the_run_has_begun(data, tmp_path, key):
    """So that the remedy, a larger step, is not refused as another recipe."""
    with pytest.raises(ConfigError, match=rf"has 8 tokens, EOS counted; {key} is 7\. Set {key} to 8 or more"):
        run(letters_config(f"{key}=7"), data, tmp_path)
    assert not (tmp_path / "training" / "states").exists()
    run(letters_config(f"{key}=8", "train.max_steps=6"), data, tmp_path)
