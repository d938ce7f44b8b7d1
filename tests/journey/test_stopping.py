"""Signals at the command: SIGTERM and Ctrl-C save and say how to go on; SIGKILL at any moment loses nothing."""

import json
import os
import shlex
import signal
import subprocess
import sys
from random import Random

import pytest
from journey_command import headway

from headway.cli.main import main
from headway.folder.weights import read_weights

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals are POSIX")

# Runs the command and kills it, before the file operation of this number that touches the training files.
KILLED_RUN = """
import os, signal, sys
left = int(sys.argv.pop(1))
def hear(event, arguments):
    global left
    if event in ("open", "os.rename", "os.remove") and "/training/" in str(arguments[0]):
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(hear)
from headway.cli.main import main
sys.exit(main())
"""


def newest_state(out):
    path = max((out / "training" / "states").glob("state-*.safetensors"))
    return path.name, {name: array.tobytes() for name, array in read_weights(path).items()}


def assert_equal_runs(out, model):
    assert (out / "model.safetensors").read_bytes() == (model / "model.safetensors").read_bytes()
    assert newest_state(out) == newest_state(model)
    steps, wanted = (
        [
            (record["event"], record["step"], record["loss"])
            for record in map(json.loads, (folder / "training" / "metrics.jsonl").read_text("utf-8").split("\n")[:-1])
        ]
        for folder in (out, model)
    )
    assert steps == wanted


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_signal_saves_and_prints_the_command_that_goes_on(
    train_arguments, model, tmp_path, monkeypatch, capfd, number
):
    from headway.train import loop

    plain = loop.train_step

    def signalled(model, optimizer, *, step, **more):
        if step == 5:
            os.kill(os.getpid(), number)
        return plain(model, optimizer, step=step, **more)

    arguments = [*map(str, train_arguments), "--out", str(tmp_path / "a folder"), "--fresh"]
    monkeypatch.setattr(sys, "argv", ["headway", *arguments])
    with monkeypatch.context() as patch:
        patch.setattr(loop, "train_step", signalled)
        assert main() == 130
    errors = capfd.readouterr().err
    assert "stopped after step 5" in errors
    assert newest_state(tmp_path / "a folder")[0] == "state-00000005.safetensors"
    (line,) = [line for line in errors.split("\n") if line.startswith("To go on: ")]
    program, *again = shlex.split(line.removeprefix("To go on: "))
    assert program == "headway"
    done = headway(*again)
    assert done.returncode == 0, done.stderr.decode()
    assert b"going on after step 5" in done.stderr
    assert_equal_runs(tmp_path / "a folder", model)


def test_killed_before_any_file_operation_and_started_again_equals_never_stopped(train_arguments, model, tmp_path):
    """Three kills at moments drawn from a seed, among some 100 operations on the run's files; then to the end."""
    random, out = Random(11), tmp_path / "out"
    arguments = [*map(str, train_arguments), "--out", str(out)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    codes = []
    for _ in range(3):
        at = str(random.randint(20, 75))
        killed = subprocess.run(
            [sys.executable, "-c", KILLED_RUN, at, *arguments],
            capture_output=True,
            env=environment,
            timeout=300,
            check=False,
        )
        assert killed.returncode in (0, -signal.SIGKILL), killed.stderr.decode()
        codes.append(killed.returncode)
    assert -signal.SIGKILL in codes
    done = headway(*arguments)
    assert done.returncode == 0, done.stderr.decode()
    assert_equal_runs(out, model)
