"""Parquet files: columns and structs of text as pairs, read as the library that wrote them says they are."""

import sys
from pathlib import Path

import pytest

from headway.corpus import parquet
from headway.corpus.pair import SentencePair
from headway.corpus.parquet import read_parquet
from headway.corpus.read import read
from headway.errors import CorpusError, MissingExtraError

sys.path.insert(0, str(Path(__file__).parent))
from document_mutations import mutations

arrow = pytest.importorskip("pyarrow")
from pyarrow import parquet as library  # noqa: E402 - only where it is installed

TEXTS = [("a", "A"), ("", 'B\n"'), ("c\u2028", "Ä\U0001f600")]
PAIRS = [SentencePair(source, target, line) for line, (source, target) in enumerate(TEXTS, 1)]


def put(folder: Path, columns, name: str = "a.parquet", **options) -> Path:
    library.write_table(columns if isinstance(columns, arrow.Table) else arrow.table(columns), folder / name, **options)
    return folder / name


def pairs_of(path: Path | str, languages=("en", "de"), fields=("", "")):
    return list(read_parquet(path, languages=languages, fields=fields))


def sides(kind=None):
    return [arrow.array([text[side] for text in TEXTS], kind) for side in (0, 1)]


@pytest.mark.parametrize("names", [("en", "de"), ("EN", "de_DE"), ("source", "target")])
@pytest.mark.parametrize(
    "kind", [arrow.string(), arrow.large_string(), arrow.dictionary(arrow.int32(), arrow.string())]
)
def test_columns_are_found_by_language_and_then_by_side(tmp_path, names, kind):
    columns = arrow.table([*reversed(sides(kind)), arrow.array([7, 5, 3])], names=[*reversed(names), "id"])
    assert pairs_of(put(tmp_path, columns)) == PAIRS


def test_a_struct_holds_a_field_a_language(tmp_path):
    rows = [{"fr": "x", "de": target, "en": source} for source, target in TEXTS]
    assert pairs_of(put(tmp_path, {"id": [1, 2, 3], "translation": rows})) == PAIRS
    assert pairs_of(put(tmp_path, {"translation": rows}), fields=("fr", "")) == [
        SentencePair("x", target, line) for line, (_, target) in enumerate(TEXTS, 1)
    ]


def test_named_columns_come_first(tmp_path):
    source, target = sides()
    path = put(tmp_path, {"en": target, "de": source, "my.text": source, "theirs": target})
    assert pairs_of(path, fields=("my.text", "theirs")) == PAIRS


def test_nulls_are_empty_sides(tmp_path):
    expected = [SentencePair("a", "", 1), SentencePair("", "", 2), SentencePair("", "C", 3)]
    assert pairs_of(put(tmp_path, {"en": ["a", None, None], "de": [None, None, "C"]})) == expected
    rows = [{"en": "a", "de": None}, None, {"en": None, "de": "C"}]
    assert pairs_of(put(tmp_path, {"translation": rows})) == expected


@pytest.mark.parametrize("options", [{"row_group_size": 701}, {"use_dictionary": False, "compression": "zstd"}])
def test_rows_keep_their_order_and_number_across_row_groups(tmp_path, options):
    path = put(tmp_path, {"en": [f"e{n}" for n in range(3001)], "de": [f"d{n % 7}" for n in range(3001)]}, **options)
    assert pairs_of(path) == [SentencePair(f"e{n}", f"d{n % 7}", n + 1) for n in range(3001)]


def test_a_file_without_rows_has_no_pairs(tmp_path):
    assert pairs_of(put(tmp_path, {"en": arrow.array([], arrow.string()), "de": arrow.array([], arrow.string())})) == []


def test_the_suffix_tells_the_format(tmp_path):
    path = put(tmp_path, dict(zip(("en", "de"), sides(), strict=True)))
    assert list(read(path, source_language="en", target_language="de")) == PAIRS


