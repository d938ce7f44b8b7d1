import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from headway.cli.reports import render_report
from headway.config.schema import RunConfig
from headway.data.prepare import BESIDE, prepare
from headway.data.prepared import Dropped, Prepared, read_prepared
from headway.errors import CorpusError, DataError, HeadwayError

ENGLISH = ["red", "blue", "house", "tree", "river", "stone", "cloud"]
GERMAN = ["rot", "blau", "Haus", "Baum", "Fluss", "Stein", "Wolke"]


def _corpus(num_pairs: int, first: int = 0) -> list[tuple[str, str]]:
    """Different pairs: the digits of a number, written in words."""
    return [
        tuple(" ".join(words[int(digit) % 7] for digit in f"{number:05}") + f" {number}" for words in (ENGLISH, GERMAN))
        for number in range(first, first + num_pairs)
    ]  # type: ignore[return-value]


def _write(folder: Path, name: str, pairs: list[tuple[str, str]]) -> None:
    for side, language in enumerate(("en", "de")):
        text = "".join(pair[side] + "\n" for pair in pairs)
        (folder / f"{name}.{language}").write_bytes(text.encode())


def _config(**sections: dict[str, Any]) -> RunConfig:
    data = {
        "source_language": "en",
        "target_language": "de",
        "train_source": "train.en",
        "train_target": "train.de",
        "held_out_pairs": 11,
    }
    return RunConfig.model_validate(
        {
            **sections,
            "data": data | sections.get("data", {}),
            "model": {"vocab_size": 300} | sections.get("model", {}),
        }
    )


VALIDATION = {"validation_source": "valid.en", "validation_target": "valid.de"}
TEST = {"test_source": "test.en", "test_target": "test.de"}


def _decoded(prepared: Prepared, part: str) -> list[tuple[str, str]]:
    store = prepared.store(part)
    return [
        (
            prepared.source_tokenizer.decode(store.source(index).tolist()),
            prepared.target_tokenizer.decode(store.target(index).tolist()),
        )
        for index in range(len(store))
    ]


def test_every_pair_is_in_training_or_held_out_and_comes_back_as_it_was(tmp_path: Path) -> None:
    pairs = _corpus(307)
    _write(tmp_path, "train", pairs)
    prepared = prepare(_config(), tmp_path, tmp_path / "out")
    training, validation = _decoded(prepared, "train"), _decoded(prepared, "validation")
    assert (len(training), len(validation), prepared.report.held_out) == (296, 11, 11)
    held_out = set(validation)
    assert training == [pair for pair in pairs if pair not in held_out]
    assert validation == [pair for pair in pairs if pair in held_out]
    sources, references = prepared.texts("validation")
    assert list(zip(sources, references, strict=True)) == validation


def test_what_is_held_out_depends_on_the_seed_only(tmp_path: Path) -> None:
    _write(tmp_path, "train", _corpus(307))

    def validation(seed: int, out: str) -> list[str]:
        return prepare(_config(train={"seed": seed}), tmp_path, tmp_path / out).texts("validation")[0]

    first = validation(1, "a")
    assert validation(1, "b") == first
    assert validation(2, "c") != first


def test_held_out_text_has_no_part_in_the_vocabulary(tmp_path: Path) -> None:
    # A character of its own for each pair: only training's are in a vocabulary of characters.
    _write(tmp_path, "train", [(f"{chr(0x4E00 + number)} red", f"rot {number}") for number in range(31)])
    prepared = prepare(_config(text={"byte_fallback": False}), tmp_path, tmp_path / "out")
    store, held_out = prepared.store("train"), prepared.texts("validation")[0]
    assert len(held_out) == 1
    assert 1 in prepared.source_tokenizer.encode(held_out[0])  # UNK
    assert not (store.source_ids == 1).any()


def test_named_validation_text_is_taken_as_it_is_and_training_keeps_all(tmp_path: Path) -> None:
    pairs = _corpus(101)
    validation = [pairs[3], ("red", "red"), (pairs[5][0], "anders"), pairs[3]]
    _write(tmp_path, "train", pairs)
    _write(tmp_path, "valid", validation)
    prepared = prepare(_config(data=VALIDATION), tmp_path, tmp_path / "out")
    assert _decoded(prepared, "train") == pairs
    assert _decoded(prepared, "validation") == validation
    assert prepared.report.held_out == 0


