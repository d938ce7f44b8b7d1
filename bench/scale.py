"""How much memory does a large corpus take, from its text to a hundred steps of training? Everything in one process.

The text is that of ``bench/prepare.py``; the model is small, so that what is measured is the corpus. Memory is what the
system says of the process every tenth of a second (``VmRSS``: files that are mapped count where they have been read),
and the most that the system itself saw.

    python bench/scale.py --pairs 5000000 --work /tmp/scale
"""

import argparse
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from headway.config.toml import to_toml
from prepare import generated, recipe

MODEL = {"d_model": 64, "d_ff": 128, "num_heads": 2, "num_encoder_layers": 1, "num_decoder_layers": 1}
INTERVAL = 0.1  # seconds between two looks at the process


@dataclass
class Parts:
    """What the process held at most, and how long it took, in each part of its work."""

    prepared: Path  # the file that preparing ends with
    begin: float = field(default_factory=time.monotonic)
    most: dict[str, int] = field(default_factory=dict[str, int])  # KiB
    ends: dict[str, float] = field(default_factory=dict[str, float])

    def look(self, process_id: int) -> None:
        """Note the memory of this moment under the part that is on."""
        try:
            status = Path(f"/proc/{process_id}/status").read_text()
        except OSError:  # it has ended
            return
        held = [int(line.split()[1]) for line in status.split("\n") if line.startswith("VmRSS:")]
        name = "train" if self.prepared.exists() else "prepare"
        self.most[name] = max(self.most.get(name, 0), *held, 0)
        self.ends[name] = time.monotonic() - self.begin


def measure(command: list[str], parts: Parts, log: Path) -> int:
    """Run a command to its end; give the most KiB that it held, by the system's count."""
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
    while True:
        ended, status, usage = os.wait4(process.pid, os.WNOHANG)
        if ended:
            break
        parts.look(process.pid)
        time.sleep(INTERVAL)
    if os.waitstatus_to_exitcode(status) != 0:
        raise SystemExit(f"{' '.join(command)} failed:\n{log.read_text()}")
    return usage.ru_maxrss


def main() -> None:
    """Generate the text where it is not there yet, then prepare it and train on it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=5_000_000)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--batch-tokens", type=int, default=4096)
    parser.add_argument("--vocab-size", type=int, default=32_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--work", type=Path, required=True, help="a folder for the text and the run")
    arguments = parser.parse_args()
    text = generated(arguments.work, num_pairs=arguments.pairs, seed=arguments.seed)
    run = text / "run"
    shutil.rmtree(run, ignore_errors=True)
    train = {
        "max_steps": arguments.steps,
        "batch_tokens": arguments.batch_tokens,
        "warmup_steps": 50,
        "threads": 1,
        "device": "cpu",
        "precision": "float32",
        "validation_sentences": 20,
        "average": "none",
    }
    sections: dict[str, dict[str, object]] = {"train": train, "search": {"beam_size": 1, "max_extra_tokens": 1}}
    config = recipe(vocab_size=arguments.vocab_size, sections=sections, model=MODEL, held_out_pairs=100)
    (text / "scale.toml").write_text(to_toml(config), encoding="utf-8")
    command = [sys.executable, "-m", "headway", "train", str(text / "scale.toml"), "--data", str(text)]
    parts = Parts(run / "training" / "data" / "prepared.json")
    most = measure([*command, "--out", str(run)], parts, text / "scale.log")
    print((text / "scale.log").read_text())
    begin = 0.0
    for name, held in parts.most.items():
        print(f"{name:10} {parts.ends[name] - begin:8.1f} s {held / 1024:8.0f} MiB at most")
        begin = parts.ends[name]
    print(f"{arguments.pairs:,} pairs, {arguments.steps} steps: {most / 1024:.0f} MiB at most")


if __name__ == "__main__":
    main()
