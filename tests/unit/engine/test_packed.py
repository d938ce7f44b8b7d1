"""The packed file beside the weights: when it is made, made again, and what happens where it cannot be."""

import errno
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from headway.bulk.identity import model_digest
from headway.config.model_config import ModelConfig
from headway.engine import pack
from headway.engine.pack import PRECISIONS, pack_folder, packed_path
from headway.engine.packed import native_arguments, open_packed, read_packed
from headway.errors import EngineError, FolderError, ModelError
from headway.folder.contents import WEIGHTS_FILE, FolderConfig, ModelFolder, write_folder
from headway.folder.weights import read_weights, write_weights
from headway.model.build import build_transformer, export_weights, load_weights
from headway.text.bpe import learn_bpe

TEXTS = ["the cat sat on the mat", "a small house on the hill"] * 3


def written(path, *, seed=3, **model):
    tokenizer = learn_bpe(TEXTS, vocab_size=269)
    sizes = {"d_model": 12, "d_ff": 17, "num_heads": 2, "num_encoder_layers": 1, "num_decoder_layers": 2, **model}
    config = ModelConfig(vocab_size=tokenizer.vocab_size, **sizes)
    return write_folder(
        path,
        config=FolderConfig(model=config, max_source_tokens=37),
        weights=export_weights(build_transformer(config, seed=seed)),
        source_tokenizer=tokenizer,
        target_tokenizer=tokenizer,
        card="",
    )


def identity(path: Path):
    """Another number for each file that took this name."""
    return path.stat().st_ino, path.stat().st_mtime_ns


def equal(one, other):
    assert one.arrays.keys() == other.arrays.keys()
    return all(np.array_equal(one.arrays[name], other.arrays[name]) for name in one.arrays)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_the_packed_file_is_made_at_the_first_use_and_kept(tmp_path, precision):
    folder = written(tmp_path)
    first = open_packed(folder, precision=precision)
    assert first.path == tmp_path / f"packed-{precision}.safetensors"
    before = identity(first.path)
    second = open_packed(ModelFolder.open(tmp_path), precision=precision)
    assert identity(second.path) == before
    assert equal(first, second)
    assert equal(first, read_packed(first.path))
    assert isinstance(second.arrays["output.weight"].base.base, np.memmap)  # mapped, so that processes share it


def test_other_weights_are_noticed_though_size_and_time_are_the_same(tmp_path):
    folder = written(tmp_path)
    old = open_packed(folder)
    old_output = old.arrays["output.weight"].copy()
    weights = tmp_path / WEIGHTS_FILE
    found = weights.stat()
    arrays = {name: array * np.float32(-1) for name, array in read_weights(weights).items()}
    write_weights(weights, arrays, metadata={"headway_version": folder.config.headway_version})
    os.utime(weights, ns=(found.st_atime_ns, found.st_mtime_ns))
    assert (weights.stat().st_size, weights.stat().st_mtime_ns) == (found.st_size, found.st_mtime_ns)
    assert not np.array_equal(open_packed(ModelFolder.open(tmp_path)).arrays["output.weight"], old_output)


def test_weights_without_a_checksum_of_ours_are_known_by_their_size_and_time(tmp_path):
    from safetensors.numpy import save_file

    folder = written(tmp_path)
    save_file({name: np.array(array) for name, array in folder.weights().items()}, tmp_path / WEIGHTS_FILE)
    before = identity(open_packed(folder).path)
    assert identity(open_packed(folder).path) == before
    os.utime(tmp_path / WEIGHTS_FILE, ns=(7, 7))
    assert identity(open_packed(folder).path) != before


def test_another_configuration_of_the_same_weights_is_noticed(tmp_path):
    open_packed(written(tmp_path))
    config = tmp_path / "config.json"
    config.write_text(config.read_text().replace('"norm_epsilon": 1e-6', '"norm_epsilon": 0.25'))
    packed = open_packed(ModelFolder.open(tmp_path))
    assert native_arguments(packed)["numbers"]["norm_epsilon"] == 0.25
    assert read_packed(packed.path).config.norm_epsilon == 0.25


def test_a_copied_folder_is_not_packed_again_and_has_the_same_digest(tmp_path):
    digest = model_digest(written(tmp_path / "one").path)
    open_packed(ModelFolder.open(tmp_path / "one"))
    assert model_digest(tmp_path / "one") == digest
    shutil.copytree(tmp_path / "one", tmp_path / "two", copy_function=shutil.copyfile)  # without times
    before = identity(tmp_path / "two" / "packed-int8.safetensors")
    assert identity(open_packed(ModelFolder.open(tmp_path / "two")).path) == before


def test_a_model_written_over_another_takes_its_packed_files_away(tmp_path):
    folder = written(tmp_path)
    paths = [pack_folder(folder, precision=precision) for precision in PRECISIONS]
    written(tmp_path, seed=5)
    assert not any(path.exists() for path in paths)


@pytest.mark.parametrize("damage", ["a byte", "the end", "everything"])
def test_a_damaged_packed_file_is_made_again_and_told(tmp_path, damage):
    folder = written(tmp_path)
    whole = open_packed(folder)
    content = bytearray(whole.path.read_bytes())
    if damage == "a byte":
        content[-11] ^= 64
    whole.path.write_bytes({"a byte": content, "the end": content[:-3], "everything": b"no"}[damage])
    with pytest.raises(FolderError):
        read_packed(whole.path)
    notices = []
    assert equal(open_packed(folder, on_notice=notices.append), read_packed(packed_path(tmp_path, "int8")))
    assert notices == [f"{whole.path} was damaged; it is made again from the weights"]


