"""Folders that are damaged, hostile or of another model end in one clear error; nothing in them is run."""

import base64
import contextlib
import json
import pickle
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.cli.main import main
from headway.errors import HeadwayError, InterchangeError, TextError
from headway.folder.weights import write_weights
from headway.interchange.formats import import_model
from headway.interchange.generation import read_generation
from headway.interchange.marian_config import read_marian_config
from headway.interchange.protobuf import read_fields, write_field
from headway.interchange.sentencepiece import read_sentencepiece
from headway.text.charsmap import Charsmap

PIECES = ("▁", "▁the", "house", "s", "h", "o")
WORDS = {
    "</s>": 0,
    "<unk>": 1,
    **{piece: place for place, piece in enumerate(PIECES, start=2)},
    ">>fra<<": 8,
    "<pad>": 9,
}
CONFIG = {
    "model_type": "marian",
    "vocab_size": 10,
    "d_model": 6,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 7,
    "decoder_ffn_dim": 7,
    "activation_function": "relu",
    "scale_embedding": True,
    "max_position_embeddings": 64,
    "pad_token_id": 9,
    "eos_token_id": 0,
    "decoder_start_token_id": 9,
}


def spm(pieces=PIECES, *, trainer=b"", normalizer=b"", kind=1):
    """The bytes of a small SentencePiece model."""
    special = [("<unk>", 2), ("<s>", 3), ("</s>", 3)]
    data = b"".join(
        write_field(1, write_field(1, text.encode()) + write_field(2, -float(place)) + write_field(3, its_kind))
        for place, (text, its_kind) in enumerate([*special, *((piece, kind) for piece in pieces)])
    )
    return data + write_field(2, write_field(3, 1) + trainer) + write_field(3, normalizer)


def arrays():
    from headway.config.model_config import ModelConfig
    from headway.interchange.marian import to_marian
    from headway.model.build import build_transformer, export_weights

    model = ModelConfig(
        vocab_size=10, d_model=6, d_ff=7, num_heads=2, num_encoder_layers=1, num_decoder_layers=1, attention_bias=True
    )
    return to_marian(export_weights(build_transformer(model)), model)


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "marian"
    path.mkdir()
    (path / "config.json").write_text(json.dumps(CONFIG))
    (path / "vocab.json").write_text(json.dumps(WORDS))
    for name in ("source.spm", "target.spm"):
        (path / name).write_bytes(spm())
    write_weights(path / "model.safetensors", arrays())
    return path


def test_a_whole_folder_is_imported_with_its_tag(folder, tmp_path):
    imported = import_model(folder, tmp_path / "out")
    tokenizer = imported.folder.source_tokenizer
    assert tokenizer is imported.folder.target_tokenizer
    assert tokenizer.tags.keys() == {"fra"}
    assert tokenizer.decode(tokenizer.encode("the houses")) == "the houses"
    assert imported.folder.config.model.output_bias
    assert imported.folder.weights()["output.bias"].tolist() == [0.0, 0.0, -1e4, *[0.0] * 8]


def change_config(key, value):
    def change(folder):
        values = {**CONFIG, key: value}
        (folder / "config.json").write_text(json.dumps(values))

    return change


def change_words(**changes):
    def change(folder):
        words = {word: row for word, row in {**WORDS, **changes}.items() if row is not None}
        (folder / "vocab.json").write_text(json.dumps(words))

    return change


def change_array(name, array):
    def change(folder):
        found = {**arrays(), name: array}
        write_weights(folder / "model.safetensors", {key: value for key, value in found.items() if value is not None})

    return change


def write_bytes(name, data):
    return lambda folder: (folder / name).write_bytes(data)


def remove(name):
    return lambda folder: (folder / name).unlink()


