import json
import subprocess
import sys
import tempfile
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.data.encoder import Ragged
from headway.data.mixture import Mixture, Share
from headway.data.store import Store, StoreWriter
from headway.errors import DataError

SENTENCE = st.lists(st.integers(4, 65_536), max_size=13)

FULL_DISK = """
import resource, signal, sys
from pathlib import Path
from headway.data.store import StoreWriter

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4099, 4099))
try:
    with StoreWriter(Path(sys.argv[1]), source_vocab_size=97, target_vocab_size=89) as writer:
        for _ in range(1009):
            writer.append([5, 7, 11], [13, 17])
except OSError:
    sys.exit(7)
"""


def _write(folder: Path, pairs: list[tuple[list[int], list[int]]], vocab_size: int = 65_537) -> Store:
    with StoreWriter(folder, source_vocab_size=vocab_size, target_vocab_size=vocab_size) as writer:
        for source, target in pairs:
            writer.append(source, target)
    return Store.open(folder)


@settings(max_examples=37, deadline=None)
@given(st.lists(st.tuples(SENTENCE, SENTENCE), max_size=11))
def test_what_goes_into_a_store_comes_out(pairs: list[tuple[list[int], list[int]]]) -> None:
    with tempfile.TemporaryDirectory() as name:
        store = _write(Path(name) / "train", pairs)
        assert [(store.source(i).tolist(), store.target(i).tolist()) for i in range(len(store))] == pairs
        assert store.source_lengths.tolist() == [len(source) for source, _ in pairs]
        assert store.target_lengths.tolist() == [len(target) for _, target in pairs]


def test_a_store_larger_than_its_buffer_comes_out_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headway.data.store.BUFFERED_TOKENS", 7)
    pairs = [([5] * (number % 5), [6 + number] * (number % 3)) for number in range(101)]
    store = _write(tmp_path / "train", pairs)
    assert [(store.source(i).tolist(), store.target(i).tolist()) for i in range(len(store))] == pairs


@pytest.mark.parametrize(("vocab_size", "name"), [(65_536, "uint16"), (65_537, "uint32")])
def test_ids_take_two_bytes_where_the_vocabulary_allows_it(tmp_path: Path, vocab_size: int, name: str) -> None:
    highest = vocab_size - 1
    store = _write(tmp_path / "train", [([highest], [4])], vocab_size)
    assert store.source_ids.dtype == name
    assert store.source(0).tolist() == [highest]


@pytest.mark.parametrize("bad", [0, 2, 3, 97, -1])
def test_control_ids_and_foreign_ids_never_enter_a_store(tmp_path: Path, bad: int) -> None:
    with pytest.raises(AssertionError, match=r"token id outside|control id"):
        _write(tmp_path / "train", [([5], [bad])], 97)
    assert not list(tmp_path.iterdir())


def test_a_store_is_absent_until_it_is_complete(tmp_path: Path) -> None:
    with StoreWriter(tmp_path / "train", source_vocab_size=97, target_vocab_size=89) as writer:
        writer.append([5], [6])
        assert not (tmp_path / "train").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["train"]


def test_a_failing_block_leaves_the_old_store(tmp_path: Path) -> None:
    _write(tmp_path / "train", [([5], [7, 11])])

    def fail() -> None:
        with StoreWriter(tmp_path / "train", source_vocab_size=97, target_vocab_size=89) as writer:
            writer.append([13], [17])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert Store.open(tmp_path / "train").target(0).tolist() == [7, 11]
    assert [path.name for path in tmp_path.iterdir()] == ["train"]


def test_a_new_store_takes_the_place_of_an_old_one_and_of_what_a_kill_left(tmp_path: Path) -> None:
    _write(tmp_path / "train", [([5], [6])] * 3)
    (tmp_path / "train.part").mkdir()
    (tmp_path / "train.part" / "source.ids").write_bytes(b"half")
    store = _write(tmp_path / "train", [([7, 11], [13])])
    assert (len(store), store.source(0).tolist()) == (1, [7, 11])
    assert [path.name for path in tmp_path.iterdir()] == ["train"]


@pytest.mark.skipif(sys.platform == "win32", reason="file size limits are POSIX")
def test_a_full_disk_is_an_error_and_the_old_store_stays(tmp_path: Path) -> None:
    _write(tmp_path / "train", [([5], [7, 11])])
    command = [sys.executable, "-c", FULL_DISK, str(tmp_path / "train")]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 7, result.stderr
    assert Store.open(tmp_path / "train").target(0).tolist() == [7, 11]
    assert [path.name for path in tmp_path.iterdir()] == ["train"]


