"""headway train: what it refuses, what a refusal leaves alone, where it may be stopped, and what it writes down."""

import json
import re
import signal
import subprocess
import sys

import pytest
import torch

from headway.cli.main import main
from headway.config.load import load
from headway.data.prepare import prepare
from headway.train.events import Finished, Interrupted, Validated
from headway.train.run import train

KEYS = (
    "data.source_language=en",
    "data.target_language=de",
    "data.train_source=a.en",
    "data.train_target=a.de",
    "text.byte_fallback=false",
    "model.vocab_size=31",
    "model.d_model=8",
    "model.d_ff=13",
    "model.num_heads=2",
    "model.num_encoder_layers=1",
    "model.num_decoder_layers=1",
    "train.precision=float32",
    "train.threads=1",
    "train.max_steps=1",
    "train.batch_tokens=97",
    "train.early_stopping=none",
    "search.beam_size=1",
    "search.max_extra_tokens=2",
)
PAIRS = 53


@pytest.fixture
def data(tmp_path):
    """``a.en`` and ``a.de``: numbers as letters, two to eleven of them, and the same in capitals."""
    texts = [
        "".join("abcdefghij"[int(digit)] for digit in str(7 ** (1 + number % 13) + number)) for number in range(PAIRS)
    ]
    for language, change in (("en", str), ("de", str.upper)):
        (tmp_path / f"a.{language}").write_bytes("".join(change(text) + "\n" for text in texts).encode())
    return tmp_path


def command(data, *overrides, options=()):
    """Run the command on the folder ``run`` of the data; give its exit code."""
    settings = [part for override in (*KEYS, *overrides) for part in ("--set", override)]
    return main(["train", "short", "--data", str(data), "--out", str(data / "run"), *settings, *options])


def summary(data):
    return json.loads((data / "run" / "config.json").read_text(encoding="utf-8"))["training"]


