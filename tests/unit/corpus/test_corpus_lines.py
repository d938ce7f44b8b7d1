"""Promises of headway.corpus.lines and headway.corpus.compression."""

import bz2
import gzip
import io
import lzma
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.corpus.compression import COMPRESSORS, DECOMPRESSORS
from headway.corpus.lines import open_writer, read_lines
from headway.errors import CorpusError

# The libraries' own one-shot functions are the oracle of what a compressed file holds.
COMPRESS = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.ZstdCompressor(write_checksum=True).compress,
}
UNPACK = {
    ".gz": gzip.decompress,
    ".bz2": bz2.decompress,
    ".xz": lzma.decompress,
    ".zst": lambda data: zstandard.ZstdDecompressor().decompressobj().decompress(data),
}
SUFFIXES = ["", *COMPRESS]
# Every character besides \n at which str.splitlines() breaks, and \r alone.
OTHER_BREAKS = ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\r"]


def write_bytes(folder: Path, data: bytes, name: str = "train.en") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def refusal(path: Path | str) -> str:
    with pytest.raises(CorpusError) as caught:
        list(read_lines(path))
    message = str(caught.value)
    assert "\n" not in message
    assert "Remedy: " in message
    return message


def write_and_fail(path: Path | str, text: str) -> None:
    with open_writer(path) as writer:
        writer.write(text)
        raise KeyError("mine")


class StandardInput:
    """Stands for sys.stdin, with bytes to give."""

    def __init__(self, buffer: object) -> None:
        self.buffer = buffer


@pytest.mark.parametrize("separator", OTHER_BREAKS)
def test_a_line_separator_inside_a_line_does_not_split_it(tmp_path: Path, separator: str):
    path = write_bytes(tmp_path, f"red\none {separator} two\nblue\n".encode())
    assert list(read_lines(path)) == ["red", f"one {separator} two", "blue"]


@pytest.mark.parametrize("data", [b"", b"a\n", b"a\nb\n", b"\n\n\n", "x\u2028y\n\x0b\n".encode(), b"\r\n"])
def test_the_number_of_lines_is_the_number_of_newlines(tmp_path: Path, data: bytes):
    assert len(list(read_lines(write_bytes(tmp_path, data)))) == data.count(b"\n")


def test_a_last_line_without_newline_counts(tmp_path: Path):
    assert list(read_lines(write_bytes(tmp_path, b"a\n\nb"))) == ["a", "", "b"]


def test_one_carriage_return_before_a_newline_is_absorbed_and_no_other(tmp_path: Path):
    path = write_bytes(tmp_path, b"a\r\nb\r\r\n\r\n\rc\nd\re\nf\r")
    assert list(read_lines(path)) == ["a", "b\r", "", "\rc", "d\re", "f\r"]


def test_a_byte_order_mark_is_absorbed_at_the_start_of_the_file_only(tmp_path: Path):
    path = write_bytes(tmp_path, b"\xef\xbb\xbf\xef\xbb\xbfa\n\xef\xbb\xbfb\n")
    assert list(read_lines(path)) == ["\ufeffa", "\ufeffb"]


def test_a_file_of_a_byte_order_mark_alone_has_no_lines(tmp_path: Path):
    assert list(read_lines(write_bytes(tmp_path, b"\xef\xbb\xbf"))) == []


def test_white_space_and_nul_bytes_stay_as_they_are(tmp_path: Path):
    assert list(read_lines(write_bytes(tmp_path, b" a\t\n\x00b \x00\n"))) == [" a\t", "\x00b \x00"]


def test_a_line_of_a_hundred_thousand_words_is_one_line(tmp_path: Path):
    line = "word " * 100_003
    assert list(read_lines(write_bytes(tmp_path, line.encode() + b"\nnext\n"))) == [line, "next"]


