"""XLIFF: segments found where the standards have them, and targets written so that nothing else differs."""

import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.corpus.pair import SentencePair
from headway.corpus.xliff import read_segments, read_xliff, write_targets
from headway.corpus.xliff_content import text_of
from headway.errors import CorpusError

sys.path.insert(0, str(Path(__file__).parent))
from document_mutations import mutations

XLIFF_1 = """<?xml version="1.0" encoding="UTF-8"?>
<!-- a <source> in a comment -->
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
  <file source-language="en-US" target-language="de-DE" original="a" datatype="plaintext">
    <header><note>source</note></header>
    <body>
      <trans-unit id="1">
        <source>Save <g id="1">all</g> &amp; quit<x id="2"/></source>
        <note>no target</note>
      </trans-unit>
      <trans-unit id="2"><source>Open</source><target state='new'/></trans-unit>
      <trans-unit id="3" approved="yes"><source>Close</source>
        <target state="final">Schließen</target>
        <alt-trans><source>Shut</source><target>Zu</target></alt-trans></trans-unit>
      <trans-unit id="4" translate="no"><source>Headway</source></trans-unit>
      <group id="g" translate="no">
        <trans-unit id="5"><source>CLI</source></trans-unit>
        <trans-unit id="6" translate="yes"><source>New</source><target
          state="new" >New</target></trans-unit>
      </group>
    </body>
  </file>
</xliff>
"""
SEGMENTED = """<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2"
 xmlns:sdl="http://sdl.com/FileTypes/SdlXliff/1.0">
<file source-language="en" target-language="de" original="a" datatype="x"><body>
<trans-unit id="1"><source>One. Two. Three.</source>\
<seg-source><g id="7"><mrk mtype="seg" mid="1">One.</mrk> <mrk
 mtype="seg" mid="2">Two.</mrk></g> \
<mrk mtype="seg" mid="3">Three.</mrk></seg-source>%s<sdl:seg-defs><sdl:seg id="1"/>\
<sdl:seg id="2" locked="true"/></sdl:seg-defs></trans-unit>
</body></file></xliff>
"""
XLIFF_2 = """<xliff version="2.1" xmlns="urn:oasis:names:tc:xliff:document:2.0" \
xmlns:mtc="urn:oasis:names:tc:xliff:matches:2.0"
  srcLang="en" trgLang="de">
 <file id="f">
  <unit id="1">
   <mtc:matches><mtc:match ref="#1"><source>Old</source><target>Alt</target></mtc:match></mtc:matches>
   <originalData><data id="d">&lt;b></data></originalData>
   <segment id="1">
    <source>Press <pc id="1" dataRefStart="d">OK</pc><ph id="2"/></source>
   </segment>
   <ignorable><source> </source></ignorable>
   <segment state="initial" subState="x:y"><source>Now</source><target></target></segment>
   <segment state="reviewed"><source>Yes</source><target>Ja</target></segment>
  </unit>
  <group id="g" translate="no"><unit id="2"><segment><source>Kept</source></segment></unit>
  <unit id="3" translate="yes"><segment><source>Copy</source><target>Copy</target></segment></unit></group>
 </file>
</xliff>
"""


