"""The headway command: quick help, one line for every failure, and exit codes."""

import errno
import io
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from headway.cli import main as entry
from headway.cli.main import COMMANDS, MODULES, explain_os_error, group, main
from headway.errors import CorpusError, HeadwayError


def headway(*arguments, stdout=subprocess.PIPE, **settings):
    return subprocess.run(
        [sys.executable, "-m", "headway", *arguments], stdout=stdout, stderr=subprocess.PIPE, check=False, **settings
    )


@pytest.fixture
def failing(monkeypatch):
    """A command ``describe`` that raises what it is given."""

    def install(error):
        @click.command("describe")
        def command():
            raise error

        monkeypatch.setattr(entry.LazyGroup, "get_command", lambda self, ctx, name: command)

    return install


def failure(capsys):
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    return captured.err.rstrip("\n")


def test_help_lists_every_command_and_imports_none_of_the_heavy_libraries():
    heavy = ("torch", "numpy", "pydantic", "tokenizers", "sacrebleu", "safetensors", "zstandard", "rich", "sentencex")
    code = (
        "import sys; from headway.cli.main import main; code = main(['--help']); "
        f"print('imported:', sorted(set(sys.modules) & set({heavy})), code)"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "imported: [] 0" in shown
    for name, what in COMMANDS.items():
        assert f"  {name} " in shown
        assert what.split()[0] in shown


def test_the_package_runs_as_a_module_and_tells_its_version():
    done = headway("--version")
    assert done.returncode == 0
    assert done.stdout.startswith(b"headway ")


def test_no_command_shows_the_help_and_exits_2(capsys):
    assert main([]) == 2
    assert "Commands:" in capsys.readouterr().err


def test_an_unknown_command_names_the_nearest(capsys):
    assert main(["trainn"]) == 2
    assert failure(capsys) == "headway: error: No such command 'trainn'; the nearest is 'train'. See: headway --help"


def test_a_command_like_no_other_lists_those_there_are(capsys):
    assert main(["zzz"]) == 2
    assert "there are train, translate," in failure(capsys)


def test_an_unknown_option_is_one_line_with_the_command_whose_help_to_read(capsys):
    assert main(["describe", "base", "--jsn"]) == 2
    message = failure(capsys)
    assert message.startswith("headway: error: No such option")
    assert message.endswith("See: headway describe --help")


def test_a_missing_argument_is_one_line(capsys):
    assert main(["describe"]) == 2
    assert failure(capsys).startswith("headway: error: Missing argument")


def test_a_headway_error_is_one_line_and_exit_2(failing, capsys):
    failing(CorpusError("corpus/moses: a.en has 3 lines, a.de has 4. Mend them."))
    assert main(["describe"]) == 2
    assert failure(capsys) == "headway: error: corpus/moses: a.en has 3 lines, a.de has 4. Mend them."


def test_an_error_stays_one_line_whatever_a_file_is_called(failing, capsys):
    failing(HeadwayError("a\nb\rc"))
    assert main(["describe"]) == 2
    assert failure(capsys) == r"headway: error: a\nb\rc"


@pytest.mark.parametrize(
    ("number", "remedy"),
    [
        (errno.ENOSPC, "Free space"),
        (errno.EFBIG, "ulimit -f"),
        (errno.EDQUOT, "quota"),
        (errno.EACCES, "permissions"),
        (errno.EROFS, "can be written"),
        (errno.ENOENT, "Check the path"),
        (errno.EISDIR, "not a folder"),
        (errno.ENOTDIR, "is a file"),
        (errno.EMFILE, "ulimit -n"),
    ],
)
def test_an_error_of_the_system_names_the_file_and_a_remedy(failing, capsys, number, remedy):
    failing(OSError(number, os.strerror(number), "runs/x/config.json"))
    assert main(["describe"]) == 2
    message = failure(capsys)
    assert message.startswith(f"headway: error: runs/x/config.json: {os.strerror(number)}. ")
    assert remedy in message


def test_an_error_of_the_system_without_number_or_file_is_still_told():
    assert explain_os_error(OSError("7 requested and 3 written")) == "7 requested and 3 written."
    assert explain_os_error(OSError()) == "OSError."
    both = OSError(errno.EXDEV, "Invalid cross-device link", "a", None, "b")
    assert explain_os_error(both) == "a -> b: Invalid cross-device link."


@pytest.mark.parametrize("stop", [KeyboardInterrupt(), click.Abort()])
def test_an_interruption_is_one_line_and_exit_130(failing, capsys, stop):
    failing(stop)
    assert main(["describe"]) == 130
    assert failure(capsys) == "headway: interrupted"


def test_a_missing_extra_names_the_command_that_installs_it(failing, capsys):
    failing(ModuleNotFoundError("No module named 'torch'", name="torch.nn"))
    assert main(["describe"]) == 2
    assert failure(capsys).endswith("pip install 'headway[train]'")


def test_a_fault_of_ours_is_not_hidden(failing):
    failing(ModuleNotFoundError("No module named 'headway.gone'", name="headway.gone"))
    with pytest.raises(ModuleNotFoundError):
        main(["describe"])
    failing(AssertionError("only we can cause this"))
    with pytest.raises(AssertionError):
        main(["describe"])


@pytest.mark.parametrize(
    "error",
    [MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory"), RuntimeError("CUDA out of memory")],
)
def test_not_enough_memory_is_one_line(failing, capsys, error):
    failing(error)
    assert main(["describe"]) == 2
    assert failure(capsys).startswith("headway: error: not enough memory")


def test_an_exit_code_that_a_command_chooses_is_kept(failing):
    failing(click.exceptions.Exit(3))
    assert main(["describe"]) == 3


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_goes_away_is_no_error(unbuffered):
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = headway("describe", "base", stdout=writer, env=os.environ | {"PYTHONUNBUFFERED": unbuffered})
    finally:
        os.close(writer)
    assert done.stderr == b""
    assert done.returncode == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full, a Linux device")
def test_a_full_disk_behind_standard_output_is_one_line_and_exit_2():
    with open("/dev/full", "wb") as full:  # noqa: PTH123 - a device, not a path of ours
        done = headway("describe", "base", stdout=full)
    assert done.returncode == 2
    assert done.stderr.count(b"\n") == 1
    assert b"No space left on device. Free space" in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="needs RLIMIT_FSIZE")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_limit_on_file_sizes_is_one_line_and_exit_2(tmp_path, unbuffered):
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (7, 7)); "
        "from headway.cli.main import main; sys.exit(main(['describe', 'base']))"
    )
    with (tmp_path / "out.txt").open("wb") as out:
        done = subprocess.run(
            [sys.executable, "-B", "-c", code],
            stdout=out,
            stderr=subprocess.PIPE,
            env=os.environ | {"PYTHONUNBUFFERED": unbuffered},  # Python drops half a write when unbuffered
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr.count(b"\n") == 1
    assert b"File too large. Raise the limit on file sizes" in done.stderr


def test_standard_output_without_a_file_number_is_left_alone(monkeypatch, failing):
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    failing(BrokenPipeError())
    assert main(["describe"]) == 1


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_of_the_help_has_its_module(name):
    pytest.importorskip(
        f"headway.cli.{MODULES.get(name, name)}", reason="not written yet", exc_type=ModuleNotFoundError
    )
    command = group.get_command(click.Context(group), name)
    assert command is not None
    assert command.name == name
    assert command.help
