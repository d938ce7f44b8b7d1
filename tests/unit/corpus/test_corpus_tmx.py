"""TMX: pairs equal those of a tree, documents are filled in place, and no damage ends in anything but one error."""

import io
import re
import sys
import tracemalloc
import xml.etree.ElementTree as ET
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.corpus import xml_stream
from headway.corpus.document import document_format, is_document
from headway.corpus.pair import SentencePair
from headway.corpus.read import read
from headway.corpus.tmx import read_segments, read_tmx, write_targets
from headway.errors import CorpusError

HEAD = (
    '<?xml version="1.0"{}?>\n<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n<tmx version="1.4">\n<header srclang="{}"/>\n<body>\n'
)
TAIL = "</body>\n</tmx>\n"
BOTH = {"source_language": "en", "target_language": "de"}


def tuv(language, content, *, attribute="xml:lang"):
    return f'<tuv {attribute}="{language}"><seg>{content}</seg></tuv>'


def unit(*variants):
    return f"<tu>{''.join(variants)}</tu>\n"


def document(*units, encoding="", srclang="en"):
    return HEAD.format(f' encoding="{encoding}"' if encoding else "", srclang) + "".join(units) + TAIL


@pytest.fixture
def file(tmp_path):
    def write(content, name="memory.tmx"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def pairs_of(path, source="en", target="de", **settings):
    pairs = read_tmx(path, languages=(source, target), fields=("", ""), **settings)
    return [(pair.source, pair.target) for pair in pairs]


def refused(path, source="en", target="de", **settings):
    with pytest.raises(CorpusError) as caught:
        pairs_of(path, source, target, **settings)
    message = str(caught.value)
    assert "\n" not in message
    assert "Remedy: " in message
    return message


# Pairs


def test_each_unit_is_a_pair_with_its_line(file):
    path = file(document(unit(tuv("en", "one"), tuv("de", "eins")), "\n", unit(tuv("de", "zwei"), tuv("en", "two"))))
    assert list(read(path, **BOTH)) == [SentencePair("one", "eins", 6), SentencePair("two", "zwei", 8)]


@pytest.mark.parametrize(("source", "target"), [("en", "de"), ("EN", "DE"), ("en-US", "de_DE"), ("eng", "ger")])
@pytest.mark.parametrize("codes", [("en", "de"), ("EN-us", "de_de"), ("en-US", "DE-DE"), ("ENG", "deu")])
@pytest.mark.parametrize("attribute", ["xml:lang", "lang"])
def test_language_codes_are_taken_in_any_spelling_and_either_attribute(file, source, target, codes, attribute):
    variants = [tuv(code, text, attribute=attribute) for code, text in zip(codes, ("one", "eins"), strict=True)]
    assert pairs_of(file(document(unit(*variants))), source, target) == [("one", "eins")]


def test_of_many_languages_the_two_wanted_are_taken_and_of_several_texts_the_first_of_the_nearest(file):
    path = file(
        document(
            unit(tuv("fr", "un"), tuv("en-AU", "1"), tuv("en", "one"), tuv("en", "uno"), tuv("de-AT", "ans")),
            unit(tuv("de-AT", "zwo"), tuv("de-DE", "zwei"), tuv("en-US", "two"), tuv("en-GB", "too")),
        )
    )
    assert pairs_of(path) == [("one", "ans"), ("two", "zwo")]
    assert pairs_of(path, "en-GB", "de-DE") == [("one", "ans"), ("too", "zwei")]
    assert pairs_of(path, "fr", "en") == [("un", "one"), ("", "two")]


def test_two_regions_of_one_language_are_two_texts(file):
    american, british, general = tuv("en-US", "color"), tuv("en-GB", "colour"), tuv("en", "hue")
    path = file(document(*(unit(*texts) for texts in ([american, british], [general, british], [american, general]))))
    assert pairs_of(path, "en-US", "en-GB") == [("color", "colour"), ("hue", "colour"), ("color", "hue")]
    assert pairs_of(path, "en-GB", "en-US") == [("colour", "color"), ("colour", "hue"), ("hue", "color")]
    # One text is nearest for both sides: the other side takes the next, and without one the text is the source.
    path = file(document(unit(general), unit(general, american), unit(tuv("en-GB", "colour"), tuv("en-IE", "hue"))))
    assert pairs_of(path, "en-GB", "en-AU") == [("hue", ""), ("hue", "color"), ("colour", "hue")]
    assert pairs_of(path, "en-AU", "en-GB") == [("hue", ""), ("hue", "color"), ("hue", "colour")]


def test_a_unit_without_one_of_the_languages_is_a_pair_with_an_empty_side(file):
    path = file(
        document(
            unit(tuv("en", "one")),
            unit(tuv("de", "zwei")),
            unit(tuv("fr", "trois")),
            unit(tuv("en", "four"), '<tuv xml:lang="de"/>'),
            unit(tuv("en", "five"), '<tuv xml:lang="de"><seg/></tuv>'),
            unit(tuv("en", "six"), "<tuv><seg>sechs</seg></tuv>"),
            unit(tuv("en", "seven"), tuv("de", "sieben")),
        )
    )
    expected = [("one", ""), ("", "zwei"), ("", ""), ("four", ""), ("five", ""), ("six", ""), ("seven", "sieben")]
    assert pairs_of(path) == expected


def test_a_file_without_one_unit_of_both_languages_is_refused_with_those_that_it_has(file):
    path = file(document(*[unit(tuv("en-US", "a"), tuv("fr", "b"))] * 3, unit(tuv("de", "c"), "<tuv><seg/></tuv>")))
    message = refused(path)
    assert (
        "found en-US in 3 texts, fr in 3 texts, de in 1 texts, no language in 1 texts; wanted a unit with both (en, de)"
        in message
    )
    assert "found no units" in refused(file(document()))


@pytest.mark.parametrize(
    ("languages", "message"),
    [
        (("", "de"), "found no source language"),
        (("en", ""), "found no target language"),
        (("en", "EN"), "found en as source and as target language"),
        (("english", "de"), r"Did you mean en\?"),
    ],
)
def test_languages_are_needed_and_must_be_two_codes(file, languages, message):
    assert re.search(message, refused(file(document(unit(tuv("en", "a"), tuv("de", "b")))), *languages))


def test_fields_are_refused(file):
    with pytest.raises(CorpusError, match="found source_field or target_field"):
        list(read(file(document()), **BOTH, source_field="en"))


def test_layout_becomes_one_space_and_other_white_space_stays(file):
    path = file(document(unit(tuv("en", "\n  one \n\t two  three\r\n"), tuv("de", " eins&#13;&#10;zwei  drei "))))
    assert pairs_of(path) == [("one two  three", "eins zwei  drei")]
    path = file(document(unit(tuv("en", " a  b "), tuv("de", "\u2028a\u0085b\u00a0"))))
    assert pairs_of(path) == [(" a  b ", "\u2028a\u0085b\u00a0")]


CODES = (
    'Click <bpt i="1" x="1">&lt;b></bpt>here<ept i="1">&lt;/b></ept> or <hi type="x">there</hi>, '
    '<ph x="2">{<sub>a note</sub>}</ph> <it pos="begin" x="3">[</it>or<ut x="4">!</ut>.'
)
CODES_DE = '<ph x="2">{}</ph>Klicken <bpt i="3" x="1">&lt;b></bpt>hier<ept i="3">&lt;/b></ept> <hi>dort</hi>.'


def test_codes_are_left_out_and_the_text_that_hi_marks_stays(file):
    path = file(document(unit(tuv("en", CODES), tuv("de", CODES_DE))))
    assert pairs_of(path) == [("Click here or there, or.", "Klicken hier dort.")]


def test_inline_tags_are_kept_in_one_form_with_the_numbers_of_the_source(file):
    path = file(document(unit(tuv("en", CODES), tuv("de", CODES_DE))))
    source = (
        'Click <g id="1">here</g> or <g id="2">there</g>, <x id="3"/> <x id="4"/>or<x id="5"/>.',
        '<x id="3"/>Klicken <g id="1">hier</g> <g id="2">dort</g>.',
    )
    assert pairs_of(path, inline_tags="keep") == [source]
    assert [(pair.source, pair.target) for pair in read(path, **BOTH, inline_tags="keep")] == [source]


def test_cdata_comments_and_character_references_are_read_as_xml_has_them(file):
    path = file(document(unit(tuv("en", "<![CDATA[a < b]]><!-- c --> &amp; &#233;"), tuv("de", "x<?pi?>y"))))
    assert pairs_of(path) == [("a < b & é", "xy")]


@pytest.mark.parametrize("codec", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "windows-1252"])
@pytest.mark.parametrize("chunk", [1, 7, 1 << 17])
def test_every_encoding_gives_the_same_pairs(file, monkeypatch, codec, chunk):
    monkeypatch.setattr(xml_stream, "CHUNK", chunk)
    declared = {"windows-1252": "windows-1252", "utf-16": "UTF-16"}.get(codec, "")
    path = file(document(unit(tuv("en", "café €"), tuv("de", "schön")), encoding=declared).encode(codec))
    assert pairs_of(path) == [("café €", "schön")]