@pytest.mark.parametrize(
    ("number", "why", "remedy"),
    [
        (errno.EROFS, "Read-only file system", "Once, as who may write there: headway pack -m "),
        (errno.ENOSPC, "No space left on device", "When there is room: headway pack -m "),
    ],
)
def test_where_the_folder_cannot_be_written_the_model_is_packed_in_memory_and_that_is_told(
    tmp_path, monkeypatch, number, why, remedy
):
    folder = written(tmp_path)
    expected = open_packed(folder)
    expected_arrays = {name: array.copy() for name, array in expected.arrays.items()}
    expected.path.unlink()

    def refuse(path, *, shared):
        raise OSError(number, why, str(path))

    monkeypatch.setattr(pack, "replace_file", refuse)
    notices = []
    packed = open_packed(folder, on_notice=notices.append)
    assert not packed.path.exists()
    assert packed.arrays.keys() == expected_arrays.keys()
    assert all(np.array_equal(packed.arrays[name], array) for name, array in expected_arrays.items())
    (notice,) = notices
    assert f"cannot be written ({why}): the model is packed in memory, at each start anew. {remedy}" in notice
    assert f"headway pack -m {tmp_path}" in notice
    assert native_arguments(packed)["arrays"].keys() >= packed.arrays.keys()


def test_what_the_engine_does_not_run_is_refused_by_name_and_nothing_is_written(tmp_path):
    folder = written(tmp_path, positions="t5", attention_window=5)
    with pytest.raises(EngineError, match="positions t5 and attention_window 5; torch does"):
        pack_folder(folder)
    assert not list(tmp_path.glob("packed-*"))


def test_weights_of_another_model_are_refused_by_name(tmp_path):
    folder = written(tmp_path)
    arrays = dict(folder.weights())
    del arrays["decoder.layers.1.feed_forward.inner.weight"]
    write_weights(tmp_path / WEIGHTS_FILE, {name: array.copy() for name, array in arrays.items()})
    with pytest.raises(EngineError, match=r"the weights have no decoder\.layers\.1\.feed_forward\.inner\.weight"):
        open_packed(folder)
    assert [path.name for path in tmp_path.glob("packed-*")] == []


@pytest.mark.parametrize(
    ("model", "gone", "more", "wanted"),
    [
        ({"attention_bias": True}, "encoder.layers.0.self_attention.key.bias", None, "have no encoder.*key.bias"),
        ({}, "decoder.layers.1.cross_sublayer.norm.bias", None, "have no decoder.*cross_sublayer.norm.bias"),
        ({"embedding_sharing": "none"}, "output.weight", None, "have no output.weight"),
        ({}, None, "output.bias", "have output.bias, for which their configuration does not ask .1 such"),
        ({}, None, "encoder.layers.0.feed_forward.gate.weight", "have encoder.*gate.weight, for which"),
        ({"norm": "rms"}, None, "encoder.layers.0.attention_sublayer.norm.bias", "norm.bias, for which"),
    ],
)
def test_weights_that_the_configuration_does_not_describe_are_refused_as_torch_does(
    tmp_path, model, gone, more, wanted
):
    folder = written(tmp_path, **model)
    arrays = {name: array.copy() for name, array in folder.weights().items() if name != gone}
    if more is not None:
        arrays[more] = np.zeros(12, dtype=np.float32)
    else:
        assert len(arrays) == len(folder.weights()) - 1
    for precision in PRECISIONS:
        with pytest.raises(EngineError, match=wanted):
            dict(pack.packed_arrays(folder.config.model, arrays, precision=precision))
    with pytest.raises(ModelError, match=r"1 missing|1 unknown"):
        load_weights(build_transformer(folder.config.model), arrays)


VARIANTS = [
    {},
    {"attention_bias": True, "d_k": 7, "d_v": 5, "num_kv_heads": 1, "output_bias": True},
    {"embedding_sharing": "none", "source_vocab_size": 31, "activation": "swiglu", "positions": "learned"},
    {"norm": "rms", "norm_placement": "pre", "embedding_sharing": "target"},
]


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_array_has_the_shape_that_is_expected_of_it(variant):
    config = ModelConfig.model_validate(
        {"vocab_size": 29, "d_model": 12, "d_ff": 20, "num_heads": 3, "num_encoder_layers": 2, "num_decoder_layers": 1}
        | variant
    )
    for name, parameter in build_transformer(config).named_parameters():
        assert pack.weight_shape(config, name) == tuple(parameter.shape), name


@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_matrix_of_another_shape_is_refused_though_it_would_fill_the_same_room(tmp_path, precision):
    folder = written(tmp_path)
    name = "encoder.layers.0.feed_forward.inner.weight"
    arrays = {name: array.copy() for name, array in folder.weights().items()}
    arrays[name] = np.ascontiguousarray(arrays[name].T)
    outputs, inputs = arrays[name].shape
    with pytest.raises(
        EngineError, match=rf"{name} has the shape \({outputs}, {inputs}\); .* wants \({inputs}, {outputs}\)"
    ):
        dict(pack.packed_arrays(folder.config.model, arrays, precision=precision))


@pytest.mark.parametrize("part", pack.RUNS)
def test_a_value_that_the_engine_was_not_taught_is_named_as_unsupported(part):
    config = ModelConfig(vocab_size=29)
    assert pack.unsupported(config) == []
    assert pack.unsupported(config.model_copy(update={part: "new"})) == [f"{part} new"]