@pytest.mark.parametrize("suffix", COMPRESS)
@pytest.mark.parametrize("upper", [False, True])
def test_a_compressed_file_reads_like_the_plain_one(tmp_path: Path, suffix: str, upper: bool):
    data = b"\xef\xbb\xbfone\r\ntwo \xe2\x80\xa8 2\n\nlast"
    path = write_bytes(tmp_path, COMPRESS[suffix](data), "train.en" + (suffix.upper() if upper else suffix))
    assert list(read_lines(path)) == ["one", "two \u2028 2", "", "last"]


@pytest.mark.parametrize("suffix", COMPRESS)
def test_compressed_files_joined_end_to_end_read_as_one(tmp_path: Path, suffix: str):
    pieces = [b"a\nb", b"", b"c\nd\n", b"e\n" * 70_001]  # more than one chunk of the reader
    path = write_bytes(tmp_path, b"".join(map(COMPRESS[suffix], pieces)), f"t{suffix}")
    assert list(read_lines(path)) == ["a", "bc", "d"] + ["e"] * 70_001


@pytest.mark.parametrize("suffix", COMPRESS)
def test_a_compressed_file_cut_anywhere_is_refused(tmp_path: Path, suffix: str):
    data = COMPRESS[suffix](b"one line\nanother line\nthe third line")
    for length in range(len(data)):
        message = refusal(write_bytes(tmp_path, data[:length], f"cut{suffix}"))
        assert "is cut short" in message or "sound" in message
        assert f"cut{suffix}" in message


@pytest.mark.parametrize("suffix", COMPRESS)
def test_an_empty_compressed_text_has_no_lines_but_an_empty_file_is_refused(tmp_path: Path, suffix: str):
    assert list(read_lines(write_bytes(tmp_path, COMPRESS[suffix](b""), f"a{suffix}"))) == []
    assert "is cut short" in refusal(write_bytes(tmp_path, b"", f"b{suffix}"))


