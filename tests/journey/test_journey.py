"""From two files of text to a measured translator, through the real commands."""

import json

import pytest
from journey_command import SMALL, five_letter_strings, headway, set_options, write_lines

from headway.cli.main import main
from headway.folder.contents import ModelFolder
from headway.translate.translator import Translator


@pytest.fixture(scope="module")
def reverser(tmp_path_factory):
    """A run of the short form that learns to write strings of five letters backwards: (folder, run folder)."""
    folder = tmp_path_factory.mktemp("reverse")
    strings = five_letter_strings(2311, letters="abcdef")
    parts = {"a": strings[:2200], "unseen": strings[2200:]}
    for name, texts in parts.items():
        write_lines(folder / f"{name}.en", texts)
        write_lines(folder / f"{name}.de", [text[::-1] for text in texts])
    out = folder / "run"
    keys = (
        *SMALL,
        "model.vocab_size=10",
        "clean.drop_identical=false",
        "train.max_steps=500",
        "train.batch_tokens=1500",
        "train.validate_every=100",
        "train.validation_sentences=40",
        "train.checkpoint_every=50",
    )
    done = headway(
        "train",
        *("--source", "a.en", "--target", "a.de", "--source-language", "en", "--target-language", "de"),
        *("--data", folder, "--out", out, *set_options(*keys)),
    )
    assert done.returncode == 0, done.stderr.decode()
    return folder, out, done


def test_training_without_validation_files_holds_some_pairs_out_and_says_so(reverser):
    _, out, done = reverser
    report = json.loads((out / "training" / "data" / "prepared.json").read_text(encoding="utf-8"))
    assert report["held_out"] == report["validation"]["pairs"] == 110  # 5 % of 2,200
    assert report["train"]["pairs"] == 2200 - 110
    assert b"scores on the validation text (110 sentences)" in done.stderr
    assert done.stdout == b""


def test_the_model_folder_is_whole_and_opens(reverser):
    _, out, _ = reverser
    assert {path.name for path in out.iterdir()} == {
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "README.md",
        "training",
    }
    folder = ModelFolder.open(out)
    assert (folder.config.source_language, folder.config.target_language) == ("en", "de")
    assert folder.config.training.steps == 500
    card = (out / "README.md").read_text(encoding="utf-8")
    for text in ("2,200", "2,090", "BLEU", "chrF"):
        assert text in card


def test_unseen_strings_are_reversed_nearly_without_fault(reverser, tmp_path):
    folder, out, _ = reverser
    done = headway("translate", "-m", out, folder / "unseen.en", "-o", tmp_path / "x.de")
    assert done.returncode == 0, done.stderr.decode()
    found = (tmp_path / "x.de").read_text(encoding="utf-8").split("\n")
    wanted = (folder / "unseen.de").read_text(encoding="utf-8").split("\n")
    assert len(found) == len(wanted) == 112
    assert sum(map(str.__eq__, found[:-1], wanted[:-1])) >= 105  # of 111


def test_n_lines_in_are_n_lines_out_and_empty_ones_stay(reverser):
    _, out, _ = reverser
    done = headway("translate", "-m", out, stdin=b"abcde\n\nfedcb\n\n\nbadce")
    assert done.returncode == 0
    lines = done.stdout.decode("utf-8").split("\n")
    assert [bool(line) for line in lines] == [True, False, True, False, False, True, False]
    assert lines[0] == "edcba"


def test_the_python_interface_gives_what_the_command_gives(reverser):
    _, out, _ = reverser
    texts = ["abcde", "", "ffeea"]
    done = headway("translate", "-m", out, stdin="".join(text + "\n" for text in texts).encode())
    translations = [translation.text for translation in Translator.from_folder(out).translate(texts)]
    assert done.stdout.decode("utf-8").split("\n")[:-1] == translations


def test_evaluating_gives_the_scores_as_json(reverser, capfd):
    folder, out, _ = reverser
    files = ("--source", str(folder / "unseen.en"), "--reference", str(folder / "unseen.de"))
    assert main(["evaluate", "-m", str(out), *files, "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert found["bleu"]["signature"]
    assert found["chrf"]["value"] > 90
    assert 1.0 <= found["perplexity"] < 1.5


def test_averaging_gives_a_model_that_translates(reverser, tmp_path):
    _, out, _ = reverser
    assert main(["average", "-m", str(out), "--last", "3", "--out", str(tmp_path / "mean")]) == 0
    (translation,) = Translator.from_folder(tmp_path / "mean").translate(["abcde"])
    assert translation.text == "edcba"


def test_describing_counts_the_parameters_that_the_file_holds(reverser, capfd):
    _, out, _ = reverser
    assert main(["describe", str(out), "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    held = sum(array.size for array in ModelFolder.open(out).weights().values())
    assert found["parameters"] == held


def test_preparing_alone_prepares_what_training_does(reverser, tmp_path, capfd):
    folder, out, _ = reverser
    recipe = out / "training" / "recipe.toml"
    assert main(["prepare", str(recipe), "--data", str(folder), "--out", str(tmp_path / "data")]) == 0
    reports = [
        json.loads((path / "prepared.json").read_text(encoding="utf-8"))
        for path in (out / "training" / "data", tmp_path / "data")
    ]
    assert reports[0] == reports[1]
    assert "2,200" in capfd.readouterr().out


def test_a_source_of_400_tokens_is_not_cut_in_silence(reverser, tmp_path):
    """Trap 19: no default limit of 100 or 200 tokens; what was split or cut is told."""
    _, out, _ = reverser
    source = write_lines(tmp_path / "long.en", ["abcde" * 80])
    done = headway("translate", "-m", out, source, "--format", "jsonl")
    assert done.returncode == 0, done.stderr.decode()
    (line,) = done.stdout.decode("utf-8").split("\n")[:-1]
    found = json.loads(line)
    assert found["is_cut"] or len(found["text"].replace(" ", "")) >= 380
    assert b"translated in pieces: line 1" in done.stderr  # longer than any sentence it was trained on