KEY = "model.encoder.layers.0.fc1.weight"
FAULTS = {
    "model type": (change_config("model_type", "bart"), "model_type: found bart; wanted marian"),
    "activation": (change_config("activation_function", "relu6"), "activation_function: found relu6"),
    "pre-norm": (change_config("normalize_before", True), "normalize_before: found True"),
    "embedding norm": (change_config("normalize_embedding", True), "normalize_embedding: found True"),
    "final norm": (change_config("add_final_layer_norm", True), "add_final_layer_norm: found True"),
    "learned positions": (change_config("static_position_embeddings", False), "static_position_embeddings"),
    "sides apart": (change_config("decoder_ffn_dim", 8), "decoder_ffn_dim: found 8; wanted encoder_ffn_dim 7"),
    "heads": (change_config("encoder_attention_heads", 4), "decoder_attention_heads: found 2"),
    "layers beyond the file": (change_config("encoder_layers", 10**9), r"encoder\.layers\.1.* found no such array"),
    "a huge model": (change_config("d_model", 2 * 10**9), r"model\.shared\.weight: found shape \(10, 6\)"),
    "a huge vocabulary": (change_config("vocab_size", 2 * 10**9), "vocab_size: found 2000000000; wanted 10"),
    "a number beyond any": (change_config("vocab_size", 10**30), "vocab_size: found 1000"),
    "no padding": (change_config("pad_token_id", None), "pad_token_id: found None"),
    "several ends": (change_config("eos_token_id", [0, 1]), r"eos_token_id: found \[0, 1\]"),
    "padding elsewhere": (change_config("pad_token_id", 8), "<pad>: found 9; wanted 8"),
    "no unknown": (change_words(**{"<unk>": None}), "unk_token '<unk>': found no such word"),
    "a word beyond the table": (change_words(house=10), "'house': found 10"),
    "two words of one id": (change_words(house=3), "'house': found 3; wanted an id of its own"),
    "a word without a number": (change_words(house="3"), "'house': found 3"),
    "no array": (change_array(KEY, None), "fc1.weight: found no such array"),
    "wrong shape": (change_array(KEY, np.zeros((7, 5), np.float32)), r"fc1.weight: found shape \(7, 5\)"),
    "not finite": (change_array(KEY, np.full((7, 6), np.nan, np.float32)), "not finite"),
    "whole numbers": (change_array(KEY, np.zeros((7, 6), np.int64)), "type int64"),
    "an array too many": (change_array("model.extra", np.zeros(3, np.float32)), "model.extra: found an array unknown"),
    "tied and different": (change_array("lm_head.weight", np.ones((10, 6), np.float32)), "lm_head.weight: found other"),
    "other positions": (
        change_array("model.encoder.embed_positions.weight", np.ones((64, 6), np.float32)),
        "embed_positions.weight: found other numbers than sinusoids",
    ),
    "weights cut": (write_bytes("model.safetensors", b"\xff" * 40), "cannot be read as safetensors"),
    "no weights": (remove("model.safetensors"), "has no file model.safetensors"),
    "no SentencePiece model": (remove("source.spm"), "has no file source.spm"),
    "no words": (remove("vocab.json"), "has no file vocab.json"),
    "no configuration": (remove("config.json"), "no format that is known"),
    "words in a list": (write_bytes("vocab.json", b"[1]"), "wanted an object"),
    "deep JSON": (write_bytes("vocab.json", b"[" * 100_000), "is not JSON"),
    "no UTF-8": (write_bytes("vocab.json", b'{"\xff": 1}'), "is not JSON"),
    "a cut SentencePiece model": (write_bytes("target.spm", spm()[:-9]), "is not a SentencePiece model"),
    "another segmenter": (write_bytes("source.spm", spm(trainer=write_field(3, 2))), "found a bpe model"),
    "bytes": (write_bytes("source.spm", spm(trainer=write_field(35, 1))), "byte_fallback"),
    "user-defined": (write_bytes("source.spm", spm(kind=4)), "6 user-defined pieces"),
    "a piece twice": (write_bytes("source.spm", spm(("a", "a"))), "1 pieces twice"),
    "a damaged table": (write_bytes("source.spm", spm(normalizer=write_field(2, b"\1\0\0\0"))), "table of characters"),
    "added words": (write_bytes("added_tokens.json", b'{"new": 99}'), "'new': found one of 1 added words"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_a_folder_is_one_error_and_nothing_is_written(fault, folder, tmp_path):
    change, wanted = FAULTS[fault]
    change(folder)
    with pytest.raises(HeadwayError, match=wanted) as told:
        import_model(folder, tmp_path / "out")
    assert "\n" not in str(told.value)
    assert not (tmp_path / "out").exists()


class Runs:
    """What a hostile pickle holds: unpickling it writes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (Path.write_text, (self.path, "run"))


@pytest.mark.parametrize("unsafe", [False, True])
def test_nothing_of_a_pickle_is_run_even_with_unsafe(unsafe, folder, tmp_path):
    (folder / "model.safetensors").unlink()
    mark = tmp_path / "mark"
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps({"model.shared.weight": Runs(mark)}))
    with pytest.raises(InterchangeError, match="nothing in it was run" if unsafe else "is a pickle.*--unsafe"):
        import_model(folder, tmp_path / "out", unsafe=unsafe)
    assert not mark.exists()
    assert not (tmp_path / "out").exists()


def test_a_folder_that_holds_something_else_is_left_as_it_is(folder, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "README.md").write_text("mine")
    with pytest.raises(HeadwayError, match="holds a README"):
        import_model(folder, out)
    with pytest.raises(InterchangeError, match="wanted one of huggingface"):
        import_model(folder, out, source_format="other")
    assert [path.name for path in out.iterdir()] == ["README.md"]


@given(st.lists(st.tuples(st.integers(1, 99), st.integers(0, 2**64 - 1) | st.binary(max_size=300))))
def test_fields_that_were_written_are_read_again(fields):
    data = b"".join(write_field(number, value) for number, value in fields)
    assert list(read_fields(data)) == fields


@pytest.mark.parametrize("count", [2000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_mutated_sentencepiece_models_are_read_or_refused(count):
    chance = random.Random(1)
    whole = spm(normalizer=write_field(2, b"\4\0\0\0\0\0\0\0a\0"))
    read = 0
    for _ in range(count):
        data = bytearray(whole)
        for _ in range(chance.randint(1, 4)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        data = data[: chance.randint(1, len(data))] if chance.random() < 0.3 else data
        try:
            read_sentencepiece(bytes(data), "x.spm")
            read += 1
        except InterchangeError:
            pass
    assert 0 < read < count


@pytest.mark.parametrize("count", [2000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_mutated_tables_of_characters_are_applied_or_refused(count):

    chance = random.Random(2)
    table = bytes(chance.randrange(256) for _ in range(64))
    for _ in range(count):
        data = bytearray((len(table)).to_bytes(4, "little") + table + b"ab\0\xc3\xa9\0")
        for _ in range(9):
            data[chance.randrange(4, len(data))] = chance.choice([0, 0x61, 1, 0x80, 4, chance.randrange(256)])
        with contextlib.suppress(TextError):
            Charsmap(base64.b64encode(data).decode()).apply("aé ｆ" * 3)


def test_what_the_original_would_do_otherwise_is_told():
    marian = read_marian_config(CONFIG)
    search, notices = read_generation({}, {"num_beams": 1, "bad_words_ids": [[9]], "max_length": 31}, marian)
    assert (search.beam_size, search.max_extra_tokens, notices) == (1, 30, ())
    search, notices = read_generation(
        {"num_beams": 6, "length_penalty": 1.0, "do_sample": True}, {"bad_words_ids": [[5, 6]]}, marian
    )
    assert search.beam_size == 6
    assert [notice.split(" ")[0] for notice in notices] == ["length_penalty", "do_sample", "1", "padding"]
    assert read_generation({}, {"num_beams": 2, "length_penalty": 0.0}, marian)[0].length_penalty == 0.0


def test_the_command_imports_and_tells_what_it_made(folder, tmp_path, capsys):
    assert main(["import", "--from", "huggingface", str(folder), "--out", str(tmp_path / "out")]) == 0
    shown = capsys.readouterr().out
    assert "1 encoder and 1 decoder layers, d_model 6, 11 tokens" in shown
    assert "--tag: 1 (fra)" in shown
    assert main(["import", str(folder), "--out", str(folder)]) == 2
    assert "--out is the folder that is imported" in capsys.readouterr().err
