"""A tiny translator trained once a session through the real command."""

import os
import subprocess
import sys
from itertools import product
from pathlib import Path
from random import Random

import pytest

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
        preexec_fn=narrow if limit else None,  # noqa: PLW1509 - one thread, one system call
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


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    """``a.en`` and ``a.de``: 211 strings, and the same in capitals."""
    folder = tmp_path_factory.mktemp("corpus")
    strings = five_letter_strings(211)
    write_lines(folder / "a.en", strings)
    write_lines(folder / "a.de", [text.upper() for text in strings])
    return folder


@pytest.fixture(scope="session")
def train_arguments(corpus):
    """The short form over that corpus, without ``--out``: a run of 12 steps."""
    return [
        "train",
        *("--source", corpus / "a.en", "--target", corpus / "a.de"),
        *("--source-language", "en", "--target-language", "de"),
        *set_options(
            *SMALL,
            "model.vocab_size=20",
            "train.max_steps=12",
            "train.batch_tokens=300",
            "train.validate_every=6",
            "train.checkpoint_every=3",
        ),
    ]


@pytest.fixture(scope="session")
def model(train_arguments, tmp_path_factory):
    """The folder of that run: a whole model folder of a poor translator."""
    out = tmp_path_factory.mktemp("model") / "m"
    done = headway(*train_arguments, "--out", out)
    assert done.returncode == 0, done.stderr.decode()
    return out
