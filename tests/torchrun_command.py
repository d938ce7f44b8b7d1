"""torchrun with two processes on this machine, which leaves none behind."""

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

PROCESSES = 2
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUTF8": "1", "PYTHONWARNINGS": "ignore"}


@contextmanager
def torchrun(*arguments, restarts=0):
    """The job under way, its two outputs in one pipe; at the end of the block it is over."""
    options = ["--standalone", f"--nproc-per-node={PROCESSES}", f"--max-restarts={restarts}", "--monitor-interval=0.1"]
    job = subprocess.Popen(
        [sys.executable, "-m", "torch.distributed.run", *options, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        env=ENVIRONMENT,
    )
    try:
        yield job
    finally:
        ranks = rank_processes(job.pid)
        if job.poll() is None:
            job.terminate()
            try:
                job.wait(timeout=10)
            except subprocess.TimeoutExpired:
                job.kill()
        for process in ranks.values():
            if is_alive(process):
                os.kill(process, signal.SIGKILL)


def finished(*arguments, restarts=0, timeout=240):
    """Exit code and output of a job."""
    with torchrun(*arguments, restarts=restarts) as job:
        output, _ = job.communicate(timeout=timeout)
        return job.returncode, output


def rank_processes(parent):
    """The processes of a job by their rank, as Linux tells them; none where it does not."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state = (folder / "stat").read_text().rpartition(")")[2].split()
            variables = (folder / "environ").read_bytes().split(b"\0")
        except OSError:  # it has ended meanwhile
            continue
        ranks = [int(variable[5:]) for variable in variables if variable.startswith(b"RANK=")]
        if int(state[1]) == parent and ranks:
            found[ranks[0]] = int(folder.name)
    return found


def is_alive(process):
    """Whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
