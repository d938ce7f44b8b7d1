"""Regular expressions that every Python from 3.11.0 on reads alike."""

import re
from pathlib import Path

import headway

# Python 3.11.0 to 3.11.4, Debian's among them, match too much where the last try of a possessive group fails half-way
# (python/cpython issue 106052). One character or class, possessive, is sound.
POSSESSIVE_GROUP = re.compile(r"\)(?:[*+?]|\{[0-9,{}]+\})\+")


def test_no_pattern_repeats_a_group_possessively():
    root = Path(headway.__file__).parent
    found = [
        f"{path.relative_to(root)}:{number}: {line.strip()}"
        for path in sorted(root.rglob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1)
        if POSSESSIVE_GROUP.search(line)
    ]
    assert not found


def test_the_search_for_them_finds_them():
    assert POSSESSIVE_GROUP.search(r'_NUMBER = r"\d+(?:[.,]\d+)*+"')
    assert POSSESSIVE_GROUP.search(r'rf"(?:\s++{NAME}){{1,3}}+"')
    assert not POSSESSIVE_GROUP.search(r'r"[^>]++(?:a|b)*\d{1,3}+"')