def test_overlap_of_training_with_validation_and_test_is_counted(tmp_path: Path) -> None:
    pairs = _corpus(101)
    _write(tmp_path, "train", pairs)
    _write(tmp_path, "valid", [pairs[3], (pairs[5][0], "anders"), ("else", pairs[7][1]), ("new", "neu")])
    _write(tmp_path, "test", [("new", "neu"), pairs[11]])
    report = prepare(_config(data=VALIDATION | TEST), tmp_path, tmp_path / "out").report
    overlap = report.validation_overlap
    assert (overlap.num_pairs, overlap.pairs, overlap.sources, overlap.targets) == (4, 1, 2, 2)
    assert overlap.examples[0].training_line == 4
    assert report.test_overlap is not None
    assert (report.test_overlap.num_pairs, report.test_overlap.pairs) == (2, 1)


def test_an_empty_side_in_validation_shifts_nothing_and_is_counted(tmp_path: Path) -> None:
    _write(tmp_path, "train", _corpus(101))
    validation = [("red", "rot"), ("", "leer"), ("blue", "blau"), ("blank", " "), ("tree", "Baum")]
    _write(tmp_path, "valid", validation)
    prepared = prepare(_config(data=VALIDATION), tmp_path, tmp_path / "out")
    assert prepared.texts("validation") == ([pair[0] for pair in validation], [pair[1] for pair in validation])
    assert _decoded(prepared, "validation") == validation[0::2]
    assert prepared.report.validation.empty == Dropped(2, (2, 4))


def test_units_of_validation_and_test_that_lack_a_side_are_counted_and_not_scored(tmp_path: Path) -> None:
    _write(tmp_path, "train", _corpus(101))
    half, whole = "<source>{}</source>", "<source>{}</source><target>{}</target>"
    for name, units in {
        "valid": [half.format("red"), whole.format("blue", "blau"), whole.format("tree", " ")],
        "test": [whole.format("red", "rot"), half.format("house")],
    }.items():
        body = "\n".join(f"<trans-unit>{unit}</trans-unit>" for unit in units)
        (tmp_path / f"{name}.xlf").write_text(f'<xliff version="1.2"><file><body>\n{body}\n</body></file></xliff>')
    data = {"validation_source": "valid.xlf", "test_source": "test.xlf"}
    prepared = prepare(_config(data=data), tmp_path, tmp_path / "out")
    assert prepared.texts("validation") == (["blue"], ["blau"])
    assert prepared.texts("test") == (["red"], ["rot"])
    assert prepared.report.gaps == {"validation": Dropped(2, (2, 4)), "test": Dropped(1, (3,))}
    assert prepared.tags("validation") == [""]
    assert _decoded(prepared, "validation") == [("blue", "blau")]
    assert read_prepared(tmp_path / "out") is not None
    told = render_report(prepared.report)
    assert "test, units that lack a side: 1 left out, first at line 3" in told
    assert "validation, units that lack a side: 2 left out, first at line 2, 4" in told


def test_a_test_file_without_any_translation_is_refused(tmp_path: Path) -> None:
    _write(tmp_path, "train", _corpus(101))
    (tmp_path / "test.po").write_text('msgid "red"\nmsgstr ""\n')
    with pytest.raises(DataError, match=r"test\.po: found nothing but units that lack a side \(1\)"):
        prepare(_config(data={"test_source": "test.po"}), tmp_path, tmp_path / "out")


def test_pairs_that_cleaning_dropped_are_counted_and_the_rest_stay_aligned(tmp_path: Path) -> None:
    pairs = _corpus(23)
    broken = [*pairs[:3], ("", "leer"), pairs[3], ("empty", ""), *pairs[4:], pairs[0], ("nul\0", "nul")]
    _write(tmp_path, "train", broken)
    _write(tmp_path, "valid", _corpus(5, 1000))
    prepared = prepare(_config(data=VALIDATION), tmp_path, tmp_path / "out")
    assert _decoded(prepared, "train") == pairs
    assert (prepared.report.pairs_read, prepared.report.pairs_clean) == (27, 23)
    dropped = {row.name: row.dropped for row in prepared.report.cleaning if row.dropped}
    assert dropped == {"empty side": 2, "duplicate": 1, "control characters": 1}


