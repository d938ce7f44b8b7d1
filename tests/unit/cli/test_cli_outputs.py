"""No command writes over a file that it reads."""

from pathlib import Path

import pytest

from headway.cli.main import main


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["translate", "-m", "model", "in"], "FILE"),
        (["translate", "-m", "model", "other", "--score", "in"], "--score"),
        (["parse", "-m", "model", "in"], "FILE"),
        (["parse", "-m", "model", "other", "--tags", "in"], "--tags"),
        (["classify", "-m", "model", "in"], "FILE"),
        (["generate", "-m", "model", "in"], "FILE"),
        (["evaluate", "-m", "model", "--source", "other", "--reference", "in"], "--reference"),
        (["evaluate", "-m", "model", "--source", "in", "--reference", "other"], "--source"),
    ],
)
@pytest.mark.parametrize("output", ["in", "link"])
def test_an_output_that_is_an_input_is_refused_and_the_input_stays(
    tmp_path, monkeypatch, capsys, arguments, what, output
):
    monkeypatch.chdir(tmp_path)
    for name in ("in", "other"):
        Path(name).write_bytes(b"(S a cat)\n")
    Path("link").symlink_to("in")
    assert main([*arguments, "--output", output]) == 2
    assert f"--output and {what} are the same file, {Path(output)};" in capsys.readouterr().err
    assert Path("in").read_bytes() == b"(S a cat)\n"
