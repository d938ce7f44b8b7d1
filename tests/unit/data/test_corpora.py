"""Promises of several training corpora: [[data.corpora]], their weights, tags, reports and samples."""

import hashlib
import json
import os
import subprocess
import sys
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from headway.config.schema import RunConfig
from headway.data.batching import plan_epoch
from headway.data.loader import batches
from headway.data.prepare import prepare
from headway.data.prepared import Dropped, Prepared, read_prepared
from headway.errors import DataError

WORDS = ["red", "blue", "house", "tree", "river", "stone", "cloud"]


def _pairs(num_pairs: int, first: int = 0) -> list[tuple[str, str]]:
    """Different pairs: the digits of a number, written in words."""
    texts = [
        " ".join(WORDS[int(digit) % 7] for digit in f"{number:04}") + f" {number}"
        for number in range(first, first + num_pairs)
    ]
    return [(text, text.upper()) for text in texts]


def _write(folder: Path, name: str, pairs: list[tuple[str, str]]) -> None:
    (folder / name).write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8")


def _config(*corpora: dict[str, Any], **sections: dict[str, Any]) -> RunConfig:
    data = {"corpora": list(corpora), "held_out_pairs": 11} | sections.pop("data", {})
    return RunConfig.model_validate({"data": data, "model": {"vocab_size": 300}, **sections})


NAMED = {"validation_source": "valid.tsv"}


def _decoded(prepared: Prepared, part: str = "train") -> list[tuple[str, str]]:
    store = prepared.store(part)
    return [
        (
            prepared.source_tokenizer.decode(store.source(index).tolist()),
            prepared.target_tokenizer.decode(store.target(index).tolist()),
        )
        for index in range(len(store))
    ]


def test_one_corpus_in_a_table_is_the_short_form(tmp_path: Path) -> None:
    _write(tmp_path, "a.tsv", _pairs(307))
    table = prepare(_config({"source": "a.tsv"}), tmp_path, tmp_path / "table")
    short = prepare(_config(data={"train_source": "a.tsv"}), tmp_path, tmp_path / "short")
    for name in ("train/source.ids", "train/target.offsets", "train/store.json", "tokenizer.json"):
        assert (tmp_path / "table" / name).read_bytes() == (tmp_path / "short" / name).read_bytes()
    assert table.report.train == short.report.train
    assert table.report.corpora == short.report.corpora


def test_both_forms_at_once_are_refused() -> None:
    with pytest.raises(ValueError, match=r"both data\.train_source \('a'\) and \[\[data\.corpora\]\] \(1\)"):
        _config({"source": "b.tsv"}, data={"train_source": "a"})


def test_corpora_follow_one_another_in_the_store_and_are_cleaned_each_for_itself(tmp_path: Path) -> None:
    first, second = _pairs(23), _pairs(17, 13)
    _write(tmp_path, "a.tsv", [*first, first[3], ("", "leer")])
    _write(tmp_path, "b.tsv", [second[0], second[0], *second[1:], ("nul\0", "nul")])
    _write(tmp_path, "valid.tsv", _pairs(3, 500))
    prepared = prepare(_config({"source": "a.tsv"}, {"source": "b.tsv"}, data=NAMED), tmp_path, tmp_path / "out")
    # Pairs 13 to 22 stand in both: a duplicate is one of the same corpus.
    assert _decoded(prepared) == first + second
    report = prepared.report
    found = [(corpus.name, corpus.pairs_read, corpus.pairs_clean, corpus.pairs) for corpus in report.corpora]
    assert found == [("a.tsv", 25, 23, 23), ("b.tsv", 19, 17, 17)]
    dropped = [{row.name: row.dropped for row in corpus.cleaning if row.dropped} for corpus in report.corpora]
    assert dropped == [{"duplicate": 1, "empty side": 1}, {"duplicate": 1, "control characters": 1}]
    assert [row.examples[0].line for row in report.corpora[1].cleaning if row.dropped] == [19, 2]
    assert (report.pairs_read, report.pairs_clean) == (44, 40)
    assert {row.name: row.dropped for row in report.cleaning if row.dropped} == {
        "duplicate": 2,
        "empty side": 1,
        "control characters": 1,
    }


