"""Lines as a stream."""

from hypothesis import given, settings
from hypothesis import strategies as st
from translate_copies import copying_translator

from headway.translate.decoding import Decoding
from headway.translate.lines import FIRST_CHUNK, score_lines, translate_lines

GREEDY = Decoding(beam_size=1)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.sampled_from(["", " ", "the cat", "a mat sat", "one\u2028two"]), max_size=40), st.integers(1, 7))
def test_n_lines_in_give_n_lines_out_in_order_for_every_chunk(lines, chunk):
    translator = copying_translator()
    assert [
        translation.text for translation in translate_lines(translator, lines, decoding=GREEDY, chunk=chunk)
    ] == lines


def test_the_first_output_comes_before_the_whole_input_is_read():
    taken = []

    def lines():
        for number in range(1000):
            taken.append(number)
            yield f"the cat {number}"

    first = next(translate_lines(copying_translator(), lines(), decoding=GREEDY))
    assert first.text == "the cat 0"
    assert len(taken) <= FIRST_CHUNK


def test_one_line_at_a_time_waits_for_no_further_line():
    lines = iter(["the cat", "a mat"])
    translations = translate_lines(copying_translator(), lines, chunk=1)
    assert next(translations).text == "the cat"
    assert next(lines) == "a mat"


def test_every_output_begins_with_the_prefix():
    texts = [
        translation.text for translation in translate_lines(copying_translator(), ["cat", "mat"], target_prefix="a")
    ]
    assert all(text.startswith("a") for text in texts)


def test_pairs_are_scored_in_order_for_every_chunk():
    pairs = [("the cat", "the cat"), ("", "a"), ("one two three", "one"), ("mat", "mat")]
    translator = copying_translator()
    whole = list(score_lines(translator, pairs))
    assert list(score_lines(translator, iter(pairs), chunk=3)) == whole
    assert len(whole) == len(pairs)
