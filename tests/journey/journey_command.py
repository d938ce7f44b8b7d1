"""The real command in a process of its own, and text for it."""

import os
import subprocess
import sys
from itertools import product
from pathlib import Path
from random import Random

# Small and quick: eight letters, one layer, greedy. Enough to learn to write a string in capitals, or to reverse it.
SMALL = (
    "text.byte_fallback=false",
    "model.d_model=32",
    "model.d_ff=64",
    "model.num_heads=2",
    "model.num_encoder_layers=1",
    "model.num_decoder_layers=1",
    "model.dropout=0.0",
    "train.precision=float32",
    "train.threads=1",
    "train.warmup_steps=50",
    "train.learning_rate=0.01",
    "train.early_stopping=none",
    "search.beam_size=1",
    "search.max_extra_tokens=4",
)


def headway(*arguments, stdin=None, cwd=None, limit=None):
    """Run the command in a process of its own; ``limit`` is the largest file that it may write, in bytes."""

    def narrow():
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    return subprocess.run(
        [sys.executable, "-m", "headway", *map(str, arguments)],
        input=stdin,
        capture_output=True,
        cwd=cwd,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUTF8": "1"},
        preexec_fn=narrow if limit else None,
        timeout=300,
        check=False,
    )


def set_options(*overrides):
    """``--set`` before each."""
    return [part for override in overrides for part in ("--set", override)]


def five_letter_strings(count, *, letters="abcdefgh", seed=3):
    """Different strings of five letters, in an order drawn from the seed."""
    strings = ["".join(chosen) for chosen in product(letters, repeat=5)]
    return Random(seed).sample(strings, count)


def write_lines(path: Path, lines) -> Path:
    """One line each, ended by a line feed."""
    path.write_bytes("".join(line + "\n" for line in lines).encode("utf-8"))
    return path