def put(folder: Path, text: str | bytes, name: str = "a.xlf") -> Path:
    (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder / name


def segments_of(path: Path, languages=("en", "de")):
    return list(read_segments(path, source_language=languages[0], target_language=languages[1]))


def pairs_of(path: Path, languages=("en", "de")):
    return list(read_xliff(path, languages=languages, fields=("", "")))


def fill(path: Path, targets, *, out: Path | None = None, target_language="de", **options) -> bytes:
    out = out or path.with_name("out.xlf")
    write_targets(path, out, targets, source_language="en", target_language=target_language, **options)
    return out.read_bytes()


def summary(path: Path):
    return [(s.number, s.line, s.source, s.target, s.is_open, s.translate) for s in segments_of(path)]


def test_segments_of_xliff_1_are_its_units(tmp_path):
    assert summary(put(tmp_path, XLIFF_1)) == [
        (1, 8, 'Save <g id="1">all</g> &amp; quit<x id="2"/>', None, True, True),
        (2, 11, "Open", "", True, True),
        (3, 12, "Close", "Schließen", False, True),
        (4, 15, "Headway", None, True, False),
        (5, 17, "CLI", None, True, False),
        (6, 18, "New", "New", True, True),
    ]


def test_segments_of_xliff_2_are_its_segments(tmp_path):
    assert summary(put(tmp_path, XLIFF_2)) == [
        (1, 8, 'Press <pc id="1" dataRefStart="d">OK</pc><ph id="2"/>', None, True, True),
        (2, 11, "Now", "", True, True),
        (3, 12, "Yes", "Ja", False, True),
        (4, 14, "Kept", None, True, False),
        (5, 15, "Copy", "Copy", True, True),
    ]


def test_segments_of_a_segmented_unit_are_its_marks_and_a_locked_one_stays(tmp_path):
    assert summary(put(tmp_path, SEGMENTED % "")) == [
        (1, 4, "One.", None, True, True),
        (2, 4, "Two.", None, True, False),
        (3, 5, "Three.", None, True, True),
    ]


@pytest.mark.parametrize(
    "lock", ['xmlns:mq="MQXliff" mq:locked="locked"', 'xmlns:m="http://www.memsource.com/mxlf/2.0" m:locked="true"']
)
def test_units_that_memoq_and_phrase_have_locked_stay(tmp_path, lock):
    units = f'<trans-unit {lock} id="1"><source>A</source></trans-unit>'
    units += f'<trans-unit {lock.replace("true", "false").replace("=" + chr(34) + "locked", "=" + chr(34))} id="2">'
    units += "<source>B</source></trans-unit>"
    path = put(tmp_path, f'<xliff version="1.2"><file><body>{units}</body></file></xliff>')
    assert [segment.translate for segment in segments_of(path)] == [False, True]


@pytest.mark.parametrize(("for_review", "approved"), [(True, "no"), (False, "yes")])
def test_a_unit_is_no_longer_approved_when_its_target_needs_review(tmp_path, for_review, approved):
    unit = '<trans-unit approved="{}" id="1"><source>A</source><target{}>{}</target></trans-unit>'
    whole = '<xliff version="1.2"><file><body>{}</body></file></xliff>'
    path, out = put(tmp_path, whole.format(unit.format("yes", "", "B"))), tmp_path / "out.xlf"
    write_targets(path, out, [(1, "C")], source_language="en", target_language="de", for_review=for_review)
    state = "needs-review-translation" if for_review else "translated"
    assert out.read_text(encoding="utf-8") == whole.format(unit.format(approved, f' state="{state}"', "C"))


def test_tags_are_kept_on_request_and_have_their_partners_numbers(tmp_path):
    unit = (
        '<trans-unit id="1"><source><g id="7">a</g> <x id="8"/> <bpt id="9">&lt;i></bpt>b<ept id="9">&lt;/i></ept> '
        '<bx id="4"/>c<ex rid="4" id="5"/> <it id="6" pos="open">q</it> &lt;</source>'
        '<target><bx id="4"/>C<ex rid="4" id="5"/> <bpt id="9">&lt;i></bpt>B<ept id="9">&lt;/i></ept> <x id="8"/> '
        '<g id="7">A</g></target></trans-unit>'
    )
    path = put(tmp_path, f'<xliff version="1.2"><file><body>{unit}</body></file></xliff>')
    kept = read_xliff(path, languages=("en", "de"), fields=("", ""), inline_tags="keep")
    assert list(kept) == [
        SentencePair(
            '<g id="1">a</g> <x id="2"/> <g id="3">b</g> <g id="4">c</g> <x id="5"/> <',
            '<g id="4">C</g> <g id="3">B</g> <x id="2"/> <g id="1">A</g>',
            1,
        )
    ]


@pytest.mark.parametrize("target", ["<target>Eins.</target>", '<target><mrk mtype="seg" mid="9">Eins.</mrk></target>'])
def test_a_target_segmented_in_another_way_is_taken_as_a_whole(tmp_path, target):
    (segment,) = segments_of(put(tmp_path, SEGMENTED % target))
    assert (segment.source, segment.is_open) == ("One. Two. Three.", False)
    assert segment.target == target[len("<target>") : -len("</target>")]


def test_pairs_leave_inline_elements_out_and_an_open_segment_has_no_target(tmp_path):
    assert pairs_of(put(tmp_path, XLIFF_1)) == [
        SentencePair("Save all & quit", "", 8),
        SentencePair("Open", "", 11),
        SentencePair("Close", "Schließen", 12),
        SentencePair("Headway", "", 15),
        SentencePair("CLI", "", 17),
        SentencePair("New", "New", 18),
    ]


def test_a_file_the_other_way_round_gives_pairs_with_exchanged_sides(tmp_path):
    assert pairs_of(put(tmp_path, XLIFF_2), ("de", "en"))[2] == SentencePair("Ja", "Yes", 12)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("a &lt;b&gt; &#228;&#xe4; &quot;&apos;", "a <b> ää \"'"),
        ('<bpt id="1">&lt;b></bpt>bold<ept id="1">&lt;/b></ept><ph id="2">x<sub>in</sub></ph>!', "bold!"),
        ('<x:mrk mtype="term">a<x:it pos="open"/>b</x:mrk><!-- <c> --><?p i?>', "ab"),
        ("<![CDATA[1 < 2 & 3 &amp;]]> x", "1 < 2 & 3 &amp; x"),
        ('<pc id="a>b" x=\'"\'>c</pc><cp hex="0001"/>', "c"),
        ("\n      two\r\n      lines\n    ", "two lines"),
        ('see <x id="1"/> there, <g id="2"> now </g> or <ph id="3">%s</ph>', "see there, now or"),
    ],
)
def test_text_of_content_is_what_a_reader_sees(content, text):
    assert text_of(content) == text


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "iso-8859-1"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("text", [XLIFF_1, XLIFF_2, SEGMENTED % "<target/>"])
def test_without_targets_every_byte_stays_in_every_encoding(tmp_path, encoding, line_end, text):
    if encoding == "iso-8859-1":
        text = (
            text.replace("UTF-8", encoding) if "UTF-8" in text else f'<?xml version="1.0" encoding="{encoding}"?>{text}'
        )
    data = text.replace(' encoding="UTF-8"', "").replace("\n", line_end).encode(encoding)
    path = put(tmp_path, data)
    assert fill(path, []) == data
    targets = [(segment.number, "→ öä") for segment in segments_of(path)]
    fill(path, targets)
    wanted = "&#8594; öä" if encoding == "iso-8859-1" else "→ öä"
    assert {segment.target for segment in segments_of(tmp_path / "out.xlf")} == {wanted}
    assert all(pair.target == "→ öä" for pair in pairs_of(tmp_path / "out.xlf"))


