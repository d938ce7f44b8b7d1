"""Streaming XML: events and texts equal ElementTree's, places are exact to the byte, and no document is too hostile."""

import bz2
import gzip
import io
import lzma
import re
import sys
import tracemalloc
import xml.etree.ElementTree as ET

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.corpus import xml_stream
from headway.corpus.xml_stream import MAX_DEFAULTS, MAX_DEPTH, MAX_NAMES, XmlStream
from headway.errors import CorpusError


class Recorder:
    """Takes note of every event, with its place."""

    def __init__(self, path, **settings):
        self.events = []
        self.places = []
        self.stream = XmlStream(path, self, room="corpus/test", **settings)
        self.stream.hear(self.text)

    def start(self, name, attributes):
        self.events.append(("start", name, attributes))
        self.places.append((self.stream.offset, self.stream.line))

    def end(self, name):
        self.events.append(("end", name))
        self.places.append((self.stream.offset, self.stream.line))

    def text(self, data):
        if self.events and self.events[-1][0] == "text":
            data = self.events.pop()[1] + data
        self.events.append(("text", data))

    def read(self):
        for _ in self.stream.chunks():
            pass
        return self


class TagRecorder(Recorder):
    """Keeps the bytes of every start tag, too."""

    def __init__(self, path, **settings):
        self.tags = []
        super().__init__(path, **settings)

    def start(self, name, attributes):
        super().start(name, attributes)
        tag = self.stream.raw(self.stream.offset, self.stream.tag_end(self.stream.offset))
        self.tags.append(tag.decode(self.stream.encoding))


def written(folder, content, name="file.xml"):
    path = folder / name
    path.write_bytes(content)
    return path


def refused(folder, content, **settings):
    with pytest.raises(CorpusError) as caught:
        Recorder(written(folder, content), **settings).read()
    message = str(caught.value)
    assert message.startswith("corpus/test: ")
    assert "\n" not in message
    assert ". Remedy: " in message
    return message


def oracle(text):
    """The events of ElementTree's parser, which builds a tree."""

    def walk(element):
        yield "start", element.tag, dict(element.attrib)
        if element.text:
            yield "text", element.text
        for child in element:
            yield from walk(child)
            if child.tail:
                yield "text", child.tail
        yield "end", element.tag

    return list(walk(ET.fromstring(text)))


letters = st.text(st.sampled_from("ab é€ü<&>\"'\n\t"), max_size=7)
attributes = st.dictionaries(st.sampled_from(["x", "lang", "naïve"]), letters, max_size=2)


def escape(text):
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def escape_value(text):
    for char in '&<"\n\t':  # and > as it is: it may stand in a value
        text = text.replace(char, f"&#{ord(char)};" if char != "&" else "&amp;")
    return text


def element(name, values, children, empty):
    quoted = "".join(f' {key}="{escape_value(value)}"' for key, value in values.items())
    return f"<{name}{quoted}/>" if empty else f"<{name}{quoted}>{''.join(children)}</{name}>"


leaves = letters.map(escape) | st.sampled_from(["<!-- > -->", "<?pi > ?>", "<![CDATA[<&]]>", "&#233;", "&#x20AC;"])
trees = st.recursive(
    leaves,
    lambda inner: st.builds(
        element, st.sampled_from(["a", "seg", "été"]), attributes, st.lists(inner, max_size=3), st.booleans()
    ),
    max_leaves=11,
)
ENCODINGS = {
    "utf-8": ("utf-8", "UTF-8", b""),
    "utf-8 with mark": ("utf-8", "utf-8", b"\xef\xbb\xbf"),
    "utf-16-le with mark": ("utf-16-le", "UTF-16", b"\xff\xfe"),
    "utf-16-be with mark": ("utf-16-be", "utf-16", b"\xfe\xff"),
    "utf-16-le undeclared": ("utf-16-le", "", b""),
    "utf-16-be undeclared": ("utf-16-be", "", b""),
    "windows-1252": ("windows-1252", "windows-1252", b""),
    "iso-8859-15": ("iso-8859-15", "ISO-8859-15", b""),
}


