"""A model folder is whole or refused, and comes back as it was written."""

import dataclasses
import json
import resource
import signal

import numpy as np
import pytest

from headway.config.data_config import TextConfig
from headway.config.model_config import ModelConfig
from headway.config.schema import SearchConfig
from headway.errors import FolderError
from headway.folder.contents import FolderConfig, ModelFolder, TrainingSummary, check_place, write_folder
from headway.text.bpe import learn_bpe

WEIGHTS = {"embedding": np.arange(77, dtype=np.float32).reshape(7, 11)}


@pytest.fixture(scope="module")
def tokenizer():
    return learn_bpe(["one two three", "two three four"], vocab_size=263)


@pytest.fixture(scope="module")
def other_tokenizer():
    return learn_bpe(["eins zwei drei vier", "zwei drei vier"], vocab_size=269)


@pytest.fixture
def config(tokenizer):
    return FolderConfig(
        source_language="en",
        target_language="de",
        model=ModelConfig(vocab_size=tokenizer.vocab_size, d_model=12, num_heads=3),
        search=SearchConfig(beam_size=5),
        max_source_tokens=97,
        training=TrainingSummary(steps=13, epochs=1.5, seconds=7.25, precision="float32", seed=3, pairs=101),
    )


def separate(config, tokenizer, other_tokenizer):
    model = config.model.model_copy(
        update={
            "vocab_size": other_tokenizer.vocab_size,
            "source_vocab_size": tokenizer.vocab_size,
            "embedding_sharing": "target",
        }
    )
    return config.model_copy(update={"model": model, "text": TextConfig(shared_vocabulary=False)})


def write(path, config, tokenizer, target_tokenizer=None, weights=WEIGHTS, card="# Card\n"):
    return write_folder(
        path,
        config=config,
        weights=weights,
        source_tokenizer=tokenizer,
        target_tokenizer=target_tokenizer or tokenizer,
        card=card,
    )


def names(path):
    return sorted(entry.name for entry in path.iterdir())


def test_a_folder_comes_back_as_it_was_written(tmp_path, config, tokenizer):
    path = tmp_path / "runs" / "x"
    write(path, config, tokenizer)
    folder = ModelFolder.open(path)
    assert folder.config == config
    assert folder.weights()["embedding"].tolist() == WEIGHTS["embedding"].tolist()
    assert folder.source_tokenizer is folder.target_tokenizer
    assert folder.source_tokenizer.encode("two three") == tokenizer.encode("two three")
    assert names(path) == ["README.md", "config.json", "model.safetensors", "tokenizer.json"]
    assert (path / "README.md").read_text() == "# Card\n"


def test_separate_vocabularies_come_back_each_on_its_side(tmp_path, config, tokenizer, other_tokenizer):
    write(tmp_path / "m", separate(config, tokenizer, other_tokenizer), tokenizer, other_tokenizer)
    folder = ModelFolder.open(tmp_path / "m")
    assert folder.source_tokenizer.to_json() == tokenizer.to_json()
    assert folder.target_tokenizer.to_json() == other_tokenizer.to_json()
    assert "tokenizer.json" not in names(tmp_path / "m")


def test_a_second_model_replaces_the_first_file_by_file(tmp_path, config, tokenizer, other_tokenizer):
    path = tmp_path / "m"
    write(path, separate(config, tokenizer, other_tokenizer), tokenizer, other_tokenizer)
    (path / "notes.txt").write_text("mine")
    write(path, config, tokenizer, weights={"embedding": WEIGHTS["embedding"] + 1})
    assert names(path) == ["README.md", "config.json", "model.safetensors", "notes.txt", "tokenizer.json"]
    assert ModelFolder.open(path).weights()["embedding"][0, 0] == 1.0


def test_a_missing_folder_says_what_was_looked_for_and_what_to_do(tmp_path):
    with pytest.raises(FolderError, match=r"absent does not exist.*config\.json.*headway train.*-m"):
        ModelFolder.open(tmp_path / "absent")


def test_a_file_in_place_of_the_folder_is_refused(tmp_path, config, tokenizer):
    (tmp_path / "m").write_text("x")
    with pytest.raises(FolderError, match="m is a file"):
        ModelFolder.open(tmp_path / "m")
    with pytest.raises(FolderError, match="m is a file"):
        write(tmp_path / "m", config, tokenizer)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
def test_a_missing_file_is_named(tmp_path, config, tokenizer, name):
    write(tmp_path / "m", config, tokenizer)
    (tmp_path / "m" / name).unlink()
    with pytest.raises(FolderError, match=f"has no file {name}; found README.md"):
        ModelFolder.open(tmp_path / "m")


def test_a_card_may_be_missing(tmp_path, config, tokenizer):
    write(tmp_path / "m", config, tokenizer)
    (tmp_path / "m" / "README.md").unlink()
    ModelFolder.open(tmp_path / "m")