@pytest.mark.parametrize(
    ("columns", "fields", "message"),
    [
        ({"en": ["a"], "text": ["b"]}, ("", ""), r"found the columns en, text; wanted en and de or source and target"),
        ({"en": ["a"], "text": ["b"]}, ("", "txt"), r"wanted en and txt or source and txt"),
        ({"en": ["a"], "de": ["b"]}, ("en", "en"), r"wanted en and en, two different ones"),
        ({"en": ["a"], "de": [1]}, ("", ""), r"column de: found int64, wanted text"),
        ({"en": ["a"], "de": [b"x"]}, ("", ""), r"column de: found binary, wanted text"),
        ({"en": ["a"], "de": [["x"]]}, ("", ""), r"column de: found list<.*>, wanted text"),
        ({"translation": [{"en": "a", "de": 1.5}]}, ("", ""), r"column translation\.de: found double, wanted text"),
        ({"translation": [{"en": "a", "fr": "b"}]}, ("", ""), r"found the columns translation, translation\.en, tr"),
        ({f"c{n}": ["a"] for n in range(11)}, ("", ""), r"c0, c1, c2, c3, c4, c5, c6, c7 and 3 more; wanted"),
    ],
)
def test_columns_that_are_not_there_or_no_text_are_told(tmp_path, columns, fields, message):
    with pytest.raises(CorpusError, match=rf"corpus/parquet: .*a\.parquet.*{message}.*Remedy: "):
        pairs_of(put(tmp_path, columns), fields=fields)


def test_two_columns_of_one_name_are_refused(tmp_path):
    table = arrow.table([*sides(), sides()[0]], names=["en", "de", "en"])
    with pytest.raises(CorpusError, match="found two columns of the name en or de"):
        pairs_of(put(tmp_path, table))


def test_bytes_that_are_not_utf8_are_told_with_the_row_before(tmp_path):
    texts = [*(b"a" for _ in range(1024)), b"\xff"]
    bad = arrow.array(texts, arrow.binary()).view(arrow.string())
    with pytest.raises(CorpusError, match=r"after row 1,024: found no sound Parquet data \(UnicodeDecodeError"):
        pairs_of(put(tmp_path, {"en": bad, "de": ["b"] * len(texts)}))


@pytest.mark.parametrize("data", [b"", b"PAR1", b"PAR1" + b"x" * 23 + b"PAR1", b"en\tde\n" * 7])
def test_what_is_no_parquet_is_refused(tmp_path, data):
    (tmp_path / "a.parquet").write_bytes(data)
    with pytest.raises(CorpusError, match="found no sound Parquet data"):
        pairs_of(tmp_path / "a.parquet")


def test_what_is_no_file_is_refused(tmp_path):
    with pytest.raises(CorpusError, match="nothing does not exist"):
        pairs_of(tmp_path / "nothing")
    with pytest.raises(CorpusError, match="is a directory, wanted one Parquet file"):
        pairs_of(tmp_path)
    with pytest.raises(CorpusError, match="found standard input"):
        pairs_of("-")
    with pytest.raises(CorpusError, match=r"found .*a\.parquet\.gz, wanted a plain file"):
        pairs_of(tmp_path / "a.parquet.gz")


def test_without_pyarrow_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'headway\[parquet\]'"):
        pairs_of(tmp_path / "a.parquet")


def fuzz(folder: Path, count: int) -> None:
    tables = [
        ({"en": [f"e{n}" for n in range(97)], "de": [f"d{n % 7}" for n in range(97)]}, {"row_group_size": 41}),
        ({"translation": [{"en": "a", "de": "b" * n} for n in range(53)]}, {"compression": "gzip"}),
        ({"en": ["a"] * 31, "de": ["b", None, "c"] * 10 + ["d"]}, {"data_page_version": "2.0"}),
    ]
    path, read_whole = folder / "bad.parquet", 0
    for number, (columns, options) in enumerate(tables):
        data = put(folder, columns, **options).read_bytes()
        for bad in mutations(data, [b"PAR1", b"\xff" * 7, b"\x00" * 5], count=count // 3, seed=number):
            path.write_bytes(bad)
            refusal = ""
            try:
                assert len(pairs_of(path)) < 100_000
            except CorpusError as error:
                refusal = str(error)
            assert "\n" not in refusal
            read_whole += not refusal
    assert count // 50 < read_whole < count  # some of both, or the test tests nothing


def test_damaged_files_never_crash(tmp_path):
    fuzz(tmp_path, 201)


@pytest.mark.slow
def test_ten_thousand_damaged_files_never_crash(tmp_path):
    fuzz(tmp_path, 10_002)
