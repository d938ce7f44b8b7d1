"""torchrun with the real command: equal to one process, a killed rank, a stop, and one message for one error.

That a stopped run goes on exactly is shown without commands (tests/unit/train/test_distributed.py).
"""

import json
import os
import re
import signal
import time
from threading import Thread

import numpy as np
import pytest
from journey_command import headway

from headway.folder.weights import read_weights
from torchrun_command import finished, is_alive, rank_processes, torchrun

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="ranks are found through /proc")  # noqa: PTH112
STEPS, CHECKPOINT = 36, 4
NUMBERS = {  # so that a kill hits the run under way: a step takes long enough, and there are enough of them
    "train.max_steps": STEPS,
    "train.checkpoint_every": CHECKPOINT,
    "train.validate_every": 12,
    "train.microbatch_tokens": 100,
    "model.d_model": 64,
    "model.dropout": 0.2,
    # With 1 rounding decides the sign of a gradient of nearly 0, and Adam makes a whole step of it; with 2, 3 and 4 two
    # processes stay within 6e-7 of one.
    "train.seed": 2,
}


@pytest.fixture(scope="module")
def arguments(train_arguments):
    """A longer run than that of the other journeys, with dropout."""
    changes = [f"{key}={value}" for key, value in NUMBERS.items()]
    return [*map(str, train_arguments), *[part for change in changes for part in ("--set", change)]]


@pytest.fixture(scope="module")
def undisturbed(arguments, tmp_path_factory):
    """The folder of two processes that nobody disturbs."""
    out = tmp_path_factory.mktemp("undisturbed") / "m"
    code, output = finished("-m", "headway", *arguments, "--out", out)
    assert code == 0, output
    return out


def states(out):
    return sorted((out / "training" / "states").glob("state-*.safetensors"))


def logged(out):
    """Step, loss and scores of every line of the log."""
    lines = (out / "training" / "metrics.jsonl").read_text("utf-8").split("\n")[:-1]
    return [tuple(json.loads(line).get(key) for key in ("event", "step", "loss", "bleu")) for line in lines]


def kill_when(job, out, *, rank, step, killed):
    """Kill a rank as soon as the state of this step, or a later one, is there."""
    while job.poll() is None:
        if states(out) and int(states(out)[-1].stem[-8:]) >= step:
            process = rank_processes(job.pid).get(rank)
            if process is not None:
                os.kill(process, signal.SIGKILL)
                killed.append(process)
                return
        time.sleep(0.005)


def test_a_killed_rank_is_restarted_by_torchrun_and_the_weights_are_those_of_a_run_undisturbed(
    arguments, undisturbed, tmp_path
):
    out, killed = tmp_path / "m", []
    command = ["-m", "headway", *arguments, "--out", out, "--fresh"]  # the restart must not forget again
    with torchrun(*command, restarts=2) as job:
        killer = Thread(target=kill_when, args=(job, out), kwargs={"rank": 1, "step": 8, "killed": killed})
        killer.start()
        output, _ = job.communicate(timeout=240)
        killer.join()
    assert killed, output
    assert job.returncode == 0, output
    begins = [int(step) for step in re.findall(r"going on after step (\d+)", output)]
    assert len(begins) == 1
    assert 8 <= begins[0] < STEPS
    assert begins[0] % CHECKPOINT == 0
    assert (out / "model.safetensors").read_bytes() == (undisturbed / "model.safetensors").read_bytes()
    assert [path.name for path in states(out)] == [path.name for path in states(undisturbed)]
    ours, theirs = (read_weights(states(folder)[-1]) for folder in (out, undisturbed))
    assert {name: array.tobytes() for name, array in ours.items()} == {
        name: array.tobytes() for name, array in theirs.items()
    }
    assert logged(out) == logged(undisturbed)


def test_two_processes_write_the_folder_that_one_writes(arguments, undisturbed, tmp_path):
    out = tmp_path / "m"
    done = headway(*arguments, "--out", out)
    assert done.returncode == 0, done.stderr.decode()
    ours, theirs = (read_weights(folder / "model.safetensors") for folder in (undisturbed, out))
    for name, array in theirs.items():
        assert np.abs(ours[name] - array).max() <= 1e-5 * np.abs(array).max()
    for mine, other in zip(logged(undisturbed), logged(out), strict=True):
        assert mine[:2] == other[:2]
        assert mine[2] == pytest.approx(other[2], abs=1e-5)
    done = headway("translate", "-m", undisturbed, stdin=b"abcde\n")
    assert done.returncode == 0
    assert done.stdout.count(b"\n") == 1


def test_a_stop_signal_to_torchrun_saves_the_state_and_names_the_command(arguments, tmp_path):
    out = tmp_path / "m"
    command = ["-m", "headway", *arguments, "--out", out]
    with torchrun(*command) as job:
        while job.poll() is None and not (states(out) and states(out)[-1].name > "state-00000003"):
            time.sleep(0.01)
        job.send_signal(signal.SIGTERM)
        output, _ = job.communicate(timeout=60)
    (step,) = map(int, re.findall(r"stopped after step (\d+)", output))
    assert states(out)[-1].name == f"state-{step:08d}.safetensors"
    assert output.count("To go on: torchrun --standalone --nproc-per-node=2 -m headway train ") == 1


def test_an_error_is_told_once_with_its_rank_and_leaves_no_process(tmp_path):
    recipe = tmp_path / "wrong.toml"
    recipe.write_text("[train]\nmax_step = 7\n", encoding="utf-8")
    with torchrun("-m", "headway", "train", recipe, "--out", tmp_path / "m") as job:
        ranks = {}
        while job.poll() is None and len(ranks) < 2:
            ranks |= rank_processes(job.pid)
            time.sleep(0.01)
        output, _ = job.communicate(timeout=120)
    assert job.returncode != 0
    (line,) = [line for line in output.split("\n") if "headway: error" in line]
    assert re.search(r"headway: error: rank [01]: .*max_step.*max_steps", line)
    assert "[rank" not in output  # torch puts it before each line of a rank's traceback
    assert ranks
    assert not any(is_alive(process) for process in ranks.values())
