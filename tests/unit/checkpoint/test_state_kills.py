"""Trap 4: a run killed while it saves, fifty times over, always has a whole state to go on from."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

# Each child saves the next state and dies of SIGXFSZ, as suddenly as of SIGKILL, at a byte drawn from a seed: while the
# file is written, or (a third of the draws) not at all. A child that saved says so by its exit code.
FIFTY_SAVES = """
    import os, random, resource, signal, sys
    from pathlib import Path
    sys.path.insert(0, sys.argv[1])
    from test_state import state_at
    from headway.checkpoint.state import load_state, save_state, state_files

    folder, bytes_drawn = Path(sys.argv[2]), random.Random(7)
    newest, killed = 0, 0
    size = save_state(folder, state_at(newest, size=997)).stat().st_size
    for _ in range(50):
        limit = bytes_drawn.randrange(size * 3 // 2)
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
            save_state(folder, state_at(newest + 1, size=997))
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert status in (0, -signal.SIGXFSZ), status
        newest, killed = newest + (status == 0), killed + (status != 0)
        state, problems = load_state(folder)
        assert problems == [], problems
        assert state.progress.step == newest, (state.progress.step, newest)
        for name, array in state_at(newest, size=997).tensors.items():
            assert state.tensors[name].tobytes() == array.tobytes(), name
        assert len(state_files(folder)) <= 2
    print(killed, newest)
"""


@pytest.mark.skipif(os.name != "posix", reason="file size limits and forks are POSIX")
def test_fifty_saves_killed_at_any_byte_leave_only_whole_states(tmp_path):
    command = [sys.executable, "-c", textwrap.dedent(FIFTY_SAVES), str(Path(__file__).parent), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    killed, saved = map(int, done.stdout.split())
    assert killed + saved == 50
    assert min(killed, saved) >= 7
