"""Which script a text is written in, and which scripts a language is written in (ISO 15924 names, such as Latn)."""

import re
from bisect import bisect_right
from collections import Counter

from headway.corpus.language import normalise

# First code point and script of each stretch of letters, after Unicode's Scripts.txt, by whole blocks; what no stretch
# is named for is "" until the next.
_STRETCHES = """
0 Latn|2B0 |370 Grek|400 Cyrl|530 Armn|590 Hebr|600 Arab|700 Syrc|750 Arab|780 Thaa|7C0 Nkoo|800 |860 Syrc|870 Arab
900 Deva|980 Beng|A00 Guru|A80 Gujr|B00 Orya|B80 Taml|C00 Telu|C80 Knda|D00 Mlym|D80 Sinh|E00 Thai|E80 Laoo
F00 Tibt|1000 Mymr|10A0 Geor|1100 Hang|1200 Ethi|13A0 Cher|1400 Cans|1680 |1780 Khmr|1800 Mong|18B0 Cans|1900
1C80 Cyrl|1C90 Geor|1CC0 |1D00 Latn|1D26 Grek|1D2B Cyrl|1D2C |1E00 Latn|1F00 Grek|2000 |2C60 Latn|2C80 Copt|2D00 Geor
2D30 Tfng|2D80 Ethi|2DE0 Cyrl|2E00 |2E80 Hani|3000 |3005 Hani|3006 |3041 Hira|30A0 Kana|3100 Bopo|3130 Hang|3190
31A0 Bopo|31C0 |31F0 Kana|3200 |3400 Hani|4DC0 |4E00 Hani|A000 Yiii|A4D0 |A640 Cyrl|A6A0 |A720 Latn|A800 |A960 Hang
A980 |AA60 Mymr|AA80 |AB00 Ethi|AB30 Latn|AB70 Cher|ABC0 |AC00 Hang|D800 |F900 Hani|FB00 Latn|FB13 Armn|FB1D Hebr
FB50 Arab|FE00 |FE70 Arab|FF00 |FF21 Latn|FF5B |FF66 Kana|FFA0 Hang|FFE0 |1B000 Kana|1B170 |20000 Hani|323B0
"""
_ROWS = [
    (int(first, 16), name)
    for row in re.split(r"[|\n]", _STRETCHES.strip("\n"))
    for first, _, name in [row.partition(" ")]
]
_FIRSTS = [first for first, _ in _ROWS]

# Languages that are not written in Latin letters alone; of those of ISO 639-1 all others are.
_SCRIPTS = {
    "Cyrl": "ab av ba be bg ce cu cv kv ky mk mn os ru tg tt uk",
    "Cyrl Latn": "sr sh tk uz bs",
    "Cyrl Latn Arab": "kk az ku",
    "Arab": "ar fa ps sd ug ur",
    "Arab Deva": "ks",
    "Arab Latn": "ha ms",
    "Hebr": "he yi",
    "Grek": "el",
    "Armn": "hy",
    "Geor": "ka",
    "Deva": "bh hi mr ne sa pi",
    "Beng": "as bn",
    "Guru Arab": "pa",
    "Gujr": "gu",
    "Orya": "or",
    "Taml": "ta",
    "Telu": "te",
    "Knda": "kn",
    "Mlym": "ml",
    "Sinh": "si",
    "Thaa": "dv",
    "Thai": "th",
    "Laoo": "lo",
    "Tibt": "bo dz",
    "Mymr": "my",
    "Khmr": "km",
    "Ethi": "am ti",
    "Hani Bopo": "zh yue",
    "Hani Hira Kana": "ja",
    "Hang Hani": "ko",
    "Yiii": "ii",
    "Cans Latn": "cr iu oj",
}
_BY_LANGUAGE = {code: frozenset(names.split()) for names, codes in _SCRIPTS.items() for code in codes.split()}
_LATIN = frozenset({"Latn"})
# What ISO 15924 has several names for.
_WRITTEN_AS = {"Hans": "Hani", "Hant": "Hani", "Jpan": "Hani Hira Kana", "Kore": "Hang Hani", "Hrkt": "Hira Kana"}

_BEYOND_LATIN = re.compile("[^\x00-\u02af\u1e00-\u1eff\u2000-\u206f\u20a0-\u20bf]")


def script_of(character: str) -> str:
    """The script of a letter; empty for what is none, and for letters of scripts that are not told apart here."""
    return _ROWS[bisect_right(_FIRSTS, ord(character)) - 1][1] if character.isalpha() else ""


def main_script(text: str) -> str:
    """The script that most letters of a text are in; empty where there are no letters.

    Japanese is any of its three: kanji, hiragana and katakana count apart.
    """
    if text.isascii() or not _BEYOND_LATIN.search(text):
        return "Latn" if any(map(str.isalpha, text)) else ""
    counts: Counter[str] = Counter()
    for character, count in Counter(text).items():
        counts[script_of(character)] += count
    del counts[""]
    return max(counts, key=lambda name: (counts[name], name)) if counts else ""


def share_in(text: str, scripts: frozenset[str]) -> float:
    """The part of a text's letters that are in these scripts; 1 where there are no letters that are told apart."""
    counts = Counter(script_of(character) for character in text)
    del counts[""]
    return sum(counts[name] for name in scripts) / counts.total() if counts else 1.0


def scripts_of_language(code: str) -> frozenset[str]:
    """The scripts that a language is written in; empty where that is not known."""
    language, *rest = normalise(code).split("-")
    named = next((part for part in rest if len(part) == 4 and part.isalpha()), "")
    if named:
        return frozenset(_WRITTEN_AS.get(named, named).split())
    known = _BY_LANGUAGE.get(language)
    if known is not None:
        return known
    return _LATIN if len(language) == 2 else frozenset()
