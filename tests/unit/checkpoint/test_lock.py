"""Two trainings never share a folder."""

import subprocess
import sys

import pytest

from headway.checkpoint.lock import locked
from headway.errors import CheckpointError

HOLD = """
import sys, time
from pathlib import Path
from headway.checkpoint.lock import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_folder_that_another_process_holds_is_refused_until_that_process_is_gone(tmp_path):
    with subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(CheckpointError, match="another process is training"), locked(tmp_path):
            pass
        holder.kill()
    with locked(tmp_path):
        pass


def test_a_folder_is_free_again_after_an_error(tmp_path):
    with pytest.raises(KeyError), locked(tmp_path):
        raise KeyError
    with locked(tmp_path):
        pass