@pytest.mark.parametrize("suffix", COMPRESS)
def test_damaged_compressed_data_is_refused(tmp_path: Path, suffix: str):
    data = bytearray(COMPRESS[suffix](os.urandom(997).hex().encode()))
    data[len(data) // 2] ^= 0x55
    refusal(write_bytes(tmp_path, bytes(data), f"t{suffix}"))


@pytest.mark.parametrize("suffix", COMPRESS)
def test_plain_text_under_a_compressed_name_is_refused_with_the_cure(tmp_path: Path, suffix: str):
    message = refusal(write_bytes(tmp_path, b"just plain text, and not a little of it\n", f"t{suffix}"))
    assert f"rename it without {suffix}" in message


@pytest.mark.parametrize("suffix", COMPRESS)
def test_compressed_data_under_a_plain_name_is_named(tmp_path: Path, suffix: str):
    data = COMPRESS[suffix]("grün und blau\n".encode() * 7)
    assert f"found compressed data ({suffix})" in refusal(write_bytes(tmp_path, data))


def test_invalid_utf8_is_refused_with_line_byte_offset_and_remedy(tmp_path: Path):
    # 6 bytes of line 1, 5 of line 2 (with its line end), then "gr" before the byte: 6 + 5 + 2.
    path = write_bytes(tmp_path, b"\xef\xbb\xbfab\n" + b"cde\r\n" + b"gr\xfcn\n")
    message = refusal(path)
    assert f"{path} line 3, byte offset 13: found byte 0xfc" in message
    assert "iconv -f latin1 -t utf-8" in message


def test_invalid_utf8_behind_a_byte_order_mark_has_its_offset_in_the_file(tmp_path: Path):
    assert "line 1, byte offset 4: found byte 0xfc" in refusal(write_bytes(tmp_path, b"\xef\xbb\xbfa\xfcb\n"))


@pytest.mark.parametrize(
    ("beginning", "what"),
    [
        (b"PK\x03\x04\x14\x00\xff\xfe", "line 1: found a zip archive or an office file (docx, xlsx, ods, epub)"),
        (b"PK\x03\x04\x14\x00\n\xff", "line 2: found a zip archive or an office file (docx, xlsx, ods, epub)"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\x00", "line 1: found an office file (doc, xls)"),
        (b"%PDF-1.7\n%\xe2\xe3\n", "line 2: found a PDF"),
    ],
)
def test_an_office_file_under_the_name_of_a_text_is_told_with_the_way_to_text(
    tmp_path: Path, beginning: bytes, what: str
):
    message = refusal(write_bytes(tmp_path, beginning))
    assert what in message
    assert "tab-separated text in UTF-8" in message
    assert "XLIFF" in message
    assert "iconv" not in message


def test_bytes_of_half_a_surrogate_pair_are_refused(tmp_path: Path):
    assert "line 2, byte offset 2: found byte 0xed" in refusal(write_bytes(tmp_path, b"a\n\xed\xa0\x80\n"))


def test_lines_before_an_invalid_one_are_given(tmp_path: Path):
    lines = read_lines(write_bytes(tmp_path, b"a\nb\n\xff\n"))
    assert [next(lines), next(lines)] == ["a", "b"]
    with pytest.raises(CorpusError):
        next(lines)


@pytest.mark.parametrize(
    ("codec", "encoding"),
    [("utf-16-le", "UTF-16"), ("utf-16-be", "UTF-16"), ("utf-32-le", "UTF-32"), ("utf-32-be", "UTF-32")],
)
def test_another_unicode_encoding_is_named_with_the_conversion(tmp_path: Path, codec: str, encoding: str):
    message = refusal(write_bytes(tmp_path, "\ufeffgrün\n".encode(codec)))
    assert f"found {encoding} " in message
    assert f"Remedy: save it as UTF-8 in your editor, or iconv -f {encoding.lower()} -t utf-8" in message


def test_a_missing_file_is_refused(tmp_path: Path):
    assert f"{tmp_path}/none.en does not exist" in refusal(tmp_path / "none.en")


@pytest.mark.parametrize("name", ["folder", "folder.gz"])
def test_a_directory_for_a_file_is_refused(tmp_path: Path, name: str):
    (tmp_path / name).mkdir()
    assert f"{name} is a directory, wanted a text file" in refusal(tmp_path / name)


def test_a_file_for_a_folder_is_refused(tmp_path: Path):
    write_bytes(tmp_path, b"a\n", "a.en")
    assert "Not a directory" in refusal(tmp_path / "a.en" / "b.en")


def test_a_hyphen_is_standard_input(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "stdin", StandardInput(io.BytesIO("\ufeffa\r\nb\u2028c\n".encode())))
    assert list(read_lines("-")) == ["a", "b\u2028c"]


def test_invalid_utf8_in_standard_input_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "stdin", StandardInput(io.BytesIO(b"a\n\xfc\n")))
    assert "standard input line 2, byte offset 2" in refusal("-")


def test_a_line_is_given_before_the_next_is_read(monkeypatch: pytest.MonkeyPatch):
    def stream():
        yield b"first\n"
        raise AssertionError("read ahead")

    monkeypatch.setattr(sys, "stdin", StandardInput(stream()))
    assert next(read_lines("-")) == "first"


TEXTS = st.lists(st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"])), max_size=7)


@pytest.mark.parametrize("suffix", SUFFIXES)
@given(lines=TEXTS)
@settings(max_examples=41, deadline=None)
def test_lines_written_come_back_but_for_what_a_reader_absorbs(
    tmp_path_factory: pytest.TempPathFactory, suffix: str, lines: list[str]
):
    path = tmp_path_factory.mktemp("lines") / f"text{suffix}"
    with open_writer(path) as writer:
        writer.writelines(line + "\n" for line in lines)
    expected = [line.removesuffix("\r") for line in lines]
    expected[:1] = [line.removeprefix("\ufeff") for line in expected[:1]]
    assert list(read_lines(path)) == expected
    data = path.read_bytes()
    plain = UNPACK[suffix](data) if suffix else data
    assert plain == "".join(line + "\n" for line in lines).encode()


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_same_text_is_written_as_the_same_bytes(tmp_path: Path, suffix: str):
    for name in ("a", "b"):
        with open_writer(tmp_path / f"{name}{suffix}") as writer:
            writer.write("text\n" * 11)
    assert (tmp_path / f"a{suffix}").read_bytes() == (tmp_path / f"b{suffix}").read_bytes()


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_failed_writing_leaves_the_older_file_and_nothing_else(tmp_path: Path, suffix: str):
    path = write_bytes(tmp_path, b"older", f"text{suffix}")
    with pytest.raises(KeyError, match="mine"):
        write_and_fail(path, "newer\n")
    assert path.read_bytes() == b"older"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_takes_its_name_only_when_it_is_whole(tmp_path: Path):
    path = tmp_path / "text"
    with open_writer(path) as writer:
        writer.write("a\n")
        writer.flush()
        assert not path.exists()
    assert path.read_bytes() == b"a\n"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_full_disk_is_an_error_and_leaves_the_older_file(tmp_path: Path, suffix: str):
    path = write_bytes(tmp_path, b"older", f"text{suffix}")
    text = os.urandom(30_011).hex()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_007, hard))
    try:
        with (
            pytest.raises(CorpusError, match=r"cannot be written \(File too large\).* Remedy: "),
            open_writer(path) as w,
        ):
            w.write(text)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == b"older"
    assert list(tmp_path.iterdir()) == [path]


