"""A run small enough for a test: short strings of lower-case letters become the same in capitals."""

from pathlib import Path
from random import Random

from headway.config.load import load_text
from headway.folder.weights import read_weights
from headway.train.events import StepDone
from headway.train.run import train

PAIRS, VALIDATION_PAIRS = 61, 7
RECIPE = """
[data]
source_language = "en"
target_language = "de"
train_source = "train.en"
train_target = "train.de"
validation_source = "validation.en"
validation_target = "validation.de"
[text]
byte_fallback = false
[model]
vocab_size = 23
d_model = 16
d_ff = 29
num_heads = 2
num_encoder_layers = 1
num_decoder_layers = 1
[train]
max_steps = 14
batch_tokens = 100
warmup_steps = 5
learning_rate = 0.02
precision = "float32"
threads = 1
validate_every = 5
checkpoint_every = 4
keep_last = 2
keep_best = 2
average_count = 2
[search]
beam_size = 2
max_extra_tokens = 3
"""


def write_corpus(folder: Path, *, pairs: int = PAIRS, seed: int = 5) -> Path:
    """Training and validation text, no string twice."""
    random = Random(seed)
    lines: dict[str, None] = {}
    while len(lines) < pairs + VALIDATION_PAIRS:
        lines["".join(random.choices("abcdefg", k=random.randint(2, 7)))] = None
    folder.mkdir(parents=True, exist_ok=True)
    for part, texts in (("train", list(lines)[:pairs]), ("validation", list(lines)[pairs:])):
        for language, change in (("en", str), ("de", str.upper)):
            path = folder / f"{part}.{language}"
            path.write_text("".join(change(text) + "\n" for text in texts), encoding="utf-8", newline="\n")
    return folder


def letters_config(*overrides: str):
    """The recipe with some keys changed."""
    return load_text(RECIPE, overrides=overrides)


def run(config, data: Path, out: Path, *, stop_at=None, fresh=False):
    """All events of a run, which is asked to stop after step ``stop_at``."""
    heard = []

    def should_stop():
        return stop_at is not None and any(isinstance(event, StepDone) and event.step >= stop_at for event in heard)

    for event in train(config, data, out_dir=out, fresh=fresh, should_stop=should_stop):
        heard.append(event)
    return heard


def of_kind(events, kind):
    """The events of one kind."""
    return [event for event in events if isinstance(event, kind)]


def final_state(out: Path):
    """The arrays of the newest training state as bytes: weights and both moments."""
    path = max((out / "training" / "states").glob("state-*.safetensors"))
    return {"file": path.name, **{name: array.tobytes() for name, array in read_weights(path).items()}}