def test_a_newer_format_is_refused_by_its_number(tmp_path, config, tokenizer):
    write(tmp_path / "m", config, tokenizer)
    file = tmp_path / "m" / "config.json"
    file.write_text(json.dumps({"format_version": 2, "headway_version": "9.1", "unheard_of": 1}))
    with pytest.raises(FolderError, match=r"format_version 2, written by Headway 9\.1.*pip install -U"):
        ModelFolder.open(tmp_path / "m")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"extra": 1}, "extra"),
        ({"max_source_tokens": "97"}, "max_source_tokens"),
        ({"model": {"vocab_size": 263, "d_model": 10, "num_heads": 3}}, "not divisible"),
        ({"model": None}, "model"),
    ],
)
def test_a_configuration_that_is_not_valid_names_its_key(tmp_path, config, tokenizer, change, said):
    write(tmp_path / "m", config, tokenizer)
    file = tmp_path / "m" / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    with pytest.raises(FolderError, match=said) as raised:
        ModelFolder.open(tmp_path / "m")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b"null", b"7"])
def test_a_damaged_configuration_is_refused(tmp_path, config, tokenizer, content):
    write(tmp_path / "m", config, tokenizer)
    (tmp_path / "m" / "config.json").write_bytes(content)
    with pytest.raises(FolderError, match=r"config\.json"):
        ModelFolder.open(tmp_path / "m")


def test_a_truncated_weights_file_is_named_with_its_size(tmp_path, config, tokenizer):
    write(tmp_path / "m", config, tokenizer)
    file = tmp_path / "m" / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(FolderError, match=rf"model\.safetensors \({file.stat().st_size:,} bytes\)"):
        ModelFolder.open(tmp_path / "m").weights()


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff", b"[1]"])
def test_a_damaged_tokenizer_is_named(tmp_path, config, tokenizer, content):
    write(tmp_path / "m", config, tokenizer)
    (tmp_path / "m" / "tokenizer.json").write_bytes(content)
    with pytest.raises(FolderError, match=r"tokenizer\.json"):
        _ = ModelFolder.open(tmp_path / "m").source_tokenizer


def test_a_tokenizer_of_another_model_is_refused(tmp_path, config, tokenizer, other_tokenizer):
    write(tmp_path / "m", config, tokenizer)
    (tmp_path / "m" / "tokenizer.json").write_text(other_tokenizer.to_json())
    with pytest.raises(FolderError, match=r"has 269 tokens; config\.json says 263"):
        _ = ModelFolder.open(tmp_path / "m").target_tokenizer


def test_a_full_disk_leaves_the_old_folder_as_it_was(tmp_path, config, tokenizer):
    path = tmp_path / "m"
    write(path, config, tokenizer)
    before = {entry.name: entry.read_bytes() for entry in path.iterdir()}
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    previous = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            write(path, config, tokenizer, weights={"x": np.zeros(20_011, dtype=np.float32)}, card="new")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, previous)
    assert {entry.name: entry.read_bytes() for entry in path.iterdir()} == before


def test_a_kill_while_files_are_renamed_leaves_no_folder_that_looks_whole(tmp_path, config, tokenizer, monkeypatch):
    path = tmp_path / "m"
    write(path, config, tokenizer)
    order = []
    original = type(path).replace

    def replace(self, target):
        order.append(target.name)
        if len(order) == 2:
            raise KeyboardInterrupt
        return original(self, target)

    monkeypatch.setattr(type(path), "replace", replace)
    with pytest.raises(KeyboardInterrupt):
        write(path, config, tokenizer, weights={"new": WEIGHTS["embedding"]})
    assert "config.json" not in order[:2]
    with pytest.raises(FolderError, match=r"has no file config\.json"):
        ModelFolder.open(path)


def test_config_json_is_renamed_last(tmp_path, config, tokenizer, monkeypatch):
    order = []
    original = type(tmp_path).replace
    monkeypatch.setattr(
        type(tmp_path), "replace", lambda self, target: order.append(target.name) or original(self, target)
    )
    write(tmp_path / "m", config, tokenizer)
    assert sorted(order) == names(tmp_path / "m")
    assert order[-1] == "config.json"


def test_an_opened_folder_cannot_be_changed(tmp_path, config, tokenizer):
    folder = write(tmp_path / "m", config, tokenizer)
    with pytest.raises(dataclasses.FrozenInstanceError):
        folder.path = tmp_path


def test_a_folder_with_other_files_of_the_same_names_is_refused_and_left_as_it_was(tmp_path):
    (tmp_path / "README.md").write_text("mine")
    with pytest.raises(FolderError, match=r"holds a README.md and no model"):
        check_place(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"")
    check_place(tmp_path)  # a model's own files may be replaced
