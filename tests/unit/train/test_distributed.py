"""Two processes train as one does, decide alike, and go on with other numbers of processes."""

import json
from itertools import islice, pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from letters_ranks import BASE, RUNS
from train_letters import PAIRS, final_state, letters_config, of_kind, run, write_corpus

from headway.checkpoint.state import Progress
from headway.config.train_config import TrainConfig
from headway.data.loader import batches
from headway.data.prepared import read_prepared
from headway.errors import TrainingError
from headway.folder.weights import read_weights
from headway.train import distributed
from headway.train.distributed import ALONE, Group, joined
from headway.train.division import divide, idle_notice
from headway.train.events import Notice, Started, StepDone, Validated
from torchrun_command import PROCESSES, finished

SCRIPT = Path(__file__).with_name("letters_ranks.py")
LEAVING = Path(__file__).with_name("leaving_ranks.py")
LAW = 1e-5


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("letters"))


@pytest.fixture(scope="module")
def pair(data, tmp_path_factory):
    """All runs of two processes: their folder, and what each rank saw."""
    outs = tmp_path_factory.mktemp("two")
    code, output = finished(SCRIPT, data, outs, timeout=600)
    assert code == 0, output
    return outs, [json.loads((outs / f"{rank}.json").read_text("utf-8")) for rank in range(PROCESSES)]


@pytest.fixture(scope="module")
def alone(data, tmp_path_factory):
    """Runs of one process by their overrides, made when first asked for: (folder, events)."""
    made = {}

    def of(*overrides):
        if overrides not in made:
            out = tmp_path_factory.mktemp("one")
            made[overrides] = out, run(letters_config(*overrides), data, out)
        return made[overrides]

    return of


def arrays(out):
    return read_weights(max((out / "training" / "states").glob("state-*.safetensors")))


def largest_difference(out, other):
    """Of all weights and both moments, against the largest value of their array."""
    mine, theirs = arrays(out), arrays(other)
    assert mine.keys() == theirs.keys()
    return max(float(np.abs(mine[name] - theirs[name]).max() / np.abs(theirs[name]).max()) for name in mine)


@pytest.mark.parametrize(
    "name",
    [
        "microbatches",
        "one microbatch",
        "sharded",
        "sharded, averaged",
        "sharded, schedule free",
        "cutoff",
        "sharded, R-Drop",
        "sharded, cutoff",
    ],
)
def test_two_processes_equal_one_with_dropout_on(pair, alone, name):
    outs, told = pair
    overrides = [override for override in RUNS[name][0] if "sharding" not in override]
    one, events = alone(*overrides)
    assert letters_config().model.dropout == 0.1
    assert largest_difference(outs / name, one) <= LAW
    losses, paddings, validations = (
        [value for part in told[0][name] for value in part[key]] for key in ("losses", "padding", "validations")
    )
    assert losses == pytest.approx([event.loss for event in of_kind(events, StepDone)], abs=LAW)
    assert paddings == [event.padding for event in of_kind(events, StepDone)]
    for mine, event in zip(validations, of_kind(events, Validated), strict=True):
        assert mine == pytest.approx([event.loss, event.bleu, event.chrf], abs=LAW)


def test_the_equality_is_no_accident(alone):
    """Other dropout masks, or no clipping, are far outside of the law."""
    cut, clipped = BASE
    assert largest_difference(alone(cut)[0], alone("train.microbatch_tokens=58")[0]) > 100 * LAW
    assert largest_difference(alone(cut)[0], alone(cut, clipped)[0]) > 100 * LAW


def test_in_bf16_the_first_loss_is_equal_and_later_ones_near(pair, alone):
    """Sums that differ in their last bit then round differently to eight bits of bf16, and the update carries it on."""
    _, told = pair
    wanted = [event.loss for event in of_kind(alone(*RUNS["bf16"][0])[1], StepDone)]
    (two,) = told[0]["bf16"]
    assert two["losses"][0] == pytest.approx(wanted[0], abs=LAW)
    assert two["losses"] == pytest.approx(wanted, abs=0.02)
    assert two["losses"] != told[0]["microbatches"][0]["losses"]


def test_without_microbatch_tokens_a_step_is_cut_for_its_ranks_and_the_equal_run_is_named(pair, alone):
    outs, told = pair
    (notice,) = [text for text in told[0]["no microbatches"][0]["notices"] if "microbatch_tokens" in text]
    cut = 100 // 2 + 8  # the longest string has seven letters
    assert f"--set train.microbatch_tokens={cut} " in notice
    assert largest_difference(outs / "no microbatches", alone(f"train.microbatch_tokens={cut}")[0]) <= LAW