@pytest.mark.parametrize("encoding", ENCODINGS)
@settings(max_examples=31, deadline=None)
@given(data=st.data())
def test_events_are_those_of_a_tree_and_places_exact_in_every_encoding_and_chunk(encoding, tmp_path_factory, data):
    codec, declared, mark = ENCODINGS[encoding]
    children = data.draw(st.lists(trees, max_size=3))
    body = element("root", {}, children, False)
    declaration = f'<?xml version="1.0" encoding="{declared}"?>\n' if declared else '<?xml version="1.0"?>\n'
    text = declaration + "<!DOCTYPE root SYSTEM 'absent.dtd'>\n" + body
    content = mark + text.encode(codec)
    path = written(tmp_path_factory.getbasetemp(), content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(xml_stream, "CHUNK", data.draw(st.sampled_from([1, 2, 7, 31, 1 << 17])))
        recorder = TagRecorder(path, keep_raw=True).read()
    assert recorder.events == oracle(body)
    assert recorder.stream.raw(0, recorder.stream.num_bytes) == content
    names = [event[1] for event in recorder.events if event[0] == "start"]
    for name, tag in zip(names, recorder.tags, strict=True):
        assert tag.startswith(f"<{name}")
        assert ET.fromstring(tag if tag.endswith("/>") else f"{tag}</{name}>").tag == name
    for (kind, name, *_), (offset, line) in zip(
        (event for event in recorder.events if event[0] != "text"), recorder.places, strict=True
    ):
        before = content[len(mark) : offset].decode(codec)
        rest = text[len(before) :]
        assert line == before.count("\n") + 1
        assert rest.startswith(f"<{name}" if kind == "start" else f"</{name}") or before.endswith("/>")


@pytest.mark.parametrize(
    ("suffix", "pack"),
    [
        (".gz", gzip.compress),
        (".bz2", bz2.compress),
        (".xz", lzma.compress),
        (".zst", zstandard.ZstdCompressor().compress),
    ],
)
def test_a_compressed_document_is_read_as_the_plain_one(tmp_path, suffix, pack):
    content = b"<a>" + b"<b>text</b>\n" * 997 + b"</a>"
    plain = Recorder(written(tmp_path, content)).read()
    packed = Recorder(written(tmp_path, pack(content), f"file.xml{suffix}")).read()
    assert (packed.events, packed.places) == (plain.events, plain.places)
    with pytest.raises(CorpusError, match="cut short"):
        Recorder(written(tmp_path, pack(content)[:-11], f"cut.xml{suffix}")).read()


def test_standard_input_is_read(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"<a>x</a>")))
    assert Recorder("-").read().events == oracle("<a>x</a>")


def test_names_may_come_with_their_namespace(tmp_path):
    content = b'<a xmlns="urn:one" xmlns:t="urn:two"><t:b t:x="1" y="2"/></a>'
    names = [event[1:] for event in Recorder(written(tmp_path, content), namespaces=True).read().events[:2]]
    assert names == [("urn:one a", {}), ("urn:two b", {"urn:two x": "1", "y": "2"})]


def test_what_is_whole_before_an_error_is_told_first(tmp_path):
    recorder = Recorder(written(tmp_path, b"<a><b>one</b>\n<b>two</c></a>"))
    chunks = recorder.stream.chunks()
    next(chunks)
    assert recorder.events[-3:] == [("end", "b"), ("text", "\n"), ("start", "b", {})]
    with pytest.raises(CorpusError, match="line 2: found mismatched tag"):
        next(chunks)


