"""Promises of headway.corpus.jsonl."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.corpus.jsonl import read_jsonl
from headway.corpus.pair import SentencePair
from headway.errors import CorpusError

LANGUAGES = ("en", "de")
GOOD = '{"en": "a", "de": "A"}\n'


def read_text(
    folder: Path, text: str, fields: tuple[str, str] = ("", ""), languages: tuple[str, str] = LANGUAGES
) -> list[SentencePair]:
    path = folder / "t.jsonl"
    path.write_bytes(text.encode())
    return list(read_jsonl(path, languages=languages, fields=fields))


@pytest.mark.parametrize(
    "record",
    [
        {"en": "Hello", "de": "Hallo", "id": 7},
        {"source": "Hello", "target": "Hallo"},
        {"translation": {"en": "Hello", "de": "Hallo"}},
        {"translation": {"source": "Hello", "target": "Hallo"}},
        # The language codes come before source and target, the object before the one inside it.
        {"source": "x", "target": "y", "en": "Hello", "de": "Hallo"},
        {"translation": {"en": "x", "de": "y"}, "source": "Hello", "target": "Hallo"},
        # A half-found pair of keys is passed over whole.
        {"en": "x", "source": "Hello", "target": "Hallo"},
        {"en": "Hello", "de": "Hallo", "translation": "not an object"},
    ],
)
def test_the_sides_are_found_under_their_usual_keys(tmp_path: Path, record: dict[str, object]):
    assert read_text(tmp_path, json.dumps(record)) == [SentencePair("Hello", "Hallo", 1)]


@pytest.mark.parametrize("nested", [False, True])
def test_named_keys_come_before_the_usual_ones(tmp_path: Path, nested: bool):
    record: dict[str, object] = {"en": "x", "de": "y", "q": "Hello", "r": "Hallo"}
    text = json.dumps({"translation": record} if nested else record)
    assert read_text(tmp_path, text, ("q", "r")) == [SentencePair("Hello", "Hallo", 1)]
    assert read_text(tmp_path, text, ("q", "")) == [SentencePair("Hello", "y", 1)]


def test_one_language_on_both_sides_is_not_read_from_one_key(tmp_path: Path):
    text = json.dumps({"en": "x", "source": "noisy", "target": "clean"})
    assert read_text(tmp_path, text, languages=("en", "en")) == [SentencePair("noisy", "clean", 1)]


def test_lines_are_counted_and_empty_sides_kept(tmp_path: Path):
    assert read_text(tmp_path, GOOD + '{"en": "", "de": " "}\r\n')[1] == SentencePair("", " ", 2)


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ('{"en": "b", "de": "B"', r"no JSON \(.*, column 22\), wanted one JSON object"),
        ("", "an empty line, wanted one JSON object"),
        ("b\tB", "no JSON .*, wanted one JSON object"),
        ('["b", "B"]', "a JSON array, wanted one JSON object"),
        ("null", "a JSON null"),
        ("3", "a JSON number"),
        ("9" * 5003, "JSON that cannot be taken in"),
        ("[" * 100_003, "JSON that cannot be taken in"),
        ('{"en": "b", "fr": "B"}', r"the keys 'en', 'fr'; wanted 'en' and 'de' or 'source' and 'target'"),
        ("{}", r"the keys \(none\)"),
        ('{"en": "b", "de": null}', "null under 'de', wanted a string"),
        ('{"en": 17, "de": "B"}', "number under 'en', wanted a string"),
        ('{"en": true, "de": "B"}', "boolean under 'en', wanted a string"),
        ('{"en": ["b"], "de": "B"}', "array under 'en', wanted a string"),
        ('{"en": "b", "de": {}}', "object under 'de', wanted a string"),
        (r'{"en": "b", "de": "x \ud83d y"}', r"half of a surrogate pair \(\\ud83d\) under 'de'"),
    ],
)
def test_a_line_that_is_no_pair_is_refused_with_its_number(tmp_path: Path, line: str, found: str):
    with pytest.raises(CorpusError, match=rf"^corpus/jsonl: .*t\.jsonl line 3: found {found}.*Remedy: [^\n]*$"):
        read_text(tmp_path, GOOD + GOOD + line + "\n" + GOOD)


def test_missing_named_keys_are_refused_with_both_names(tmp_path: Path):
    with pytest.raises(CorpusError, match=r"line 1: found the keys 'en', 'de'; wanted 'q' and 'r'\. Remedy: "):
        read_text(tmp_path, GOOD, ("q", "r"))


def test_many_keys_are_counted_rather_than_listed(tmp_path: Path):
    with pytest.raises(CorpusError, match="'k7' and 5 more; wanted"):
        read_text(tmp_path, json.dumps({f"k{n}": n for n in range(13)}))


def test_the_same_key_for_both_sides_is_refused(tmp_path: Path):
    with pytest.raises(CorpusError, match=r"both have the key 'q', wanted two keys\. Remedy: "):
        read_text(tmp_path, GOOD, ("q", "q"))


TEXT = st.text(st.characters(exclude_categories=["Cs"]))


@given(sides=st.lists(st.tuples(TEXT, TEXT), max_size=7), ascii_only=st.booleans())
@settings(max_examples=67, deadline=None)
def test_any_text_comes_back(tmp_path_factory: pytest.TempPathFactory, sides: list[tuple[str, str]], ascii_only: bool):
    text = "".join(json.dumps({"en": en, "de": de}, ensure_ascii=ascii_only) + "\n" for en, de in sides)
    pairs = read_text(tmp_path_factory.mktemp("jsonl"), text)
    assert pairs == [SentencePair(*side, line) for line, side in enumerate(sides, 1)]
