"""The counts that --preset auto chooses from: by hand, against a second count, and what is refused."""

import os
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.config.auto import SideFacts
from headway.config.load import build
from headway.data.facts import Distinct, count_facts
from headway.errors import CorpusError, DataError

LANGUAGES = {"source_language": "en", "target_language": "zh"}


def facts_of(folder, pairs, *, at_most=10**6, clean=None, **data):
    (folder / "a.tsv").write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8")
    config = build({"data": {"train_source": "a.tsv", **LANGUAGES, **data}, "clean": clean or {}})
    return count_facts(config, folder, at_most=at_most)


def test_words_characters_and_pairs_by_hand(tmp_path):
    pairs = [
        ("a dog runs", "狗跑了。"),
        ("a dog runs", "狗跑了。"),  # a duplicate
        ("", "空"),  # an empty side
        ("the same", "the same"),
        ("a  Dog\u00a0sat down", "他有 iPhone 吗"),
        ("ein Hündchen", "小狗"),
    ]
    facts = facts_of(tmp_path, pairs, held_out_share=0.7)
    assert (facts.pairs_read, facts.pairs, facts.validation_pairs, facts.is_whole) == (6, 3, 2, True)
    assert facts.source == SideFacts(3 + 4 + 2, 0)
    assert facts.target == SideFacts(1, 4 + 3 + 2)
    assert facts.different_words == len(["a", "dog", "runs", "Dog", "sat", "down", "ein", "Hündchen", "iPhone"])
    assert facts.characters == len(set("adogrunsDogsatdowneinHündchen狗跑了。他有iPhone吗小狗"))
    assert str(facts).startswith("3 of 6 pairs after cleaning; source 9 words; target 9 characters, without sp")


def test_of_many_characters_only_those_that_make_up_nearly_all_of_the_text_count(tmp_path):
    text = "ab" * 3000  # 6,000 characters; 2,999 of them may be anything as long as 99.95 % are covered
    pairs = [(text, "c"), ("d", "e"), ("f", "g"), ("h", "i")]
    # 6,007 characters: 6,003.997 must be covered, so a, b and 4 of the 7 others
    assert facts_of(tmp_path, pairs, clean={"max_characters": 0, "max_ratio": 0.0}).characters == 6


@given(st.lists(st.tuples(*[st.text("ab Z狗ガน\u00e9\U00020000", max_size=9)] * 2), max_size=30))
def test_counts_are_those_of_a_second_way_of_counting(tmp_path_factory, pairs):
    folder = tmp_path_factory.mktemp("facts")
    kept = dict.fromkeys(pair for pair in pairs if all(map(str.strip, pair)) and pair[0].strip() != pair[1].strip())
    if len(kept) < 2:
        with pytest.raises(DataError, match="training needs at least 2"):
            facts_of(folder, pairs)
        return
    facts = facts_of(folder, pairs)
    words: Counter[str] = Counter()
    for place, side in enumerate((facts.source, facts.target)):
        letters = [[" " if char in "狗ガน\U00020000" else char for char in pair[place]] for pair in kept]
        runs = [word for text in letters for word in "".join(text).split()]
        words.update(runs)
        assert side.words == len(runs)
        assert side.spaceless == sum(char in "狗ガน\U00020000" for pair in kept for char in pair[place])
    assert (facts.pairs, facts.different_words) == (len(kept), len(words))


def test_several_corpora_count_together_and_duplicates_only_within_each(tmp_path):
    (tmp_path / "b.tsv").write_text("a dog\t狗\nall day\t天\n", encoding="utf-8")
    (tmp_path / "c.tsv").write_text("a dog\t狗\na dog\t狗\n", encoding="utf-8")
    corpora = [{"source": "b.tsv"}, {"source": "c.tsv"}]
    facts = count_facts(build({"data": {"corpora": corpora, **LANGUAGES}}), tmp_path)
    assert (facts.pairs_read, facts.pairs, facts.source.words, facts.target.spaceless) == (4, 3, 6, 3)


def test_counting_ends_where_no_choice_depends_on_more(tmp_path):
    pairs = [(f"word {number}", f"Wort {number}") for number in range(53)]
    facts = facts_of(tmp_path, pairs, at_most=17)
    assert (facts.pairs, facts.is_whole, facts.source.words) == (17, False, 34)
    assert "where counting ended; no choice depends on more" in str(facts)
    assert facts_of(tmp_path, pairs, at_most=54).is_whole


def test_sources_of_several_sentences_are_counted_where_text_is_translated(tmp_path):
    sources = ["Hello. How are you?", "One sentence.", "e.g. one", "It is late! Go home.", "No stop"]
    assert facts_of(tmp_path, [(source, f"猫 {number}") for number, source in enumerate(sources)]).several == 2
    (tmp_path / "a.txt").write_text("\n".join(sources) + "\n", encoding="utf-8")
    language_model = {"model": {"architecture": "decoder_only"}, "train": {"best_by": "loss"}}
    config = build({"data": {"train_source": "a.txt", "format": "text"}, **language_model})
    assert count_facts(config, tmp_path).several == 0


def test_named_validation_text_is_not_counted(tmp_path):
    (tmp_path / "dev.tsv").write_text("c\td\n", encoding="utf-8")
    facts = facts_of(tmp_path, [("a", "b")], validation_source="dev.tsv")
    assert (facts.pairs, facts.validation_pairs) == (1, None)


def test_different_words_are_counted_exactly_up_to_what_is_kept_and_nearly_beyond():
    few, many = Distinct(kept=1009), Distinct(kept=1009)
    for start in range(0, 20_011, 500):
        block = {str(number) for number in range(start, min(start + 500, 20_011))}
        many.add(block)
        many.add(block)
        few.add({str(int(word) % 1009) for word in block})
    assert few.estimate() == 1009
    assert many.estimate() == pytest.approx(20_011, rel=0.12)  # four times the error of 1,009 / 2 samples and more


@pytest.mark.parametrize("pairs", [[], [("a dog", "ein Hund")], [("a", "a"), ("b", "b")]])
def test_a_corpus_of_one_pair_or_none_is_refused_with_counts(tmp_path, pairs):
    with pytest.raises((DataError, CorpusError), match=r"sentence pairs are left after cleaning|is empty"):
        facts_of(tmp_path, pairs)


def test_text_that_can_be_read_once_only_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"standard input can be read once only.* leave --preset auto out"):
        count_facts(build({"data": {"train_source": "-", **LANGUAGES}}), tmp_path)
    os.mkfifo(tmp_path / "pipe.tsv")
    with pytest.raises(DataError, match=r"pipe\.tsv can be read once only"):
        count_facts(build({"data": {"train_source": "pipe.tsv", **LANGUAGES}}), tmp_path)


def test_a_recipe_without_training_text_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"data\.train_source must name a file"):
        count_facts(build({}), tmp_path)
    with pytest.raises(CorpusError, match=r"a\.tsv does not exist"):
        count_facts(build({"data": {"train_source": "a.tsv", **LANGUAGES}}), tmp_path)


def test_progress_is_heard_from_nothing_on(tmp_path):
    heard = []
    facts_of(tmp_path, [("a b", "c d"), ("e", "f")])
    config = build({"data": {"train_source": "a.tsv", **LANGUAGES}})
    count_facts(config, tmp_path, on_progress=heard.append)
    assert heard == [0, 2]
