"""Are two processes one? The same run by one process and under torchrun: difference of the weights, and time.

The corpus is drawn from a seed. Both runs have as many threads in all: one process takes ``--processes`` threads, each
of several takes one. The difference is the largest over all weights, against the largest weight of the same matrix.
Seconds are of training alone, as the run itself counts them, with validations.

    python bench/distributed.py --processes 2 --steps 60 --work runs/distributed
"""

import argparse
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
warmup_steps = 20
learning_rate = 0.002
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


def train(work: Path, name: str, *, command: list[str], threads: int, keys: list[str]) -> float:
    """Run one command to its end; the seconds it trained."""
    out = work / name
    shutil.rmtree(out, ignore_errors=True)
    changes = [part for key in keys for part in ("--set", key)]
    subprocess.run(
        [*command, "headway", "train", str(work / "recipe.toml"), "--data", str(work), "--out", str(out), *changes],
        check=True,
        capture_output=True,
        env={**os.environ, "OMP_NUM_THREADS": str(threads)},
    )
    return state(out).progress.seconds


def state(out: Path):  # noqa: ANN201 - a script's own name for what load_state gives
    """The newest training state of a run."""
    found, _ = load_state(out / "training" / "states")
    assert found is not None
    return found


def difference(out: Path, other: Path) -> float:
    """The largest over all weights, against the largest weight of the same matrix."""
    mine, theirs = (state(folder).part("model") for folder in (out, other))
    return max(float(np.abs(mine[name] - theirs[name]).max() / np.abs(theirs[name]).max()) for name in theirs)


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
    one = train(work, "one", command=[sys.executable, "-m"], threads=count, keys=[])
    print(f"one process, {count} threads: {one:.1f} s for {settings.steps} steps")
    for name, keys in (("none", []), ("fsdp", ["train.sharding=fsdp"])):
        seconds = train(work, name, command=torchrun, threads=1, keys=keys)
        apart = difference(work / name, work / "one")
        print(
            f"{count} processes, sharding {name}: {seconds:.1f} s, {one / seconds:.2f} times as fast; apart {apart:.1e}"
        )


if __name__ == "__main__":
    main()
