"""Promises of headway.corpus.clean."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.config.data_config import CleanConfig
from headway.corpus.clean import FILTERS, CleanReport, clean
from headway.corpus.pair import SentencePair

OFF = {
    "max_characters": 0,
    "max_ratio": 0.0,
    "drop_identical": False,
    "drop_duplicates": False,
    "drop_control_characters": False,
}


def number(*sides: tuple[str, str]) -> list[SentencePair]:
    return [SentencePair(source, target, line) for line, (source, target) in enumerate(sides, 1)]


def only(**settings: object) -> CleanConfig:
    """Settings with every filter off but those named."""
    return CleanConfig.model_validate({**OFF, **settings})


def run(pairs: list[SentencePair], settings: CleanConfig) -> tuple[list[int], CleanReport]:
    """The lines kept, and the report."""
    report = CleanReport()
    kept = list(clean(pairs, settings, report))
    assert all(pair is pairs[pair.line - 1] for pair in kept)  # untouched
    assert report.num_kept == len(kept)
    assert report.num_read == len(pairs)
    assert report.num_read == report.num_kept + report.num_dropped
    return [pair.line for pair in kept], report


@pytest.mark.parametrize("settings", [CleanConfig(), CleanConfig.model_validate(OFF)])
def test_an_empty_line_on_one_side_drops_that_pair_and_no_other(settings: CleanConfig):
    kept, report = run(number(("a", "A"), ("", "B"), ("c", "C"), ("d", "D")), settings)
    assert kept == [1, 3, 4]
    assert report.dropped == {"empty side": 1}
    assert [pair.line for pair in report.examples["empty side"]] == [2]


def test_empty_lines_on_different_sides_drop_their_own_pairs():
    kept, report = run(number(("a", "A"), ("", "B"), ("c", ""), ("d", "D")), CleanConfig())
    assert kept == [1, 4]
    assert [pair.line for pair in report.examples["empty side"]] == [2, 3]


@pytest.mark.parametrize("blank", [" ", "\t", "\u3000", "\u2028", " \xa0 "])
def test_a_side_of_white_space_is_empty(blank: str):
    assert run(number((blank, "A"), ("a", blank), (f"{blank}a", f"A{blank}")), only())[0] == [3]


def test_text_kept_keeps_its_white_space():
    kept = list(clean(number(("  a\t", "A \u2028")), CleanConfig(), CleanReport()))
    assert (kept[0].source, kept[0].target) == ("  a\t", "A \u2028")


@pytest.mark.parametrize("code", [*range(0x20), *range(0x7F, 0xA0)])
def test_a_control_character_other_than_the_tab_drops_the_pair(code: int):
    pairs = number((f"a{chr(code)}b", "A"), ("a", f"A{chr(code)}B"), ("a b", "AB"))
    expected = [1, 2, 3] if chr(code) == "\t" else [3]
    assert run(pairs, only(drop_control_characters=True))[0] == expected
    assert run(pairs, only())[0] == [1, 2, 3]


@pytest.mark.parametrize("harmless", ["\xa0", "\xad", "\u200b", "\u2028", "\u2029", "\ufeff", "\U000e0001", "~"])
def test_characters_of_other_kinds_are_no_control_characters(harmless: str):
    assert run(number((f"a{harmless}", f"A{harmless}A")), CleanConfig())[0] == [1]


def test_nul_bytes_are_counted():
    _, report = run(number(("a\x00", "A"), ("b", "B"), ("c", "\x00C")), CleanConfig())
    assert report.dropped == {"control characters": 2}


def test_a_side_of_exactly_max_characters_stays():
    pairs = number(("a" * 13, "A"), ("a" * 14, "A"), ("a", "A" * 13), ("a", "A" * 14), ("😀" * 13, "A"))
    assert run(pairs, only(max_characters=13))[0] == [1, 3, 5]
    assert run(pairs, only())[0] == [1, 2, 3, 4, 5]


def test_the_ratio_is_of_the_longer_side_to_the_shorter_and_not_for_short_text():
    pairs = number(
        ("a" * 21, "A" * 7),  # exactly 3
        ("a" * 22, "A" * 7),
        ("a" * 7, "A" * 22),
        ("a" * 10, "A"),  # 10, but below 11 characters
        ("a" * 11, "A"),
    )
    assert run(pairs, only(max_ratio=3.0, ratio_from_characters=11))[0] == [1, 4]
    assert run(pairs, only(ratio_from_characters=11))[0] == [1, 2, 3, 4, 5]


def test_identical_sides_are_dropped_whatever_white_space_surrounds_them():
    pairs = number(("same", "same"), (" same", "same\t"), ("same", "Same"), ("sa me", "same"))
    assert run(pairs, only(drop_identical=True))[0] == [3, 4]
    assert run(pairs, only())[0] == [1, 2, 3, 4]


def test_the_first_of_exactly_equal_pairs_stays():
    pairs = number(("a", "A"), ("b", "B"), ("a", "A"), ("a", "B"), ("A", "a"), ("a ", "A"), ("a", "A"), ("aA", "A"))
    assert run(pairs, only(drop_duplicates=True))[0] == [1, 2, 4, 5, 6, 8]
    assert run(pairs, only())[0] == [1, 2, 3, 4, 5, 6, 7, 8]


def test_a_pair_counts_for_the_first_filter_it_fails():
    # Line 1 is too long, of too high a ratio, and twice there.
    pairs = number(("a" * 23, "A"), ("a" * 23, "A"), ("b" * 23, "B" * 23))
    _, report = run(pairs, CleanConfig(max_characters=19, max_ratio=2.0))
    assert report.dropped == {"too long": 3}


def test_three_examples_are_kept_of_any_number():
    _, report = run([SentencePair("", "A", line) for line in range(1, 102)], CleanConfig())
    row = next(row for row in report.rows() if row.name == "empty side")
    assert row.dropped == 101
    assert [pair.line for pair in row.examples] == [1, 2, 3]


def test_the_table_has_a_row_for_every_filter_and_says_which_are_off():
    _, report = run(number(("a", "A")), only(max_ratio=2.0))
    assert [(row.name, row.active, row.dropped) for row in report.rows()] == [
        ("empty side", True, 0),
        ("control characters", False, 0),
        ("too long", False, 0),
        ("ratio", True, 0),
        ("identical sides", False, 0),
        ("duplicate", False, 0),
    ]
    assert list(FILTERS) == [row.name for row in report.rows()]


def test_two_cleanings_may_share_a_report_but_not_their_duplicates():
    report = CleanReport()
    for _ in range(2):
        assert len(list(clean(number(("a", "A"), ("a", "A")), CleanConfig(), report))) == 1
    assert (report.num_read, report.num_kept, report.dropped) == (4, 2, {"duplicate": 2})


SIDES = st.text("aA\x00 ", max_size=3)


@given(sides=st.lists(st.tuples(SIDES, SIDES), max_size=29))
def test_no_pair_is_lost_or_moved_and_every_drop_is_counted(sides: list[tuple[str, str]]):
    """The oracle says the filters again, over whole lists."""
    expected = [(s, t) for s, t in sides if s.strip() and t.strip() and "\x00" not in s + t and s.strip() != t.strip()]
    pairs = number(*sides)
    kept, report = run(pairs, CleanConfig())
    assert [sides[line - 1] for line in kept] == list(dict.fromkeys(expected))
    assert report.dropped.get("duplicate", 0) == len(expected) - len(kept)
