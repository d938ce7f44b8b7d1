"""Promises of headway.corpus.read."""

import io
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from headway.corpus.lines import open_writer
from headway.corpus.pair import SentencePair
from headway.corpus.read import READERS, SUFFIXES, read
from headway.errors import CorpusError

TSV = "a\tA\nb\tB\n"
JSONL = '{"en": "a", "de": "A"}\n{"en": "b", "de": "B"}\n'
PAIRS = [SentencePair("a", "A", 1), SentencePair("b", "B", 2)]


def put(folder: Path, name: str, text: str) -> Path:
    with open_writer(folder / name) as writer:
        writer.write(text)
    return folder / name


def read_pairs(source: Path | str, target: Path | str | None = None, **options: str) -> Iterator[SentencePair]:
    return read(source, target, source_language="en", target_language="de", **options)


LINE_BY_LINE = ("tsv", "jsonl")  # the formats of the other suffixes have tests of their own


@pytest.mark.parametrize("compression", ["", ".gz", ".bz2", ".xz", ".zst", ".GZ"])
@pytest.mark.parametrize("suffix", [*(suffix for suffix, name in SUFFIXES.items() if name in LINE_BY_LINE), ".TSV"])
def test_one_file_is_read_by_its_suffix_before_compression(tmp_path: Path, suffix: str, compression: str):
    text = TSV if suffix.lower() == ".tsv" else JSONL
    assert list(read_pairs(put(tmp_path, f"t.en-de{suffix}{compression}", text))) == PAIRS


def test_two_files_are_moses_whatever_their_suffix(tmp_path: Path):
    assert list(read_pairs(put(tmp_path, "a.tsv", "a\nb\n"), str(put(tmp_path, "b.tsv", "A\nB\n")))) == PAIRS


def test_a_named_format_comes_before_the_suffix(tmp_path: Path):
    assert list(read_pairs(put(tmp_path, "t.txt", TSV), format="tsv")) == PAIRS
    assert list(read_pairs(put(tmp_path, "t.tsv", JSONL), format="jsonl")) == PAIRS


def test_an_empty_target_name_is_no_target(tmp_path: Path):
    assert list(read_pairs(put(tmp_path, "t.tsv", TSV), "")) == PAIRS


def test_fields_reach_the_reader(tmp_path: Path):
    assert list(read_pairs(put(tmp_path, "t.tsv", "A\ta\nB\tb\n"), source_field="2", target_field="1")) == PAIRS


def test_language_codes_are_the_keys_of_jsonl(tmp_path: Path):
    path = put(tmp_path, "t.jsonl", JSONL)
    swapped = list(read(path, source_language="de", target_language="en"))
    assert swapped == [SentencePair("A", "a", 1), SentencePair("B", "b", 2)]


@pytest.mark.parametrize(("name", "text"), [("tsv", TSV), ("jsonl", JSONL)])
def test_standard_input_needs_a_format_and_then_reads(monkeypatch: pytest.MonkeyPatch, name: str, text: str):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text.encode())))
    with pytest.raises(CorpusError, match=r"standard input is one file .*Remedy: "):
        read_pairs("-")
    assert list(read_pairs("-", format=name)) == PAIRS


def test_one_side_may_be_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"a\nb\n")))
    assert list(read_pairs("-", put(tmp_path, "t.de", "A\nB\n"))) == PAIRS


@pytest.mark.parametrize(
    ("source", "target", "format_name", "said"),
    [
        ("t.txt", None, "auto", r"t\.txt is one file .* \.tsv, \.jsonl, \.ndjson, \.json, .*\."),
        ("t.gz", None, "auto", r"t\.gz is one file"),
        ("t.en", None, "moses", r"found one file \(t\.en\), wanted two"),
        ("a.tsv", "b.tsv", "tsv", r"found two files \(a\.tsv, b\.tsv\), wanted one for the format tsv"),
        ("a.tsv", None, "csv", r"found format 'csv', wanted one of auto, moses, tsv, jsonl, .*, text, consecutive"),
        ("a.tsv", "a.de", "auto", r"found two files, but a\.tsv should hold both sides"),
        ("a.en", "a.jsonl.gz", "auto", r"found two files, but a\.jsonl\.gz should hold both sides"),
        ("-", "-", "auto", "found standard input for both"),
        ("", None, "auto", "found no name of a source file"),
    ],
)
def test_arguments_that_do_not_fit_together_are_refused_before_reading(
    source: str, target: str | None, format_name: str, said: str
):
    with pytest.raises(CorpusError, match=rf"^corpus/read: {said}.*Remedy: "):
        read_pairs(source, target, format=format_name)


def test_every_suffix_has_a_reader():
    assert set(SUFFIXES.values()) == set(READERS)


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("memory.csv", "found a .csv file, which is not read; .*Remedy: save the table as tab-separated text"),
        ("page.DOCX", "found a .docx file, which is not read; .*Remedy: bring it into XLIFF"),
        ("memory.sdltm", "found a .sdltm file, which is not read; .*Remedy: export the translation memory as TMX"),
        ("memory.csv.gz", "found a .csv file, which is not read; .*Remedy: save the table as tab-separated text"),
    ],
)
def test_a_file_of_another_program_is_refused_with_the_way_to_one_that_is_read(name, remedy):
    with pytest.raises(CorpusError, match=remedy):
        read(name, source_language="en", target_language="de")
