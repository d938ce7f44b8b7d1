"""Plain text, then few labelled texts, then the labels of new ones, through the real commands."""

import json

import pytest
from journey_command import headway, set_options, write_lines

from headway.cli.main import main

KEYS = (
    "text.byte_fallback=false",
    "model.d_model=16",
    "model.d_ff=32",
    "model.num_heads=2",
    "model.num_encoder_layers=1",
    "model.vocab_size=19",
    "train.precision=float32",
    "train.threads=1",
    "train.warmup_steps=10",
    "train.learning_rate=0.005",
    "train.batch_tokens=600",
)
WORDS = [f"{first}{second}" for first in "abcd" for second in "efgh"]


@pytest.fixture(scope="module")
def classifier(tmp_path_factory):
    """Texts of small letters; what begins with an a or b is of the first half."""
    folder = tmp_path_factory.mktemp("classify")
    texts = [f"{one} {other}" for one in WORDS for other in WORDS]
    write_lines(folder / "plain.txt", texts)
    write_lines(folder / "labelled.tsv", [f"{'first' if text[0] in 'ab' else 'second'}\t{text}" for text in texts[::3]])
    write_lines(folder / "new.tsv", [f"{'first' if text[0] in 'ab' else 'second'}\t{text}" for text in texts[1::3]])
    write_lines(folder / "new.txt", texts[1::3])
    data = ("--data", folder)
    steps = ("train.max_steps=40", "train.validate_every=20", "train.checkpoint_every=20")
    done = headway(
        *("train", "masked", *data, "--out", folder / "pre"),
        *set_options(*KEYS, *steps, "data.train_source=plain.txt", "model.max_positions=20"),
    )
    assert done.returncode == 0, done.stderr.decode()
    assert "Fine-tune: headway train classify --init" in done.stderr.decode()
    more = ("train.max_steps=150", "train.validate_every=50", "train.checkpoint_every=50", *KEYS[-5:])
    done = headway(
        *("train", "classify", *data, "--init", folder / "pre", "--out", folder / "m"),
        *set_options("data.train_source=labelled.tsv", *more),
    )
    assert done.returncode == 0, done.stderr.decode()
    return folder, done


def test_new_texts_get_their_labels(classifier, capsys):
    folder, done = classifier
    assert "labels: first, second" in done.stderr.decode()
    assert "accuracy" in done.stderr.decode()
    assert main(["classify", "-m", str(folder / "m"), str(folder / "new.txt")]) == 0
    found = capsys.readouterr().out.splitlines()
    wanted = [line.split("\t")[0] for line in (folder / "new.tsv").read_text().splitlines()]
    assert len(found) == len(wanted)
    assert sum(map(str.__eq__, found, wanted)) > 0.95 * len(wanted)
    evaluate = ["evaluate", "--task", "classification", "-m", str(folder / "m"), "--reference", str(folder / "new.tsv")]
    assert main([*evaluate, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["right"] == sum(map(str.__eq__, found, wanted))
    assert told["low"] <= told["accuracy"] <= told["high"]
    assert main(evaluate) == 0
    assert f"accuracy {told['accuracy']:.1%}" in capsys.readouterr().out
    write_lines(folder / "always-first", ["first"] * len(wanted))
    baseline = ["--baseline", str(folder / "always-first")]
    assert main([*evaluate, *baseline, "--json"]) == 0
    compared = json.loads(capsys.readouterr().out)["comparison"]
    right = [label == "first" for label in wanted]
    assert compared["difference"] == pytest.approx(told["accuracy"] - sum(right) / len(right))
    assert compared["low"] > 0
    assert main([*evaluate, *baseline]) == 0
    assert "against the baseline +" in capsys.readouterr().out
    write_lines(folder / "too-few", ["first"])
    assert main([*evaluate, "--baseline", str(folder / "too-few")]) == 2
    assert f"too-few has 1 lines, {folder / 'new.tsv'} has {len(wanted)} labelled texts" in capsys.readouterr().err


def test_jsonl_has_the_probability_of_each_label(classifier, capsys, tmp_path):
    folder, _ = classifier
    write_lines(tmp_path / "texts", ["ae bf", "dg ch"])
    assert main(["classify", "-m", str(folder / "m"), str(tmp_path / "texts"), "--format", "jsonl"]) == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [record["text"] for record in records] == ["ae bf", "dg ch"]
    for record in records:
        assert set(record["probabilities"]) == {"first", "second"}
        assert record["label"] == max(record["probabilities"], key=record["probabilities"].get)


def test_a_model_without_labels_says_what_to_do(classifier, capsys):
    folder, _ = classifier
    assert main(["classify", "-m", str(folder / "pre"), str(folder / "new.txt")]) == 2
    assert "Train one that begins with it: headway train classify --init" in capsys.readouterr().err
