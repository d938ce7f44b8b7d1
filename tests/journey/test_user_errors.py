"""What a user does wrong ends in exit code 2 and one clear line; what is only unusual is no error."""

import json
import os
import shutil

import pytest
from journey_command import SMALL, headway, set_options, write_lines

from headway.cli.main import main
from headway.folder.contents import ModelFolder


@pytest.fixture
def refused(capfd):
    """Run the command in this process, see it refused as it should be, and give its one line."""

    def of(*arguments, code=2):
        assert main([str(argument) for argument in arguments]) == code
        return one_line(capfd.readouterr().err)

    return of


def one_line(errors):
    """The last line of standard error, which is the error and the only one; never a traceback."""
    lines = errors.split("\n")
    assert lines.pop() == ""
    assert "Traceback" not in errors
    assert [line for line in lines if "error:" in line] == [lines[-1]]
    assert lines[-1].startswith("headway: error: ")
    return lines[-1]


def short_form(source, target, out):
    """A run of two steps: where it is not refused as it should be, it ends."""
    languages = ("--source-language", "en", "--target-language", "de")
    keys = set_options(*SMALL, "train.max_steps=2")
    return ["train", "--source", source, "--target", target, *languages, "--out", out, *keys]


def files_of(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_files_of_unequal_length_are_refused_with_both_counts(refused, tmp_path):
    """Trap 9, in training."""
    source = write_lines(tmp_path / "x.en", ["one", "two", "three"])
    target = write_lines(tmp_path / "x.de", ["eins", "?", "zwei", "drei"])
    line = refused(*short_form(source, target, tmp_path / "out"))
    assert "3 lines" in line
    assert "4" in line
    assert not (tmp_path / "out" / "model.safetensors").exists()


def test_validation_files_of_unequal_length_are_refused_with_both_counts(refused, corpus, tmp_path):
    """Trap 9, in validation."""
    source = write_lines(tmp_path / "dev.en", ["abcde", "bcdef", "cdefg"])
    target = write_lines(tmp_path / "dev.de", ["ABCDE", "BCDEF", "?", "CDEFG"])
    dev = ("--dev-source", source, "--dev-target", target)
    line = refused(*short_form(corpus / "a.en", corpus / "a.de", tmp_path / "out"), *dev)
    assert "dev.en" in line
    assert "3" in line
    assert "4" in line


def test_text_and_reference_of_unequal_length_are_refused_with_both_counts(refused, model, tmp_path):
    """Trap 9, in scoring."""
    source = write_lines(tmp_path / "x.en", ["abcde", "bcdef", "cdefg"])
    reference = write_lines(tmp_path / "x.de", ["ABCDE", "BCDEF", "?", "CDEFG"])
    line = refused("evaluate", "-m", model, "--source", source, "--reference", reference)
    assert "3" in line
    assert "4" in line


@pytest.mark.parametrize("lines", [[], ["", "", ""], [" ", "\t", ""]])
def test_a_corpus_without_a_sentence_is_refused(refused, tmp_path, lines):
    source, target = write_lines(tmp_path / "x.en", lines), write_lines(tmp_path / "x.de", lines)
    line = refused(*short_form(source, target, tmp_path / "out"))
    assert "at least" in line


def test_a_folder_in_the_place_of_a_file_is_refused(refused, corpus, tmp_path):
    line = refused(*short_form(tmp_path, corpus / "a.de", tmp_path / "out"))
    assert str(tmp_path) in line
    line = refused("evaluate", "--hypothesis", tmp_path, "--reference", corpus / "a.de")
    assert str(tmp_path) in line


def test_a_file_in_the_place_of_the_model_folder_is_refused(refused, corpus, tmp_path):
    line = refused(*short_form(corpus / "a.en", corpus / "a.de", corpus / "a.en"))
    assert "a.en" in line
    line = refused("translate", "-m", corpus / "a.en", "-s", "abcde")
    assert "a.en" in line


def test_files_that_are_not_there_are_named(refused, corpus, tmp_path):
    line = refused(*short_form(tmp_path / "nothing.en", corpus / "a.de", tmp_path / "out"))
    assert "nothing.en" in line


@pytest.mark.parametrize(
    "command", [("translate", "-s", "abcde"), ("describe",), ("average", "--out", "{out}")], ids=lambda c: c[0]
)
def test_a_model_that_is_not_there_is_named(refused, tmp_path, command):
    name, *rest = command
    rest = [part.format(out=tmp_path / "out") for part in rest]
    folder = [tmp_path / "nothing"] if name == "describe" else ["-m", tmp_path / "nothing"]
    assert "nothing" in refused(name, *folder, *rest)


@pytest.mark.parametrize("bytes_left", [0, 7, 1000, -1])
def test_truncated_weights_are_named_with_their_size(refused, model, tmp_path, bytes_left):
    broken = shutil.copytree(model, tmp_path / "broken", ignore=shutil.ignore_patterns("training"))
    weights = broken / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:bytes_left])
    line = refused("translate", "-m", broken, "-s", "abcde")
    assert "model.safetensors" in line
    assert f"{weights.stat().st_size:,} bytes" in line


@pytest.mark.parametrize(
    ("override", "nearest"),
    [
        ("model.d_modle=32", "model.d_model"),
        ("train.dropout=0.3", "model.dropout"),
        ("trian.seed=3", "train"),
    ],
)
def test_an_unknown_key_is_told_with_the_nearest_one(refused, corpus, tmp_path, override, nearest):
    line = refused(*short_form(corpus / "a.en", corpus / "a.de", tmp_path / "out"), "--set", override)
    assert override.partition("=")[0] in line
    assert nearest in line
    assert not (tmp_path / "out").exists()


