"""Scripts of letters and languages, against Unicode's own names of characters."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.corpus.script import main_script, script_of, scripts_of_language, share_in

# How Unicode names the letters of a script; the letters of the scripts that are told apart begin with these.
NAMES = {
    "LATIN": "Latn", "CYRILLIC": "Cyrl", "GREEK": "Grek", "ARABIC": "Arab", "HEBREW": "Hebr", "DEVANAGARI": "Deva",
    "HIRAGANA": "Hira", "KATAKANA": "Kana", "HANGUL": "Hang", "THAI": "Thai", "GEORGIAN": "Geor", "ARMENIAN": "Armn",
    "BENGALI": "Beng", "TAMIL": "Taml", "TELUGU": "Telu", "KANNADA": "Knda", "MALAYALAM": "Mlym", "SINHALA": "Sinh",
    "KHMER": "Khmr", "LAO": "Laoo", "TIBETAN": "Tibt", "MYANMAR": "Mymr", "ETHIOPIC": "Ethi", "GUJARATI": "Gujr",
    "GURMUKHI": "Guru", "ORIYA": "Orya", "THAANA": "Thaa", "MONGOLIAN": "Mong", "CHEROKEE": "Cher",
}  # fmt: skip


def test_the_script_of_every_common_letter_is_that_of_its_name():
    differ = []
    for code in [*range(0x20, 0xA000), *range(0xAC00, 0xD800), *range(0xF900, 0x10000)]:
        character = chr(code)
        name = unicodedata.name(character, "")
        wanted = "Hani" if name.startswith("CJK") else NAMES.get(name.partition(" ")[0])
        found = script_of(character)
        if character.isalpha() and wanted and found and found != wanted:
            differ.append((hex(code), name, found))
    assert differ == []


@pytest.mark.parametrize(
    ("text", "script"),
    [("Hello!", "Latn"), ("Größe", "Latn"), ("Привет, Tom", "Cyrl"), ("你好", "Hani"), ("こんにちは世界", "Hira"),
     ("안녕", "Hang"), ("123 %", ""), ("", ""), ("—…", ""), ("Ελλάδα", "Grek"), ("שלום", "Hebr")],
)  # fmt: skip
def test_a_text_is_in_the_script_of_most_of_its_letters(text, script):
    assert main_script(text) == script


@pytest.mark.parametrize(
    ("code", "scripts"),
    [("de", "Latn"), ("EN_us", "Latn"), ("ru", "Cyrl"), ("zh-TW", "Hani Bopo"), ("zh-Hans", "Hani"),
     ("sr-Latn", "Latn"), ("sr", "Cyrl Latn"), ("ja", "Hani Hira Kana"), ("ko-Kore", "Hang Hani"), ("xyz", "")],
)  # fmt: skip
def test_a_language_is_written_in_its_scripts_or_the_one_that_its_code_names(code, scripts):
    assert scripts_of_language(code) == set(scripts.split())


def test_shares_count_letters_only():
    assert share_in("模式 TX, 12", frozenset({"Hani"})) == 2 / 4
    assert share_in("12", frozenset({"Hani"})) == 1.0


@given(st.text())
def test_the_main_script_is_that_of_a_letter_of_the_text(text):
    assert main_script(text) in {"", *map(script_of, text), *(["Latn"] if any(map(str.isalpha, text)) else [])}
