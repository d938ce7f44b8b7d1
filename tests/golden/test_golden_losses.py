"""The first 20 losses of a tiny run: a change that moves them has changed what training computes.

Made by: python tests/golden/test_golden_losses.py   (writes losses.json beside it; say in the commit why they moved)
"""

import json
import sys
import tempfile
from pathlib import Path

import pytest

from headway.config.load import load_text
from headway.train.events import StepDone
from headway.train.run import train

GOLDEN = Path(__file__).with_name("losses.json")
COMMAND = "python tests/golden/test_golden_losses.py"
RECIPE = """
[data]
source_language = "en"
target_language = "de"
train_source = "text"
train_target = "text"
validation_source = "text"
validation_target = "text"
[clean]
drop_identical = false
[text]
byte_fallback = false
[model]
vocab_size = 17
d_model = 16
d_ff = 29
num_heads = 2
num_encoder_layers = 2
num_decoder_layers = 2
attention_bias = true
[train]
seed = 7
max_steps = 20
batch_tokens = 200
microbatch_tokens = 120
warmup_steps = 7
learning_rate = 0.01
clip_norm = 2.0
precision = "float32"
threads = 1
device = "cpu"
validate_every = 97
checkpoint_every = 97
average = "none"
[search]
beam_size = 1
max_extra_tokens = 3
"""


def copy_corpus() -> str:
    """101 different strings of letters, made by counting: no random numbers."""
    texts = [
        "".join("abcdefghijk"[(number * step + step) % 11] for step in range(2, 4 + number % 5))
        for number in range(997)
    ]
    return "".join(text + "\n" for text in list(dict.fromkeys(texts))[:101])


def losses(folder: Path) -> list[dict[str, float]]:
    """Step, smoothed loss and -log p (nats a target token) of every step."""
    (folder / "text").write_text(copy_corpus(), encoding="utf-8", newline="\n")
    events = train(load_text(RECIPE), folder, out_dir=folder / "out")
    told = [event for event in events if isinstance(event, StepDone)]
    return [{"step": event.step, "loss": round(event.loss, 7), "nll": round(event.nll, 7)} for event in told]


def test_the_first_twenty_losses_are_those_of_the_golden_file(tmp_path):
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))
    assert golden["made_by"] == COMMAND
    found = losses(tmp_path)
    assert [row["step"] for row in found] == list(range(1, 21))
    for key in ("loss", "nll"):
        assert [row[key] for row in found] == pytest.approx([row[key] for row in golden["losses"]], abs=1e-5)


def test_the_golden_run_learns():
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))["losses"]
    assert golden[-1]["loss"] < golden[0]["loss"] - 0.5


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        rows = losses(Path(name))
    lines = ",\n".join(f"    {json.dumps(row)}" for row in rows)
    GOLDEN.write_text(f'{{\n  "made_by": "{COMMAND}",\n  "losses": [\n{lines}\n  ]\n}}\n', encoding="utf-8")
    sys.stdout.write(f"{GOLDEN.name}: {rows[0]['loss']} to {rows[-1]['loss']}\n")
