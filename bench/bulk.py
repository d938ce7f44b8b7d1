"""Lines a second of one process, of two shards side by side, and of two workers on Ray, in one run.

Usage: python bench/bulk.py MODEL FILE
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path


def seconds(commands: list[list[str]]) -> float:
    """How long these take side by side, starting included."""
    start = time.perf_counter()
    running = [subprocess.Popen(command) for command in commands]
    codes = [process.wait() for process in running]
    if any(codes):
        raise SystemExit("a command failed")
    return time.perf_counter() - start


def main() -> None:
    """Measure and compare."""
    model, file = sys.argv[1:]
    lines = Path(file).read_bytes().count(b"\n")
    with tempfile.TemporaryDirectory() as folder:
        outs = {name: f"{folder}/{name}" for name in ("one", "shards", "ray")}
        base = [sys.executable, "-m", "headway", "translate", file, "-m", model, "--threads", "1", "-o"]
        taken = {
            "one": seconds([[*base, outs["one"]]]),
            "shards": seconds([[*base, outs["shards"], "--shard", f"{index}/2"] for index in (1, 2)]),
            "ray": seconds([[*base, outs["ray"], "--ray", "--ray-workers", "2"]]),
        }
        whole = Path(outs["one"]).read_bytes()
        for name, time_taken in taken.items():
            is_same = Path(outs[name]).read_bytes() == whole
            speed, ratio = lines / time_taken, taken["one"] / time_taken
            print(
                f"{name:6}  {speed:8,.1f} lines/s  {ratio:.2f} x one process  {'same bytes' if is_same else 'DIFFERS'}"
            )


if __name__ == "__main__":
    main()