def test_standard_input_is_read_when_the_format_is_named(monkeypatch):
    content = document(unit(tuv("en", "one"), tuv("de", "eins"))).encode("utf-16")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert list(read("-", **BOTH, format="tmx")) == [SentencePair("one", "eins", 6)]


WRONG = {
    "another format": ("<html><body/></html>", "line 1: found <html>, wanted <tmx>"),
    "a unit in a unit": (document("<tu>", unit(), "</tu>"), "line 6: found <tu> in a tu"),
    "a text outside of a unit": (document(tuv("en", "a")), "line 6: found <tuv> outside of a unit"),
    "a text in a text": (document(unit('<tuv xml:lang="en">', tuv("en", "a"), "</tuv>")), "found <tuv> in a tuv"),
    "a segment outside": (document("<seg>a</seg>"), "found <seg> outside of a unit"),
    "a segment in a unit": (document(unit("<seg>a</seg>")), "found <seg> in a tu"),
    "a segment in a segment": (document(unit(tuv("fr", "<seg>a</seg>"))), "found <seg> in a seg"),
    "two segments": (document(unit("<tuv><seg>a</seg><seg>b</seg></tuv>")), "found a second <seg> in a tuv"),
    "a text in a segment": (document(unit(tuv("en", tuv("de", "a")))), "found <tuv> in a seg"),
    "cut short": (document(unit(tuv("en", "a"), tuv("de", "b")))[:-20], "found the end of the file"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_does_not_belong_there_is_told_with_its_line(file, case):
    content, message = WRONG[case]
    assert message in refused(file(content))


def test_memory_holds_a_unit_and_not_the_file(file):
    path = file(document(*[unit(tuv("en", "one and two " * 23), tuv("de", "eins und zwei " * 23))] * 7_013))
    tracemalloc.start()
    count = sum(1 for _ in read(path, **BOTH))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 7_013
    assert peak < 2_500_000 < path.stat().st_size


def test_a_unit_of_any_size_is_refused_before_it_fills_the_memory(file, monkeypatch):
    monkeypatch.setattr(xml_stream, "MAX_UNIT", 1_000_003)
    huge = document(unit(tuv("en", "a"), tuv("de", "b")), unit(tuv("en", "x" * 2_000_003), tuv("de", "b")))
    assert "line 7: found a unit of more than 1,000,003 bytes" in refused(file(huge))
    many = document(unit(tuv("en", "a"), tuv("de", "b")), "<tu>", "<tuv xml:lang='en'/>" * 300_007, "</tu>")
    assert "line 7: found a unit of more than 1,000,003 bytes" in refused(file(many))


def test_what_stands_between_and_behind_units_may_be_of_any_size(file, monkeypatch):
    monkeypatch.setattr(xml_stream, "MAX_UNIT", 200_003)
    path = file(document(unit(tuv("en", "a"), tuv("de", "b")), "<!-- a remark -->\n" * 50_021))
    assert pairs_of(path) == [("a", "b")]
    assert [segment.source for segment in read_segments(path, **BOTH)] == ["a"]


def test_a_million_languages_are_not_remembered(file):
    units = "".join(unit(tuv(f"x-{number}", "a")) for number in range(3001))
    message = refused(file(document(units)))
    assert len(message) < 1500
    assert "and 988 more" in message


# Laws, with a tree as the oracle

words = st.text(st.sampled_from("ab é&<>\"'\n"), max_size=9)
escaped = words.map(lambda text: text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"))
inline = st.sampled_from(["<ph x='1'>c</ph>", "<hi>t</hi>", "<bpt i='1'>c</bpt>u<ept i='1'>c</ept>", "<it pos='end'/>"])
contents = st.lists(escaped | inline, max_size=4).map("".join)
languages = st.sampled_from(["en", "de", "fr", "EN-us", "de_AT", ""])


def variant(language, content, shape):
    return {
        "seg": f'<tuv xml:lang="{language}"><note>n</note><seg>{content}</seg></tuv>',
        "old": f'<tuv lang="{language}">\n  <seg >{content}</seg ></tuv>',
        "empty seg": f'<tuv xml:lang="{language}"><seg /></tuv>',
        "no seg": f'<tuv xml:lang="{language}"><prop type="x">p</prop></tuv>',
        "nothing": f'<tuv xml:lang="{language}" />',
    }[shape]


shapes = st.sampled_from(["seg", "seg", "old", "empty seg", "no seg", "nothing"])
variants = st.builds(variant, languages, contents, shapes)
whole_variants = st.builds(variant, languages, contents, st.sampled_from(["seg", "old"]))
units = st.lists(variants, max_size=4).map(lambda texts: "<tu>\n  " + "\n  ".join(texts) + "\n</tu>\n")
documents = st.lists(units, max_size=5).map(lambda listed: document(*listed, unit(tuv("en", "z"), tuv("de", "Z"))))
BY_DISTANCE = {"en": ["en", "EN-us"], "de": ["de", "de_AT"]}
XML_LANG = "{http://www.w3.org/XML/1998/namespace}lang"


def nearest(tree, language):
    """The seg of the unit in the tree that serves a language, or None."""
    for code in BY_DISTANCE[language]:
        for text in tree.iter("tuv"):
            if text.get(XML_LANG, text.get("lang", "")) == code and text.find("seg") is not None:
                return text.find("seg")
    return None


def text_without_codes(element):
    if element is None:
        return ""
    copy = ET.fromstring(ET.tostring(element, encoding="unicode"))
    pieces = [copy.text or ""]
    for child in copy:
        pieces += ["".join(child.itertext())] if child.tag == "hi" else []
        pieces.append(child.tail or "")
    return "".join(pieces)


def squeezed(text):
    return "".join(text.split())


@given(documents, st.sampled_from([1, 3, 64, 1 << 17]))
@settings(deadline=None)
def test_pairs_are_those_of_a_tree(tmp_path_factory, content, chunk):
    path = tmp_path_factory.getbasetemp() / "tree.tmx"
    path.write_text(content, encoding="utf-8", newline="")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(xml_stream, "CHUNK", chunk)
        pairs = pairs_of(path)
        tagged = pairs_of(path, inline_tags="keep")
    tree = list(ET.fromstring(re.sub("<!DOCTYPE[^>]*>", "", content)).iter("tu"))
    expected = [tuple(text_without_codes(nearest(tu, language)) for language in ("en", "de")) for tu in tree]
    # White space apart: it has tests of its own.
    assert [tuple(map(squeezed, pair)) for pair in pairs] == [tuple(map(squeezed, pair)) for pair in expected]
    marks = re.compile(r'<g id="\d+">|</g>|<x id="\d+"/>')
    assert [tuple(squeezed(marks.sub("", side)) for side in pair) for pair in tagged] == [
        tuple(map(squeezed, pair)) for pair in expected
    ]


# Documents


def filled(path, out, targets, **languages):
    write_targets(path, out, targets, **(BOTH | languages))
    return out.read_bytes()


def test_the_suffix_tells_a_document():
    assert is_document("memory.TMX")
    assert document_format("memory.tmx").read_segments is read_segments


def test_segments_are_raw_and_say_what_is_open(file):
    path = file(
        document(
            unit(tuv("en", "a &amp; <ph x='1'>c</ph>"), tuv("de", "b&#228;")),
            unit(tuv("de", "not a source")),
            unit("\n", tuv("en", "two")),
            unit(tuv("en", "three"), '<tuv xml:lang="de"><seg/></tuv>'),
        )
    )
    segments = [(s.number, s.line, s.source, s.target, s.is_open) for s in read_segments(path, **BOTH)]
    assert segments == [
        (1, 6, "a &amp; <ph x='1'>c</ph>", "b&#228;", False),
        (2, 9, "two", None, True),
        (3, 10, "three", "", True),
    ]
    assert {s.syntax for s in read_segments(path, **BOTH)} == {"xml"}


def test_layout_in_a_segment_is_one_space_but_in_codes_it_stays(file):
    code = "<ph x='1' type='a>b'>c\n  c</ph >"
    path = file(document(unit(tuv("en", f"\n  one\n  <hi>\n two</hi> {code}\n<ph\nx='2'/> three <![CDATA[a\nb]]>\n"))))
    [segment] = read_segments(path, **BOTH)
    assert segment.source == f"one <hi> two</hi> {code} <ph\nx='2'/> three <![CDATA[a\nb]]>"


PLACES = {
    "no tuv": (
        '<tu>\n  <tuv xml:lang="en"><seg>a</seg></tuv>\n</tu>',
        '\n  <tuv xml:lang="de"><seg>T</seg></tuv>\n</tu>',
    ),
    "no tuv, one line": ("<tu><tuv lang='en'><seg>a</seg></tuv></tu>", '</tuv><tuv lang="de"><seg>T</seg></tuv></tu>'),
    "an empty seg": (
        '<tu><tuv xml:lang="en"><seg>a</seg></tuv><tuv xml:lang="de-AT"><seg></seg></tuv></tu>',
        "<seg>T</seg>",
    ),
    "an empty tag": (
        '<tu><tuv xml:lang="de"><seg x="1" /></tuv><tuv xml:lang="en"><seg>a</seg></tuv></tu>',
        '<seg x="1">T</seg>',
    ),
    "a tuv without seg": (
        '<tu><tuv xml:lang="en"><seg>a</seg></tuv><tuv xml:lang="de"><note>n</note> </tuv></tu>',
        "</note> <seg>T</seg></tuv>",
    ),
    "an empty tuv": (
        '<tu><tuv xml:lang="en"><seg>a</seg></tuv><tuv xml:lang="de" x=">"/></tu>',
        '<tuv xml:lang="de" x=">"><seg>T</seg></tuv>',
    ),
    "a target": (f"<tu>{tuv('en', 'a')}{tuv('de', 'old <ph/> one')}</tu>", "<seg>T</seg>"),
}


@pytest.mark.parametrize("case", PLACES)
@pytest.mark.parametrize("codec", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be"])
def test_a_target_takes_its_place_and_all_else_stays(file, tmp_path, case, codec):
    place, expected = PLACES[case]
    path = file(document(unit(tuv("en", "ü")), place, "\n<!-- ü -->", unit(tuv("en", "z"))).encode(codec))
    before = path.read_bytes().decode(codec)
    after = filled(path, tmp_path / "out.tmx", [(2, "T")]).decode(codec)
    assert expected in after
    prefix = before.index(place)
    assert after[:prefix] == before[:prefix]
    assert after.endswith(before[prefix + len(place) :])
    assert [s.target for s in read_segments(tmp_path / "out.tmx", **BOTH)] == [None, "T", None]


@given(documents, st.data())
@settings(max_examples=47, deadline=None)
def test_targets_come_back_and_a_copy_without_any_is_the_file(tmp_path_factory, content, data):
    folder = tmp_path_factory.getbasetemp()
    path, out = folder / "in.tmx", folder / "out.tmx"
    path.write_bytes(content.encode(data.draw(st.sampled_from(["utf-8", "utf-16", "utf-16-be"]))))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(xml_stream, "CHUNK", data.draw(st.sampled_from([5, 64, 1 << 17])))
        before = list(read_segments(path, **BOTH))
        chosen = data.draw(st.sets(st.sampled_from([segment.number for segment in before])))
        assert filled(path, out, []) == path.read_bytes()
        filled(path, out, [(number, f"n&#176; {number} <hi>ß</hi>") for number in sorted(chosen)])
        after = list(read_segments(out, **BOTH))
    assert [s.source for s in after] == [s.source for s in before]
    for old, new in zip(before, after, strict=True):
        assert new.target == (f"n&#176; {new.number} <hi>ß</hi>" if new.number in chosen else old.target)


@given(st.lists(st.lists(whole_variants, max_size=4), max_size=5), st.data())
@settings(max_examples=47, deadline=None)
def test_the_old_targets_put_back_give_the_old_file_to_the_byte(tmp_path_factory, listed, data):
    content = document(*["<tu>\n  " + "\n  ".join(texts) + "\n</tu>\n" for texts in listed], unit(tuv("en", "z")))
    folder = tmp_path_factory.getbasetemp()
    path, out, back = (folder / f"{name}.tmx" for name in ("in", "out", "back"))
    codec = data.draw(st.sampled_from(["utf-8", "utf-16", "utf-16-be"]))
    path.write_bytes(content.encode(codec))
    before = list(read_segments(path, **BOTH))
    filled(path, out, [(segment.number, "NEU") for segment in before])
    filled(out, back, [(segment.number, segment.target or "NEU") for segment in before])
    for inserted in [r'\s*<tuv (xml:)?lang="de"><seg>NEU</seg></tuv>', "NEU"]:  # the second: where the seg was empty
        text = re.sub(inserted, "", back.read_bytes().decode(codec))
        back.write_bytes(text.encode(codec))
    assert text == path.read_bytes().decode(codec)


def test_the_document_may_be_replaced_by_its_own_copy(file):
    path = file(document(unit(tuv("en", "one"))))
    assert b"<seg>eins</seg>" in filled(path, path, [(1, "eins")])


def test_what_the_encoding_lacks_becomes_a_character_reference(file, tmp_path):
    path = file(document(unit(tuv("en", "one")), encoding="iso-8859-1").encode("latin-1"))
    assert "<seg>\xe4 &#8364; &#128512;</seg>".encode("latin-1") in filled(path, tmp_path / "o", [(1, "ä € 😀")])


@pytest.mark.parametrize("target", ["a & b", "<ph>", "</seg><seg>", "a\0", "\ud800", "&unknown;", "]]>"])
def test_a_target_that_would_break_the_document_is_refused_and_nothing_written(file, tmp_path, target):
    path = file(document(unit(tuv("en", "one"))))
    out = file("an older file", "out.tmx")
    with pytest.raises(CorpusError, match="line 6: found a target that is no XML"):
        filled(path, out, [(1, target)])
    assert out.read_bytes() == b"an older file"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["memory.tmx", "out.tmx"]


def test_a_target_without_a_segment_is_refused(file, tmp_path):
    with pytest.raises(CorpusError, match="found no segment 2 to write a target to"):
        filled(file(document(unit(tuv("en", "one")))), tmp_path / "out.tmx", [(2, "zwei")])
    assert not (tmp_path / "out.tmx").exists()


def test_a_document_without_the_source_language_is_refused_with_those_that_it_has(file):
    with pytest.raises(CorpusError, match="found fr in 1 texts; wanted a unit with the source language"):
        list(read_segments(file(document(unit(tuv("fr", "un")))), **BOTH))


def test_without_a_source_language_that_of_the_header_is_taken(file):
    content = unit(tuv("fr", "un"), tuv("en", "one"))
    path = file(document(content, srclang="FR"))
    assert [s.source for s in read_segments(path, source_language="", target_language="de")] == ["un"]
    path = file(document(content, srclang="*all*"))
    with pytest.raises(CorpusError, match=r"line 6: found no source language in the header \(srclang\)"):
        list(read_segments(path, source_language="", target_language="de"))


def test_filling_holds_a_unit_in_memory_and_not_the_file(file, tmp_path):
    path = file(document(*[unit(tuv("en", "one and two and three " * 23))] * 7_013))
    tracemalloc.start()
    write_targets(path, tmp_path / "out.tmx", ((number + 1, "eins") for number in range(7_013)), **BOTH)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2_500_000 < path.stat().st_size
    assert (tmp_path / "out.tmx").read_bytes().count(b"<seg>eins</seg>") == 7_013


# Damage


def sample(rng):
    """A sound file as units, its codec, and its pairs."""
    parts, pairs = [], []
    for number in range(rng.randrange(1, 8)):
        source, target = (f"{word} {number} é" + " x" * rng.randrange(9) for word in ("text", "Satz"))
        code = rng.choice(["", '<bpt i="1">&lt;b></bpt><ept i="1"/>', "<ph>&lt;br/></ph>", "<hi></hi>"])
        parts.append(unit(tuv(rng.choice(["en", "EN-us"]), source + code), tuv("fr", "un"), tuv("de", target + code)))
        pairs.append((source, target))
    return parts, rng.choice(["utf-8", "utf-8", "utf-16", "utf-16-be", "latin-1"]), pairs


def damage(content, rng):
    """Mutated bytes, and the first byte that differs."""
    place = rng.randrange(len(content))
    end = min(len(content), place + rng.randrange(1, 40))
    bombs = [
        b"<!DOCTYPE a [<!ENTITY x 'y'>]>",
        b"&x;",
        b"&#0;",
        b"<ph>" * 300,
        b"<a " + b"b" * 5000,
        b"<![CDATA[",
        b"<!--",
        b"<?xml version='1.0' encoding='utf-16'?>",
        b"\xff\xfe",
        b"\x00",
        "ü".encode("latin-1"),
        "ü".encode("utf-16"),
        b"</seg></tuv></tu><tu><tuv><seg>",
        b"<seg>",
    ]
    kind = rng.randrange(6)
    if kind == 0:
        return content[:place], place
    if kind == 1:
        return content[:place] + bytes([content[place] ^ (1 << rng.randrange(8))]) + content[place + 1 :], place
    if kind == 2:
        return content[:place] + rng.randbytes(rng.randrange(1, 5)) + content[place:], place
    if kind == 3:
        return content[:place] + rng.choice(bombs) + content[place:], place
    if kind == 4:
        return content[:place] + content[end:] + content[place:end], place
    return content[:place] + content[place:end] * 2 + content[end:], place


def check_told(error):
    assert "\n" not in str(error)
    assert "Remedy: " in str(error)


def check_damaged(path, number):
    rng = Random(f"damaged TMX {number}")
    parts, codec, pairs = sample(rng)
    head = HEAD.format({"latin-1": ' encoding="ISO-8859-1"'}.get(codec, ""), "*all*")
    ends, length = [], len(head)
    for part in parts:
        length += len(part)
        ends.append(len((head + "".join(parts))[:length].encode(codec)))
    content = (head + "".join(parts) + TAIL).encode(codec)
    damaged, place = damage(content, rng)
    path.write_bytes(damaged)
    untouched = sum(end <= place for end in ends)
    keep = "keep" if number % 5 == 0 else "drop"
    found = []
    ended_well = False
    try:
        for pair in read_tmx(path, languages=("en", "de"), fields=("", ""), inline_tags=keep):
            found.append((re.sub(r"<[gx/][^>]*>", "", pair.source), re.sub(r"<[gx/][^>]*>", "", pair.target)))
        ended_well = True
    except CorpusError as error:
        check_told(error)
    assert found[:untouched] == pairs[:untouched], (number, place)
    out = path.with_name("filled.tmx")
    try:
        targets = [(s.number, "neu") for s in read_segments(path, **BOTH) if s.is_open]
        write_targets(path, out, targets, **BOTH)
    except CorpusError as error:
        check_told(error)
    else:
        assert targets or out.read_bytes() == damaged
        assert [s.number for s in read_segments(out, **BOTH) if s.is_open] == []
    return ended_well


def test_damaged_files_give_the_pairs_before_the_damage_and_then_pairs_or_one_error(tmp_path):
    outcomes = {check_damaged(tmp_path / "damaged.tmx", number) for number in range(307)}
    assert outcomes == {True, False}


@pytest.mark.slow
def test_ten_thousand_damaged_files_give_the_pairs_before_the_damage_and_then_pairs_or_one_error(tmp_path):
    outcomes = {check_damaged(tmp_path / "damaged.tmx", number) for number in range(10_000)}
    assert outcomes == {True, False}