def test_held_out_pairs_are_of_all_corpora_and_keep_their_tags(tmp_path: Path) -> None:
    first, second = _pairs(211), _pairs(101, 300)
    _write(tmp_path, "a.tsv", first)
    _write(tmp_path, "b.tsv", second)
    config = _config({"source": "a.tsv", "tag": "home"}, {"source": "b.tsv"}, data={"held_out_share": 0.5})
    prepared = prepare(config, tmp_path, tmp_path / "out")
    sources, _ = prepared.texts("validation")
    tags = prepared.tags("validation")
    assert len(sources) == len(tags) == 11
    assert tags == ["home" if source in dict(first) else "" for source in sources]
    assert 0 < tags.count("home") < 11
    assert [corpus.held_out for corpus in prepared.report.corpora] == [tags.count("home"), tags.count("")]
    training = set(_decoded(prepared))
    assert training | set(zip(*prepared.texts("validation"), strict=True)) == set(first + second)
    tag_id = prepared.source_tokenizer.tag_id("home")
    store = prepared.store("validation")
    assert [store.source(row)[0] == tag_id for row in range(11)] == [tag == "home" for tag in tags]


def test_every_source_of_a_corpus_begins_with_its_tag_and_no_text_can_name_it(tmp_path: Path) -> None:
    _write(tmp_path, "a.tsv", [*_pairs(23), ("⟨tag:home⟩ home", "x ⟨tag:home⟩")])
    _write(tmp_path, "b.tsv", _pairs(17, 100))
    _write(tmp_path, "valid.tsv", _pairs(3, 500))
    corpora = {"source": "a.tsv", "tag": "home"}, {"source": "b.tsv", "tag": "law.2"}
    config = _config(*corpora, data=NAMED | {"validation_tag": "law.2"})
    for _ in range(2):  # prepared, then read
        prepared = prepare(config, tmp_path, tmp_path / "out")
        home, law = (prepared.source_tokenizer.tag_id(tag) for tag in ("home", "law.2"))
        assert (home, law) == (4, 5)
        store = prepared.store("train")
        firsts = [int(store.source(row)[0]) for row in range(len(store))]
        assert firsts == [home] * 24 + [law] * 17
        assert Counter(store.source_ids.tolist())[home] == 24
        assert not set(store.target_ids.tolist()) & {home, law}
        assert _decoded(prepared)[:23] == _pairs(23)
        assert prepared.tags("validation") == ["law.2"] * 3
        assert prepared.store("validation").source(0)[0] == law
        assert prepared.known_tags() == ("home", "law.2")
        assert prepared.report.source_vocab_size <= 300


def test_a_tag_counts_towards_the_longest_source(tmp_path: Path) -> None:
    _write(tmp_path, "a.tsv", _pairs(23))
    _write(tmp_path, "valid.tsv", [("red", "rot")])
    plain = prepare(_config({"source": "a.tsv"}, data=NAMED), tmp_path, tmp_path / "plain")
    longest = int(plain.store("train").source_lengths.max()) + 1
    for max_tokens, complete in ((longest + 1, True), (longest, False)):
        config = _config(
            {"source": "a.tsv", "tag": "t"}, data=NAMED | {"validation_tag": "t", "max_tokens": max_tokens}
        )
        report = prepare(config, tmp_path, tmp_path / "out").report
        assert (report.train.pairs == 23) is complete
        assert report.corpora[0].too_long == report.train.too_long


def test_over_long_pairs_are_counted_with_their_lines_for_each_corpus(tmp_path: Path) -> None:
    long = " ".join(["zq"] * 97)
    _write(tmp_path, "a.tsv", [*_pairs(11), (long, "x")])
    _write(tmp_path, "b.tsv", [("y", long), *_pairs(7, 100), (long, long + "z")])
    _write(tmp_path, "valid.tsv", _pairs(2, 500))
    config = _config(
        {"source": "a.tsv"}, {"source": "b.tsv"}, data=NAMED | {"max_tokens": 61}, clean={"max_ratio": 0.0}
    )
    report = prepare(config, tmp_path, tmp_path / "out").report
    assert [corpus.too_long for corpus in report.corpora] == [Dropped(1, (12,)), Dropped(2, (1, 9))]
    assert report.train.too_long == Dropped(3, ())


def test_overlap_names_the_corpus(tmp_path: Path) -> None:
    _write(tmp_path, "a.tsv", _pairs(11))
    _write(tmp_path, "b.tsv", _pairs(11, 100))
    _write(tmp_path, "valid.tsv", [_pairs(1, 103)[0]])
    overlap = prepare(
        _config({"source": "a.tsv"}, {"source": "b.tsv"}, data=NAMED), tmp_path, tmp_path / "out"
    ).report.validation_overlap
    assert (overlap.pairs, overlap.examples[0].corpus, overlap.examples[0].training_line) == (1, "b.tsv", 4)


