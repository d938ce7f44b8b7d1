"""Shortlists from attention and from tables: the counts, what is kept of them, and what is refused."""

import gzip

import numpy as np
import pytest

from headway.engine.cooccurrence import UNSEEN, Cooccurrence
from headway.engine.lexical_table import read_lexical_table
from headway.errors import CorpusError, EngineError
from headway.text.bpe import learn_bpe
from headway.text.tokenizer import EOS_ID, UNK_ID

NOBODY = ("source", "target")
SOURCE = learn_bpe(["the cat sat on the mat", "one two three"] * 3, vocab_size=283)
TARGET = learn_bpe(["die katze sitzt auf der matte", "eins zwei drei"] * 3, vocab_size=277)
SIZE = TARGET.vocab_size


def listed(shortlist, source_id):
    return shortlist.tokens[shortlist.offsets[source_id] : shortlist.offsets[source_id + 1]].tolist()


def test_the_first_pairs_count_by_the_root_of_attention_and_later_ones_by_probability_too():
    counts = Cooccurrence(SOURCE, TARGET)
    weights_TS = np.array([[0.64, 0.32, 0.04], [0.01, 0.49, 0.5], [0.2, 0.2, 0.6]], dtype=np.float32)
    counts.add([60, 61, EOS_ID], [70, 71, EOS_ID], weights_TS)
    counts._merge()
    first = np.sqrt(weights_TS[:2]) / np.sqrt(weights_TS[:2]).sum(axis=1, keepdims=True)
    table = dict(zip(counts._keys.tolist(), counts._weights.tolist(), strict=True))
    expected = {
        source * SIZE + target: first[row, column]
        for row, target in enumerate((70, 71))
        for column, source in enumerate((60, 61, EOS_ID))
    }
    assert table == pytest.approx(expected, rel=1e-6)
    counts.add([60, EOS_ID], [70, EOS_ID], np.array([[0.25, 0.75], [0.5, 0.5]], dtype=np.float32))
    counts._merge()
    totals = first.sum(axis=0)
    shares = np.sqrt([0.25, 0.75]) * (first[0, [0, 2]] + UNSEEN) / (totals[[0, 2]] + UNSEEN * SIZE)
    shares /= shares.sum()
    table = dict(zip(counts._keys.tolist(), counts._weights.tolist(), strict=True))
    assert table[60 * SIZE + 70] == pytest.approx(first[0, 0] + shares[0], rel=1e-6)
    assert table[EOS_ID * SIZE + 70] == pytest.approx(first[0, 2] + shares[1], rel=1e-6)


def test_the_best_of_each_source_token_and_the_most_frequent_of_all_are_kept():
    counts = Cooccurrence(SOURCE, TARGET)
    for target, times in ((70, 7), (71, 5), (72, 3), (73, 2), (74, 1)):  # each stands for one source token alone
        for _ in range(times):
            counts.add([60, EOS_ID], [target, EOS_ID], np.array([[1, 0], [0, 1]], dtype=np.float32))
    shortlist = counts.shortlist(frequent=2, per_token=2, vocabularies=NOBODY)
    assert set(shortlist.always.tolist()) == {UNK_ID, EOS_ID, 70, 71}
    assert set(listed(shortlist, 60)) - {TARGET.names.index(SOURCE.names[60])} == {72, 73}
    assert shortlist.target_vocab_size == SIZE
    assert shortlist.source_vocab_size == SOURCE.vocab_size


def test_a_token_may_stay_as_it_is_where_both_vocabularies_have_it():
    shortlist = Cooccurrence(SOURCE, TARGET).shortlist(frequent=0, per_token=1, vocabularies=NOBODY)
    target_ids = {name: token_id for token_id, name in enumerate(TARGET.names)}
    for source_id, name in enumerate(SOURCE.names):
        same = target_ids.get(name, EOS_ID)
        assert listed(shortlist, source_id) == ([same] if same > EOS_ID else [])
    assert len(shortlist.tokens) >= 256  # all bytes at least


def test_when_there_is_no_more_room_the_lightest_pairs_are_forgotten_and_counted():
    counts = Cooccurrence(SOURCE, TARGET, most_pairs=3)
    counts.count(np.array([5, 3, 9, 1, 7]), np.array([0.5, 0.1, 0.3, 0.2, 0.9]))
    counts._merge()
    assert counts._keys.tolist() == [5, 7, 9]
    assert counts._weights.tolist() == [0.5, 0.9, 0.3]
    assert counts.forgotten == 2


def table_line(target_id, source_id, probability):
    return f"{TARGET.names[target_id]} {SOURCE.names[source_id]} {probability}\n"


def test_a_table_of_another_toolkit_is_read(tmp_path):
    text = (
        table_line(70, 60, 0.5)
        + table_line(71, 60, "2.5e-1")
        + table_line(72, 60, 0.125)
        + "NULL the 0.1\n"
        + f"nowhere {SOURCE.names[61]} 0.2\n"
        + f"</s> {SOURCE.names[61]} 1\n"
    )
    (tmp_path / "lex.s2t.gz").write_bytes(gzip.compress(text.encode()))
    table = read_lexical_table(tmp_path / "lex.s2t.gz", SOURCE, TARGET)
    assert (table.lines, table.used, table.empty, table.unknown) == (6, 4, 1, 1)
    shortlist = table.counts.shortlist(frequent=0, per_token=2, vocabularies=NOBODY)
    assert set(listed(shortlist, 60)) - {TARGET.names.index(SOURCE.names[60])} == {70, 71}
    assert 70 in table.counts.shortlist(frequent=2, per_token=2, vocabularies=NOBODY).always


@pytest.mark.parametrize("line", ["a b", "a b c d", "a b x", "a b nan", "a b -0.1", "a b 1.5", "a b inf", "", "a  0.5"])
def test_a_line_of_another_form_is_named(tmp_path, line):
    (tmp_path / "lex").write_text(table_line(70, 60, 0.5) + line + "\n", encoding="utf-8")
    with pytest.raises(EngineError, match="line 2: found"):
        read_lexical_table(tmp_path / "lex", SOURCE, TARGET)


def test_a_table_of_other_vocabularies_is_refused(tmp_path):
    (tmp_path / "lex").write_text("nowhere never 0.5\n", encoding="utf-8")
    with pytest.raises(EngineError, match="of 1 lines not one has tokens of this model's vocabularies"):
        read_lexical_table(tmp_path / "lex", SOURCE, TARGET)
    with pytest.raises(CorpusError, match="does not exist"):
        read_lexical_table(tmp_path / "none", SOURCE, TARGET)