def test_heads_that_do_not_divide_the_model_are_refused_with_what_to_set(refused, corpus, tmp_path):
    arguments = short_form(corpus / "a.en", corpus / "a.de", tmp_path / "out")
    line = refused(*arguments, "--set", "model.num_heads=3")
    for text in ("d_model 32", "num_heads 3", "model.d_k"):
        assert text in line
    assert "num_heads 3" in refused("describe", "base", "--set", "model.num_heads=3", "--set", "model.d_model=32")


def test_nothing_to_train_on_is_told_with_the_short_form(refused):
    assert "--source a.en" in refused("train")


@pytest.mark.skipif(os.name != "posix", reason="file size limits are POSIX")
def test_a_full_disk_in_training_loses_nothing_and_the_run_goes_on_later(train_arguments, model, tmp_path):
    """Trap 4: the second session may not write a file as large as a training state."""
    out = tmp_path / "out"
    begun = headway(*train_arguments, *set_options("train.max_steps=6"), "--out", out)
    assert begun.returncode == 0, begun.stderr.decode()
    states = out / "training" / "states"
    before, folder = files_of(states), (out / "model.safetensors").read_bytes()
    size = min(path.stat().st_size for path in states.iterdir())
    full = headway(*train_arguments, "--out", out, limit=size - 1)
    assert full.returncode == 2
    line = one_line(full.stderr.decode())
    assert "File too large" in line
    assert "ulimit -f" in line
    assert files_of(states) == before
    assert (out / "model.safetensors").read_bytes() == folder
    assert not list(out.rglob("*.part"))
    done = headway(*train_arguments, "--out", out)
    assert done.returncode == 0, done.stderr.decode()
    assert b"going on after step 6" in done.stderr
    assert (out / "model.safetensors").read_bytes() == (model / "model.safetensors").read_bytes()


@pytest.mark.skipif(os.name != "posix", reason="file size limits are POSIX")
def test_a_full_disk_while_preparing_is_an_error_and_nothing_half_done_is_used(train_arguments, model, tmp_path):
    out = tmp_path / "out"
    full = headway(*train_arguments, "--out", out, limit=700)
    assert full.returncode == 2
    one_line(full.stderr.decode())
    done = headway(*train_arguments, "--out", out)
    assert done.returncode == 0, done.stderr.decode()
    assert (out / "model.safetensors").read_bytes() == (model / "model.safetensors").read_bytes()


def test_a_line_of_100000_words_is_dropped_and_counted_in_training(corpus, tmp_path, capfd):
    for language, word in (("en", "abc "), ("de", "ABC ")):
        text = (corpus / f"a.{language}").read_bytes()
        (tmp_path / f"x.{language}").write_bytes(text + (word * 100_000).encode() + b"\n")
    arguments = short_form(tmp_path / "x.en", tmp_path / "x.de", tmp_path / "out")
    options = set_options("train.max_steps=2", "model.vocab_size=21", "train.batch_tokens=300")
    assert main([*map(str, arguments), *options]) == 0
    report = json.loads((tmp_path / "out" / "training" / "data" / "prepared.json").read_text(encoding="utf-8"))
    assert report["pairs_read"] == 212
    assert report["pairs_clean"] == 211
    (row,) = [row for row in report["cleaning"] if row["dropped"]]
    assert row["dropped"] == 1
    assert row["name"] in capfd.readouterr().err


def test_a_line_of_100000_words_is_split_and_told_in_translating(model, tmp_path, capfd):
    words = "abcde " * 100_000
    source = write_lines(tmp_path / "x.en", ["abcde", words, "edcba"])
    options = ("--beam-size", "1", "--format", "jsonl", "-o", tmp_path / "out.jsonl")
    assert main(["translate", "-m", str(model), str(source), *map(str, options)]) == 0
    lines = (tmp_path / "out.jsonl").read_text(encoding="utf-8").split("\n")
    assert lines.pop() == ""
    assert len(lines) == 3
    assert "line 2" in capfd.readouterr().err


def test_nul_bytes_are_counted_and_no_error(corpus, tmp_path, capfd):
    for language, text in (("en", "ab\0cde"), ("de", "AB\0CDE")):
        content = (corpus / f"a.{language}").read_bytes()
        (tmp_path / f"x.{language}").write_bytes(content + text.encode() + b"\n")
    arguments = short_form(tmp_path / "x.en", tmp_path / "x.de", tmp_path / "out")
    options = set_options("train.max_steps=2", "model.vocab_size=20", "train.batch_tokens=300")
    assert main([*map(str, arguments), *options]) == 0
    report = json.loads((tmp_path / "out" / "training" / "data" / "prepared.json").read_text(encoding="utf-8"))
    assert {row["name"]: row["dropped"] for row in report["cleaning"] if row["dropped"]} == {"control characters": 1}
    assert "control characters" in capfd.readouterr().err


def test_one_pair_is_refused_with_the_minimum(refused, tmp_path):
    source, target = write_lines(tmp_path / "x.en", ["abcde"]), write_lines(tmp_path / "x.de", ["ABCDE"])
    line = refused(*short_form(source, target, tmp_path / "out"))
    assert "1 of 1" in line
    assert "at least 2" in line


def test_one_pair_with_validation_text_trains(tmp_path):
    source, target = write_lines(tmp_path / "x.en", ["abcde"]), write_lines(tmp_path / "x.de", ["ABCDE"])
    dev = ("--dev-source", str(source), "--dev-target", str(target))
    options = set_options("train.max_steps=2", "model.vocab_size=14", "train.batch_tokens=50")
    arguments = [*map(str, short_form(source, target, tmp_path / "out")), *dev, *options]
    assert main(arguments) == 0
    assert ModelFolder.open(tmp_path / "out").config.training.pairs == 1
