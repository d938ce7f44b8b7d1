import os
import subprocess
import sys
from pathlib import Path

import pytest

from headway.folder.atomic import replace_file

FULL_DISK = """
import resource, signal, sys
from pathlib import Path
from headway.folder.atomic import replace_file

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4099, 4099))
try:
    with replace_file(Path(sys.argv[1])) as file:
        for _ in range(int(sys.argv[2])):
            file.write(b"n" * 1009)
except OSError as error:
    print(type(error).__name__, error.errno, Path(error.filename or "").name)
    sys.exit(7)
"""


def test_a_new_file_has_exactly_the_bytes_written(tmp_path: Path) -> None:
    with replace_file(tmp_path / "new.bin") as file:
        file.write(b"one\x00")
        file.write(b"two")
    assert (tmp_path / "new.bin").read_bytes() == b"one\x00two"
    assert [path.name for path in tmp_path.iterdir()] == ["new.bin"]


def test_the_old_file_stands_until_the_block_ends(tmp_path: Path) -> None:
    path = tmp_path / "state"
    path.write_bytes(b"old")
    with replace_file(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_a_failing_block_leaves_the_old_file_and_no_other(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "state"
    path.write_bytes(b"old")

    def fail() -> None:
        with replace_file(path) as file:
            file.write(b"half")
            raise error

    with pytest.raises(error):
        fail()
    assert path.read_bytes() == b"old"
    assert [each.name for each in tmp_path.iterdir()] == ["state"]


def test_what_a_kill_left_behind_does_not_get_into_the_next_file(tmp_path: Path) -> None:
    (tmp_path / "state.part").write_bytes(b"a long half file")
    with replace_file(tmp_path / "state") as file:
        file.write(b"new")
    assert (tmp_path / "state").read_bytes() == b"new"
    assert [each.name for each in tmp_path.iterdir()] == ["state"]


@pytest.mark.skipif(os.name != "posix", reason="file size limits are POSIX")
@pytest.mark.parametrize("blocks", [5, 89])  # 5: the buffer alone overflows, at the last flush; 89: in the block
def test_a_full_disk_is_an_error_and_the_old_file_stays(tmp_path: Path, blocks: int) -> None:
    path = tmp_path / "state"
    path.write_bytes(b"old")
    command = [sys.executable, "-c", FULL_DISK, str(path), str(blocks)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 7, result.stderr
    assert result.stdout.startswith("OSError")
    assert result.stdout.endswith(" state\n")
    assert path.read_bytes() == b"old"
    assert [each.name for each in tmp_path.iterdir()] == ["state"]


def test_two_writers_of_a_shared_path_write_a_whole_file_each_and_the_last_to_end_stays(tmp_path: Path) -> None:
    path = tmp_path / "packed"
    with replace_file(path, shared=True) as slow:
        slow.write(b"slow, first half; ")
        with replace_file(path, shared=True) as quick:
            quick.write(b"quick")
        assert path.read_bytes() == b"quick"
        slow.write(b"second half")
    assert path.read_bytes() == b"slow, first half; second half"
    assert [each.name for each in tmp_path.iterdir()] == ["packed"]


def test_what_killed_writers_of_a_shared_path_left_goes_and_what_others_are_writing_stays(tmp_path: Path) -> None:
    for name, age in (("packed.11-aa.part", 7200), ("packed.13-bb.part", 60), ("other.17-cc.part", 7200)):
        (tmp_path / name).write_bytes(b"half")
        changed = (tmp_path / name).stat().st_mtime - age
        os.utime(tmp_path / name, (changed, changed))
    with replace_file(tmp_path / "packed", shared=True) as file:
        file.write(b"new")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["other.17-cc.part", "packed", "packed.13-bb.part"]


def test_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), replace_file(tmp_path / "absent" / "state"):
        pass


def test_a_file_that_cannot_be_written_is_named_as_it_was_asked_for(tmp_path: Path) -> None:
    (tmp_path / "state.part").mkdir()
    with pytest.raises(IsADirectoryError) as caught, replace_file(tmp_path / "state"):
        pass
    assert caught.value.filename == str(tmp_path / "state")
