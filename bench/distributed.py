"""Are two processes one? The same run by one process and under torchrun: difference of the weights, and time.

The corpus is drawn from a seed. One process trains with one thread, which is what the others are held to, and with as
many threads as there are processes. Told are the largest difference of a weight, against the largest weight of the same
matrix, the same for the middle one of the matrices, and the largest difference of a step's loss. Rounding grows with
the steps (a ReLU at its kink, Adam on a gradient next to nothing): the row of threads says how much of it any change
of the order of sums brings. Seconds are of training alone, as the run itself counts them.

    python bench/distributed.py --processes 2 --steps 60 --work runs/distributed
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from random import Random

import numpy as np

from headway.checkpoint.state import load_state

LETTERS = "abcdefghijklmnopqrst"
RECIPE = """
[data]
source_language = "en"
target_language = "de"
train_source = "a.en"
train_target = "a.de"
[text]
byte_fallback = false
[model]
vocab_size = 500
d_model = {d_model}
d_ff = {d_ff}
num_heads = 4
num_encoder_layers = 3
num_decoder_layers = 3
dropout = 0.1
[train]
max_steps = {steps}
batch_tokens = 4096
microbatch_tokens = 2048
warmup_steps = 200
learning_rate = 0.001
precision = "float32"
validate_every = {steps}
checkpoint_every = {steps}
validation_sentences = 50
"""


def write_corpus(folder: Path, *, pairs: int) -> None:
    """Lines of letter words; the target has them in capitals and in reverse order."""
    random = Random(7)
    folder.mkdir(parents=True, exist_ok=True)
    lines = [
        " ".join("".join(random.choices(LETTERS, k=random.randint(2, 6))) for _ in range(random.randint(3, 20)))
        for _ in range(pairs)
    ]
    (folder / "a.en").write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    reverse = (" ".join(reversed(line.upper().split(" "))) for line in lines)
    (folder / "a.de").write_text("".join(line + "\n" for line in reverse), encoding="utf-8")


def train(work: Path, name: str, *, command: list[str], threads: int, keys: list[str]) -> None:
    """Run one command to its end, and tell how it differs from the run ``one``."""
    out = work / name
    shutil.rmtree(out, ignore_errors=True)
    changes = [part for key in keys for part in ("--set", key)]
    subprocess.run(
        [*command, "headway", "train", str(work / "recipe.toml"), "--data", str(work), "--out", str(out), *changes],
        check=True,
        capture_output=True,
        env={**os.environ, "OMP_NUM_THREADS": str(threads)},
    )
    seconds = state(out).progress.seconds
    weights = weight_differences(out, work / "one")
    mine, theirs = (losses(folder) for folder in (out, work / "one"))
    loss = max(abs(a - b) for a, b in zip(mine, theirs, strict=True))
    faster = state(work / "one").progress.seconds / seconds
    print(
        f"{name:30}{seconds:8.1f} s {faster:6.2f} times as fast   weights apart {weights[-1]:.1e}, "
        f"middle {weights[len(weights) // 2]:.1e}; losses {loss:.1e}",
        flush=True,
    )


def state(out: Path):  # noqa: ANN201 - a script's own name for what load_state gives
    """The newest training state of a run."""
    found, _ = load_state(out / "training" / "states")
    assert found is not None
    return found


def losses(out: Path) -> list[float]:
    """Of every step."""
    lines = (out / "training" / "metrics.jsonl").read_text(encoding="utf-8").split("\n")[:-1]
    return [record["loss"] for record in map(json.loads, lines) if record["event"] == "step"]


def weight_differences(out: Path, other: Path) -> list[float]:
    """Of each matrix the largest, against its largest weight; in order."""
    mine, theirs = (state(folder).part("model") for folder in (out, other))
    return sorted(float(np.abs(mine[name] - theirs[name]).max() / np.abs(theirs[name]).max()) for name in theirs)


def main() -> None:
    """Compare and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--d-model", type=int, default=128)
    parser.add_argument("--work", type=Path, default=Path("runs/distributed"))
    settings = parser.parse_args()
    work = settings.work.absolute()
    write_corpus(work, pairs=5000)
    sizes = RECIPE.format(steps=settings.steps, d_model=settings.d_model, d_ff=4 * settings.d_model)
    (work / "recipe.toml").write_text(sizes, encoding="utf-8")
    count = settings.processes
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={count}", "-m"]
    python = [sys.executable, "-m"]
    train(work, "one", command=python, threads=1, keys=[])
    train(work, f"one, {count} threads", command=python, threads=count, keys=[])
    train(work, f"{count} processes", command=torchrun, threads=1, keys=[])
    train(work, f"{count} processes, fsdp", command=torchrun, threads=1, keys=["train.sharding=fsdp"])


if __name__ == "__main__":
    main()
