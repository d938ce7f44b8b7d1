"""Weights come back exactly, damage is found, and no file can run code."""

import io
import json
import os
import pickle
import resource
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as numpy_strategies
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from headway.errors import FolderError
from headway.folder.weights import NUMPY_TYPES, read_metadata, read_weights, stream_weights, write_weights

TENSORS = {
    "encoder.weight": np.arange(35, dtype=np.float32).reshape(5, 7) / 3,
    "steps": np.array(11, dtype=np.int64),
    "mask": np.array([True, False, True]),
    "half": np.arange(13, dtype=np.float16),
    "empty": np.zeros((0, 3), dtype=np.float32),
    "odd": np.array([np.nan, np.inf, -0.0], dtype=np.float64),
}


def assert_equal(left, right):
    assert sorted(left) == sorted(right)
    for name, tensor in left.items():
        assert tensor.dtype == right[name].dtype
        assert tensor.shape == right[name].shape
        assert tensor.tobytes() == right[name].tobytes()


def test_arrays_come_back_exactly_for_us_and_for_the_safetensors_library(tmp_path):
    path = tmp_path / "model.safetensors"
    write_weights(path, TENSORS)
    assert_equal(read_weights(path), TENSORS)
    assert_equal(load_file(path), TENSORS)


def test_files_of_the_safetensors_library_are_read(tmp_path):
    path = tmp_path / "model.safetensors"
    save_file(TENSORS, path, metadata={"format": "pt"})
    assert_equal(read_weights(path), TENSORS)
    assert read_metadata(path) == {"format": "pt"}


@settings(max_examples=50)
@given(
    st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(lambda name: name != "__metadata__"),
        st.sampled_from(sorted(NUMPY_TYPES.values(), key=str)).flatmap(
            lambda dtype: numpy_strategies.arrays(dtype, numpy_strategies.array_shapes(min_dims=0, min_side=0))
        ),
        max_size=5,
    ),
    st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])).filter(lambda key: key != "crc32"), st.just("é")),
)
def test_any_arrays_and_metadata_come_back(tmp_path_factory, tensors, metadata):
    path = tmp_path_factory.mktemp("any") / "x.safetensors"
    write_weights(path, tensors, metadata=metadata)
    assert_equal(read_weights(path), tensors)
    assert_equal(load_file(path), tensors)
    assert read_metadata(path) == metadata


def test_memory_layout_and_byte_order_do_not_change_the_values(tmp_path):
    path = tmp_path / "x.safetensors"
    transposed = np.arange(15, dtype=np.float32).reshape(3, 5).T
    big = np.arange(3, dtype=">i4")
    write_weights(path, {"transposed": transposed, "strided": np.arange(20)[::3], "big": big})
    read = read_weights(path)
    assert np.array_equal(read["transposed"], transposed)
    assert np.array_equal(read["strided"], np.arange(20)[::3])
    assert read["big"].tolist() == [0, 1, 2]


def test_read_arrays_are_aligned_writable_and_apart_from_the_file(tmp_path):
    path = tmp_path / "x.safetensors"
    write_weights(path, TENSORS)
    before = path.read_bytes()
    for tensor in read_weights(path).values():
        assert tensor.flags.aligned
        tensor[...] = 1
    assert path.read_bytes() == before


def test_misaligned_arrays_of_other_tools_are_aligned_when_read(tmp_path):
    # 1 byte, then 4-byte floats: valid safetensors, as tools that do not sort by size write it.
    path = tmp_path / "x.safetensors"
    header = json.dumps(
        {
            "a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]},
            "b": {"dtype": "F32", "shape": [2], "data_offsets": [1, 9]},
        }
    ).encode()
    path.write_bytes(
        len(header).to_bytes(8, "little") + header + b"\x07" + np.array([1.5, 2.5], dtype=np.float32).tobytes()
    )
    read = read_weights(path)
    assert read["b"].tolist() == [1.5, 2.5]
    assert read["b"].flags.aligned


def test_every_truncation_is_found_and_named(tmp_path):
    path = tmp_path / "model.safetensors"
    write_weights(path, TENSORS)
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        with pytest.raises(FolderError, match=rf"model\.safetensors \({size:,} bytes\).*Copy it again"):
            read_weights(path)