def test_xliff_1_differs_in_its_targets_and_their_states_only(tmp_path):
    filled = fill(put(tmp_path, XLIFF_1), [(1, 'Alles <g id="1">sichern</g><x id="2"/>'), (2, "Öffnen"), (6, "Neu")])
    expected = (
        XLIFF_1.replace(
            '<x id="2"/></source>\n',
            '<x id="2"/></source>\n        <target state="needs-review-translation">Alles <g id="1">sichern</g>'
            '<x id="2"/></target>\n',
        )
        .replace("<target state='new'/>", '<target state="needs-review-translation">Öffnen</target>')
        .replace('state="new" >New', 'state="needs-review-translation" >Neu')
    )
    assert filled.decode() == expected


def test_final_targets_have_the_state_of_what_is_translated(tmp_path):
    assert (
        '<target state="translated">Öffnen</target>'
        in fill(put(tmp_path, XLIFF_1), [(2, "Öffnen")], for_review=False).decode()
    )


def test_xliff_2_differs_in_its_targets_and_the_states_of_their_segments_only(tmp_path):
    filled = fill(put(tmp_path, XLIFF_2), [(1, "A"), (2, "Jetzt"), (5, "Kopie")])
    expected = (
        XLIFF_2.replace('<segment id="1">', '<segment id="1" state="translated">')
        .replace('<ph id="2"/></source>\n', '<ph id="2"/></source>\n    <target>A</target>\n')
        .replace('<segment state="initial" subState="x:y">', '<segment state="translated">')
        .replace("<target></target>", "<target>Jetzt</target>")
        .replace(
            "<segment><source>Copy</source><target>Copy",
            '<segment state="translated"><source>Copy</source><target>Kopie',
        )
    )
    assert filled.decode() == expected