def test_over_long_pairs_are_dropped_and_counted_with_their_lines(tmp_path: Path) -> None:
    pairs = _corpus(23)
    long = " ".join(["zq"] * 97)
    _write(tmp_path, "train", [pairs[0], (long, "x"), *pairs[1:7], ("y", long), (long, long), ("w " + long, "w")])
    _write(tmp_path, "valid", [*pairs[7:11], (long, "kurz")])
    config = _config(data=VALIDATION | {"max_tokens": 61}, clean={"max_ratio": 0.0, "drop_identical": False})
    prepared = prepare(config, tmp_path, tmp_path / "out")
    assert _decoded(prepared, "train") == pairs[:7]
    assert prepared.report.train.too_long == Dropped(4, (2, 9, 10))
    assert _decoded(prepared, "validation") == pairs[7:11]
    assert prepared.report.validation.too_long == Dropped(1, (5,))
    assert len(prepared.texts("validation")[0]) == 5


def test_eos_counts_towards_the_longest_pair_that_stays(tmp_path: Path) -> None:
    _write(tmp_path, "train", _corpus(23))
    _write(tmp_path, "valid", _corpus(3, 1000))
    store = prepare(_config(data=VALIDATION), tmp_path, tmp_path / "a").store("train")
    longest = int(max(store.source_lengths.max(), store.target_lengths.max()))
    for max_tokens, complete in ((longest + 1, True), (longest, False)):
        config = _config(data=VALIDATION | {"max_tokens": max_tokens})
        report = prepare(config, tmp_path, tmp_path / "b").report
        assert (report.train.pairs == 23) is complete


def test_a_sentence_of_a_hundred_thousand_words_is_dropped_and_counted(tmp_path: Path) -> None:
    pairs = _corpus(23)
    _write(tmp_path, "train", [*pairs, (" ".join(["word"] * 100_003), " ".join(["Wort"] * 100_003))])
    config = _config(clean={"max_characters": 0})
    assert prepare(config, tmp_path, tmp_path / "out").report.train.too_long == Dropped(1, (24,))


def test_a_line_break_inside_a_training_text_shifts_nothing(tmp_path: Path) -> None:
    pairs = [*_corpus(5), ("two\nlines\r", "zwei\nZeilen"), *_corpus(5, 100)]
    records = [json.dumps({"en": source, "de": target}) for source, target in pairs]
    (tmp_path / "train.jsonl").write_text("\n".join(records))
    (tmp_path / "valid.tsv").write_text("red\trot\n")
    data = {"train_source": "train.jsonl", "train_target": "", "validation_source": "valid.tsv"}
    config = _config(data=data, clean={"drop_control_characters": False})
    assert _decoded(prepare(config, tmp_path, tmp_path / "out"), "train") == pairs


def test_a_line_break_inside_a_validation_text_is_refused_with_its_line(tmp_path: Path) -> None:
    _write(tmp_path, "train", _corpus(23))
    (tmp_path / "valid.jsonl").write_text('{"en": "a", "de": "b"}\n{"en": "c", "de": "d\\ne"}\n')
    data = {"train_source": "train.jsonl", "train_target": "", "validation_source": "valid.jsonl"}
    (tmp_path / "train.jsonl").write_text("".join(json.dumps({"en": s, "de": t}) + "\n" for s, t in _corpus(23)))
    with pytest.raises(DataError, match=r"validation text, line 2 .* line break"):
        prepare(_config(data=data), tmp_path, tmp_path / "out")


def test_separate_vocabularies_are_learnt_from_their_own_sides(tmp_path: Path) -> None:
    _write(tmp_path, "train", [(source, target.replace("rot", "猫")) for source, target in _corpus(101)])
    config = _config(
        text={"shared_vocabulary": False, "byte_fallback": False},
        model={"vocab_size": 61, "source_vocab_size": 53, "embedding_sharing": "target"},
    )
    for _ in range(2):  # prepared, then reused
        prepared = prepare(config, tmp_path, tmp_path / "out")
        assert (prepared.report.source_vocab_size, prepared.report.target_vocab_size) == (53, 61)
        assert (prepared.source_tokenizer.vocab_size, prepared.target_tokenizer.vocab_size) == (53, 61)
        assert prepared.source_tokenizer.encode("猫")[-1] == 1  # UNK
        assert prepared.target_tokenizer.encode("猫")[-1] != 1


