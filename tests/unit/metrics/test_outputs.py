"""What outputs show beside their score: loops, copies, empty and equal outputs, by hand."""

import pytest

from headway.metrics.outputs import count_outputs, loop_of


@pytest.mark.parametrize(
    ("text", "loop"),
    [
        ("die die die die", "die"),
        ("ein Mann in ein Mann in ein Mann in ein Mann in", "ein Mann in"),
        ("er sagt nein nein nein", ""),  # three times
        ("eingelgelgelgel", "gel"),  # twelve characters, four times
        ("的的的的的的的的", "的"),
        ("hahaha 1000", ""),
        ("", ""),
        ("warte ....", ""),  # four places of the eight that a loop of characters fills
    ],
)
def test_a_loop_is_what_comes_four_times_in_a_row(text, loop):
    assert loop_of(text) == loop


def test_what_the_reference_shows_too_is_no_fault():
    references = ["na na na na na", "", "Windows 11", "x"]
    counts = count_outputs(["a b", "c", "Windows 11", "x"], references, ["na na na na", "", "Windows 11", "x"])
    assert (counts.looping, counts.empty, counts.copied) == (0, 0, 0)


def test_counts_by_hand():
    sources = ["the old man sleeps", "one two three four five", "red", "blue", "green", "gone"]
    references = ["der alte Mann schläft", "eins zwei drei vier fünf", "rot", "blau", "grün", "weg"]
    outputs = ["The old man sleeps", "one two three four fünf", "JA", "JA", "JA", " "]
    counts = count_outputs(sources, references, outputs)
    assert (counts.num, counts.copied, counts.same, counts.empty, counts.looping) == (6, 2, 3, 1, 0)
    assert counts.num_characters == 15 + 19 + 6
    assert counts.shown["copied"].output == "The old man sleeps"
    assert counts.shown["same"].source == "red"


def test_one_output_for_sources_of_one_reference_is_right():
    assert count_outputs(["a", "b", "c"], ["ok", "ok", "ok"], ["ok", "ok", "ok"]).same == 1
