"""PO files: read as gettext reads them, written so that nothing but the filled translations differs."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.corpus.pair import SentencePair
from headway.corpus.po import read_po, read_segments, write_targets
from headway.errors import CorpusError

sys.path.insert(0, str(Path(__file__).parent))
from document_mutations import mutations

HEADER = r"""# Translators, 2024
msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\n"
"Language: de\n"
"Plural-Forms: nplurals=2; plural=(n != 1);\n"

"""
BODY = r"""#. for the button
#: main.c:7
#, c-format
msgid "Open %s"
msgstr ""

#| msgid "Shut"
msgctxt "menu"
msgid "Close"
msgstr "Schließen"

#, fuzzy
msgid "Save"
msgstr "Sichern?"

msgid ""
"\n"
"Two\tlines, \"quoted\"\n"
"and a \\ too\n"
msgstr ""

msgid "%d file"
msgid_plural "%d files"
msgstr[0] "%d Datei"
msgstr[1] ""

# kept
#, fuzzy
#~ msgid "Old"
#~ msgstr "Alt"

msgid "Last"
msgstr ""
"""
PO = HEADER + BODY
MULTI_LINE = '\nTwo\tlines, "quoted"\nand a \\ too\n'


def put(folder: Path, text: str | bytes, name: str = "a.po") -> Path:
    (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder / name


def segments_of(path: Path):
    return list(read_segments(path, source_language="en", target_language="de"))


def pairs_of(path: Path):
    return list(read_po(path, languages=("en", "de"), fields=("", "")))


def fill(path: Path, targets, *, out: Path | None = None, **options) -> bytes:
    out = out or path.with_name("out.po")
    write_targets(path, out, targets, source_language="en", target_language="de", **options)
    return out.read_bytes()


def test_pairs_are_those_of_gettext_and_what_is_fuzzy_or_open_has_no_target(tmp_path):
    assert pairs_of(put(tmp_path, PO)) == [
        SentencePair("Open %s", "", 11),
        SentencePair("Close", "Schließen", 16),
        SentencePair("Save", "", 20),
        SentencePair(MULTI_LINE.strip("\n"), "", 23),
        SentencePair("%d file", "%d Datei", 29),
        SentencePair("%d files", "", 30),
        SentencePair("Last", "", 39),
    ]


def test_segments_have_their_text_without_escapes_and_their_line(tmp_path):
    found = [(s.number, s.line, s.source, s.target, s.is_open) for s in segments_of(put(tmp_path, PO))]
    assert found == [
        (1, 11, "Open %s", "", True),
        (2, 16, "Close", "Schließen", False),
        (3, 20, "Save", "Sichern?", False),
        (4, 23, MULTI_LINE, "", True),
        (5, 29, "%d file", "%d Datei", False),
        (6, 30, "%d files", "", True),
        (7, 39, "Last", "", True),
    ]


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("tail", ["", "\n", "\n\n# a last word"])
def test_without_targets_every_byte_stays(tmp_path, line_end, mark, tail):
    data = (mark + PO.rstrip("\n") + tail).replace("\n", line_end).encode()
    assert fill(put(tmp_path, data), []) == data


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_only_the_filled_translations_and_their_flags_differ(tmp_path, line_end):
    path = put(tmp_path, PO.replace("\n", line_end))
    filled = fill(path, [(1, "Öffne %s"), (4, '\nA\t"\\\nb\n'), (7, "Letzte")]).decode()
    expected = (
        PO.replace('#, c-format\nmsgid "Open %s"\nmsgstr ""', '#, fuzzy, c-format\nmsgid "Open %s"\nmsgstr "Öffne %s"')
        .replace('msgid ""\n"\\n"\n"Two', '#, fuzzy\nmsgid ""\n"\\n"\n"Two')
        .replace('too\\n"\nmsgstr ""\n', 'too\\n"\nmsgstr ""\n"\\n"\n"A\\t\\"\\\\\\n"\n"b\\n"\n')
        .replace('msgid "Last"\nmsgstr ""', '#, fuzzy\nmsgid "Last"\nmsgstr "Letzte"')
    )
    assert filled == expected.replace("\n", line_end)


def test_a_previous_msgid_keeps_its_place_behind_the_flags(tmp_path):
    filled = fill(put(tmp_path, PO), [(2, "Zu")]).decode()
    assert '#, fuzzy\n#| msgid "Shut"\nmsgctxt "menu"\nmsgid "Close"\nmsgstr "Zu"\n' in filled


def test_final_translations_lose_the_flag_and_nothing_else(tmp_path):
    text = HEADER + '#, fuzzy, c-format\nmsgid "a"\nmsgstr ""\n\n#, fuzzy\nmsgid "b"\nmsgstr "x"\n'
    filled = fill(put(tmp_path, text), [(1, "A"), (2, "B")], for_review=False).decode()
    assert filled == HEADER + '#, c-format\nmsgid "a"\nmsgstr "A"\n\nmsgid "b"\nmsgstr "B"\n'


def test_a_msgstr_over_several_lines_is_replaced_as_a_whole(tmp_path):
    text = 'msgid "a"\n  msgstr "b"  "c"\n  "d"\n\n  "e"\n# next\nmsgid "f"\nmsgstr "g"'
    path = put(tmp_path, text)
    assert [segment.target for segment in segments_of(path)] == ["bcde", "g"]
    assert fill(path, [(1, "x\ny"), (2, "z")]).decode() == (
        '#, fuzzy\nmsgid "a"\n  msgstr ""\n  "x\\n"\n  "y"\n# next\n#, fuzzy\nmsgid "f"\nmsgstr "z"'
    )


def test_strings_may_all_stand_below_their_keyword(tmp_path):
    path = tmp_path / "bare.po"
    path.write_text('msgid\n"a "\n\n"dog"\nmsgstr\n  ""\n\nmsgid "b"\nmsgstr\n""', encoding="utf-8")
    assert [pair.source for pair in read_po(path, languages=("en", "de"), fields=("", ""))] == ["a dog", "b"]
    out = tmp_path / "out.po"
    write_targets(path, out, [(1, "ein\nHund"), (2, "B")], source_language="en", target_language="de", for_review=False)
    filled = 'msgid\n"a "\n\n"dog"\nmsgstr ""\n"ein\\n"\n"Hund"\n\nmsgid "b"\nmsgstr "B"'
    assert out.read_text(encoding="utf-8") == filled


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('msgid "a"\nmsgstr', "line 2: found msgstr without a string"),
        ('msgid "a"\nmsgstr\n\n# c\n"b"', "line 2: found msgstr without a string"),
        ('msgid\nmsgstr "a"', "line 1: found msgid without a string"),
    ],
)
def test_a_keyword_without_a_string_is_refused_with_its_line(tmp_path, text, found):
    (tmp_path / "bare.po").write_text(text, encoding="utf-8")
    with pytest.raises(CorpusError, match=found):
        list(read_po(tmp_path / "bare.po", languages=("en", "de"), fields=("", "")))


def test_an_entry_that_would_fill_the_memory_is_refused_with_its_line(tmp_path):
    path = tmp_path / "big.po"
    path.write_text('msgid "a"\nmsgstr "b"\n\n' + ("#" * 99_999 + "\n") * 101, encoding="utf-8")
    with pytest.raises(CorpusError, match=r"line 4: found an entry of more than 10,000,000 bytes"):
        list(read_po(path, languages=("en", "de"), fields=("", "")))


def test_a_file_without_a_last_line_end_keeps_none(tmp_path):
    text = 'msgid "a"\nmsgstr ""\n"b\\n"\n"c"'
    assert (
        fill(put(tmp_path, text), [(1, "B\nC")])
        == text.replace("b", "B").replace('"c', '"C').replace("msgid", "#, fuzzy\nmsgid").encode()
    )


def test_one_plural_form_has_the_plural_as_its_source(tmp_path):
    text = 'msgid "a file"\nmsgid_plural "%d files"\nmsgstr[0] ""\n'
    assert [segment.source for segment in segments_of(put(tmp_path, text))] == ["%d files"]
    text += 'msgstr[1] ""\nmsgstr[2] ""\n'
    assert [segment.source for segment in segments_of(put(tmp_path, text))] == ["a file", "%d files", "%d files"]


def test_like_plural_forms_are_one_pair(tmp_path):
    text = 'msgid "a"\nmsgid_plural "b"\nmsgstr[0] "A"\nmsgstr[1] "B"\nmsgstr[2] "B"\nmsgstr[3] "C"\n'
    assert [(pair.source, pair.target) for pair in pairs_of(put(tmp_path, text))] == [
        ("a", "A"),
        ("b", "B"),
        ("b", "C"),
    ]


@pytest.mark.parametrize("charset", ["ISO-8859-1", "windows-1252", "Shift_JIS", "EUC-KR", "GB18030", "KOI8-R"])
def test_the_charset_of_the_header_is_obeyed_in_both_directions(tmp_path, charset):
    word = {"Shift_JIS": "表示ソ", "EUC-KR": "파일", "GB18030": "文件", "KOI8-R": "Файл"}.get(charset, "Größe")
    header = HEADER.replace("UTF-8", charset).replace("Translators", word)
    path = put(tmp_path, f'{header}msgid "{word}"\nmsgstr ""\n'.encode(charset))
    assert segments_of(path)[0].source == word
    assert fill(path, [(1, f"{word}!")]).decode(charset) == f'{header}#, fuzzy\nmsgid "{word}"\nmsgstr "{word}!"\n'


def test_a_translation_that_the_charset_cannot_hold_is_refused_and_an_earlier_file_stays(tmp_path):
    path = put(tmp_path, HEADER.replace("UTF-8", "ISO-8859-1") + 'msgid "a"\nmsgstr ""\n')
    out = put(tmp_path, "earlier", "out.po")
    with pytest.raises(CorpusError, match=r"a\.po line 9: found U\+6587 in a translation, .* ISO-8859-1 cannot hold"):
        fill(path, [(1, "文")], out=out)
    assert out.read_text() == "earlier"
    assert sorted(place.name for place in tmp_path.iterdir()) == ["a.po", "out.po"]


def test_a_template_gets_a_charset_once_it_has_translations(tmp_path):
    path = put(tmp_path, PO.replace("UTF-8", "CHARSET"), "a.pot")
    assert fill(path, []) == path.read_bytes()
    assert b"charset=UTF-8\\n" in fill(path, [(1, "ö")])


@pytest.mark.parametrize(
    ("escape", "text"),
    [
        (r"\303\244", "ä"),
        (r"\xc3\xa4!", "ä!"),
        (r"\101\x42", "AB"),
        (r"\\n\\x41", r"\n\x41"),
        (r"\a\b\f\v\r\t\"", '\a\b\f\v\r\t"'),
        (r'\x41" "B', "AB"),
    ],
)
def test_escapes_are_those_of_c_in_the_charset_of_the_file(tmp_path, escape, text):
    path = put(tmp_path, f'msgid "{escape}"\nmsgstr ""\n')
    assert segments_of(path)[0].source == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('msgid "a"\nmsgid "b"\n', r"line 2: found msgid after msgid, wanted msgid_plural or msgstr"),
        ('msgid "a"\n\n\n', r"line 3: found the end of the file after msgid, wanted a msgstr"),
        ('msgid "a\nmsgstr ""\n', r"line 1: found '\"a', wanted a string between"),
        ('msgid "a"\nmsgstr "b" c\n', r"line 2: found 'c'"),
        ('msgid "a"\n# c\nmsgstr "b"\n', r"line 2: found a comment after msgid"),
        ('msgid "a"\nmsgstr "\\q"\n', r"line 2: found the escapes \\q"),
        ('msgid "a"\nmsgstr "\\xfff"\n', r"line 2: found the escapes \\xfff"),
        ('msgid "a"\nmsgstr "\\377"\n', r"line 2: found the escapes \\377"),
        (
            'msgid "a"\nmsgid_plural "b"\nmsgstr[0] ""\nmsgstr[2] ""\n',
            r"line 4: found msgstr\[2\] .* wanted msgstr\[1\]",
        ),
        ('msgid "a"\nmsgstr[0] ""\n', r"line 2: found msgstr\[0\] after msgid"),
        ('msgstr "a"\n', r"line 1: found msgstr, wanted msgctxt or msgid"),
        ("hello\n", r"line 1: found 'hello', wanted a comment, a keyword"),
        ('"a"\n', r"line 1: found"),
        (HEADER.replace("UTF-8", "zlib"), r"found the charset 'zlib' in the header"),
        (HEADER.replace("UTF-8", "UTF-16"), r"found the charset 'UTF-16' in the header"),
        (HEADER.replace("UTF-8", "utf-8-sig"), r"found the charset 'utf-8-sig' in the header"),
        (HEADER.replace("UTF-8", "raw_unicode_escape"), r"found the charset"),
        (PO.encode("utf-16"), r"line 1: found UTF-16"),
        (b'msgid "\xe4"\nmsgstr ""\n', r"line 1: found bytes that are not utf-8"),
        (HEADER.replace("de\\n", "fr_FR\\n"), r"line 3: found Language: fr_FR in the header, wanted de"),
    ],
)
def test_what_is_no_po_file_is_refused_with_its_line(tmp_path, text, message):
    path = put(tmp_path, text)
    with pytest.raises(CorpusError, match=message):
        segments_of(path)
    with pytest.raises(CorpusError, match=message):
        pairs_of(path)
    with pytest.raises(CorpusError, match=message):
        fill(path, [])
    assert not (tmp_path / "out.po").exists()


def test_a_region_of_the_language_will_do(tmp_path):
    assert segments_of(put(tmp_path, PO.replace("de\\n", "de_AT\\n")))


def test_an_empty_msgid_with_a_plural_is_no_header(tmp_path):
    text = 'msgid ""\nmsgid_plural "b"\nmsgstr[0] "Language: fr"\nmsgstr[1] "B"\n'
    assert [segment.source for segment in segments_of(put(tmp_path, text))] == ["", "b"]


def test_a_target_without_a_segment_is_refused(tmp_path):
    with pytest.raises(CorpusError, match="found no segment 8 to write a target to"):
        fill(put(tmp_path, PO), [(7, "a"), (8, "b")])


def test_fields_are_refused(tmp_path):
    with pytest.raises(CorpusError, match="no fields to choose"):
        list(read_po(put(tmp_path, PO), languages=("en", "de"), fields=("a", "")))


texts = st.text(st.characters(codec="utf-8"), max_size=23) | st.text('a"\\\n\t\r%n', max_size=11)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(texts, st.none() | texts), max_size=5), st.sampled_from(["\n", "\r\n"]))
def test_what_was_filled_is_what_is_read_and_filling_twice_is_filling_once(tmp_path_factory, entries, line_end):
    folder = tmp_path_factory.mktemp("po")
    text = HEADER + "\n".join(f'msgctxt "{number}"\nmsgid ""\nmsgstr ""\n' for number in range(len(entries)))
    path = put(folder, text.replace("\n", line_end))
    targets = [(number, target) for number, (_, target) in enumerate(entries, 1) if target is not None]
    once = fill(path, targets)
    out = folder / "out.po"
    assert [segment.target for segment in segments_of(out)] == [target or "" for _, target in entries]
    assert fill(out, targets, out=folder / "twice.po") == once


@pytest.mark.skipif(not shutil.which("msgfmt"), reason="gettext is not installed")
def test_gettext_finds_no_fault_in_a_filled_file(tmp_path):
    path = put(tmp_path, PO)
    fill(path, [(s.number, s.source.replace("e", "ö")) for s in segments_of(path)], for_review=False)
    subprocess.run(["msgfmt", "--check-format", "-o", "/dev/null", tmp_path / "out.po"], check=True)


@pytest.mark.skipif(not shutil.which("msgcat"), reason="gettext is not installed")
def test_gettext_and_headway_read_the_same(tmp_path):
    path = put(tmp_path, PO)
    subprocess.run(["msgcat", "--no-wrap", "-o", tmp_path / "cat.po", path], check=True)
    again = segments_of(tmp_path / "cat.po")
    assert [(s.source, s.target) for s in again] == [(s.source, s.target) for s in segments_of(path)]


def check_mutated(folder: Path, data: bytes) -> bool:
    """Whether a damaged file could be read; then nothing may be lost of it, and it can be filled."""
    path = put(folder, data)
    segments, refusal = [], ""
    try:
        segments = segments_of(path)
        pairs_of(path)
    except CorpusError as error:
        refusal = str(error)
    assert "\n" not in refusal
    if refusal:
        return False
    assert fill(path, []) == data
    fill(path, [(segment.number, segment.source) for segment in segments])
    again = segments_of(folder / "out.po")
    assert [segment.target for segment in again] == [segment.source for segment in segments]
    return True


def fuzz(folder: Path, count: int) -> None:
    words = [
        b'msgid ""\n',
        b'msgstr "x"\n',
        b"#, fuzzy\n",
        b"msgid_plural",
        b"msgstr[1]",
        b"\\x",
        b"charset=big5",
        b'"',
    ]
    read = sum(check_mutated(folder, data) for data in mutations(PO.encode(), words, count=count))
    assert count // 50 < read < count  # some of both, or the test tests nothing


def test_damaged_files_are_refused_or_kept_whole(tmp_path):
    fuzz(tmp_path, 199)


@pytest.mark.slow
def test_ten_thousand_damaged_files_are_refused_or_kept_whole(tmp_path):
    fuzz(tmp_path, 10_000)
