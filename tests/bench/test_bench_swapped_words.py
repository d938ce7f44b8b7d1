"""bench/swapped_words.py: two neighbours change places in about half of the lines, and nothing else changes."""

import math

import pytest

MODULES = ("swapped_words", "labelled_lines")


@pytest.fixture
def swapped_words(scripts):
    return scripts["swapped_words"]


def test_two_unlike_neighbours_change_places_and_nothing_else(swapped_words, tmp_path):
    lines = [f"w{number} a b c d{number}" for number in range(1000)]
    (tmp_path / "in").write_text("".join(f"{line}\n" for line in [*lines, lines[0], "too few words", "x x x x"]))
    swapped_words.main([str(tmp_path / "in"), str(tmp_path / "out"), "--seed", "3"])
    rows = [row.split("\t") for row in (tmp_path / "out").read_text().splitlines()]
    assert len(rows) == 1000
    for line, (label, text) in zip(lines, rows, strict=True):
        differing = [
            place for place, pair in enumerate(zip(line.split(), text.split(), strict=True)) if len(set(pair)) > 1
        ]
        assert sorted(text.split()) == sorted(line.split())
        assert len(differing) == (2 if label == "swapped" else 0)
        assert not differing or differing[1] == differing[0] + 1
    swapped = sum(label == "swapped" for label, _ in rows)
    assert abs(swapped - 500) < 5 * math.sqrt(250)
    swapped_words.main([str(tmp_path / "in"), str(tmp_path / "few"), "--seed", "3", "--lines", "7"])
    assert (tmp_path / "few").read_text().splitlines() == (tmp_path / "out").read_text().splitlines()[:7]
