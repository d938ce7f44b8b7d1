"""Runs over one text, small enough for a test: strings in which each letter is followed by one of two."""

from pathlib import Path
from random import Random

from headway.config.load import load_text

LINES, VALIDATION_LINES = 61, 11
RECIPE = """
[data]
format = "text"
train_source = "train.txt"
validation_source = "validation.txt"
[text]
byte_fallback = false
[model]
architecture = "decoder_only"
vocab_size = 13
d_model = 16
d_ff = 29
num_heads = 2
num_decoder_layers = 1
[train]
max_steps = 14
batch_tokens = 100
warmup_steps = 5
learning_rate = 0.02
label_smoothing = 0.0
precision = "float32"
threads = 1
validate_every = 5
checkpoint_every = 4
keep_last = 2
keep_best = 2
average_count = 2
best_by = "loss"
"""

PARTS = ("train", "validation")
LABELLED_KEYS = (
    "model.architecture=encoder_only",
    "model.num_encoder_layers=1",
    "model.vocab_size=17",
    "model.dropout=0.0",
    "train.objective=labels",
    "train.best_by=accuracy",
    "train.average=none",
    "data.format=tsv",
    "data.train_source=train.tsv",
    "data.validation_source=validation.tsv",
    "data.source_field=2",
    "data.target_field=1",
    "train.max_steps=60",
    "train.batch_tokens=200",
    "train.validate_every=20",
)


def chain(random: Random, length: int) -> str:
    """A string whose letters step forward by 1 or 3 in the alphabet a to g."""
    place = random.randrange(7)
    letters = [place]
    for _ in range(length - 1):
        place = (place + random.choice((1, 3))) % 7
        letters.append(place)
    return " ".join("abcdefg"[letter] for letter in letters)


def write_text(folder: Path, *, lines: int = LINES, seed: int = 5) -> Path:
    """Training and validation text, no line twice."""
    random = Random(seed)
    texts: dict[str, None] = {}
    while len(texts) < lines + VALIDATION_LINES:
        texts[chain(random, random.randint(3, 8))] = None
    folder.mkdir(parents=True, exist_ok=True)
    for part, own in (("train", list(texts)[:lines]), ("validation", list(texts)[lines:])):
        (folder / f"{part}.txt").write_text("".join(text + "\n" for text in own), encoding="utf-8", newline="\n")
    return folder


def text_config(*overrides: str):
    """The recipe with some keys changed."""
    return load_text(RECIPE, overrides=overrides)


def write_labelled(folder: Path) -> Path:
    """Chains of letters; the label says whether the first letter is one of a, b, c."""
    write_text(folder, lines=120)
    for part in PARTS:
        texts = (folder / f"{part}.txt").read_text().split("\n")[:-1]
        rows = [f"{'early' if text[0] in 'abc' else 'late letter'}\t{text}\n" for text in texts]
        (folder / f"{part}.tsv").write_text("".join(rows))
    return folder
