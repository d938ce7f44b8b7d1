"""headway pack, and --engine and --precision of the commands that translate."""

import json
import sys
from pathlib import Path

import pytest

from headway.cli.main import main
from headway.translate import backend

sys.path.insert(0, str(Path(__file__).parents[1] / "translate"))
from test_translate_folder import folder


@pytest.fixture
def path(tmp_path):
    return folder(tmp_path / "model")


@pytest.fixture
def lines(tmp_path):
    (tmp_path / "in").write_text("the cat\na small house\n" * 23, encoding="utf-8")
    return str(tmp_path / "in")


def packed(path):
    return sorted(place.name for place in path.glob("packed-*"))


def needs_engine():
    pytest.importorskip("headway_native", reason="headway-native is not built here")


def test_pack_writes_the_file_and_tells_its_path_size_precision_and_seconds(path, capsys):
    assert main(["pack", "-m", str(path)]) == 0
    shown = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    place = path / "packed-int8.safetensors"
    assert shown.keys() == {"packed", "size", "precision", "seconds"}
    assert shown["packed"] == str(place)
    assert shown["size"] == f"{place.stat().st_size:,} bytes"
    assert shown["precision"] == "int8"
    assert float(shown["seconds"]) >= 0


def test_pack_tells_the_same_as_json(path, capsys):
    assert main(["pack", "-m", str(path), "--precision", "float32", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    place = path / "packed-float32.safetensors"
    assert shown.pop("seconds") >= 0
    assert shown == {"path": str(place), "bytes": place.stat().st_size, "precision": "float32"}
    assert packed(path) == ["packed-float32.safetensors"]


def test_pack_refuses_a_model_that_the_engine_does_not_run_by_name(tmp_path, capsys):
    path = folder(tmp_path / "model", positions="t5")
    assert main(["pack", "-m", str(path)]) == 2
    assert "the engine does not run a model with positions t5" in capsys.readouterr().err
    assert packed(path) == []


def test_translate_packs_in_8_bits_at_its_first_use_and_says_nothing(path, lines, tmp_path, capsys):
    needs_engine()
    assert main(["translate", lines, "-m", str(path), "-o", str(tmp_path / "out"), "--device", "cpu"]) == 0
    assert "torch" not in capsys.readouterr().err
    assert packed(path) == ["packed-int8.safetensors"]


def test_evaluate_measures_the_model_in_float32(path, lines, capsys):
    needs_engine()
    assert main(["evaluate", "-m", str(path), "--source", lines, "--reference", lines, "--device", "cpu"]) == 0
    assert packed(path) == ["packed-float32.safetensors"]
    capsys.readouterr()
    words = ["--precision", "int8", "--engine", "native"]
    assert main(["evaluate", "-m", str(path), "--source", lines, "--reference", lines, *words]) == 0
    assert packed(path) == ["packed-float32.safetensors", "packed-int8.safetensors"]


def test_evaluate_of_a_file_has_no_use_for_the_options_of_computing(lines, capsys):
    words = ["--hypothesis", lines, "--reference", lines, "--engine", "torch", "--threads", "2"]
    assert main(["evaluate", *words]) == 2
    assert "--engine, --threads would have no effect with --hypothesis" in capsys.readouterr().err


@pytest.mark.parametrize("precision", ["int8", "float32"])
def test_lines_a_document_and_shards_are_translated_alike(path, tmp_path, precision):
    needs_engine()
    texts = ["the cat", "a small house on the hill", "one, two; three!"] * 7
    (tmp_path / "in.txt").write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    (tmp_path / "in.po").write_text(
        "".join(f'msgctxt "{number}"\nmsgid "{text}"\nmsgstr ""\n\n' for number, text in enumerate(texts))
    )
    options = ["-m", str(path), "--precision", precision, "--engine", "native"]
    outs = [str(tmp_path / name) for name in ("plain", "wide", "shards", "out.po")]
    assert main(["translate", str(tmp_path / "in.txt"), "-o", outs[0], *options]) == 0
    assert main(["translate", str(tmp_path / "in.txt"), "-o", outs[1], *options, "--threads", "3"]) == 0
    for shard in ("2/2", "1/2"):
        assert main(["translate", str(tmp_path / "in.txt"), "-o", outs[2], "--shard", shard, *options]) == 0
    assert main(["translate", str(tmp_path / "in.po"), outs[3], *options]) == 0
    plain = Path(outs[0]).read_bytes()
    assert plain.count(b"\n") == len(texts)
    assert Path(outs[1]).read_bytes() == plain
    assert Path(outs[2]).read_bytes() == plain
    assert Path(outs[3]).read_text(encoding="utf-8").count("msgid") == len(texts)


def test_shards_that_are_computed_in_other_ways_do_not_go_together(path, lines, tmp_path, capsys):
    needs_engine()
    words = ["translate", lines, "-m", str(path), "-o", str(tmp_path / "out"), "--device", "cpu"]
    assert main([*words, "--shard", "1/2"]) == 0
    assert main([*words, "--shard", "2/2", "--engine", "torch"]) == 2
    assert "computed by" in capsys.readouterr().err


def test_why_torch_computes_is_one_line_on_standard_error(lines, tmp_path, capsys):
    path = folder(tmp_path / "strange", positions="t5")
    assert main(["translate", lines, "-m", str(path), "--device", "cpu"]) == 0
    told = [line for line in capsys.readouterr().err.splitlines() if "torch" in line]
    assert told == ["headway: the engine does not run positions t5: torch computes"]


def test_an_engine_that_is_not_installed_is_told_with_what_computes(path, lines, monkeypatch, capsys):
    monkeypatch.setattr(backend, "is_installed", lambda: False)
    assert main(["translate", lines, "-m", str(path), "--device", "cpu"]) == 0
    told = [line for line in capsys.readouterr().err.splitlines() if "torch" in line]
    assert told == ["headway: headway-native, the engine for CPUs, is not installed: torch computes"]
    assert main(["translate", lines, "-m", str(path), "--engine", "native"]) == 2
    refused = capsys.readouterr().err
    assert "Leave --engine native out, and torch computes; or run: pip install headway-native." in refused


def test_what_the_search_lacks_is_told_once_for_all_lines(path, lines, capsys):
    needs_engine()
    assert main(["translate", lines, "-m", str(path), "--device", "cpu", "--sample"]) == 0
    told = [line for line in capsys.readouterr().err.splitlines() if "torch" in line]
    assert told == ["headway: the engine's search has no sampling: torch computes that, in float32"]
    assert main(["translate", lines, "-m", str(path), "--engine", "native", "--sample"]) == 2
    assert "the engine's search has no sampling. Leave --engine native out" in capsys.readouterr().err
