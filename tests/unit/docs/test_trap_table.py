"""docs/traps.md has every trap, and names only tests that exist."""

import re

import pytest
from doc_pages import DOCS, table_rows
from test_paper_map import NAMED, exists

PAGE = DOCS / "traps.md"
LATER = {15}  # of the server
NUMBERS = [number for number in range(1, 21) if number not in LATER]
REPORT = re.compile(r"[\w.-]+/[\w.-]+#\d+")


def trap_rows():
    return [(int(cells[0]), cells) for _, cells in table_rows(PAGE) if cells[0].isdecimal()]


def test_every_trap_has_a_row_and_those_of_parts_to_come_are_named():
    assert [number for number, _ in trap_rows()] == NUMBERS
    below = PAGE.read_text(encoding="utf-8").rpartition("|")[2]
    assert set(map(int, re.findall(r"\b\d+\b", below))) >= LATER


@pytest.mark.parametrize(("number", "cells"), trap_rows(), ids=lambda value: value if isinstance(value, int) else "")
def test_a_row_names_reports_tests_that_exist_and_the_faults_they_were_seen_to_catch(number, cells):
    assert len(cells) == 5
    assert all(cells)
    assert REPORT.search(cells[1])
    named = NAMED.findall(cells[3])
    assert named, f"trap {number} names no test"
    assert len(named) == cells[3].count("`") // 2, f"trap {number}: something in the cell of tests is no test"
    for path, name in named:
        assert path.startswith("tests/"), f"trap {number}: {path}"
        assert name.startswith("test_"), f"trap {number}: {path}::{name} is no test"
        assert exists(path, name), f"trap {number}: {path}::{name} does not exist"


def test_no_test_is_named_twice_in_a_row():
    for number, cells in trap_rows():
        named = NAMED.findall(cells[3])
        assert len(named) == len(set(named)), f"trap {number}"
