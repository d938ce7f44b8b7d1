"""Packed files that were damaged or written by somebody who means harm: the process goes on, whatever they hold."""

import json
import math
import zlib

import numpy as np
import pytest
from packed_models import EOS, drawn_sources, packed_model, write_packed

from headway.engine.engine import Engine
from headway.engine.packed import read_packed
from headway.errors import EngineError, HeadwayError
from headway.search.settings import SearchSettings

native = pytest.importorskip("headway_native", reason="headway-native is not built here")

NUMBERS = [0, -1, 1, 2, 3, 7, 16, 64, 255, 4096, 65537, 2**20, 2**31 - 1, 2**31, 2**32, 2**63, 2**64, 10**40, 10**400]
VALUES = [*NUMBERS, -(2**31), 0.5, 1e-300, 1e300, math.nan, math.inf, "", "x", None, True, [], [1], {}]
CHOICES = [
    "none",
    "learned",
    "rope",
    "alibi",
    "t5",
    "pre",
    "post",
    "layer",
    "rms",
    "gelu",
    "silu",
    "swiglu",
    "deepnorm",
]
BITS = [0x7FC00000, 0x7F800001, 0xFFC00001, 0x7F800000, 0xFF800000, 0x7F7FFFFF, 0xFF7FFFFF, 0x00000001, 0x80000000]
SOURCES = drawn_sources(3, 5, config=packed_model().config)