def test_one_vocabulary_is_one_tokenizer(tmp_path: Path) -> None:
    _write(tmp_path, "train", _corpus(101))
    for _ in range(2):
        prepared = prepare(_config(), tmp_path, tmp_path / "out")
        assert prepared.source_tokenizer is prepared.target_tokenizer
        assert prepared.report.source_vocab_size == prepared.source_tokenizer.vocab_size


def _stages(config: RunConfig, folder: Path) -> list[tuple[str, int]]:
    stages: list[tuple[str, int]] = []
    prepare(config, folder, folder / "out", on_progress=lambda stage, count: stages.append((stage, count)))
    return stages


def test_the_same_input_and_settings_are_prepared_once(tmp_path: Path) -> None:
    _write(tmp_path, "train", _corpus(101))
    _write(tmp_path, "test", _corpus(3))
    config = _config(data=TEST)
    assert _stages(config, tmp_path) == [("clean", 101), ("learn", 96), ("encode", 96)]
    first = read_prepared(tmp_path / "out")
    assert _stages(config, tmp_path) == []
    assert _stages(_config(data=TEST, train={"max_steps": 7}), tmp_path) == []
    second = prepare(config, tmp_path, tmp_path / "out")
    assert first is not None
    assert second.report == first.report


@pytest.mark.parametrize(
    "sections",
    [
        {"clean": {"max_ratio": 3.0}},
        {"data": {"max_tokens": 61}},
        {"model": {"vocab_size": 301}},
        {"text": {"byte_fallback": False}},
        {"train": {"seed": 2}},
    ],
)
def test_a_changed_setting_prepares_anew(tmp_path: Path, sections: dict[str, dict[str, Any]]) -> None:
    _write(tmp_path, "train", _corpus(101))
    prepare(_config(), tmp_path, tmp_path / "out")
    assert _stages(_config(**sections), tmp_path)


@pytest.mark.parametrize("name", ["train.en", "train.de", "test.en", "test.de", "valid.en", "valid.de"])
def test_changed_text_prepares_anew(tmp_path: Path, name: str) -> None:
    for number, part in enumerate(("train", "valid", "test")):
        _write(tmp_path, part, _corpus(13, 1000 * number))
    config = _config(data=VALIDATION | TEST)
    prepare(config, tmp_path, tmp_path / "out")
    path = tmp_path / name
    path.write_bytes(path.read_bytes().replace(b"e", b"a"))
    assert _stages(config, tmp_path)


