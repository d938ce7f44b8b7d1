"""Promises of headway.corpus.overlap."""

from hypothesis import given
from hypothesis import strategies as st

from headway.corpus.overlap import Overlap, OverlapCounter, OverlapExample
from headway.corpus.pair import SentencePair


def number(*sides: tuple[str, str]) -> list[SentencePair]:
    return [SentencePair(source, target, line) for line, (source, target) in enumerate(sides, 1)]


def count(held: list[SentencePair], training: list[SentencePair]) -> Overlap:
    counter = OverlapCounter(held)
    assert list(counter.watch(training)) == training
    return counter.result()


def test_pairs_sources_and_targets_are_counted_apart():
    held = number(("a", "A"), ("b", "B"), ("c", "C"), ("d", "D"), ("e", "E"))
    training = number(("x", "X"), ("a", "A"), ("b", "Z"), ("y", "C"), ("d", "Y"), ("y", "D"))
    overlap = count(held, training)
    assert (overlap.num_pairs, overlap.pairs, overlap.sources, overlap.targets) == (5, 1, 3, 3)


def test_examples_give_both_lines_whole_pairs_first():
    held = number(("b", "B"), ("c", "C"), ("a", "A"))
    training = number(("b", "Z"), ("y", "C"), ("a", "A"), ("a", "A"))
    assert count(held, training).examples == (
        OverlapExample("pair", held[2], 3),
        OverlapExample("source", held[0], 1),
        OverlapExample("target", held[1], 2),
    )


def test_white_space_around_a_text_makes_no_difference_and_inside_it_does():
    held = number((" a b", "A\t"), ("c d", "C"))
    overlap = count(held, number(("a b", " A"), ("c  d", "c")))
    assert (overlap.pairs, overlap.sources, overlap.targets) == (1, 1, 1)


def test_a_text_that_stands_twice_in_validation_counts_twice():
    overlap = count(number(("a", "A"), ("a", "A"), ("a", "B")), number(("a", "A"), ("a", "A")))
    assert (overlap.pairs, overlap.sources, overlap.targets) == (2, 3, 2)


def test_an_empty_text_overlaps_with_nothing():
    overlap = count(number(("", "A"), (" ", "")), number(("", "A"), ("", "")))
    assert (overlap.pairs, overlap.sources, overlap.targets) == (0, 0, 1)


def test_training_text_flows_by_one_pair_at_a_time():
    def training():
        yield SentencePair("a", "A", 1)
        raise AssertionError("read ahead")

    counter = OverlapCounter(number(("a", "A")))
    assert next(counter.watch(training())) == SentencePair("a", "A", 1)
    assert counter.result().pairs == 1


PAIRS = st.lists(st.tuples(st.sampled_from(["a", "b", "c", ""]), st.sampled_from(["A", "B", ""])), max_size=11)


@given(held=PAIRS, training=PAIRS)
def test_counts_equal_those_of_comparing_every_two(held: list[tuple[str, str]], training: list[tuple[str, str]]):
    overlap = count(number(*held), number(*training))
    assert overlap.pairs == sum(any(a == b for b in training) for a in held if all(a))
    assert overlap.sources == sum(any(a[0] == b[0] for b in training) for a in held if a[0])
    assert overlap.targets == sum(any(a[1] == b[1] for b in training) for a in held if a[1])
    sharing = [a for a in held if any((a[0] and a[0] == b[0]) or (a[1] and a[1] == b[1]) for b in training)]
    assert len(overlap.examples) == len({each.pair.line for each in overlap.examples}) == min(3, len(sharing))
