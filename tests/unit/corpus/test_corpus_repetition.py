"""Repetitions by fingerprints are those that comparing all texts finds."""

from hypothesis import given
from hypothesis import strategies as st

from headway.corpus.pair import SentencePair
from headway.corpus.repetition import Repetition, first_places, loose
from headway.corpus.sample import Sample

WORDS = st.sampled_from(["", "a", "A", "b", "c 1", "C2", "!", "ä"])


@given(st.lists(st.lists(st.tuples(WORDS, WORDS), max_size=20), min_size=1, max_size=3))
def test_what_repeats_is_found_at_its_place_with_the_first_place_before(files):
    repetition = Repetition()
    for pairs in files:
        repetition.start_file()
        for line, (source, target) in enumerate(pairs, 1):
            repetition.add(source, target, line=line, loose_sides=(loose(source), loose(target)))
    together = [pair for pairs in files for pair in pairs]
    wanted = compared_with_all_before(together)
    found = repetition.find()
    assert found.keys() == wanted.keys()
    for kind, repeated in found.items():
        assert first_places(repeated, 0, len(together), 99) == wanted[kind]
        counts = repetition.by_file(repeated.places)
        for number, count in enumerate(counts):
            assert count == sum(repetition.where(place)[0] == number for place, _ in wanted[kind])


def compared_with_all_before(together):
    """By kind, the place of each pair that repeats or contradicts an earlier one, and that of the first such."""
    wanted = {"duplicate": [], "near-duplicate": [], "many-targets": [], "many-sources": []}
    firsts = {kind: {} for kind in wanted}
    for place, (source, target) in enumerate(together):
        if not source or not target:
            continue
        like = (loose(source), loose(target))
        known = firsts["duplicate"].setdefault((source, target), place)
        near = firsts["near-duplicate"].setdefault(like, place) if all(like) else place
        if known != place:
            wanted["duplicate"].append((place, known))
            continue
        if near != place:
            wanted["near-duplicate"].append((place, near))
        for kind, side in (("many-targets", source), ("many-sources", target)):
            first = firsts[kind].setdefault(side, place)
            if first != place:
                wanted[kind].append((place, first))
    return wanted


def test_places_are_files_and_lines_even_where_a_file_is_empty():
    repetition = Repetition()
    for lines in ([3, 5], [], [2]):
        repetition.start_file()
        for line in lines:
            repetition.add("a", "b", line=line, loose_sides=("a", "b"))
    assert [repetition.where(place) for place in range(3)] == [(0, 3), (0, 5), (2, 2)]


def test_loose_texts_keep_letters_and_vowel_signs_only():
    assert loose("Straße, №5 – Ok!") == "strasse№ok"
    assert loose("हिन्दी") == "हिन्दी"
    assert loose("１２３。") == ""


@given(st.lists(st.integers(0, 2**64 - 1), unique=True), st.integers(1, 7), st.randoms())
def test_a_sample_is_of_the_smallest_marks_in_any_order(numbers, size, rng):
    shuffled = numbers[:]
    rng.shuffle(shuffled)
    samples = []
    for order in (numbers, shuffled):
        sample = Sample(size)
        for number in order:
            if sample.wants(number):
                sample.add(number, SentencePair(str(number), "", 1))
        samples.append([pair.source for pair in sample.pairs()])
    assert samples[0] == samples[1] == [str(number) for number in sorted(numbers)[:size]]
