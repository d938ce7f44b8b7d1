"""Training states: what comes back, how many stay, and that damage is recognised."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.checkpoint.state import Progress, Scores, TrainingState, load_state, save_state, state_files
from headway.errors import CheckpointError


def state_at(step, *, size=13):
    random = np.random.default_rng(step)
    progress = Progress(
        step=step,
        epoch=step // 5,
        epoch_step=step % 5,
        seconds=1.5 * step,
        precision="bf16",
        threads=2,
        data_digest="digest",
        validations=(Scores(step=3, loss=2.5, perplexity=7.0, bleu=11.0, chrf=13.0),),
        kept_weights=(2, 3),
    )
    names = ("model/a", "model/b.weight", "first/a", "second/a")
    return TrainingState(progress, {name: random.standard_normal((size, 7)).astype(np.float32) for name in names})


def test_a_state_comes_back_to_the_bit(tmp_path):
    state = state_at(17)
    path = save_state(tmp_path / "states", state)
    assert path.name == "state-00000017.safetensors"
    loaded, problems = load_state(tmp_path / "states")
    assert problems == []
    assert loaded.progress == state.progress
    assert loaded.tensors.keys() == state.tensors.keys()
    for name, array in state.tensors.items():
        assert loaded.tensors[name].dtype == array.dtype
        assert loaded.tensors[name].tobytes() == array.tobytes()
    assert loaded.part("model").keys() == {"a", "b.weight"}
    assert loaded.part("first").keys() == {"a"}


def test_a_folder_without_states_is_a_run_not_begun(tmp_path):
    assert load_state(tmp_path / "nothing") == (None, [])
    tmp_path.joinpath("state-1.safetensors").write_bytes(b"not a name that a state has")
    assert load_state(tmp_path) == (None, [])


def test_only_the_newest_two_stay(tmp_path):
    for step in (3, 7, 11, 101):
        save_state(tmp_path, state_at(step))
    assert [path.name for path in state_files(tmp_path)] == [
        "state-00000101.safetensors",
        "state-00000011.safetensors",
    ]
    assert load_state(tmp_path)[0].progress.step == 101


def truncate(path):
    path.write_bytes(path.read_bytes()[:-5])


def empty(path):
    path.write_bytes(b"")


def flip_a_weight(path):
    content = bytearray(path.read_bytes())
    content[-101] ^= 1
    path.write_bytes(content)


def flip_a_header_length(path):
    content = bytearray(path.read_bytes())
    content[0] ^= 8
    path.write_bytes(content)


def take_progress_out(path):
    content = path.read_bytes()
    assert content.count(b"progress") == 1
    path.write_bytes(content.replace(b"progress", b"progresz"))


DAMAGE = [truncate, empty, flip_a_weight, flip_a_header_length, take_progress_out]


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_newest_state_is_named_and_the_one_before_is_taken(tmp_path, damage):
    for step in (5, 9):
        save_state(tmp_path, state_at(step))
    newest = state_files(tmp_path)[0]
    damage(newest)
    state, problems = load_state(tmp_path)
    assert state.progress.step == 5
    assert state.tensors["model/a"].tobytes() == state_at(5).tensors["model/a"].tobytes()
    (problem,) = problems
    assert str(newest) in problem


@pytest.mark.parametrize("damage", DAMAGE)
def test_no_whole_state_among_some_is_an_error_not_a_new_beginning(tmp_path, damage):
    for step in (5, 9):
        damage(save_state(tmp_path, state_at(step)))
    with pytest.raises(CheckpointError, match=r"none of 2 training states .*state-00000009.*--fresh") as caught:
        load_state(tmp_path)
    assert "\n" not in str(caught.value)


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_any_flipped_bit_of_the_arrays_is_noticed(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("flip")
    save_state(folder, state_at(5))
    path = save_state(folder, state_at(9))
    content = bytearray(path.read_bytes())
    begin = 8 + int.from_bytes(content[:8], "little")
    position = data.draw(st.integers(begin, len(content) - 1))
    content[position] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(content)
    state, problems = load_state(folder)
    assert state.progress.step == 5
    assert len(problems) == 1


def test_what_a_kill_left_half_written_is_no_state(tmp_path):
    path = save_state(tmp_path, state_at(5))
    path.with_name("state-00000009.safetensors.part").write_bytes(path.read_bytes()[:100])
    state, problems = load_state(tmp_path)
    assert (state.progress.step, problems) == (5, [])


def test_the_next_state_removes_what_a_kill_left_half_written(tmp_path):
    (tmp_path / "state-00000003.safetensors.part").write_bytes(b"half")
    path = save_state(tmp_path, state_at(5))
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(os.name != "posix", reason="file size limits are POSIX")
def test_a_full_disk_leaves_the_old_state_whole_and_no_other(tmp_path):
    """Trap 4: the file may not grow beyond a third of what the state needs."""
    save_state(tmp_path, state_at(5, size=997))
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    script = textwrap.dedent(
        f"""
        import resource, sys
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        from pathlib import Path
        from test_state import state_at
        from headway.checkpoint.state import save_state
        resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))
        try:
            save_state(Path({str(tmp_path)!r}), state_at(9, size=997))
        except OSError as error:
            print(error.strerror)
        """
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "File too large\n"
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert load_state(tmp_path)[0].progress.step == 5
