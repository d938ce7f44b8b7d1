"""XML documents of any size, read event by event with lines and exact byte offsets, over the standard library's expat.

A format's reader is an ``XmlHandler``: expat calls its ``start`` and ``end`` while ``XmlStream.chunks`` is iterated
over, and ``line`` and ``offset`` tell where the event of the moment stands: exactly, in bytes of the unpacked document,
in every encoding. Text comes in pieces to what ``hear`` was given, and an offset means nothing there. An empty element
(``<seg/>``) ends at the offset behind it, an element with an end tag (``<seg></seg>``) at that of its end tag.

Documents come from strangers. Nothing outside the document is ever opened: an external DTD is passed over. Entities
that a document declares itself are refused where they are declared, small ones too, since a few bytes of them can
stand for gigabytes; the five of XML and character references are what text needs. An entity that is declared nowhere
is refused as well: expat would pass over it, and text would be lost. (In an attribute's value expat cannot tell, and
reads it as nothing.)
"""

import codecs
import re
from collections.abc import Callable, Iterator
from typing import Protocol
from xml.parsers import expat

from headway.corpus.compression import FilePath
from headway.corpus.lines import name_of, open_binary_reader
from headway.errors import CorpusError

CHUNK = 1 << 17  # bytes handed to expat at once
MAX_DEPTH = 200  # elements inside each other
MAX_UNIT = 10_000_000  # bytes of one piece of markup, and of what a reader has to hold at once
MAX_NAMES = 20_000  # different names of elements and attributes; expat keeps every one
MAX_DEFAULTS = 100  # default values of attributes in a DOCTYPE; expat goes over them at every element

# How a document may begin. The order matters: UTF-32's little-endian mark begins with UTF-16's.
_BEGINNINGS = {
    b"\xff\xfe\x00\x00": "utf-32",
    b"\x00\x00\xfe\xff": "utf-32",
    b"\xef\xbb\xbf": "utf-8",
    b"\xff\xfe": "utf-16-le",
    b"\xfe\xff": "utf-16-be",
    b"<\x00": "utf-16-le",
    b"\x00<": "utf-16-be",
}
_TAG = re.compile(rb"""<(?:[^>"']++|"[^"]*+"|'[^']*+')*>""")
_CUT_SHORT = {
    expat.errors.codes[expat.errors.XML_ERROR_NO_ELEMENTS],
    expat.errors.codes[expat.errors.XML_ERROR_UNCLOSED_TOKEN],
    expat.errors.codes[expat.errors.XML_ERROR_PARTIAL_CHAR],
    expat.errors.codes[expat.errors.XML_ERROR_UNCLOSED_CDATA_SECTION],
}
_BAD_TOKEN = expat.errors.codes[expat.errors.XML_ERROR_INVALID_TOKEN]
_UNDEFINED_ENTITY = expat.errors.codes[expat.errors.XML_ERROR_UNDEFINED_ENTITY]
_WRONG_ENCODING = expat.errors.codes[expat.errors.XML_ERROR_INCORRECT_ENCODING]


class XmlHandler(Protocol):
    """What a reader does at each event. What it raises ends the reading."""

    def start(self, name: str, attributes: dict[str, str], /) -> None:
        """Take an element's start tag; names are as written, prefix included, unless the stream has namespaces."""
        ...

    def end(self, name: str, /) -> None:
        """Take an element's end."""
        ...