def test_both_ranks_hold_the_same_weights_after_every_step(pair):
    _, told = pair
    for name in RUNS:
        for mine, others in zip(told[0][name], told[1][name], strict=True):
            assert mine["digests"] == others["digests"]
            assert len(mine["digests"]) == len(mine["steps"]) > 0


@pytest.mark.parametrize(("name", "whole"), [("stopped", "microbatches"), ("sharded, stopped", "sharded")])
def test_stopped_and_resumed_with_as_many_processes_is_never_stopped_to_the_bit(pair, name, whole):
    outs, _ = pair
    assert final_state(outs / name) == final_state(outs / whole)
    assert (outs / name / "model.safetensors").read_bytes() == (outs / whole / "model.safetensors").read_bytes()


def test_a_request_that_one_rank_hears_stops_all_at_its_step(pair):
    _, told = pair
    for rank in told:
        assert [part["interrupted"] for part in rank["stopped"]] == [[3], [9], [10], []]
        assert [part["steps"] for part in rank["stopped"]] == [
            [*range(begin + 1, end + 1)] for begin, end in pairwise((0, 3, 9, 10, 14))
        ]


def test_minutes_and_patience_end_all_ranks_at_one_step(pair):
    _, told = pair
    for rank in told:
        assert [part["steps"] for part in rank["no minutes"]] == [[1]]
    assert told[0]["stale"][0]["steps"] == told[1]["stale"][0]["steps"] == [1, 2, 3, 4]
    assert told[0]["stale"][0]["validations"] == told[1]["stale"][0]["validations"]


def test_one_process_goes_on_where_two_stopped_and_says_so(pair, alone, data):
    outs, _ = pair
    out = outs / "no microbatches, at 5"
    events = run(letters_config(), data, out)
    assert of_kind(events, Started)[0].step == 5
    (notice,) = [event.text for event in of_kind(events, Notice) if "process" in event.text]
    assert "goes on with 1 process, after 2 until step 5" in notice
    assert largest_difference(out, alone("train.microbatch_tokens=58")[0]) <= LAW


def test_a_sharded_run_goes_on_whole(pair, alone, data):
    outs, _ = pair
    out = outs / "sharded, stopped, at 7"
    events = run(letters_config(*BASE), data, out)
    assert of_kind(events, Started)[0].step == 7
    assert largest_difference(out, alone(*BASE)[0]) <= LAW


def test_the_numbers_that_ranks_exchange_are_right(pair):
    _, told = pair
    for rank in told:
        assert rank["sums"] == [[3.0], True]
        assert rank["shared"] == ["of 0", list("abcde")]


def test_an_error_of_one_rank_ends_all_and_one_tells(pair):
    _, told = pair
    assert told[1]["error"] == ["OSError", "disk full", True]
    kind, message, speaks = told[0]["error"]
    assert (kind, speaks) == ("TrainingError", False)
    assert "rank 0 of 2 lost its connection to another rank" in message
    assert "\n" not in message


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="needs Linux's list of a process's threads")
def test_a_rank_that_left_has_no_thread_that_could_wake_while_the_process_ends(data, tmp_path):
    code, output = finished(LEAVING, data, tmp_path)
    assert code == 0, output
    for rank in range(PROCESSES):
        names = (tmp_path / f"{rank}.threads").read_text("utf-8").split("\n")
        assert any("python" in name for name in names)
        assert not [name for name in names if "gloo" in name]


@pytest.mark.parametrize("world_size", [2, 3, 5])
def test_every_pair_is_seen_once_an_epoch_by_exactly_one_rank(alone, world_size):
    store = read_prepared(alone(*BASE)[0] / "training" / "data").store("train")
    seen, lengths = [], []
    for rank in range(world_size):
        steps = batches(store, batch_tokens=100, microbatch_tokens=40, seed=1, rank=rank, world_size=world_size)
        mine = []
        for position, step in steps:
            mine.append(len(step))
            for batch in step:
                seen += [tuple(row) for row in batch.source_BS.tolist() if batch.num_target_tokens]
            if position.epoch == 1:
                break
        lengths.append(mine)
    unpadded = [tuple(token for token in row if token) for row in seen]
    assert len(unpadded) == len(set(unpadded)) == PAIRS
    assert all(mine == lengths[0] for mine in lengths)  # so that no rank waits for one that has nothing to send


