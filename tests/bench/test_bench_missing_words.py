"""bench/missing_words.py: the label put back in the gap gives the line, and only words behind the first are taken."""

import pytest

MODULES = ("missing_words", "labelled_lines")


@pytest.fixture
def missing_words(scripts):
    return scripts["missing_words"]


def test_the_label_in_the_place_of_the_gap_is_the_line(missing_words, tmp_path):
    lines = [f"To be w{number} of x in y" for number in range(300)]
    others = ["no such word", "of", "in a word", lines[0]]  # nothing to take, or the first word, or twice
    (tmp_path / "in").write_text("".join(f"{line}\n" for line in [*lines, *others]), encoding="utf-8")
    missing_words.main([str(tmp_path / "in"), str(tmp_path / "out"), "--seed", "3"])
    rows = [row.split("\t") for row in (tmp_path / "out").read_text().splitlines()]
    assert [text.replace(missing_words.GAP, label, 1) for label, text in rows] == lines
    assert {label for label, _ in rows} == {"of", "in"}
    taken = sum(label == "of" for label, _ in rows)
    assert abs(taken - 150) < 5 * 75**0.5
    missing_words.main([str(tmp_path / "in"), str(tmp_path / "few"), "--seed", "3", "--lines", "7"])
    assert (tmp_path / "few").read_text().splitlines() == (tmp_path / "out").read_text().splitlines()[:7]
