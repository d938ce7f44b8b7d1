r"""Trap 1 at the commands that score: only ``\n`` ends a line of what they read."""

import json
import sys
from pathlib import Path

import pytest

from headway.cli.main import main
from headway.translate.translator import Translator

sys.path.insert(0, str(Path(__file__).parents[1] / "translate"))
from translate_copies import copying_translator

SEPARATORS = ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\r"]


@pytest.fixture
def files(tmp_path, request):
    """``x.en`` and ``x.de``, three lines each, the second of ``x.en`` with a separator inside."""
    (tmp_path / "x.en").write_bytes(f"red\none {request.param} two\nblue\n".encode())
    (tmp_path / "x.de").write_bytes(b"red\none two\nblue\n")
    return tmp_path


@pytest.mark.parametrize("files", SEPARATORS, indirect=True)
def test_a_separator_in_the_output_shifts_no_sentence_that_is_scored(files, capsys):
    arguments = ["--hypothesis", str(files / "x.en"), "--reference", str(files / "x.de"), "--json"]
    assert main(["evaluate", *arguments]) == 0
    assert json.loads(capsys.readouterr().out)["num_sentences"] == 3


@pytest.mark.parametrize("files", SEPARATORS, indirect=True)
@pytest.mark.parametrize("scores", [False, True], ids=["translating", "scoring pairs"])
def test_a_separator_in_the_source_shifts_no_line_of_the_output(files, monkeypatch, scores):
    monkeypatch.setattr(Translator, "from_folders", lambda paths, device, **_: copying_translator())
    options = ["--score", str(files / "x.de")] if scores else []
    assert main(["translate", "-m", "model", str(files / "x.en"), *options, "-o", str(files / "out")]) == 0
    written = (files / "out").read_bytes()
    assert written.count(b"\n") == 3
    if scores:
        assert all(float(line) < 0.0 for line in written.decode().split("\n")[:-1])