def test_half_of_a_surrogate_pair_is_refused_by_the_writer(tmp_path: Path):
    with pytest.raises(CorpusError, match=r"found U\+D83D .* Remedy: "), open_writer(tmp_path / "text") as writer:
        writer.write("a \ud83d b\n")
    assert list(tmp_path.iterdir()) == []


def test_an_error_of_another_file_inside_the_block_keeps_its_name(tmp_path: Path):
    with pytest.raises(FileNotFoundError, match="absent"), open_writer(tmp_path / "text"):
        (tmp_path / "absent").read_bytes()


def test_writing_into_a_missing_folder_is_refused(tmp_path: Path):
    with (
        pytest.raises(CorpusError, match=r"its folder does not exist\. Remedy: "),
        open_writer(tmp_path / "no" / "text"),
    ):
        pass


def test_writing_over_a_directory_is_refused(tmp_path: Path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(CorpusError, match=r"is a directory.* Remedy: "), open_writer(tmp_path / "folder"):
        pass


def test_writing_through_a_link_replaces_the_file_it_points_to(tmp_path: Path):
    real = write_bytes(tmp_path, b"older", "real")
    link = tmp_path / "link"
    link.symlink_to("real")
    with open_writer(link) as writer:
        writer.write("newer\n")
    assert link.is_symlink()
    assert real.read_bytes() == b"newer\n"


def test_writing_to_the_null_device_leaves_it_a_device():
    with open_writer("/dev/null") as writer:
        writer.write("gone\n")
    assert Path("/dev/null").is_char_device()


def test_a_written_file_has_the_permissions_of_a_new_file(tmp_path: Path):
    ordinary = write_bytes(tmp_path, b"", "ordinary")
    with open_writer(tmp_path / "text") as writer:
        writer.write("a\n")
    assert (tmp_path / "text").stat().st_mode == ordinary.stat().st_mode


def test_a_hyphen_is_standard_output_which_stays_open(capfdbinary: pytest.CaptureFixture[bytes]):
    for text in ("a\u2028b\n", "c\n"):
        with open_writer("-") as writer:
            writer.write(text)
    sys.stdout.flush()
    assert capfdbinary.readouterr().out == b"a\xe2\x80\xa8b\nc\n"


def test_what_was_written_to_standard_output_before_a_failure_is_out(capfdbinary: pytest.CaptureFixture[bytes]):
    with pytest.raises(KeyError, match="mine"):
        write_and_fail("-", "done\n")
    sys.stdout.flush()
    assert capfdbinary.readouterr().out == b"done\n"


def test_reading_loads_no_compiled_compression_and_no_torch():
    script = "import sys, headway.corpus.read; print({'torch', 'numpy', 'zstandard', 'pydantic'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_every_compression_can_be_read_and_written():
    assert set(COMPRESSORS) == set(DECOMPRESSORS) == set(COMPRESS)