@pytest.mark.parametrize("name", ["source.ids", "source.offsets", "target.ids", "target.offsets", "store.json"])
@pytest.mark.parametrize("damage", ["missing", "cut", "longer", "empty", "folder"])
def test_a_damaged_store_is_refused_by_the_name_of_the_file(tmp_path: Path, name: str, damage: str) -> None:
    _write(tmp_path / "train", [([5, 7, 11], [13]), ([17], [19, 23])])
    path = tmp_path / "train" / name
    content = path.read_bytes()
    path.unlink()
    if damage == "folder":
        path.mkdir()
    elif damage != "missing":
        path.write_bytes({"cut": content[:-3], "longer": content + b"{", "empty": b""}[damage])
    with pytest.raises(DataError, match=name.replace(".", r"\.")) as caught:
        Store.open(tmp_path / "train")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("offsets", [[1, 3, 4], [0, 5, 4], [0, 3, 3]])
def test_offsets_that_do_not_cut_the_ids_are_refused(tmp_path: Path, offsets: list[int]) -> None:
    _write(tmp_path / "train", [([5, 7, 11], [13]), ([17], [19, 23])])
    (tmp_path / "train" / "source.offsets").write_bytes(np.asarray(offsets, "<i8").tobytes())
    with pytest.raises(DataError, match=r"source\.offsets does not cut 4 ids into sentences"):
        Store.open(tmp_path / "train")


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ("[]", "does not describe a store"),
        ('{"format": "other"}', "does not describe a store"),
        ('{"format": "headway-store", "version": 9}', "store version 9; this Headway reads 2"),
        ('{"format": "headway-store", "version": 2, "pairs": 2}', "lacks the counts or the type of the source"),
    ],
)
def test_a_description_that_is_no_store_is_refused(tmp_path: Path, found: str, message: str) -> None:
    _write(tmp_path / "train", [([5], [13])])
    (tmp_path / "train" / "store.json").write_text(found)
    with pytest.raises(DataError, match=message):
        Store.open(tmp_path / "train")


@settings(max_examples=37, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.lists(st.tuples(SENTENCE, SENTENCE), max_size=5)), max_size=5))
def test_many_pairs_at_once_and_one_by_one_come_out_in_order(
    parts: list[tuple[bool, list[tuple[list[int], list[int]]]]],
) -> None:
    def ragged(sentences: list[list[int]]) -> Ragged:
        joined = [token_id for ids in sentences for token_id in ids]
        return Ragged(np.asarray(joined, np.uint32), np.asarray(list(map(len, sentences)), np.int64))

    with tempfile.TemporaryDirectory() as name:
        with StoreWriter(Path(name) / "train", source_vocab_size=65_537, target_vocab_size=65_537) as writer:
            for at_once, pairs in parts:
                if at_once:
                    writer.extend(ragged([source for source, _ in pairs]), ragged([target for _, target in pairs]))
                else:
                    for source, target in pairs:
                        writer.append(source, target)
        store = Store.open(Path(name) / "train")
        found = [(store.source(i).tolist(), store.target(i).tolist()) for i in range(len(store))]
        assert found == [pair for _, pairs in parts for pair in pairs]
        assert store.mixture == Mixture((Share(len(found), Fraction(1)),))


def test_memory_that_is_given_back_is_read_again(tmp_path: Path) -> None:
    pairs = [([5 + number] * 97, [7] * (number % 13)) for number in range(499)]
    store = _write(tmp_path / "train", pairs)
    for _ in range(2):
        assert [(store.source(i).tolist(), store.target(i).tolist()) for i in range(len(store))] == pairs
        store.release()
    assert not store.source_ids.flags.writeable


def test_the_mixture_of_a_store_comes_out(tmp_path: Path) -> None:
    mixture = Mixture((Share(1, Fraction(5, 2)), Share(2, Fraction(1, 1_000_000))))
    with StoreWriter(tmp_path / "train", source_vocab_size=97, target_vocab_size=89) as writer:
        for _ in range(3):
            writer.append([5], [7])
        writer.mix(mixture)
    assert Store.open(tmp_path / "train").mixture == mixture


@pytest.mark.parametrize(
    ("mixture", "message"),
    [
        (None, "has no list of corpora"),
        ("x", "has no list of corpora"),
        ([[1, "1/0"]], "has no list of corpora"),
        ([[1, "nan"]], "has no list of corpora"),
        ([[1, "1", 3]], "has no list of corpora"),
        ([], r"has 1 pairs and corpora of \[\]"),
        ([[2, "1"]], r"has 1 pairs and corpora of \[2\]"),
        ([[2, "1"], [-1, "1"]], r"has 1 pairs and corpora of \[2, -1\]"),
        ([[1, "0"]], r"has 1 pairs and corpora of \[1\]"),
    ],
)
def test_a_mixture_that_is_none_is_refused(tmp_path: Path, mixture: object, message: str) -> None:
    _write(tmp_path / "train", [([5], [13])])
    path = tmp_path / "train" / "store.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"mixture": mixture}))
    with pytest.raises(DataError, match=message):
        Store.open(tmp_path / "train")
