"""Lines shared out over several processes through the real command: the bytes of one process, and plain refusals."""

import gzip
import importlib.util
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest
from journey_command import five_letter_strings, headway

needs_ray = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs the extra ray")


@pytest.fixture(scope="module")
def lines(tmp_path_factory):
    """``in``: 301 lines, some blank, with U+2028 or placeholders, the last without a line end; and their phrases."""
    folder = tmp_path_factory.mktemp("bulk")
    random = Random(3)
    words = five_letter_strings(97, seed=5)
    kinds = [lambda: "", lambda: "  ", lambda: "ab\u2028c", lambda: "{x} ab", *[lambda: random.choice(words)] * 3]
    texts = [random.choice(kinds)() for _ in range(300)] + ["abc"]
    (folder / "in").write_bytes("\n".join(texts).encode())
    (folder / "in.gz").write_bytes(gzip.compress((folder / "in").read_bytes()))
    (folder / "phrases").write_text("".join("A\n" if number % 3 == 0 else "\n" for number in range(301)))
    return folder


@pytest.mark.parametrize(
    ("options", "source"),
    [
        (["--format", "jsonl", "--sample", "--seed", "3", "--n-best", "2"], "in.gz"),
        (["--format", "tsv", "--alignment", "--phrases", "phrases", "--beam-size", "2"], "in"),
    ],
)
def test_shards_write_the_bytes_of_one_process(lines, model, tmp_path, options, source):
    whole = headway("translate", source, "-m", model, *options, "-o", tmp_path / "whole.gz", cwd=lines)
    assert whole.returncode == 0, whole.stderr.decode()
    for index in (3, 1, 2):
        shared = ("-o", tmp_path / "out.gz", "--shard", f"{index}/3")
        done = headway("translate", source, "-m", model, *options, *shared, cwd=lines)
        assert done.returncode == 0, done.stderr.decode()
        assert (tmp_path / "out.gz").exists() == (index == 2)
    assert "out.gz: 301 lines from 3 parts" in done.stderr.decode()
    assert (tmp_path / "out.gz").read_bytes() == (tmp_path / "whole.gz").read_bytes()
    other = headway("translate", source, "-m", model, "-o", tmp_path / "out.gz", "--shard", "1/3", cwd=lines)
    assert other.returncode == 2
    assert "was begun otherwise: " in other.stderr.decode()
    assert "--format: there" in other.stderr.decode()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["in", "--shard", "4/3", "-o", "o"], "is not i/n with 1 <= i <= n"),
        (["in", "--shard", "1/2"], "--shard needs -o OUT"),
        (["--shard", "1/2", "-o", "o"], "needs a file"),
        (["in", "--shard", "1/2", "--ray", "-o", "o"], "Give either --shard or --ray"),
        (["in", "--ray-workers", "2"], "would have no effect without --ray"),
        (["in", "--score", "in", "--shard", "1/2", "-o", "o"], "leave out --score"),
        (["--sentence", "a", "--ray"], "leave out --sentence"),
        (["absent", "--shard", "1/2", "-o", "o"], "absent does not exist"),
        (["/dev/stdin", "--shard", "1/2", "-o", "o"], "/dev/stdin is no file"),
    ],
)
def test_what_cannot_be_shared_out_is_refused_in_one_line(lines, model, arguments, message):
    done = headway("translate", *arguments, "-m", model, cwd=lines, stdin=b"a\n")
    assert done.returncode == 2
    assert message in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1
    assert not (lines / "o").exists()


def descendants(process_id):
    """Ids and command lines of the processes below one."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            found[int(folder.name)] = (parent, (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except (OSError, ValueError):
            continue
    below = {process_id}
    while more := {number for number, (parent, _) in found.items() if parent in below} - below:
        below |= more
    return {number: found[number][1] for number in below - {process_id}}


@needs_ray
@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="finds the worker in /proc")
def test_ray_writes_the_bytes_of_one_process_though_a_worker_is_killed_and_leaves_nothing(lines, model, tmp_path):
    (tmp_path / "long").write_bytes((lines / "in").read_bytes() * 13)
    options = ("translate", tmp_path / "long", "-m", model, "--format", "jsonl", "--beam-size", "4")
    whole = headway(*options, "-o", tmp_path / "whole")
    assert whole.returncode == 0, whole.stderr.decode()
    arguments = [*map(str, options), "--ray", "--ray-workers", "2", "--threads", "1", "-o", str(tmp_path / "out")]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUTF8": "1"}
    with subprocess.Popen(
        [sys.executable, "-m", "headway", *arguments], stderr=subprocess.PIPE, env=environment
    ) as run:
        workers, seen = [], {}
        while len(workers) < 2 and run.poll() is None:
            time.sleep(0.2)
            seen = descendants(run.pid)
            workers = [number for number, command in seen.items() if "MapWorker" in command]
        assert workers
        os.kill(workers[0], signal.SIGKILL)
        told = run.stderr.read()
    assert run.returncode == 0, told.decode()
    assert (tmp_path / "out").read_bytes() == (tmp_path / "whole").read_bytes()
    assert told == whole.stderr
    deadline = time.monotonic() + 30  # Ray's own processes are told to end, and do so a moment later
    while left := [number for number in seen if Path(f"/proc/{number}").exists()]:
        assert time.monotonic() < deadline, {number: seen[number] for number in left}
        time.sleep(0.2)
