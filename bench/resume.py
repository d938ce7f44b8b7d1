"""Is a run that was killed again and again the run that was never stopped? Runs of the demo, compared byte for byte.

Each precision has one run of ``headway demo`` to its end. Then as many runs as asked for begin anew, are killed with
SIGKILL at moments drawn from the seed, one to three times each, and are started again by the same command until they
end. What is compared: ``model.safetensors``, and the newest training state (weights, both moments, progress; the
seconds that a run took are left out).

    python bench/resume.py --runs 20 --steps 200 --work runs/resume
"""

import argparse
import json
import random
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from headway.folder.weights import read_metadata, read_weights

PRECISIONS = ("float32", "bf16")
TIMED = "seconds"  # of a training state's progress: the one number that may differ


@dataclass(frozen=True)
class Settings:
    """How long a run is, and where runs are kept."""

    steps: int
    threads: int
    work: Path

    def command(self, out: Path, precision: str) -> list[str]:
        """The one command of a run: it begins, and it goes on."""
        keys = {
            "train.max_steps": self.steps,
            "train.precision": precision,
            "train.threads": self.threads,
            "train.validate_every": max(1, self.steps // 2),
            "train.checkpoint_every": max(1, self.steps // 20),
            "train.validation_sentences": 20,
            "search.beam_size": 1,
        }
        options = [part for key, value in keys.items() for part in ("--set", f"{key}={value}")]
        return [sys.executable, "-m", "headway", "demo", "--out", str(out), *options]


def start(settings: Settings, out: Path, precision: str) -> subprocess.Popen[bytes]:
    """Begin a run, or go on, with its output in a file beside its folder."""
    with out.with_suffix(".log").open("ab") as log:
        return subprocess.Popen(settings.command(out, precision), stdout=log, stderr=log)


def finish(settings: Settings, out: Path, precision: str) -> float:
    """Let a run come to its end; give the seconds that took."""
    begin = time.monotonic()
    if start(settings, out, precision).wait() != 0:
        sys.exit(f"the run in {out} failed; see {out.with_suffix('.log')}")
    return time.monotonic() - begin


def steps_done(out: Path) -> int:
    """The last step in the run's log; 0 before the first."""
    path = out / "training" / "metrics.jsonl"
    if not path.exists():
        return 0
    lines = path.read_bytes().split(b"\n")[:-1]
    return json.loads(lines[-1])["step"] if lines else 0


def kill_sometime(settings: Settings, out: Path, precision: str, moment: random.Random) -> str:
    """Start the run and kill it at a random moment of what it has before it; say when that was."""
    begin = time.monotonic()
    process = start(settings, out, precision)
    at_step = moment.randint(steps_done(out), settings.steps)
    pause = moment.uniform(0.0, 0.5)
    while process.poll() is None and steps_done(out) < at_step:
        time.sleep(0.01)
    time.sleep(pause)
    process.send_signal(signal.SIGKILL)
    if process.wait() == 0:
        return "ended before the kill"
    return f"step {steps_done(out)} ({time.monotonic() - begin:.1f} s)"


def fingerprint(out: Path) -> dict[str, bytes]:
    """All that must be equal, to the bit."""
    state = max((out / "training" / "states").glob("state-*.safetensors"))
    progress = json.loads(read_metadata(state)["progress"])
    del progress[TIMED]
    found = {f"{state.name} {name}": array.tobytes() for name, array in read_weights(state).items()}
    found[f"{state.name} progress"] = json.dumps(progress).encode()
    found["model.safetensors"] = (out / "model.safetensors").read_bytes()
    return found


def main() -> None:
    """Run and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--runs", type=int, default=20, help="runs that are killed, float32 and bf16 in turn [20]")
    parser.add_argument("--steps", type=int, default=200, help="steps of a run [200]")
    parser.add_argument("--threads", type=int, default=2, help="CPU threads of a run [2]")
    parser.add_argument("--seed", type=int, default=1, help="of the moments of the kills [1]")
    parser.add_argument("--work", type=Path, default=Path("runs/resume"), help="an empty folder [runs/resume]")
    parser.add_argument("--precision", choices=PRECISIONS, action="append", help="only this one; may be repeated")
    arguments = parser.parse_args()
    settings = Settings(arguments.steps, arguments.threads, arguments.work)
    settings.work.mkdir(parents=True, exist_ok=True)
    if any(settings.work.iterdir()):
        sys.exit(f"{settings.work} is not empty; name another --work")
    precisions = (arguments.precision or list(PRECISIONS))[: arguments.runs]
    straight: dict[str, dict[str, bytes]] = {}
    for precision in precisions:
        out = settings.work / f"straight-{precision}"
        seconds = finish(settings, out, precision)
        straight[precision] = fingerprint(out)
        print(f"never stopped, {precision}: {settings.steps} steps, {seconds:.0f} s", flush=True)
    equal = 0
    print(f"{'run':>4}  {'precision':9}  verdict    killed at")
    for number in range(1, arguments.runs + 1):
        precision = precisions[(number - 1) % len(precisions)]
        moment = random.Random(f"{arguments.seed} {number}")
        out = settings.work / f"killed-{number}"
        kills = [kill_sometime(settings, out, precision, moment) for _ in range(moment.randint(1, 3))]
        finish(settings, out, precision)
        found, wanted = fingerprint(out), straight[precision]
        unlike = sorted(name for name in found.keys() | wanted.keys() if found.get(name) != wanted.get(name))
        equal += not unlike
        verdict = "bit-equal" if not unlike else "DIFFERENT"
        print(f"{number:4}  {precision:9}  {verdict:9}  {', '.join(kills)}", flush=True)
        if unlike:
            print(f"      differs in {len(unlike)} of {len(wanted)}: {', '.join(unlike[:5])}; kept: {out}")
        else:
            shutil.rmtree(out)
            out.with_suffix(".log").unlink()
    print(f"{equal} of {arguments.runs} bit-equal")
    sys.exit(equal != arguments.runs)


if __name__ == "__main__":
    main()
