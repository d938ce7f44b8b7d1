"""A new folder is whole or not there."""

import pytest

from headway.errors import InterchangeError
from headway.interchange.new_folder import check_place, new_folder


def test_a_folder_gets_its_name_when_all_is_written(tmp_path):
    out = tmp_path / "deep" / "out"
    with new_folder(out) as beside:
        (beside / "part").mkdir()
        (beside / "part" / "file.txt").write_text("a")
        assert not out.exists()
    assert (out / "part" / "file.txt").read_text() == "a"
    assert [path.name for path in out.parent.iterdir()] == ["out"]


def write_and_stop(out):
    with new_folder(out) as beside:
        (beside / "file.txt").write_text("a")
        raise KeyboardInterrupt


def test_of_a_folder_that_fails_nothing_is_kept(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        write_and_stop(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_an_empty_folder_is_taken_and_another_is_left_as_it_is(tmp_path):
    empty, full = tmp_path / "empty", tmp_path / "full"
    empty.mkdir()
    full.mkdir()
    (full / "letter.txt").write_text("mine")
    with new_folder(empty) as beside:
        (beside / "file.txt").write_text("a")
    assert (empty / "file.txt").read_text() == "a"
    with pytest.raises(InterchangeError, match="not an empty folder"), new_folder(full):
        pass
    assert (full / "letter.txt").read_text() == "mine"
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "nowhere")
    with pytest.raises(InterchangeError, match="not an empty folder"):
        check_place(link)


def test_what_a_killed_export_left_is_in_the_way_and_named(tmp_path):
    (tmp_path / "out.part").mkdir()
    with pytest.raises(InterchangeError, match=r"out\.part is in the way"):
        check_place(tmp_path / "out")