@pytest.mark.parametrize(
    "name", ["prepared.json", "train/source.ids", "validation/store.json", "tokenizer.json", "test.source.txt"]
)
@pytest.mark.parametrize("damage", ["missing", "cut"])
def test_damaged_data_is_prepared_anew(tmp_path: Path, name: str, damage: str) -> None:
    _write(tmp_path, "train", _corpus(101))
    _write(tmp_path, "test", _corpus(3))
    config = _config(data=TEST)
    prepare(config, tmp_path, tmp_path / "out")
    path = tmp_path / "out" / name
    content = path.read_bytes()
    path.unlink()
    if damage == "cut" and path.suffix != ".txt":
        path.write_bytes(content[: len(content) // 2])
    assert _stages(config, tmp_path)
    assert path.read_bytes() == content


def test_an_error_in_the_input_leaves_what_was_prepared_before(tmp_path: Path) -> None:
    _write(tmp_path, "train", _corpus(101))
    prepare(_config(), tmp_path, tmp_path / "out")
    kept = (tmp_path / "train.de").read_bytes()
    (tmp_path / "train.de").write_bytes(kept + b"one more\n")
    with pytest.raises(CorpusError, match=r"101 lines.*102"):
        prepare(_config(), tmp_path, tmp_path / "out")
    (tmp_path / "train.de").write_bytes(kept)
    assert _stages(_config(), tmp_path) == []


@pytest.mark.parametrize("late", ["max_tokens", "line break", "check"])
def test_an_error_that_is_found_last_of_all_leaves_it_too(tmp_path: Path, late: str) -> None:
    _write(tmp_path, "train", _corpus(101))
    prepare(_config(), tmp_path, tmp_path / "out")
    before = {path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    data: dict[str, Any] = {"max_tokens": 2} if late == "max_tokens" else {}
    if late == "line break":
        (tmp_path / "valid.jsonl").write_text('{"en": "a\\nb", "de": "c"}\n', encoding="utf-8")
        data = {"validation_source": "valid.jsonl"}

    def refuse(prepared: Prepared) -> None:
        assert prepared.report.pairs_read == 101
        if late == "check":
            raise CorpusError("not these")

    with pytest.raises((DataError, CorpusError), match=r"no train pair is left|found a line break|not these"):
        prepare(_config(data=data, train={"seed": 7}), tmp_path, tmp_path / "out", check=refuse)
    assert {path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()} == before


def test_nothing_but_the_prepared_data_is_left_in_the_folder(tmp_path: Path) -> None:
    _write(tmp_path, "train", _corpus(101))
    prepare(_config(), tmp_path, tmp_path / "out")
    names = {path.name for path in (tmp_path / "out").iterdir()}
    texts = {"validation.source.txt", "validation.reference.txt"}
    assert names == texts | {"prepared.json", "train", "validation", "tokenizer.json"}


def test_what_other_settings_left_is_not_taken_for_new(tmp_path: Path) -> None:
    _write(tmp_path, "train", _corpus(101))
    _write(tmp_path, "test", _corpus(3))
    separate = {"text": {"shared_vocabulary": False}, "model": {"embedding_sharing": "target"}}
    prepare(_config(data=TEST, **separate), tmp_path, tmp_path / "out")
    prepare(_config(), tmp_path, tmp_path / "out")
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert not names & {"source_tokenizer.json", "target_tokenizer.json", "test.source.txt", "test.reference.txt"}


@pytest.mark.parametrize(
    ("pairs", "data", "message"),
    [
        ([], {}, r"0 of 0 sentence pairs are left .* at least 2, one to train on and one to validate with"),
        ([("red", "rot")], {}, r"1 of 1 sentence pairs are left .* at least 2"),
        ([("red", "rot"), ("", "leer")], {}, r"1 of 2 sentence pairs are left .*empty side 1\); .* at least 2"),
        ([("same", "same")], VALIDATION, r"0 of 1 sentence pairs .*identical sides 1\); training needs at least 1\."),
        ([("red", "rot")], VALIDATION | {"max_tokens": 1}, r"no train pair is left of 1: 1 have more than 1 tokens"),
    ],
)
def test_too_few_pairs_are_an_error_with_the_minimum(
    tmp_path: Path, pairs: list[tuple[str, str]], data: dict[str, Any], message: str
) -> None:
    _write(tmp_path, "train", pairs)
    _write(tmp_path, "valid", _corpus(3))
    with pytest.raises(DataError, match=message):
        prepare(_config(data=data), tmp_path, tmp_path / "out")
    assert read_prepared(tmp_path / "out") is None


def test_names_and_settings_are_looked_at_before_any_file_is_read_or_written(tmp_path: Path) -> None:
    (tmp_path / "train.en").write_bytes(b"\xff no text\n")
    with pytest.raises(CorpusError, match=r"train\.de does not exist"):
        prepare(_config(), tmp_path, tmp_path / "out")
    with pytest.raises(CorpusError, match=r"data\.target_language: found 'german'"):
        prepare(_config(data={"target_language": "german"}), tmp_path, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_two_pairs_are_enough_and_one_with_validation_files(tmp_path: Path) -> None:
    _write(tmp_path, "train", [("red", "rot"), ("blue", "blau")])
    report = prepare(_config(), tmp_path, tmp_path / "a").report
    assert (report.train.pairs, report.validation.pairs) == (1, 1)
    _write(tmp_path, "train", [("red", "rot")])
    _write(tmp_path, "valid", [("blue", "blau")])
    report = prepare(_config(data=VALIDATION), tmp_path, tmp_path / "b").report
    assert (report.train.pairs, report.validation.pairs) == (1, 1)


def test_validation_files_without_a_pair_are_an_error(tmp_path: Path) -> None:
    _write(tmp_path, "train", _corpus(13))
    _write(tmp_path, "valid", [])
    with pytest.raises(DataError, match="no validation pair is left"):
        prepare(_config(data=VALIDATION), tmp_path, tmp_path / "out")


@pytest.mark.parametrize("kind", ["missing", "folder"])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, kind: str) -> None:
    _write(tmp_path, "train", _corpus(13))
    (tmp_path / "train.de").unlink()
    if kind == "folder":
        (tmp_path / "train.de").mkdir()
    with pytest.raises(CorpusError, match=r"train\.de"):
        prepare(_config(), tmp_path, tmp_path / "out")


def test_a_file_in_the_place_of_the_folder_is_an_error(tmp_path: Path) -> None:
    _write(tmp_path, "train", _corpus(13))
    (tmp_path / "out").write_text("precious")
    with pytest.raises(DataError, match="cannot write to"):
        prepare(_config(), tmp_path, tmp_path / "out")
    assert (tmp_path / "out").read_text() == "precious"


FULL_DISK = """
import resource, signal, sys
from pathlib import Path
from headway.config.schema import RunConfig
from headway.data.prepare import BESIDE, prepare
from headway.errors import HeadwayError

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)
folder = Path(sys.argv[1])
try:
    prepare(RunConfig.model_validate_json((folder / "run.json").read_text()), folder, folder / "out")
except HeadwayError as error:
    print(error)
    sys.exit(2)
"""


@pytest.mark.skipif(os.name != "posix", reason="file size limits are POSIX")
@pytest.mark.parametrize(
    ("num_pairs", "limit", "message"),
    [
        (23, 997, "cannot write to .*out: File too large"),  # the cleaned text
        (3, 997, "cannot write to .*out: File too large"),  # the tokenizer, 4 kB
        (101, 15_013, "cannot write to .*out: File too large"),  # the ids of the source: 2 bytes a character
    ],
)
def test_a_full_disk_is_one_clear_error(tmp_path: Path, num_pairs: int, limit: int, message: str) -> None:
    _write(tmp_path, "train", [(f"{number:097}", "drei") for number in range(num_pairs)])
    config = _config(clean={"max_ratio": 0.0}, model={"vocab_size": 260})
    (tmp_path / "run.json").write_text(config.model_dump_json())
    command = [sys.executable, "-c", FULL_DISK, str(tmp_path), str(limit)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (2, "")
    assert re.search(message, result.stdout)
    assert result.stdout.count("\n") == 1
    assert read_prepared(tmp_path / "out") is None
    assert not [path for path in (tmp_path / "out").iterdir() if path.name.endswith(".part")]


def test_standard_input_is_read_and_never_reused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Input:
        def __init__(self, file: Path) -> None:
            self.buffer = file.open("rb")

    (tmp_path / "pipe").write_text("".join(f"{source}\t{target}\n" for source, target in _corpus(23)))
    config = _config(data={"train_source": "-", "train_target": "", "format": "tsv"})
    for _ in range(2):
        standard_input = Input(tmp_path / "pipe")
        monkeypatch.setattr(sys, "stdin", standard_input)
        assert _stages(config, tmp_path)[0] == ("clean", 23)
        standard_input.buffer.close()


def test_other_text_on_standard_input_is_known_by_its_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Input:
        def __init__(self, pairs: list[tuple[str, str]]) -> None:
            self.buffer = io.BytesIO("".join(f"{source}\t{target}\n" for source, target in pairs).encode())

    config = _config(data={"train_source": "-", "train_target": "", "format": "tsv"})
    digests = []
    for pairs in (_corpus(23), _corpus(23), _corpus(29)):
        monkeypatch.setattr(sys, "stdin", Input(pairs))
        digests.append(prepare(config, tmp_path, tmp_path / "out").report.digest)
    assert digests[0] == digests[1] != digests[2]
    assert all(digests)


def test_what_a_kill_left_half_written_is_removed(tmp_path: Path) -> None:
    _write(tmp_path, "train", _corpus(23))
    (tmp_path / "out" / BESIDE).mkdir(parents=True)
    (tmp_path / "out" / BESIDE / "half").write_bytes(b"half")
    prepare(_config(), tmp_path, tmp_path / "out")
    assert not (tmp_path / "out" / BESIDE).exists()


def test_errors_of_preparing_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(HeadwayError) as caught:
        prepare(_config(), tmp_path, tmp_path / "out")
    assert "\n" not in str(caught.value)
