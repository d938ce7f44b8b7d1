"""Promises of headway.corpus.moses."""

from pathlib import Path

import pytest

from headway.corpus.lines import open_writer
from headway.corpus.moses import read_moses
from headway.corpus.pair import SentencePair
from headway.errors import CorpusError


def write_sides(folder: Path, source: str, target: str, suffix: str = "") -> tuple[Path, Path]:
    paths = folder / f"t.en{suffix}", folder / f"t.de{suffix}"
    for path, text in zip(paths, (source, target), strict=True):
        with open_writer(path) as writer:
            writer.write(text)
    return paths


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e"])
def test_a_line_separator_on_one_side_does_not_shift_the_pairs_after_it(tmp_path: Path, separator: str):
    paths = write_sides(tmp_path, f"red\none {separator} two\nblue\n", "rot\neins zwei\nblau\n")
    pairs = list(read_moses(*paths))
    assert len(pairs) == 3
    assert pairs[2] == SentencePair("blue", "blau", 3)


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
def test_line_n_is_paired_with_line_n(tmp_path: Path, suffix: str):
    paths = write_sides(tmp_path, "a\n\nc\n", "A\nB\n\n", suffix)
    assert list(read_moses(*paths)) == [SentencePair("a", "A", 1), SentencePair("", "B", 2), SentencePair("c", "", 3)]


def test_a_missing_last_newline_on_one_side_is_no_difference(tmp_path: Path):
    assert len(list(read_moses(*write_sides(tmp_path, "a\nb", "A\nB\n")))) == 2


@pytest.mark.parametrize(
    ("source", "target", "counts"),
    [
        ("a\nb\nc\n", "A\nextra\nB\nC\n", (3, 4)),  # the extra line is not the last
        ("a\nextra\nb\nc\n", "A\nB\nC\n", (4, 3)),
        ("a\nb\n", "A\nB\nC\nD\nE\n", (2, 5)),  # counted to the end of both
        ("", "A\n", (0, 1)),
        ("a\n" * 1009, "", (1009, 0)),
    ],
)
def test_unequal_counts_are_refused_with_both_counts_and_both_names(
    tmp_path: Path, source: str, target: str, counts: tuple[int, int]
):
    paths = write_sides(tmp_path, source, target)
    with pytest.raises(CorpusError) as caught:
        list(read_moses(*paths))
    assert f"{paths[0]} has {counts[0]:,} lines, {paths[1]} has {counts[1]:,};" in str(caught.value)
    assert "Remedy: " in str(caught.value)


def test_a_missing_side_is_named(tmp_path: Path):
    source, target = write_sides(tmp_path, "a\n", "A\n")
    target.unlink()
    with pytest.raises(CorpusError, match=r"t\.de does not exist"):
        list(read_moses(source, target))