def test_xliff_2_gets_the_target_language_that_targets_need(tmp_path):
    path = put(tmp_path, XLIFF_2.replace(' trgLang="de"', ""))
    assert fill(path, []) == path.read_bytes()
    assert 'srcLang="en" trgLang="de-AT">' in fill(path, [(1, "A")], target_language="de-AT").decode()


def test_marks_are_filled_inside_a_copy_of_the_segmented_source(tmp_path):
    path = put(tmp_path, SEGMENTED % "")
    marks = SEGMENTED[SEGMENTED.index("<seg-source>") + len("<seg-source>") : SEGMENTED.index("</seg-source>")]
    expected = marks.replace(">One.<", ">Eins.<").replace(">Two.<", "><").replace(">Three.<", ">Drei.<")
    target = f'<target state="needs-review-translation">{expected}</target>'
    assert fill(path, [(1, "Eins."), (3, "Drei.")]).decode() == SEGMENTED % target


def test_a_blank_mark_of_the_source_is_copied_into_a_target_that_is_built(tmp_path):
    text = SEGMENTED.replace(">Two.<", ">  <")
    fill(put(tmp_path, text % ""), [(1, "Eins.")])
    assert [s.target for s in segments_of(tmp_path / "out.xlf")] == ["Eins.", "  ", ""]


def test_empty_marks_of_a_target_are_filled_and_the_others_stay(tmp_path):
    target = (
        '<target><mrk mtype="seg" mid="1" /><mrk mtype="seg" mid="2">Zwei.</mrk> - '
        '<mrk mtype="seg" mid="3"></mrk></target>'
    )
    path = put(tmp_path, SEGMENTED % target)
    assert [s.target for s in segments_of(path)] == ["", "Zwei.", ""]
    expected = target.replace('mid="1" />', 'mid="1">Eins.</mrk>').replace("></mrk></target>", ">Drei.</mrk></target>")
    expected = expected.replace("<target>", '<target state="needs-review-translation">')
    assert fill(path, [(1, "Eins."), (3, "Drei.")]).decode() == SEGMENTED % expected


def test_a_target_that_lacks_marks_is_built_anew_with_those_it_has(tmp_path):
    path = put(tmp_path, SEGMENTED % '<target><mrk mtype="seg" mid="3">Drei.</mrk></target>')
    fill(path, [(1, "Eins.")])
    assert [s.target for s in segments_of(tmp_path / "out.xlf")] == ["Eins.", "", "Drei."]


def test_prefixes_and_white_space_of_the_source_are_taken_over(tmp_path):
    text = (
        '<l:xliff version="1.2" xmlns:l="urn:oasis:names:tc:xliff:document:1.2"><l:file source-language="en"><l:body>\n'
        '\t<l:trans-unit id="1">\n\t\t<l:source xml:space="preserve">a\n  b</l:source>\n\t</l:trans-unit>'
        "</l:body></l:file></l:xliff>"
    )
    path = put(tmp_path, text)
    assert segments_of(path)[0].source == "a\n  b"
    assert fill(path, [(1, "c")]).decode() == text.replace(
        "</l:source>",
        '</l:source>\n\t\t<l:target xml:space="preserve" state="needs-review-translation">c</l:target>',
    )


def test_layout_of_a_source_is_one_space(tmp_path):
    path = put(tmp_path, XLIFF_1.replace("<source>Open", "<source>Open\n   the\r\n\t\tdoor\nnow"))
    assert segments_of(path)[1].source == "Open the door\nnow"
    path = put(tmp_path, XLIFF_1.replace("Open", "\n    Open<ph id='1'>a\n  b</ph> \n  <x\n  id='2'/>it\n  "))
    assert segments_of(path)[1].source == "Open<ph id='1'>a\n  b</ph> <x\n  id='2'/>it"