def test_every_changed_byte_of_the_arrays_is_found(tmp_path):
    path = tmp_path / "model.safetensors"
    write_weights(path, {"x": np.arange(31, dtype=np.float32)})
    whole = path.read_bytes()
    for position in range(len(whole) - 124, len(whole)):
        damaged = bytearray(whole)
        damaged[position] ^= 0x10
        path.write_bytes(damaged)
        with pytest.raises(FolderError, match="checksum"):
            read_weights(path)


class Trap:
    def __init__(self, command):
        self.command = command

    def __reduce__(self):
        return os.system, (self.command,)


def test_a_pickle_named_safetensors_is_refused_and_runs_nothing(tmp_path):
    # Trap 7.
    owned, path = tmp_path / "owned", tmp_path / "model.safetensors"
    path.write_bytes(pickle.dumps(Trap(f"touch {owned}")))
    for read in (read_weights, read_metadata):
        with pytest.raises(FolderError, match="cannot be read as safetensors"):
            read(path)
    assert not owned.exists()
    pickle.loads(path.read_bytes())  # the trap is real
    assert owned.exists()


def test_a_header_that_promises_too_much_is_refused(tmp_path):
    path = tmp_path / "x.safetensors"
    for content in (
        b"",
        b"\xff" * 8,
        (1 << 62).to_bytes(8, "little") + b"{}",
        b"\x02" + b"\0" * 7 + b"[]",
        (len(text := b'{"a":{"dtype":"F32","shape":[4611686018427387905],"data_offsets":[0,4]}}')).to_bytes(8, "little")
        + text
        + b"\0" * 4,
    ):
        path.write_bytes(content)
        with pytest.raises(FolderError, match=r"x\.safetensors"):
            read_weights(path)


def test_a_missing_file_and_a_folder_are_named(tmp_path):
    with pytest.raises(FolderError, match=r"absent\.safetensors does not exist"):
        read_weights(tmp_path / "absent.safetensors")
    with pytest.raises(FolderError, match="not a file"):
        read_weights(tmp_path)


def test_types_without_a_numpy_twin_are_named(tmp_path):
    path = tmp_path / "x.safetensors"
    header = b'{"a":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]}}'
    path.write_bytes(len(header).to_bytes(8, "little") + header + b"\0\0")
    with pytest.raises(FolderError, match="'a' has type BF16"):
        read_weights(path)
    with pytest.raises(FolderError, match="'text' has type <U1"):
        write_weights(path, {"text": np.array(["x"])})


def test_the_file_is_a_plain_safetensors_stream():
    file = io.BytesIO()
    stream_weights(file, {"x": np.arange(3, dtype=np.uint8)}, metadata={"step": "7"})
    length = int.from_bytes(file.getvalue()[:8], "little")
    assert length % 8 == 0
    header = json.loads(file.getvalue()[8 : 8 + length])
    assert header["x"] == {"dtype": "U8", "shape": [3], "data_offsets": [0, 3]}
    # The check value of CRC-32: bytes 00 01 02.
    assert header["__metadata__"] == {"step": "7", "crc32": "0854897f"}


def test_safe_open_sees_the_metadata(tmp_path):
    path = tmp_path / "x.safetensors"
    write_weights(path, TENSORS, metadata={"step": "7"})
    with safe_open(str(path), framework="numpy") as file:
        assert file.metadata()["step"] == "7"
    assert read_metadata(path) == {"step": "7"}


def test_a_full_disk_is_an_error_and_leaves_the_old_file(tmp_path):
    path = tmp_path / "model.safetensors"
    write_weights(path, TENSORS)

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    previous = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            write_weights(path, {"x": np.zeros(5003, dtype=np.float32)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, previous)
    assert_equal(read_weights(path), TENSORS)
    assert [entry.name for entry in tmp_path.iterdir()] == ["model.safetensors"]


def test_the_folder_and_metrics_rooms_import_without_torch_or_pickle_of_files():
    code = (
        "import sys, headway.folder.card, headway.metrics.perplexity;"
        "print([name for name in ('torch', 'sacrebleu', 'safetensors', 'tokenizers') if name in sys.modules])"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert printed.stdout.strip() == "[]"
    rooms = Path(__file__).parents[3] / "src" / "headway" / "folder"
    assert not [path for path in rooms.glob("*.py") if "import pickle" in path.read_text()]