BOMB = "<!DOCTYPE a [<!ENTITY l0 'lol'>" + "".join(f"<!ENTITY l{n} '{f'&l{n - 1};' * 10}'>" for n in range(1, 10))
WRONG = {
    "empty": (b"", "is empty"),
    "no XML": (b"hello", "line 1: found "),
    "cut inside an element": (b"<a>\n<b>", "line 2: found the end of the file inside the document"),
    "cut inside a tag": (b'<a>\n<b x="', "line 2: found the end of the file inside the document"),
    "cut inside a character": ("<a>é".encode()[:-1], "found the end of the file inside the document"),
    "cut inside CDATA": (b"<a><![CDATA[x", "found the end of the file inside the document"),
    "cut UTF-16": ("<a>x</a>".encode("utf-16")[:-3], "found the end of the file inside the document"),
    "a foreign byte": (b"<a>\ncaf\xe9 au lait</a>", "line 2: found byte 0xe9 at byte 7, which is not valid UTF-8"),
    "a foreign byte in an attribute": (b'<a x="\xe9"/>', "found byte 0xe9 at byte 6, which is not valid UTF-8"),
    "half a surrogate pair in UTF-8": (b"<a>\xed\xa0\x80</a>", "found byte 0xed at byte 3"),
    "a byte that the code page lacks": (
        b'<?xml version="1.0" encoding="windows-1252"?>\n<a>\x81</a>',
        "line 2: found byte 0x81 at byte 49, which is not valid CP1252",
    ),
    "NUL": (b"<a>x\0y</a>", "found the control character 0x00 at byte 4"),
    "a control character": (b"<a>\x0b</a>", "found the control character 0x0b at byte 3"),
    "half a surrogate pair": (
        "<a>".encode("utf-16") + b"\x00\xd8" + "bc</a>".encode("utf-16-le"),
        "found half of a surrogate pair at byte 8",
    ),
    "UTF-32": ("<a/>".encode("utf-32"), "found UTF-32 .*iconv -f utf-32"),
    "UTF-16 that says UTF-8": ('<?xml version="1.0" encoding="utf-8"?><a/>'.encode("utf-16-le"), "the bytes belie"),
    "UTF-8 that says UTF-16": (b'<?xml version="1.0" encoding="utf-16"?><a/>', "the bytes belie"),
    "several bytes a character": (b'<?xml version="1.0" encoding="Shift_JIS"?><a/>', "iconv -f Shift_JIS"),
    "an encoding that is none": (b'<?xml version="1.0" encoding="klingon"?><a/>', "found the encoding klingon"),
    "an encoding of no text": (b'<?xml version="1.0" encoding="hex"?><a/>', "found the encoding hex"),
    "Python's escapes": (b'<?xml version="1.0" encoding="unicode_escape"?><a/>', "found the encoding unicode_escape"),
    "an entity of nowhere": (b"<a>&nbsp;</a>", r"found an entity \(byte 3\), which the document does not declare"),
    "one of an absent DTD": (b"<!DOCTYPE a SYSTEM 'a.dtd'><a>\n&nbsp;</a>", "line 2: found the entity &nbsp;, which"),
    "a small entity": (b"<!DOCTYPE a [\n<!ENTITY q 'x'>]><a>&q;</a>", "line 2: found the declaration of an entity"),
    "a file as entity": (b"<!DOCTYPE a [<!ENTITY q SYSTEM 'file:///etc/passwd'>]><a>&q;</a>", "declaration of an ent"),
    "a parameter entity": (b"<!DOCTYPE a [<!ENTITY % q 'x'>]><a/>", "the declaration of an entity"),
    "a billion laughs": (f"{BOMB}]><a>&l9;</a>".encode(), "the declaration of an entity"),
    "a big entity often": (
        f"<!DOCTYPE a [<!ENTITY q '{'x' * 99991}'>]><a>{'&q;' * 9973}</a>".encode(),
        "the declaration of an entity",
    ),
    "a bare ampersand": (b"<a>\nx & y</a>", "line 2: found ' ' where XML has no place for it"),
    "two roots": (b"<a/>\n<a/>", "line 2: found junk after document element"),
    "an attribute twice": (b'<a x="1" x="2"/>', "found duplicate attribute"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_told_in_one_line_with_its_place(tmp_path, case):
    content, message = WRONG[case]
    assert re.search(message, refused(tmp_path, content))


def test_a_dtd_plays_no_part_even_where_it_is_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    content = b"<!DOCTYPE a PUBLIC 'x' 'other.dtd'><a><b/></a>"
    absent = Recorder(written(tmp_path, content)).read().events
    (tmp_path / "other.dtd").write_text("<!ELEMENT a EMPTY><!ATTLIST b x CDATA 'd'><!ENTITY q 'x'>")
    assert Recorder(written(tmp_path, content)).read().events == absent == oracle("<a><b/></a>")
    assert "the entity &q;" in refused(tmp_path, content.replace(b"<b/>", b"&q;"))


def test_elements_may_nest_as_deep_as_the_limit_and_no_deeper(tmp_path):
    deep = b"<a>" * MAX_DEPTH + b"</a>" * MAX_DEPTH
    assert len(Recorder(written(tmp_path, deep)).read().events) == 2 * MAX_DEPTH
    assert "nested more than 200 deep" in refused(tmp_path, b"<a>" + deep + b"</a>")
    assert "nested more than 200 deep" in refused(tmp_path, b"<a>" * 1_000_003)


def test_siblings_are_not_depth(tmp_path):
    content = b"<a>" + b"<b><c/></b>" * 1009 + b"</a>"
    assert len(Recorder(written(tmp_path, content)).read().events) == 2 + 1009 * 4


@pytest.mark.parametrize(
    "markup",
    ["<a><!-- {} --></a>", "<a x='{}'/>", "<a><?pi {}?></a>", "<a {}/>", "<a{}/>", "<!DOCTYPE a [<!--{}-->]><a/>"],
)
def test_one_piece_of_markup_has_a_limit(tmp_path, monkeypatch, markup):
    monkeypatch.setattr(xml_stream, "MAX_UNIT", 1_000_003)
    content = markup.format("b" * 1_500_007).encode()
    assert "more than 1,000,003 bytes" in refused(tmp_path, content)
    monkeypatch.setattr(xml_stream, "MAX_UNIT", 2_000_003)
    if "{}/>" not in markup:
        Recorder(written(tmp_path, content)).read()


def test_what_a_handler_gathers_has_a_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(xml_stream, "MAX_UNIT", 1_000_003)
    content = b"<a>\n<b>" + b"x" * 1_500_007 + b"</b></a>"
    recorder = Recorder(written(tmp_path, content))
    recorder.stream.open_since = 4
    with pytest.raises(CorpusError, match="line 2: found a unit of more than 1,000,003 bytes"):
        recorder.read()
    assert Recorder(written(tmp_path, content)).read().events[3] == ("text", "x" * 1_500_007)


def test_names_have_a_limit(tmp_path):
    names = "".join(f"<b{number}/>" for number in range(MAX_NAMES))
    assert "more than 20,000 different names" in refused(tmp_path, f"<a>{names}</a>".encode())
    attributes = "".join(f"<b c{number}='1'/>" for number in range(MAX_NAMES))
    assert "more than 20,000 different names" in refused(tmp_path, f"<a>{attributes}</a>".encode())


def test_default_attributes_have_a_limit_and_are_not_told(tmp_path):
    def document(number):
        rows = "".join(f"<!ATTLIST a x{n} CDATA 'd'>" for n in range(number))
        return f"<!DOCTYPE a [{rows}]><a y='1'/>".encode()

    assert Recorder(written(tmp_path, document(MAX_DEFAULTS))).read().events[0] == ("start", "a", {"y": "1"})
    assert "more than 100 default values" in refused(tmp_path, document(MAX_DEFAULTS + 1))


def test_memory_holds_a_chunk_and_not_the_document(tmp_path):
    path = written(tmp_path, b"<a>" + b"<b>some text that is read and forgotten</b>\n" * 100_003 + b"</a>")

    class Nobody:
        def start(self, name, attributes):
            pass

        def end(self, name):
            pass

    stream = XmlStream(path, Nobody(), room="corpus/test")
    tracemalloc.start()
    for _ in stream.chunks():
        pass
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2_000_000 < path.stat().st_size


def test_kept_bytes_are_let_go_on_request(tmp_path):
    path = written(tmp_path, b"<a>" + b"<b/>\n" * 500_009 + b"</a>")

    class Nobody:
        def start(self, name, attributes):
            pass

        def end(self, name):
            pass

    stream = XmlStream(path, Nobody(), room="corpus/test", keep_raw=True)
    tracemalloc.start()
    for _ in stream.chunks():
        assert stream.raw(stream.offset - 5, stream.offset) in b"<b/>\n<b/>\n</a>"
        stream.release(stream.offset - 5)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2_000_000
    assert stream.num_bytes == path.stat().st_size
