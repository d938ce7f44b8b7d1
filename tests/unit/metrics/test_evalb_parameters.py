"""EVALB's parameter files: every key, and lines that are none."""

import pytest

from headway.errors import CorpusError, MetricError
from headway.metrics.evalb_parameters import Parameters, read_parameters


def read(tmp_path, text):
    (tmp_path / "x.prm").write_text(text)
    return read_parameters(tmp_path / "x.prm")


def test_every_key_is_read(tmp_path):
    assert read(
        tmp_path,
        """# a comment
##------##
DEBUG 2
MAX_ERROR 7
CUTOFF_LEN\t\t13
CUTOFF_LEN 17

LABELED 0
DELETE_LABEL TOP
DELETE_LABEL #
DELETE_LABEL_FOR_LENGTH -NONE-
QUOTE_LABEL ``
EQ_LABEL ADVP  PRT
EQ_LABEL T TT
EQ_WORD  -LRB- [
a
""",
    ) == Parameters(
        debug=2,
        max_errors=7,
        cutoff_length=17,
        labeled=False,
        delete_labels=("TOP", "#"),
        delete_labels_for_length=("-NONE-",),
        quote_labels=("``",),
        equal_labels=(("ADVP", "PRT"), ("T", "TT")),
        equal_words=(("(", "["),),
    )


def test_an_empty_file_is_evalb_without_parameters(tmp_path):
    assert read(tmp_path, "") == Parameters(max_errors=10, cutoff_length=40, labeled=True)


def test_equal_labels_and_words_hold_in_both_directions():
    parameters = Parameters(equal_labels=(("ADVP", "PRT"),), equal_words=(("This", "this"),))
    for one, other in [("ADVP", "PRT"), ("PRT", "ADVP"), ("X", "X")]:
        assert parameters.same_label(one, other)
    for one, other in [("This", "this"), ("this", "This")]:
        assert parameters.same_word(one, other)
        assert not parameters.same_label(one, other)
    assert not parameters.same_label("ADVP", "NP")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("DELETE_LABELS TOP", r"found the key 'DELETE_LABELS'; wanted one of DEBUG, .*EQ_WORD\. Write DELETE_LABEL\."),
        ("7777 TOP", r"found the key '7777'; wanted one of .*\. Remove the line\."),
        ("DELETE_LABEL", r"found 'DELETE_LABEL'; wanted one label\. Write DELETE_LABEL TOP\."),
        ("DELETE_LABEL TOP S1", r"found 'DELETE_LABEL TOP S1'; wanted one label"),
        ("EQ_LABEL ADVP", r"found 'EQ_LABEL ADVP'; wanted two labels\. Write EQ_LABEL ADVP PRT\."),
        ("EQ_WORD a b c", r"found 'EQ_WORD a b c'; wanted two words"),
        ("CUTOFF_LEN forty", r"found 'CUTOFF_LEN forty'; wanted one whole number, 0 or more\. Write CUTOFF_LEN 40\."),
        ("MAX_ERROR -1", r"found 'MAX_ERROR -1'; wanted one whole number"),
        ("DEBUG ²", r"found 'DEBUG ²'; wanted one whole number"),
        ("LABELED yes", r"found 'LABELED yes'; wanted 0 or 1"),
    ],
)
def test_a_line_that_evalb_would_pass_over_is_an_error(tmp_path, line, message):
    with pytest.raises(MetricError, match=rf"^metrics/evalb_parameters: {tmp_path}/x.prm line 2: {message}"):
        read(tmp_path, f"LABELED 1\n{line}\n")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(CorpusError, match="does not exist"):
        read_parameters(tmp_path / "none.prm")