def everything(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_fresh_start_whose_text_cannot_be_read_leaves_the_earlier_run(data, capsys):
    assert command(data) == 0
    before = everything(data / "run")
    (data / "a.de").unlink()
    assert command(data, options=["--fresh"]) == 2
    assert "a.de does not exist" in capsys.readouterr().err
    assert everything(data / "run") == before


def test_the_command_that_translates_names_a_tag_where_every_corpus_had_one(data, capsys):
    corpus = '{{source = "a.en", target = "a.de"{}}}'
    for second, end in ((', tag = "x"', " --tag y\n"), ("", "\n")):
        first = corpus.format(', tag = "y"')
        corpora = f"data.corpora=[{first}, {corpus.format(second)}]"
        whole = ("data.train_source=", "data.train_target=", corpora)
        assert command(data, *whole, options=["--fresh"]) == 0
        assert capsys.readouterr().err.endswith(f"| headway translate -m {data / 'run'}{end}")


def test_a_part_of_an_epoch_is_told_as_a_part(data):
    assert command(data) == 0
    after_one_step = summary(data)
    assert command(data, "train.max_steps=1000", "train.max_epochs=1") == 0
    whole = summary(data)
    assert (after_one_step["steps"], whole["epochs"]) == (1, 1.0)
    assert whole["steps"] > 2
    assert after_one_step["epochs"] == pytest.approx(1 / whole["steps"])


def test_the_pairs_on_the_card_add_up_with_long_ones_held_out(data):
    assert command(data, "data.max_tokens=6", "data.held_out_share=0.3") == 0
    card = (data / "run" / "README.md").read_text(encoding="utf-8")
    numbers = {name: int(count) for name, count in re.findall(r"^\| ([a-z][\w :.]*) \| (\d+) \|$", card, re.MULTILINE)}
    validation = json.loads((data / "run" / "training" / "data" / "prepared.json").read_text("utf-8"))["validation"]
    assert validation["too_long"]["count"] > 0
    dropped = sum(count for name, count in numbers.items() if name.startswith("dropped"))
    assert numbers["read"] == PAIRS == dropped + numbers["trained on"] + numbers["validation"]


def test_a_stop_asked_for_in_the_last_validation_is_heard_and_the_run_ends_when_started_again(data):
    config = load("short", overrides=KEYS)
    heard = []
    for event in train(
        config,
        data,
        out_dir=data / "run",
        should_stop=lambda: any(isinstance(event, Validated) for event in heard),
    ):
        heard.append(event)
    assert heard[-1] == Interrupted(1)
    assert not (data / "run" / "config.json").exists()
    again = list(train(config, data, out_dir=data / "run"))
    assert isinstance(again[-1], Finished)
    assert not any(isinstance(event, Validated) for event in again)


def test_a_sentence_beyond_a_learned_table_is_refused_before_training(data, capsys):
    assert command(data, "model.positions=learned", "model.max_positions=7") == 2
    error = capsys.readouterr().err
    assert re.search(r"the longest sentence has \d+ tokens, EOS counted; model\.max_positions is 7 ", error)
    assert not list((data / "run" / "training").glob("states/*"))
    assert command(data, "model.positions=learned", "model.max_positions=29") == 0
    before = everything(data / "run" / "training" / "states")
    assert command(data, "model.positions=learned", "model.max_positions=7", options=["--fresh"]) == 2
    assert everything(data / "run" / "training" / "states") == before


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has the device that the test wants missing")
def test_a_device_that_is_not_there_is_refused(data, capsys):
    assert command(data, "train.device=cuda") == 2
    assert "device cuda was asked for" in capsys.readouterr().err


def test_a_packaged_recipe_without_its_text_says_where_to_name_it(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HEADWAY_DATA", raising=False)
    assert main(["train", "masked"]) == 2
    told = capsys.readouterr().err
    assert "train.txt does not exist; wanted training text" in told
    assert "--data DIR, or another file (--set data.train_source=FILE)" in told
    assert main(["train", "masked", "--data", "there"]) == 2
    assert "there/train.txt does not exist" in capsys.readouterr().err
    assert not (tmp_path / "runs" / "masked" / "model.safetensors").exists()


def test_text_that_is_missing_is_told_before_torch_is_loaded(tmp_path):
    (tmp_path / "own.toml").write_text('[data]\ntrain_source = "a.en"\ntrain_target = "a.de"\n', encoding="utf-8")
    code = "import sys; from headway.cli.main import main; print(main(['train', 'own.toml']), 'torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "2 False\n"
    assert "a.en does not exist; wanted training text" in done.stderr


def test_what_the_short_form_lacks_is_named(capsys):
    assert main(["train", "--source", "a.en", "--source-language", "en"]) == 2
    assert "no --target-language, --out; wanted a recipe" in capsys.readouterr().err


def test_a_demo_never_replaces_a_run_that_is_none(data, capsys):
    assert command(data) == 0
    before = everything(data / "run")
    assert main(["demo", "--out", str(data / "run")]) == 2
    assert "holds a run that is not a demo" in capsys.readouterr().err
    assert everything(data / "run") == before


def interrupted(data, monkeypatch, *, at_call, options=()):
    """Run the command, with Ctrl-C pressed where ``prepare`` tells of its progress for the ``at_call``-th time."""
    calls = []

    def prepare_interrupted(*arguments, on_progress, **settings):
        def pressed(stage, count):
            calls.append(stage)
            if len(calls) == at_call:
                signal.raise_signal(signal.SIGINT)
            on_progress(stage, count)

        return prepare(*arguments, on_progress=pressed, **settings)

    monkeypatch.setattr("headway.train.run.prepare", prepare_interrupted)
    monkeypatch.setattr("sys.argv", ["headway", "train", "short", *options])
    code = command(data, options=options)
    monkeypatch.undo()
    return code


def test_ctrl_c_while_data_is_prepared_names_the_command_that_goes_on(data, capfd, monkeypatch):
    assert interrupted(data, monkeypatch, at_call=1) == 130
    assert capfd.readouterr().err.endswith("To go on: headway train short\nheadway: interrupted\n")
    assert command(data) == 0


def test_ctrl_c_before_fresh_forgot_the_earlier_run_still_says_fresh(data, capfd, monkeypatch):
    assert command(data) == 0
    before = everything(data / "run")
    (data / "a.en").write_bytes((data / "a.en").read_bytes().replace(b"a", b"k"))
    assert interrupted(data, monkeypatch, at_call=1, options=["--fresh"]) == 130
    assert "To go on: headway train short --fresh\n" in capfd.readouterr().err
    assert {path: before[path] for path in before if path.suffix == ".safetensors"} == {
        path: content for path, content in everything(data / "run").items() if path.suffix == ".safetensors"
    }


def test_a_short_form_that_lacks_an_option_names_it(capsys):
    assert main(["train", "--source", "a.en", "--target", "a.de", "--source-language", "en"]) == 2
    assert "found no recipe, and of the short form no --target-language, --out; wanted" in capsys.readouterr().err


def test_two_files_of_text_are_told_how_they_are_named(capsys):
    assert main(["train", "a.en", "a.de"]) == 2
    assert "wanted one recipe. Files of text are named: --source a.en --target a.de" in capsys.readouterr().err