@pytest.mark.parametrize("world_size", [2, 3, 5])
def test_a_step_cut_for_its_ranks_gives_no_rank_more_than_one_microbatch(alone, world_size):
    store = read_prepared(alone(*BASE)[0] / "training" / "data").store("train")
    progress, _ = divide(fresh_progress(), TrainConfig(batch_tokens=100), longest=8, group=Group(0, world_size))
    cut = progress.microbatch_tokens
    steps = islice(batches(store, batch_tokens=100, microbatch_tokens=cut, seed=1), 97)
    counts = [len(step) for _, step in steps]
    assert max(counts) <= world_size
    assert sum(counts) > 0.9 * len(counts) * min(world_size, 3)  # of eleven strings or so


def fresh_progress(**more):
    return Progress(precision="float32", threads=1, data_digest="d", **more)


def test_more_processes_cut_finer_and_fewer_keep_the_cut():
    train = TrainConfig(batch_tokens=1000)

    def after(progress, world_size):
        return divide(progress.model_copy(update={"step": 7}), train, longest=31, group=Group(0, world_size))

    two, (notice,) = divide(fresh_progress(), train, longest=31, group=Group(0, 2))
    assert two.microbatch_tokens == 531
    assert "microbatch_tokens=531 " in notice
    assert after(two, 2) == (two.model_copy(update={"step": 7}), [])
    one, (notice,) = after(two, 1)
    assert one.microbatch_tokens == 531
    assert "keep their microbatches and dropout masks" in notice
    four, (notice,) = after(one, 4)
    assert four.microbatch_tokens == 281
    assert "dropout masks differ from here on" in notice
    assert divide(fresh_progress(), train, longest=31, group=ALONE) == (fresh_progress(), [])


def test_ranks_without_work_are_told_in_numbers(pair):
    steps = [("a",), ("a", "b"), ("a", "b", "c")]  # turns of two ranks: 2, 2 and 4
    (notice,) = idle_notice(steps, 2)
    assert "25% of the 2 processes' turns" in notice
    assert "2.0 on average" in notice
    assert idle_notice(steps[1:] * 5, 2) == []
    told = pair[1][0]
    assert any("50% of the 2 processes' turns" in text for text in told["one microbatch"][0]["notices"])
    assert not any("turns" in text for text in told["no microbatches"][0]["notices"])


def test_sharding_with_one_process_is_told_to_do_nothing():
    _, (notice,) = divide(fresh_progress(), TrainConfig(sharding="fsdp"), longest=31, group=ALONE)
    assert "one process" in notice


def test_a_recipe_s_microbatch_tokens_are_left_alone():
    train = TrainConfig(batch_tokens=1000, microbatch_tokens=77)
    progress, notices = divide(fresh_progress(), train, longest=31, group=Group(0, 2))
    assert (progress.microbatch_tokens, notices) == (None, [])


@pytest.mark.parametrize("environment", [{}, {"WORLD_SIZE": "1", "RANK": "0"}, {"WORLD_SIZE": "7"}])
def test_without_others_a_process_is_alone_and_sends_nothing(environment):
    with joined(environment) as group:
        assert group == ALONE
        assert group.any(True)
        assert not group.any(False)
        assert group.gather("x") == ["x"]
        assert group.speaks()
        assert not torch.distributed.is_initialized()


@pytest.mark.parametrize(("name", "value"), [("WORLD_SIZE", "two"), ("RANK", "-1"), ("LOCAL_RANK", "")])
def test_an_environment_that_is_not_torchrun_s_is_refused(name, value):
    environment = {"WORLD_SIZE": "2", "RANK": "0", "LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}
    with pytest.raises(TrainingError, match=f"{name} is {value!r}"), joined({**environment, name: value}):
        pass


def test_gradients_travel_in_buckets_that_lose_and_reorder_none(monkeypatch):
    monkeypatch.setattr(distributed, "BUCKET_BYTES", 4 * 11)
    gradients = [torch.zeros(size) for size in (3, 7, 2, 13, 1, 1)]
    buckets = list(distributed._buckets(gradients))
    assert [[each.numel() for each in bucket] for bucket in buckets] == [[3, 7], [2], [13], [1, 1]]
    assert list(distributed._buckets([])) == []