def _epochs(prepared: Prepared, num_epochs: int) -> list[Counter[int]]:
    """How often each pair comes in each epoch, by the batches themselves: the number of a pair ends its source."""
    store = prepared.store("train")
    number_of = {prepared.source_tokenizer.decode(store.source(row).tolist()): row for row in range(len(store))}
    epochs: list[Counter[int]] = [Counter()]
    for position, step in batches(store, batch_tokens=199, microbatch_tokens=97, seed=3):
        for batch in step:
            for ids in batch.source_BS.tolist():
                epochs[-1][number_of[prepared.source_tokenizer.decode(ids)]] += 1
        if position.step == 0:
            if position.epoch == num_epochs:
                return epochs
            epochs.append(Counter())
    raise AssertionError("batches never end")


def test_a_pair_comes_as_often_as_the_weight_of_its_corpus_says(tmp_path: Path) -> None:
    for number, name in enumerate(("a", "b", "c")):
        _write(tmp_path, f"{name}.tsv", _pairs(23, 100 * number))
    _write(tmp_path, "valid.tsv", _pairs(2, 500))
    corpora = {"source": "a.tsv"}, {"source": "b.tsv", "weight": 0.25}, {"source": "c.tsv", "weight": 2.5}
    prepared = prepare(_config(*corpora, data=NAMED), tmp_path, tmp_path / "out")
    epochs = _epochs(prepared, 4)
    quarters = [{row for row in range(23, 46) if epoch[row]} for epoch in epochs]
    for epoch in epochs:
        assert [epoch[row] for row in range(23)] == [1] * 23
        assert {epoch[row] for row in range(46, 69)} == {2, 3}
    assert sorted(row for quarter in quarters for row in quarter) == list(range(23, 46))
    assert [sum(epoch[row] for row in range(46, 69)) for epoch in epochs] == [57, 58, 57, 58]
    assert [corpus.weight for corpus in prepared.report.corpora] == [1.0, 0.25, 2.5]


@pytest.mark.parametrize("stop", [0, 5, 17, 31])
def test_going_on_in_the_middle_of_a_mixed_epoch_is_exact(tmp_path: Path, stop: int) -> None:
    _write(tmp_path, "a.tsv", _pairs(53))
    _write(tmp_path, "b.tsv", _pairs(31, 100))
    _write(tmp_path, "valid.tsv", _pairs(2, 500))
    corpora = {"source": "a.tsv", "weight": 0.3}, {"source": "b.tsv", "weight": 1.7}
    store = prepare(_config(*corpora, data=NAMED), tmp_path, tmp_path / "out").store("train")
    straight = list(islice(batches(store, batch_tokens=199, seed=3), 41))
    position = straight[stop][0]
    resumed = islice(batches(store, batch_tokens=199, seed=3, start_epoch=position.epoch, start_step=position.step), 7)
    for (_, ours), (_, theirs) in zip(resumed, straight[stop + 1 :], strict=False):
        assert [batch.source_BS.tolist() for batch in ours] == [batch.source_BS.tolist() for batch in theirs]
    assert max(position.epoch for position, _ in straight) >= 2


def test_temperature_evens_the_shares_of_corpora(tmp_path: Path) -> None:
    _write(tmp_path, "a.tsv", _pairs(400))
    _write(tmp_path, "b.tsv", _pairs(100, 1000))
    _write(tmp_path, "valid.tsv", _pairs(2, 5000))
    config = _config({"source": "a.tsv"}, {"source": "b.tsv"}, data=NAMED | {"sampling_temperature": 2.0})
    prepared = prepare(config, tmp_path, tmp_path / "out")
    # Square roots 20 and 10: two thirds and one third of 500.
    assert [corpus.weight for corpus in prepared.report.corpora] == pytest.approx([0.833333, 1.666667])
    steps = plan_epoch(prepared.store("train"), batch_tokens=997, seed=3, epoch=0)
    rows = [row for step in steps for row in step[0].tolist()]
    assert (sum(row < 400 for row in rows), sum(row >= 400 for row in rows)) == (333, 166)


def test_weights_that_leave_an_epoch_without_a_pair_are_refused(tmp_path: Path) -> None:
    _write(tmp_path, "a.tsv", _pairs(23))
    _write(tmp_path, "valid.tsv", _pairs(2, 500))
    with pytest.raises(DataError, match=r"corpora of 23 pairs with the weights 0\.04 give epochs without a pair"):
        prepare(_config({"source": "a.tsv", "weight": 0.04}, data=NAMED), tmp_path, tmp_path / "out")
    assert read_prepared(tmp_path / "out") is None