def test_a_long_run_of_spaces_is_read_in_linear_time(tmp_path):
    spaces = " " * 1_000_003  # a search that began at each of them would take hours
    path = put(tmp_path, XLIFF_1.replace("Open", f"Open{spaces}it\n it"))
    assert segments_of(path)[1].source == f"Open{spaces}it it"
    assert pairs_of(path)[1].source == f"Open{spaces}it it"


def test_without_a_namespace_xliff_is_read_by_its_version(tmp_path):
    text = (
        '<xliff version="1.0"><file source-language="en"><body><trans-unit id="1"><source>a</source></trans-unit>'
        "</body></file></xliff>"
    )
    assert [s.source for s in segments_of(put(tmp_path, text))] == ["a"]


def test_units_outside_of_the_body_are_not_looked_at(tmp_path):
    text = XLIFF_1.replace("<note>source</note>", "<skl><trans-unit id='0'><source>q</source></trans-unit></skl>")
    assert segments_of(put(tmp_path, text))[0].source.startswith("Save")


def test_elements_of_other_namespaces_are_not_looked_at(tmp_path):
    text = XLIFF_1.replace(
        "<note>no target</note>", '<y:target xmlns:y="urn:y">q</y:target><y:source xmlns:y="urn:y"/>'
    )
    assert segments_of(put(tmp_path, text))[0].target is None


def nested(depth: int) -> str:
    return XLIFF_1.replace("Open", "<g id='1'>" * depth + "</g>" * depth)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<tmx/>", r"line 1: found <tmx> as the outermost element, wanted <xliff>"),
        ('<xliff version="3.0"/>', r"line 1: found XLIFF of the version '3.0', wanted 1\.0 to 1\.2, or 2\.0 to 2\.2"),
        ("<xliff/>", r"found XLIFF of the version ''"),
        ("", r"a\.xlf is empty"),
        (XLIFF_1[:-40], r"line \d+: found the end of the file"),
        (XLIFF_1.replace("</source><target state", "</sourse><target state"), r"line 11: found mismatched tag"),
        (XLIFF_1.replace("Open", "Open &auml;"), r"line 11: found "),
        (XLIFF_1.encode().replace(b"Open", b"Open \xe4"), r"line 11: found byte 0xe4"),
        (XLIFF_1.replace("<target state='new'/>", "<target/><target/>"), r"line 11: found a second <target>"),
        (XLIFF_1.replace("<source>Open</source>", ""), r"line 11: found a <trans-unit> without a <source>"),
        (XLIFF_1.replace("de-DE", "fr"), r'line 4: found target-language="fr", wanted de'),
        (XLIFF_2.replace('srcLang="en"', 'srcLang="de"'), r'line \d: found srcLang="de", wanted en'),
        ('<!DOCTYPE a [<!ENTITY b "c">]>' + XLIFF_2, r"line 1: found the declaration of an entity"),
        (nested(300), r"nested more than"),
    ],
)
def test_what_is_no_sound_xliff_is_refused_with_its_line(tmp_path, text, message):
    path = put(tmp_path, text)
    out = put(tmp_path, "earlier", "out.xlf")
    with pytest.raises(CorpusError, match=message):
        segments_of(path)
    with pytest.raises(CorpusError, match=message):
        fill(path, [(1, "a")], out=out)
    assert out.read_text() == "earlier"
    assert sorted(place.name for place in tmp_path.iterdir()) == ["a.xlf", "out.xlf"]


@pytest.mark.parametrize("target", ["a < b", "a & b", "</t><t>", "<g>", "\x01", "&auml;", "\ud800"])
def test_a_target_that_would_break_the_file_is_refused(tmp_path, target):
    with pytest.raises(CorpusError, match=r"line 11: found a target that is no XML"):
        fill(put(tmp_path, XLIFF_1), [(2, target)])


