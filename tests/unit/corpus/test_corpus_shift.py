"""Stretches that are out of step are found near where they begin, and none in text that is in step."""

from pathlib import Path
from random import Random

import pytest
from audit_corpus import clean_pairs
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.corpus.shift import REACH, ShiftFinder

SHARED = Path(__file__).resolve().parents[4] / "shared" / "data" / "homeassistant" / "en-de.train.tsv"


def found(sources, targets):
    finder = ShiftFinder()
    for source, target in zip(sources, targets, strict=False):
        finder.add(source, target)
    return finder.finish()


@pytest.mark.parametrize("number", [0, 1, 2, 3, 4, 5, 7, 499])
def test_text_in_step_has_no_stretch_whatever_its_length(number):
    pairs = clean_pairs(number)
    assert found([pair[0] for pair in pairs], [pair[1] for pair in pairs]) == []


@pytest.mark.parametrize("seed", range(11))
@pytest.mark.parametrize("lines", [1, 2, REACH])
def test_lost_lines_are_found_within_five_lines_with_their_shift(seed, lines):
    pairs = clean_pairs(301, seed=seed)
    place = Random(seed).randrange(20, 200)
    sources, targets = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    lost_target = found(sources, targets[:place] + targets[place + lines :])
    assert [stretch.shift for stretch in lost_target] == [-lines]
    assert abs(lost_target[0].first - place) <= 5 + lines
    assert lost_target[0].end == 301 - lines
    lost_source = found(sources[:place] + sources[place + lines :], targets)
    assert [stretch.shift for stretch in lost_source] == [lines]
    assert abs(lost_source[0].first - place) <= 5 + lines


def test_a_file_that_is_out_of_step_from_its_first_line_is_found():
    pairs = clean_pairs(101)
    (stretch,) = found([pair[0] for pair in pairs], ["Titel", *(pair[1] for pair in pairs)])
    assert (stretch.first, stretch.end, stretch.shift) == (0, 101, 1)


def test_pairs_that_do_not_belong_together_at_all_are_no_shift():
    rng = Random(5)
    names = ["".join(rng.choices("abdefgiklmnoprstu", k=rng.randrange(4, 40))).title() for _ in range(499)]
    ends = [rng.choice(["", ".", "?", "!", ":"]) for _ in names]
    pairs = [(f"He is {name}{end}", f"Er ist {name}{end}") for name, end in zip(names, ends, strict=True)]
    targets = [pair[1] for pair in pairs]
    middle = targets[101:307]
    Random(3).shuffle(middle)
    (stretch,) = found([pair[0] for pair in pairs], [*targets[:101], *middle, *targets[307:]])
    assert stretch.shift == 0
    assert abs(stretch.first - 101) <= 5
    assert abs(stretch.end - 307) <= 5


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.text(max_size=9), st.text(max_size=9)), max_size=40))
def test_any_text_gives_stretches_in_order_inside_of_it(pairs):
    stretches = found([pair[0] for pair in pairs], [pair[1] for pair in pairs])
    end = 0
    for stretch in stretches:
        assert end <= stretch.first < stretch.end <= len(pairs)
        assert abs(stretch.shift) <= REACH
        end = stretch.end


@pytest.mark.skipif(not SHARED.exists(), reason="needs ../shared/data/homeassistant")
def test_real_text_is_in_step_until_a_line_is_taken_out():
    pairs = [line.split("\t") for line in SHARED.read_text(encoding="utf-8").split("\n")[:3001] if line]
    sources, targets = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    assert found(sources, targets) == []
    del targets[1777]
    (stretch,) = found(sources, targets)
    assert abs(stretch.first - 1777) <= 4
    assert (stretch.end, stretch.shift) == (len(targets), -1)