class XmlStream:
    r"""One document on its way through expat, once.

    ``room`` and the file's name begin every error. With ``namespaces`` a name is ``URI local`` (a space between) where
    it has a namespace. With ``keep_raw`` the bytes from the last ``release`` on are at hand. ``encoding`` is a name
    that Python's codecs know, sure from the first event on.

    A handler sets ``open_since`` to the offset where what it gathers began, and to None when it has let go: more than
    ``MAX_UNIT`` bytes of it are refused. expat counts ``\r``, ``\r\n`` and ``\n`` as one end of a line each.
    """

    def __init__(
        self, path: FilePath, handler: XmlHandler, *, room: str, keep_raw: bool = False, namespaces: bool = False
    ) -> None:
        self.name = name_of(path)
        self.encoding = "utf-8"
        self.open_since: int | None = None
        self._path = path
        self._handler = handler
        self._room = room
        self._keep_raw = keep_raw
        self._window = bytearray()  # with keep_raw all bytes from _window_start on, else those of the chunk
        self._window_start = 0
        self._fed = 0  # bytes given to expat
        self._num_defaults = 0
        self._utf16: codecs.IncrementalDecoder | None = None
        self._names: dict[str, str] = {}
        self._parser = self._make_parser(" " if namespaces else None)

    @property
    def line(self) -> int:
        """The line of the event of the moment, from 1."""
        return self._parser.CurrentLineNumber

    @property
    def offset(self) -> int:
        """The byte at which the event of the moment begins, from 0."""
        return self._parser.CurrentByteIndex

    @property
    def num_bytes(self) -> int:
        """The bytes that have been read so far; at the end the length of the document."""
        return self._fed

    def hear(self, take: Callable[[str], None] | None) -> None:
        """Give text from here on to ``take``, or to nobody; text that nobody hears costs little.

        It comes in pieces, that of CDATA sections too, with XML's entities and character references resolved.
        """
        self._parser.CharacterDataHandler = take

    def raw(self, start: int, end: int) -> bytes:
        """The document's bytes from one offset to another, both not before the last ``release``."""
        assert self._keep_raw, "bytes are kept only where asked for"
        assert start >= self._window_start, "these bytes have been let go"
        return bytes(self._window[start - self._window_start : end - self._window_start])

    def release(self, before: int) -> None:
        """Let go of the bytes before an offset."""
        if before > self._window_start:
            del self._window[: before - self._window_start]
            self._window_start = before

    def tag_end(self, start: int) -> int:
        """The offset behind the tag that begins at ``start``; the tag must have been told of."""
        at = start - self._window_start
        if self._utf16 is None:
            found = _TAG.match(self._window, at)
            assert found, "no tag here"
            return self._window_start + found.end()
        for size in (1 << 10, len(self._window)):  # nearly every tag is in the first
            found = _TAG.match(self._window[at : at + size].decode(self.encoding, "ignore").encode())
            if found:
                return start + len(found[0].decode().encode(self.encoding))
        raise AssertionError("no tag here")

    def error(self, found: str, wanted: str, remedy: str, *, line: int = 0) -> CorpusError:
        """An error at ``line``, or at the event of the moment."""
        return CorpusError(
            f"{self._room}: {self.name} line {line or self.line:,}: found {found}, wanted {wanted}. Remedy: {remedy}."
        )

    def check_content(self, content: str, *, line: int) -> None:
        """Raise CorpusError when content to be written into the element at ``line`` would break the document."""
        try:
            expat.ParserCreate("utf-8").Parse(f"<t>{content}</t>".encode(), True)
        except (expat.ExpatError, UnicodeEncodeError) as error:
            raise self.error(
                f"a target that is no XML ({error})",
                "text with escapes and whole inline elements",
                "write & and < as &amp; and &lt;, and take control characters out",
                line=line,
            ) from error

    def chunks(self) -> Iterator[None]:
        """Read the document; each time a chunk has been handled, give the word to who iterates.

        When a chunk goes wrong, there is one more turn before the error, for what was whole before it.

        Raises:
            CorpusError: what ``open_binary_reader`` raises; not XML, cut short, bytes that its encoding does not have,
                beyond a limit, entities; and what the handler raises.

        """
        with open_binary_reader(self._path) as stream:
            chunk = stream.read(max(CHUNK, *map(len, _BEGINNINGS)))
            self._begin(chunk)
            while chunk:
                error = self._take(chunk)
                yield
                if error:
                    raise error
                chunk = stream.read(CHUNK)
            error = self._end()
            if error:
                yield
                raise error

    def _make_parser(self, separator: str | None) -> expat.XMLParserType:
        # The dictionary of names that the parser keeps is given, to be counted.
        parser = expat.ParserCreate(None, separator, self._names)
        parser.buffer_text = True
        parser.buffer_size = 1 << 16
        parser.specified_attributes = True
        handle_start, handle_end = self._handler.start, self._handler.end
        depth = 0

        def start(name: str, attributes: dict[str, str]) -> None:
            nonlocal depth
            depth += 1
            if depth > MAX_DEPTH:
                raise self._too_deep()
            handle_start(name, attributes)

        def end(name: str) -> None:
            nonlocal depth
            depth -= 1
            handle_end(name)

        parser.StartElementHandler = start
        parser.EndElementHandler = end
        parser.XmlDeclHandler = self._declaration
        parser.EntityDeclHandler = self._entity
        parser.SkippedEntityHandler = self._skipped_entity
        parser.AttlistDeclHandler = self._attribute_default
        return parser

    def _begin(self, chunk: bytes) -> None:
        """Learn what the first bytes say of the encoding."""
        if not chunk:
            raise CorpusError(
                f"{self._room}: {self.name} is empty, wanted an XML document. Remedy: export the file again."
            )
        for beginning, encoding in _BEGINNINGS.items():
            if chunk.startswith(beginning):
                self.encoding = encoding
                break
        if self.encoding == "utf-32":
            raise self.error("UTF-32 (by its byte order mark)", "UTF-8 or UTF-16", self._convert("utf-32"))
        if self.encoding.startswith("utf-16"):
            self._utf16 = codecs.getincrementaldecoder(self.encoding)()

    def _take(self, chunk: bytes) -> CorpusError | None:
        """Hand a chunk to expat; the error that ends the reading, if there is one."""
        if self._keep_raw:
            self._window += chunk
        else:
            self._window_start, self._window = self._fed, bytearray(chunk)
        sound = chunk if self._utf16 is None else chunk[: self._sound_utf16(self._utf16, chunk)]
        self._fed += len(sound)
        error = self._parse(sound, final=False)
        if error is None and len(sound) < len(chunk):
            error = self.error(
                f"half of a surrogate pair at byte {self._fed:,}", f"{self.encoding.upper()} text", self._repair()
            )
        return error or self._beyond_limit()

    def _end(self) -> CorpusError | None:
        return self._parse(b"", final=True)

    def _parse(self, data: bytes, *, final: bool) -> CorpusError | None:
        try:
            self._parser.Parse(data, final)
        except CorpusError as error:  # the handler's, or one of the limits
            return error
        except expat.ExpatError as error:
            return self._explain(error)
        return None

    @staticmethod
    def _sound_utf16(decoder: codecs.IncrementalDecoder, chunk: bytes) -> int:
        """How many bytes of a chunk are sound; expat itself makes letters of half surrogate pairs."""
        before = len(decoder.getstate()[0])
        try:
            decoder.decode(chunk)
        except UnicodeDecodeError as error:
            return max(0, error.start - before)
        return len(chunk)

    def _beyond_limit(self) -> CorpusError | None:
        """The error of a document that asks for too much memory, looked for once a chunk."""
        # Since the last event, which is 0 bytes ago where text flows.
        if self._fed - max(0, self.offset) > MAX_UNIT:
            return self.error(
                f"a tag or comment of more than {MAX_UNIT:,} bytes", "smaller ones", "take it out of the document"
            )
        if self.open_since is not None and self._fed - self.open_since > MAX_UNIT:
            return self.error(
                f"a unit of more than {MAX_UNIT:,} bytes", "smaller ones", "divide it, or take it out of the document"
            )
        if len(self._names) > MAX_NAMES:
            return self.error(
                f"more than {MAX_NAMES:,} different names of elements and attributes",
                "those of the format",
                "check that this is the right file",
            )
        return None

    def _too_deep(self) -> CorpusError:
        return self.error(
            f"elements nested more than {MAX_DEPTH} deep", f"{MAX_DEPTH} at most", "check that this is the right file"
        )

    def _declaration(self, version: str, encoding: str | None, standalone: int) -> None:
        del version, standalone
        if encoding is None or self._utf16 is not None:  # the bytes know better than "UTF-16" which end comes first
            return
        known = _codec_name(encoding)
        if known is None:
            raise self.error(
                f"the encoding {encoding[:40]} in the XML declaration",
                "UTF-8, UTF-16 or one of one byte a character",
                self._convert(encoding[:40]),
            )
        self.encoding = known

    def _entity(self, name: str, *declared: object) -> None:
        del declared
        raise self.error(
            f"the declaration of an entity ({name[:40]})",
            "a document without entities of its own, of which a few bytes can stand for gigabytes",
            "if you trust the file, put their text in their place: xmllint --noent FILE > NEWFILE",
        )

    def _skipped_entity(self, name: str, is_parameter: bool) -> None:
        if not is_parameter:
            raise self._undeclared(f"the entity &{name[:40]};", self.line)

    def _undeclared(self, found: str, line: int) -> CorpusError:
        return self.error(
            f"{found}, which the document does not declare",
            "the characters themselves, or &amp; &lt; &gt; &quot; &apos; and numbers such as &#160;",
            "replace it by its character",
            line=line,
        )

    def _attribute_default(self, element: str, name: str, kind: str, default: str | None, required: bool) -> None:
        del element, name, kind, required
        self._num_defaults += default is not None
        if self._num_defaults > MAX_DEFAULTS:
            raise self.error(
                f"more than {MAX_DEFAULTS} default values of attributes in the DOCTYPE", "fewer", "take them out"
            )

    def _explain(self, error: expat.ExpatError) -> CorpusError:
        """What expat says, in the words of this house."""
        line = error.lineno
        message = expat.ErrorString(error.code) or "an error"
        if error.code in _CUT_SHORT:
            return self.error(
                f"the end of the file inside the document ({message})",
                "a whole document",
                "copy, download or export the file again",
                line=line,
            )
        if error.code == _WRONG_ENCODING:
            return self.error(
                "an encoding in the XML declaration that the bytes belie",
                "the one that the file has",
                'correct encoding="..." in its first line',
                line=line,
            )
        if error.code == _UNDEFINED_ENTITY:
            return self._undeclared(f"an entity (byte {self._at():,})", line)
        if error.code == _BAD_TOKEN:
            return self._explain_byte(line)
        return self.error(f"{message} (byte {self._at():,})", "well-formed XML", "mend that line", line=line)

    def _explain_byte(self, line: int) -> CorpusError:
        """The same for what is no token: a foreign byte, a control character, or plain bad XML."""
        where = self._at()
        found = bytes(self._window[where - self._window_start :][:4]) if where >= self._window_start else b""
        if not found:
            return self.error(f"what is no XML (byte {where:,})", "well-formed XML", "mend that line", line=line)
        byte = found[0]
        if byte >= 0x80 and self._utf16 is None:
            return self.error(
                f"byte 0x{byte:02x} at byte {where:,}, which is not valid {self.encoding.upper()} there",
                "one encoding throughout, the one that the XML declaration names",
                self._repair(),
                line=line,
            )
        if byte < 0x20 and byte not in b"\t\r\n" and self._utf16 is None:
            return self.error(
                f"the control character 0x{byte:02x} at byte {where:,}",
                "text without control characters, which XML cannot hold",
                "take it out",
                line=line,
            )
        shown = found.decode(self.encoding, "replace")[:1]
        return self.error(
            f"{shown!a} where XML has no place for it (byte {where:,})",
            "well-formed XML (in text, & and < are written &amp; and &lt;)",
            "mend that line",
            line=line,
        )

    def _at(self) -> int:
        return max(0, self._parser.ErrorByteIndex)

    def _repair(self) -> str:
        return "export the file again as UTF-8, or find what was pasted there in another encoding"

    @staticmethod
    def _convert(encoding: str) -> str:
        return f'convert it (iconv -f {encoding} -t utf-8 FILE > NEWFILE) and write encoding="utf-8" in its first line'


def _codec_name(encoding: str) -> str | None:
    """What Python calls an encoding that expat can take: its own, or one of one byte a character."""
    try:
        name = codecs.lookup(encoding).name
        if name.startswith("utf-16"):  # expat compares it with the bytes
            return name
        if "escape" in name:  # Python's own notation for strings, not an encoding of files
            return None
        one_each = len(bytes(range(256)).decode(name, "replace")) == 256
    except (LookupError, ValueError):
        return None
    return name if one_each or name == "utf-8" else None