def test_a_target_without_a_segment_is_refused(tmp_path):
    with pytest.raises(CorpusError, match="found no segment 7 to write a target to"):
        fill(put(tmp_path, XLIFF_1), [(7, "b")])


def test_fields_are_refused(tmp_path):
    with pytest.raises(CorpusError, match="no fields to choose"):
        list(read_xliff(put(tmp_path, XLIFF_1), languages=("en", "de"), fields=("a", "")))


def test_a_file_larger_than_a_chunk_is_copied_byte_for_byte(tmp_path):
    unit = '<trans-unit id="1">\n<source>Ä ' + "x" * 1009 + "</source></trans-unit>\n"
    text = XLIFF_1.replace("<note>source</note>", "<note>" + "y" * 400_009 + "</note>")
    data = text.replace("      <group", unit * 997 + "      <group").encode("utf-16")
    path = put(tmp_path, data.replace("UTF-8".encode("utf-16-le"), "UTF-16".encode("utf-16-le")))
    assert fill(path, []) == path.read_bytes()
    targets = [(segment.number, f"T{segment.number}") for segment in segments_of(path)]
    fill(path, targets)
    assert [(s.number, s.target) for s in segments_of(tmp_path / "out.xlf")] == targets
    assert len(targets) == 6 + 997


contents = st.lists(
    st.sampled_from(
        [
            '<g id="1">',
            "</g>",
            "<x id='2'/>",
            "&amp;",
            "&#x20;",
            "<!-- - -->",
            "<![CDATA[<]]>",
            "ä",
            " ",
            "\n",
            "\U0001f600",
        ]
    ),
    max_size=11,
).map("".join)


def is_content(text: str) -> bool:
    try:
        ET.fromstring(f"<t>{text}</t>")
    except ET.ParseError:
        return False
    return True


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from([XLIFF_1, XLIFF_2, SEGMENTED % "", SEGMENTED % "<target> </target>"]),
    st.lists(st.none() | contents.filter(is_content), min_size=6, max_size=6),
)
def test_what_was_filled_is_what_is_read_and_filling_twice_is_filling_once(tmp_path_factory, text, chosen):
    folder = tmp_path_factory.mktemp("xliff")
    path = put(folder, text)
    before = segments_of(path)
    targets = [(s.number, new) for s, new in zip(before, chosen, strict=False) if new is not None]
    once = fill(path, targets)
    ET.fromstring(once)
    after = segments_of(folder / "out.xlf")
    wanted = {**{s.number: s.target or "" for s in before}, **dict(targets)}
    assert {s.number: s.target or "" for s in after} == wanted
    assert [(s.source, s.translate) for s in after] == [(s.source, s.translate) for s in before]
    assert fill(folder / "out.xlf", targets, out=folder / "twice.xlf") == once


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
    again = segments_of(folder / "out.xlf")
    assert [segment.target or "" for segment in again] == [segment.source for segment in segments]
    return True


def fuzz(folder: Path, count: int) -> None:
    words = [
        b"<target>", b"</target>", b"<target/>", b'<mrk mtype="seg" mid="1">', b"</mrk>", b"<source>a</source>",
        b"<![CDATA[", b"]]>", b"<!--", b"-->", b"&#0;", b"&a;", b'xml:space="preserve"', b' translate="no"',
        b"<!DOCTYPE a [",
    ]  # fmt: skip
    texts = (XLIFF_1, XLIFF_2, SEGMENTED % "", SEGMENTED % "<target>a</target>", XLIFF_1.encode("utf-16"))
    read = 0
    for number, text in enumerate(texts):
        data = text if isinstance(text, bytes) else text.encode()
        read += sum(check_mutated(folder, bad) for bad in mutations(data, words, count=count // 5, seed=number))
    assert count // 50 < read < count  # some of both, or the test tests nothing


def test_damaged_files_are_refused_or_kept_whole(tmp_path):
    fuzz(tmp_path, 200)


@pytest.mark.slow
def test_ten_thousand_damaged_files_are_refused_or_kept_whole(tmp_path):
    fuzz(tmp_path, 10_000)