def test_a_corpus_may_have_other_languages_than_the_run(tmp_path: Path) -> None:
    records = [{"en": source, "de": target, "fr": target.lower() + "!"} for source, target in _pairs(23)]
    (tmp_path / "all.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    corpora = (
        {"source": "all.jsonl", "tag": "2de"},
        {"source": "all.jsonl", "tag": "2fr", "target_language": "fr"},
        {"source": "all.jsonl", "tag": "2en", "source_language": "de", "target_language": "en"},
    )
    languages = {"source_language": "en", "target_language": "de"}
    prepared = prepare(_config(*corpora, data=languages), tmp_path, tmp_path / "out")
    texts = _decoded(prepared) + _decoded(prepared, "validation")
    wanted = [(r["en"], r["de"]) for r in records] + [(r["en"], r["fr"]) for r in records]
    assert Counter(texts) == Counter(wanted + [(r["de"], r["en"]) for r in records])


def _learnt_from(prepared: Prepared) -> int:
    return prepared.report.learnt_pairs


def test_the_vocabulary_is_learnt_from_a_sample_of_the_size_asked_for(tmp_path: Path) -> None:
    # A character of its own for each pair: only those of the sample are in a vocabulary of characters.
    rows = [(f"{chr(0x4E00 + number)} red", f"rot {number % 10}") for number in range(211)]
    _write(tmp_path, "a.tsv", rows)
    _write(tmp_path, "valid.tsv", _pairs(2))
    text: dict[str, Any] = {"byte_fallback": False, "sample_pairs": 53}
    samples: list[set[str]] = []
    for number, seed in enumerate((1, 1, 2)):
        config = _config({"source": "a.tsv"}, data=NAMED, text=text, train={"seed": seed})
        prepared = prepare(config, tmp_path, tmp_path / str(number))
        assert _learnt_from(prepared) == 53
        samples.append({source for source, _ in rows if 1 not in prepared.source_tokenizer.encode(source)})
        assert len(samples[-1]) == 53
    assert samples[0] == samples[1] != samples[2]
    for wanted in (0, 211, 997):
        config = _config({"source": "a.tsv"}, data=NAMED, text=text | {"sample_pairs": wanted})
        assert _learnt_from(prepare(config, tmp_path, tmp_path / "all")) == 211


def test_each_corpus_gives_to_the_sample_by_its_share_of_an_epoch(tmp_path: Path) -> None:
    for number, name in enumerate(("a", "b")):
        rows = [(f"{chr(0x4E00 + 1000 * number + row)} red", f"rot {row % 10}") for row in range(100)]
        _write(tmp_path, f"{name}.tsv", rows)
    _write(tmp_path, "valid.tsv", _pairs(2))
    corpora = {"source": "a.tsv", "weight": 3.0}, {"source": "b.tsv"}
    config = _config(*corpora, data=NAMED, text={"byte_fallback": False, "sample_pairs": 40})
    tokenizer = prepare(config, tmp_path, tmp_path / "out").source_tokenizer
    known = [sum(1 not in tokenizer.encode(chr(0x4E00 + 1000 * n + row)) for row in range(100)) for n in (0, 1)]
    assert known == [30, 10]


@pytest.mark.parametrize(
    "change", [{"weight": 2.0}, {"tag": "home"}, {"source": "b.tsv"}, {"format": "tsv"}, {"target_field": "2"}]
)
def test_a_changed_corpus_prepares_anew(tmp_path: Path, change: dict[str, Any]) -> None:
    _write(tmp_path, "a.tsv", _pairs(53))
    _write(tmp_path, "b.tsv", _pairs(53, 100))
    first = prepare(_config({"source": "a.tsv"}), tmp_path, tmp_path / "out").report.digest
    second = prepare(_config({"source": "a.tsv"} | change), tmp_path, tmp_path / "out").report.digest
    assert first != second


DIGEST = """
import sys
from pathlib import Path
from headway.config.schema import RunConfig
from headway.data.prepare import prepare

folder = Path(sys.argv[1])
prepare(RunConfig.model_validate_json((folder / "run.json").read_text()), folder, folder / sys.argv[2])
"""


def test_any_number_of_threads_prepares_the_same_bytes(tmp_path: Path) -> None:
    _write(tmp_path, "a.tsv", _pairs(1009))
    _write(tmp_path, "b.tsv", _pairs(307, 5000))
    config = _config({"source": "a.tsv", "weight": 0.5}, {"source": "b.tsv", "tag": "home"}, text={"sample_pairs": 997})
    (tmp_path / "run.json").write_text(config.model_dump_json())
    digests: list[dict[str, str]] = []
    for threads in ("1", "5"):
        environment = {**os.environ, "RAYON_NUM_THREADS": threads}
        subprocess.run([sys.executable, "-c", DIGEST, str(tmp_path), threads], check=True, env=environment)
        files = sorted(path for path in (tmp_path / threads).rglob("*") if path.is_file())
        digests.append(
            {str(path.relative_to(tmp_path / threads)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
        )
    assert digests[0] == digests[1]
    assert len(digests[0]) == 14