class Mutator:
    """One file's content, and ways to change it; numbers and places are drawn from ``generator``."""

    def __init__(self, content: bytes, generator: np.random.Generator) -> None:
        self.generator = generator
        self.start = 8 + int.from_bytes(content[:8], "little")
        self.header = json.loads(content[8 : self.start])
        self.data = bytearray(content[self.start :])
        self.content = content

    def draw(self, choices):
        return choices[int(self.generator.integers(len(choices)))]

    def written(self, *, is_sealed: bool = True) -> bytes:
        """The header and the arrays, with the right checksum where ``is_sealed``."""
        if is_sealed and isinstance(self.header.get("__metadata__"), dict):
            self.header["__metadata__"]["crc32"] = f"{zlib.crc32(self.data):08x}"
        text = json.dumps(self.header).encode()
        return len(text).to_bytes(8, "little") + text + bytes(self.data)

    def flip(self) -> bytes:
        """Some bytes anywhere are others."""
        content = bytearray(self.content)
        for _ in range(self.generator.integers(1, 9)):
            content[self.generator.integers(len(content))] = self.generator.integers(256)
        return bytes(content)

    def flip_header(self) -> bytes:
        content = bytearray(self.content)
        content[self.generator.integers(self.start)] = self.generator.integers(256)
        return bytes(content)

    def cut(self) -> bytes:
        return self.content[: self.generator.integers(len(self.content))]

    def lengthen(self) -> bytes:
        return self.content + self.generator.bytes(int(self.generator.integers(1, 300)))

    def set_header_length(self) -> bytes:
        length = self.draw([*NUMBERS[:17], self.start - 7, self.start - 9, len(self.content)]) % 2**64
        return length.to_bytes(8, "little") + self.content[8:]

    def set_bits(self) -> bytes:
        """Numbers that are none, infinite, huge or tiny, under the right checksum."""
        for _ in range(self.generator.integers(1, 9)):
            place = int(self.generator.integers(len(self.data) // 4)) * 4
            self.data[place : place + 4] = self.draw(BITS).to_bytes(4, "little")
        return self.written()

    def fill_array(self) -> bytes:
        """One array is full of one number."""
        begin, end = self.header[self.draw(self.names())]["data_offsets"]
        self.data[begin:end] = self.draw(BITS).to_bytes(4, "little") * ((end - begin) // 4)
        return self.written()

    def set_entry(self) -> bytes:
        """An array of another type, shape or place."""
        entry = self.header[self.draw(self.names())]
        kind = self.draw(["dtype", "shape", "data_offsets", "number", "swap"])
        if kind == "dtype":
            entry["dtype"] = self.draw(
                ["F64", "F32", "F16", "BF16", "I64", "I32", "I8", "U8", "BOOL", "F8_E4M3", "", 5]
            )
        elif kind == "shape":
            entry["shape"] = self.draw(
                [[], [0], [math.prod(entry["shape"])], [*entry["shape"], 1], entry["shape"][::-1]]
            )
        elif kind == "swap":
            other = self.header[self.draw(self.names())]
            entry["data_offsets"], other["data_offsets"] = other["data_offsets"], entry["data_offsets"]
        else:
            numbers = entry["shape" if kind == "number" else kind]
            numbers[int(self.generator.integers(len(numbers)))] = self.draw(VALUES)
        return self.written()

    def rename(self) -> bytes:
        """An array with another's name, a new one, or none at all."""
        name = self.draw(self.names())
        entry = self.header.pop(name)
        other = self.draw([self.draw(self.names()), name + "x", "", "encoder.7.attention.project.weight", None])
        if other is not None:
            self.header[other] = entry
        return self.written()

    def set_metadata(self) -> bytes:
        metadata = self.header["__metadata__"]
        key = self.draw([*metadata, "more"])
        if self.generator.integers(2):
            metadata.pop(key, None)
        else:
            metadata[key] = self.draw(
                ["", "1", "2", "-1", "nan", "int8", "float32", "x" * 999, "{}", "[" * 999, 7, None]
            )
        return self.written(is_sealed=bool(self.generator.integers(2)))

    def set_config(self) -> bytes:
        """A size, a number or a choice of the model is another."""
        metadata = self.header["__metadata__"]
        config = json.loads(metadata["model"])
        for _ in range(self.generator.integers(1, 4)):
            key = self.draw([*config, "more"])
            near = [config[key] + 1, max(config[key] - 1, 1), 2 * config[key]] if type(config.get(key)) is int else []
            config[key] = self.draw(near or CHOICES) if self.generator.integers(2) else self.draw([*VALUES, *CHOICES])
        metadata["model"] = json.dumps(config)
        return self.written()

    def names(self) -> list[str]:
        return [name for name in self.header if name != "__metadata__"]


DAMAGES = [Mutator.flip, Mutator.flip_header, Mutator.cut, Mutator.lengthen, Mutator.set_header_length]
LIES = [
    Mutator.set_bits,
    Mutator.fill_array,
    Mutator.set_entry,
    Mutator.rename,
    Mutator.set_metadata,
    Mutator.set_config,
]


def translated(path, **settings):
    """What a file's model gives for a few sentences; None where it is refused by an error of one line."""
    refusal = ""
    found, scores, tables = None, [], []
    try:
        engine = Engine(read_packed(path), **settings)
        found = [
            engine.search(
                SOURCES, prefixes=[()] * 3, limits=[6, 3, 7], settings=SearchSettings(beam_size=beam, n_best=beam)
            )
            for beam in (1, 3)
        ]
        scores = engine.score(SOURCES, SOURCES)
        tables = engine.attend(SOURCES, SOURCES)
    except HeadwayError as error:
        refusal = str(error)
    if refusal:
        assert "\n" not in refusal
        return None
    for one in (one for beams in found for own in beams for one in own):
        assert math.isfinite(one.score)
        assert one.token_ids[-1] == EOS
        assert all(token >= 0 for token in one.token_ids)
    assert [len(own) for own in scores] == [len(source) for source in SOURCES]
    assert [table.shape for table in tables] == [(len(source), len(source)) for source in SOURCES]
    return found


def mutate(tmp_path, count, seed):
    """Mutate files ``count`` times; gives how many were read as before, read as others, and refused."""
    whole = {precision: tmp_path / f"{precision}.safetensors" for precision in ("float32", "int8")}
    for precision, path in whole.items():
        write_packed(path, packed_model(precision=precision))
    expected = {precision: translated(path) for precision, path in whole.items()}
    contents = {precision: path.read_bytes() for precision, path in whole.items()}
    generator = np.random.default_rng(seed)
    same = other = refused = 0
    for number in range(count):
        precision = ("float32", "int8")[number % 2]
        mutator = Mutator(contents[precision], generator)
        change = mutator.draw(DAMAGES if number % 3 == 0 else LIES)
        path = tmp_path / f"mutated-{number % 7}.safetensors"
        path.unlink(missing_ok=True)  # never in place: the file before it may still be mapped
        path.write_bytes(change(mutator))
        found = translated(path, threads=1 + number % 2, kernels=mutator.draw(native.available()))
        refused += found is None
        same += found == expected[precision]
        other += found is not None and found != expected[precision]
    return same, other, refused


def test_a_mutated_file_gives_a_result_or_an_error(tmp_path):
    same, other, refused = mutate(tmp_path, 300, seed=11)
    assert min(same, other, refused) > 0  # each of the three happens


@pytest.mark.slow
def test_a_file_mutated_10000_times_gives_a_result_or_an_error(tmp_path):
    same, other, refused = mutate(tmp_path, 10_000, seed=13)
    assert min(same, other, refused) > 100


@pytest.mark.parametrize(
    ("key", "value", "wanted"),
    [
        ("d_model", 2**40, "d_model of the model is 2\\^40 or more; wanted less than 2\\^31"),
        ("d_ff", 10**400, "d_ff of the model is 2\\^1328 or more"),
        ("num_encoder_layers", 2**30, "num_encoder_layers of the model is 1073741824; wanted 1 to 1048576"),
        ("num_encoder_layers", 3, "has no array encoder.2.attention.project"),
        ("num_encoder_layers", 1, "has an array encoder.1.* for which its configuration does not ask"),
        ("d_ff", 38, "bytes; its configuration asks for"),
        ("attention_window", 3, "does not run a model with attention_window 3"),
        ("positions", "t5", "does not run a model with positions t5"),
        ("attention_score", "unscaled", "does not run a model with attention_score unscaled"),
        ("positions", "learned", "has no array source_positions"),
        ("positions", "words", "has no array source_word_starts"),
        ("norm_epsilon", math.nan, "configuration in .* is not valid"),
    ],
)
def test_a_configuration_that_the_arrays_are_not_of_is_refused_by_name(tmp_path, key, value, wanted):
    path = write_packed(tmp_path / "packed.safetensors", packed_model())
    mutator = Mutator(path.read_bytes(), np.random.default_rng(1))
    config = json.loads(mutator.header["__metadata__"]["model"])
    config[key] = value
    mutator.header["__metadata__"]["model"] = json.dumps(config)
    (tmp_path / "other.safetensors").write_bytes(mutator.written())
    with pytest.raises(EngineError, match=wanted):
        Engine(read_packed(tmp_path / "other.safetensors"))


def test_arrays_that_begin_between_numbers_are_refused_or_copied(tmp_path):
    path = write_packed(tmp_path / "packed.safetensors", packed_model())
    expected = translated(path)
    mutator = Mutator(path.read_bytes(), np.random.default_rng(1))
    mutator.header["__metadata__"]["note"] = "x"
    text = json.dumps(mutator.header).encode()
    for spaces in range(1, 8):  # no multiple of 4 for most
        padded = text + b" " * spaces
        path = tmp_path / f"{spaces}.safetensors"
        path.write_bytes(len(padded).to_bytes(8, "little") + padded + bytes(mutator.data))
        assert translated(path) in (expected, None)
