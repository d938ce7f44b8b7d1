r"""PO and POT files of gettext: as pairs to train on, and as documents whose empty translations are filled.

Read as gettext reads them: strings over several lines are joined, C escapes are resolved, the charset of the header
entry is obeyed (UTF-8 without one). An entry with a plural has one segment for each ``msgstr[n]``: the singular is
the source of ``msgstr[0]``, the plural that of the others, and of ``msgstr[0]`` where it is the only one.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import BinaryIO, NoReturn

from headway.corpus.compression import FilePath
from headway.corpus.language import matches
from headway.corpus.lines import name_of, open_binary_reader, open_binary_writer
from headway.corpus.pair import SentencePair
from headway.corpus.segment import PendingTargets, Segment
from headway.errors import CorpusError

_BOM = b"\xef\xbb\xbf"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_PROBED = 1 << 20  # bytes at the head of a file in which the header must end for its charset to be seen
_MAX_ENTRY = 10_000_000  # bytes of one entry, which memory holds with all that is known of its lines
_PLACEHOLDER = "CHARSET"  # what xgettext writes into a template, to be replaced
# A charset in which these are other characters cannot be that of a PO file. ("\u" is an escape of some of Python's.)
_ASCII = bytes(range(32, 127)) + b"\\u0041+AEE-"
_KEYWORD = re.compile(r"[ \t]*(msgctxt|msgid_plural|msgid|msgstr|domain)(?:\[([0-9]{1,3})\])?(?=[ \t\"]|$)")
_STRING = re.compile(r'[ \t]*"([^"\\]*(?:\\.[^"\\]*)*)"')
_ESCAPE = re.compile(r"\\(?:[xX][0-9a-fA-F]+|[0-7]{1,3}|.)")
_ESCAPES = re.compile(r"((?:\\(?:[xX][0-9a-fA-F]+|[0-7]{1,3}))+)|\\(.)")  # bytes one after the other, or a letter
_MESSAGE = re.compile(rb"[ \t]*(?:msgctxt|msgid)[ \t\"]")
_CONTENT_TYPE = re.compile(rb'[ \t]*(?:msgstr[ \t]*)?"Content-Type:[^\"]*?charset=([^\s;\\\"]+)', re.IGNORECASE)
_SIMPLE = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", '"': '"', "\\": "\\"}
_TO_ESCAPE = re.compile('["\\\\\x00-\x1f]')
_ESCAPED = {character: "\\" + name for name, character in _SIMPLE.items()}
_OPEN_CHARSET = re.compile(rb"(charset=)CHARSET\b")
_LANGUAGE = re.compile(r"^Language:[ \t]*([A-Za-z][A-Za-z0-9_-]*)", re.MULTILINE | re.IGNORECASE)
_FLAGS = "#,"
_PREVIOUS = "#|"
_OBSOLETE = "#~"
_WHITE = " \t\r\f\v"


@dataclass(slots=True)
class _Line:
    """A line of the file: its bytes with the line end, and its text without."""

    number: int
    raw: bytes
    text: str
    charset: str

    @property
    def end(self) -> bytes:
        """Its line end: nothing on a last line without one."""
        return b"\r\n" if self.raw.endswith(b"\r\n") else b"\n" if self.raw.endswith(b"\n") else b""


@dataclass(slots=True)
class _Field:
    """One keyword's string, written in the lines ``start`` to ``stop`` of its entry."""

    parts: list[str]
    start: int
    stop: int

    @property
    def text(self) -> str:
        """The string."""
        return "".join(self.parts)


@dataclass(slots=True)
class _Entry:
    """A run of lines: comments, one message, and the blank lines after it. Its lines are all of the file's bytes."""

    lines: list[_Line] = field(default_factory=list[_Line])
    fields: dict[str, _Field] = field(default_factory=dict[str, _Field])
    flags: list[int] = field(default_factory=list[int])  # places of the lines of flags
    previous: int | None = None  # place of the first line of a previous msgid
    last: str = ""  # the field being read

    @property
    def is_whole(self) -> bool:
        """Whether a message has its translations, so that the next keyword or comment begins another."""
        return self.last.startswith(("msgstr", "domain"))

    @property
    def is_header(self) -> bool:
        """The entry of the empty msgid, whose msgstr says what the file is."""
        return list(self.fields) == ["msgid", "msgstr"] and not self.fields["msgid"].text

    @property
    def is_fuzzy(self) -> bool:
        """Whether its translation waits for review."""
        return any("fuzzy" in _flags(self.lines[place].text) for place in self.flags)

    def sources(self) -> Iterator[tuple[str, str]]:
        """The field of a translation and the field of its source, in the order of the file."""
        if "msgid_plural" not in self.fields:
            if "msgstr" in self.fields:
                yield "msgstr", "msgid"
            return
        names = [name for name in self.fields if name.startswith("msgstr")]
        for name in names:
            yield name, "msgid" if name == "msgstr[0]" and len(names) > 1 else "msgid_plural"


def read_po(path: FilePath, *, languages: tuple[str, str], fields: tuple[str, str]) -> Iterator[SentencePair]:
    r"""Yield the pairs of a PO file, in its order; ``line`` is that of the msgid. There are no fields to choose.

    An entry that is fuzzy or not translated is a pair with an empty target, so that cleaning counts it. The header
    and obsolete entries are none. Line breaks at the ends of both sides are format, not text, and left out; those
    inside stay. Translations of one plural that are the same text are one pair.

    Raises:
        CorpusError: the file is no PO file, is damaged, or not in its charset; fields were asked for.

    """
    name = name_of(path)
    if any(fields):
        raise CorpusError(
            f"corpus/po: {name}: found source_field or target_field, wanted neither: a PO file has no fields to choose "
            f"from. Remedy: leave them out."
        )
    with open_binary_reader(path) as stream:
        for entry in _entries(stream, name):
            if entry.is_header:
                _check_language(entry, name, languages[1])
                continue
            seen: set[tuple[str, str]] = set()
            for target_name, source_name in entry.sources():
                source = entry.fields[source_name]
                target = "" if entry.is_fuzzy else entry.fields[target_name].text
                pair = _without_outer_breaks(source.text, target)
                if pair not in seen:
                    seen.add(pair)
                    yield SentencePair(*pair, entry.lines[source.start].number)


def read_segments(path: FilePath, *, source_language: str, target_language: str) -> Iterator[Segment]:
    """Yield the translations of a PO file and their sources, fuzzy ones too; see ``segment.DocumentFormat``."""
    del source_language  # a PO file does not name it
    name = name_of(path)
    number = 0
    with open_binary_reader(path) as stream:
        for entry in _entries(stream, name):
            if entry.is_header:
                _check_language(entry, name, target_language)
                continue
            for target_name, source_name in entry.sources():
                number += 1
                source = entry.fields[source_name]
                target = entry.fields[target_name].text
                yield Segment(number, entry.lines[source.start].number, source.text, target, is_open=not target)


def write_targets(
    path: FilePath,
    out: FilePath,
    targets: Iterable[tuple[int, str]],
    *,
    source_language: str,
    target_language: str,
    for_review: bool = True,
) -> None:
    r"""Write a copy of a PO file with these translations; see ``segment.DocumentFormat``.

    A filled entry becomes fuzzy ``for_review``, and is no longer fuzzy without. Its msgstr is written as one string a
    line of text, in the file's charset and line ends. A template's placeholder charset becomes UTF-8.
    """
    del source_language
    name = name_of(path)
    number = 0
    with open_binary_reader(path) as stream, open_binary_writer(out) as writer:
        pending = PendingTargets(targets, name)
        charset = _Charset()
        for place, entry in enumerate(_entries(stream, name, charset)):
            writer.write(b"" if place else charset.mark)
            if entry.is_header:
                _check_language(entry, name, target_language)
                writer.writelines(_with_charset(entry, keep=pending.is_empty))
                continue
            filled: dict[str, str] = {}
            for target_name, _ in entry.sources():
                number += 1
                target = pending.take(number)
                if target is not None:
                    filled[target_name] = target
            writer.writelines(_fill(entry, filled, name=name, for_review=for_review))
        pending.check_all_taken()


@dataclass(slots=True)
class _Charset:
    """How a file is written, known once its first line has been read."""

    name: str = "utf-8"
    mark: bytes = b""  # a byte order mark, which is no part of any line


def _entries(stream: BinaryIO, name: str, charset: _Charset | None = None) -> Iterator[_Entry]:
    """Group the lines of a PO file; every line is in exactly one entry, the last of which may have no message."""
    entry = _Entry()
    size = 0
    for line in _lines(stream, name, charset or _Charset()):
        text = line.text.strip(_WHITE)
        keyword = _KEYWORD.match(line.text)
        if text and not text.startswith('"'):
            _check_string(entry, name)
        if entry.is_whole and (keyword or text.startswith("#")) and not _goes_on(entry, keyword):
            yield entry
            entry, size = _Entry(), 0
        entry.lines.append(line)
        size += len(line.raw)
        if size > _MAX_ENTRY:
            _refuse(name, entry.lines[0].number, f"an entry of more than {_MAX_ENTRY:,} bytes", "smaller ones")
        if text.startswith("#"):
            _add_comment(entry, text, name)
        elif keyword:
            _begin_field(entry, keyword, name)
        elif text.startswith('"') and entry.last:
            current = entry.fields[entry.last]
            current.parts.append(_strings(line, 0, name))
            current.stop = len(entry.lines)
        elif text:
            _refuse(name, line.number, f"{text[:40]!r}", 'a comment, a keyword such as msgid, or a string in "quotes"')
    _check_string(entry, name)
    if entry.last and not entry.is_whole:
        _refuse(name, entry.lines[-1].number, f"the end of the file after {entry.last}", "a msgstr for the msgid")
    yield entry


def _goes_on(entry: _Entry, keyword: re.Match[str] | None) -> bool:
    """Whether this keyword is one more translation of the same plural."""
    return keyword is not None and keyword[1] == "msgstr" and entry.last != "domain"


def _lines(stream: BinaryIO, name: str, charset: _Charset) -> Iterator[_Line]:
    """Decode the lines of a file in the charset that its header names."""
    probed: list[bytes] = []
    found = _probe(stream, probed)
    charset.name = _python_name(found, name)
    for number, given in enumerate(chain(probed, stream), 1):
        if number == 1 and given.startswith(_UTF_16):
            _refuse(name, 1, "UTF-16", "UTF-8 or another charset that holds ASCII, as gettext does")
        if number == 1 and given.startswith(_BOM):
            charset.mark = _BOM
        raw = given.removeprefix(charset.mark) if number == 1 else given
        content = raw.removesuffix(b"\n").removesuffix(b"\r") if raw.endswith(b"\n") else raw
        try:
            text = content.decode(charset.name)
        except UnicodeError as error:
            raise CorpusError(
                f"corpus/po: {name} line {number:,}: found bytes that are not {charset.name} ({error}), wanted the "
                f"charset of the header. Remedy: correct the charset in the header's Content-Type, or convert the file."
            ) from error
        yield _Line(number, raw, text, charset.name)


def _probe(stream: BinaryIO, probed: list[bytes]) -> str:
    """The charset that the header names, or nothing; ``probed`` gets the lines that were read to know."""
    num_messages = size = 0
    for raw in stream:
        probed.append(raw)
        found = _CONTENT_TYPE.match(raw)
        if found:
            return found[1].decode("latin-1")
        num_messages += _MESSAGE.match(raw) is not None
        size += len(raw)
        if num_messages > 1 or size > _PROBED:  # the header is the first message
            break
    return ""


def _python_name(charset: str, name: str) -> str:
    """The codec of a header's charset, which must hold ASCII as ASCII does."""
    if charset in ("", _PLACEHOLDER):
        return "utf-8"
    try:
        text = _ASCII.decode(charset)
        holds_ascii = text == _ASCII.decode("ascii") and text.encode(charset) == _ASCII
    except (LookupError, UnicodeError, ValueError):  # no such codec, or one that is not for text
        holds_ascii = False
    if not holds_ascii:
        raise CorpusError(
            f"corpus/po: {name}: found the charset {charset!r} in the header, wanted a known one that holds ASCII. "
            f"Remedy: write charset=UTF-8 there and convert the file."
        )
    return charset


def _add_comment(entry: _Entry, text: str, name: str) -> None:
    """Note what a comment says of the message that follows; its line is the last of the entry."""
    place = len(entry.lines) - 1
    if entry.fields:
        _refuse(name, entry.lines[-1].number, f"a comment after {entry.last}", "the msgstr of the msgid before it")
    if text.startswith(_OBSOLETE):  # what came before was the obsolete message's
        entry.flags.clear()
        entry.previous = None
    elif text.startswith(_FLAGS):
        entry.flags.append(place)
    elif text.startswith(_PREVIOUS) and entry.previous is None:
        entry.previous = place


def _begin_field(entry: _Entry, keyword: re.Match[str], name: str) -> None:
    """Begin the string of a keyword; it stands in the last line of the entry."""
    line = entry.lines[-1]
    field_name = keyword[1] if keyword[2] is None else f"{keyword[1]}[{int(keyword[2])}]"
    wanted = _wanted(entry)
    if field_name not in wanted:
        after = f" after {entry.last}" if entry.last else ""
        _refuse(name, line.number, f"{field_name}{after}", " or ".join(wanted))
    entry.last = field_name
    is_bare = not line.text[keyword.end() :].strip(_WHITE)  # the strings may all stand in the lines below
    parts = [] if is_bare else [_strings(line, keyword.end(), name)]
    entry.fields[field_name] = _Field(parts, len(entry.lines) - 1, len(entry.lines))


def _check_string(entry: _Entry, name: str) -> None:
    """Raise CorpusError when the keyword read last has no string, and what comes now can give it none."""
    if entry.last and not entry.fields[entry.last].parts:
        number = entry.lines[entry.fields[entry.last].start].number
        _refuse(name, number, f"{entry.last} without a string", 'one between "quotes" behind it')


def _wanted(entry: _Entry) -> list[str]:
    """The keywords that may come next in an entry."""
    if entry.last.startswith("msgstr["):
        return [f"msgstr[{len(entry.fields) - 2 - ('msgctxt' in entry.fields)}]"]
    return {
        "": ["msgctxt", "msgid", "domain"],
        "msgctxt": ["msgid"],
        "msgid": ["msgid_plural", "msgstr"],
        "msgid_plural": ["msgstr[0]"],
    }.get(entry.last, ["msgid"])


def _strings(line: _Line, start: int, name: str) -> str:
    """The text of the strings in a line from ``start`` on, of which there may be several."""
    parts: list[str] = []
    while found := _STRING.match(line.text, start):
        parts.append(found[1])
        start = found.end()
    rest = line.text[start:].strip(_WHITE)
    if rest or not parts:
        _refuse(name, line.number, f"{rest[:40]!r}", 'a string between "quotes", in which \\" is a quote')
    return "".join(_unescape(part, line, name) for part in parts)


def _unescape(text: str, line: _Line, name: str) -> str:
    """Resolve C escapes; neighbouring escapes of bytes are one text in the file's charset."""

    def resolve(escape: re.Match[str]) -> str:
        if escape[2] is None:
            return _bytes_of(escape[1]).decode(line.charset)
        return _SIMPLE[escape[2]]

    try:
        return _ESCAPES.sub(resolve, text) if "\\" in text else text
    except (KeyError, ValueError):  # of which a UnicodeDecodeError is one
        _refuse(
            name, line.number, f"the escapes {' '.join(_ESCAPE.findall(text)[:8])}", "those of gettext, such as \\n"
        )


def _bytes_of(escapes: str) -> bytes:
    codes = [escape[1:] for escape in _ESCAPE.findall(escapes)]
    return bytes(int(code[1:], 16) if code[0] in "xX" else int(code, 8) for code in codes)


def _flags(text: str) -> list[str]:
    """The flags in a comment of flags."""
    return [flag.strip(_WHITE) for flag in text.strip(_WHITE).removeprefix(_FLAGS).split(",")]


def _fill(entry: _Entry, filled: dict[str, str], *, name: str, for_review: bool) -> Iterator[bytes]:
    """The lines of an entry with some of its translations replaced, and marked as fuzzy or not."""
    if not filled:
        yield from (line.raw for line in entry.lines)
        return
    written = {entry.fields[field_name].start: field_name for field_name in filled}
    flags = _mark(entry, for_review=for_review)
    skip = 0
    for place, line in enumerate(entry.lines):
        if place in written:
            skip = entry.fields[written[place]].stop
            yield _render(entry, written[place], filled[written[place]], name)
        elif place >= skip:
            yield from flags.get(place, (line.raw,))


def _mark(entry: _Entry, *, for_review: bool) -> dict[int, tuple[bytes, ...]]:
    """What replaces the lines at these places, so that the entry is fuzzy exactly ``for_review``."""
    if entry.is_fuzzy == for_review:
        return {}
    if for_review and entry.flags:
        place = entry.flags[0]
        line = entry.lines[place]
        before, after = line.raw.split(b"#,", 1)
        return {place: (before + b"#, fuzzy," + after,)}
    if for_review:
        place = min(field.start for field in entry.fields.values()) if entry.previous is None else entry.previous
        line = entry.lines[place]
        indent = line.raw[: len(line.raw) - len(line.raw.lstrip())]
        return {place: (indent + b"#, fuzzy" + line.end, line.raw)}
    return {place: _without_fuzzy(entry.lines[place]) for place in entry.flags}


def _without_fuzzy(line: _Line) -> tuple[bytes, ...]:
    kept = [flag for flag in _flags(line.text) if flag not in ("", "fuzzy")]
    if not kept:
        return ()
    indent = line.text[: line.text.index(_FLAGS)]
    return (f"{indent}{_FLAGS} {', '.join(kept)}".encode(line.charset) + line.end,)


def _render(entry: _Entry, field_name: str, text: str, name: str) -> bytes:
    r"""A translation as gettext writes it: one string, or an empty one and a string for each line of the text.

    Raises CorpusError when the charset cannot hold it.
    """
    field = entry.fields[field_name]
    first, last = entry.lines[field.start], entry.lines[field.stop - 1]
    *broken, rest = text.split("\n")
    lines = [line + "\n" for line in broken] + ([rest] if rest else [])
    strings = [f'"{_TO_ESCAPE.sub(_escape, line)}"' for line in lines] or ['""']
    if len(strings) > 1:
        strings.insert(0, '""')
    before, quote, _ = first.text.partition('"')
    head = before if quote else f"{before.rstrip(_WHITE)} "
    indent = head[: len(head) - len(head.lstrip(_WHITE))]
    try:
        encoded = [((indent if place else head) + string).encode(first.charset) for place, string in enumerate(strings)]
    except UnicodeEncodeError as error:
        raise CorpusError(
            f"corpus/po: {name} line {first.number:,}: found U+{ord(error.object[error.start]):04X} in a translation, "
            f"which the file's charset {first.charset} cannot hold. Remedy: convert the file to UTF-8 first, for "
            f"example msgconv -t utf-8 FILE > NEWFILE."
        ) from error
    return (first.end or b"\n").join(encoded) + last.end


def _escape(found: re.Match[str]) -> str:
    return _ESCAPED.get(found[0]) or f"\\{ord(found[0]):03o}"


def _with_charset(entry: _Entry, *, keep: bool) -> Iterator[bytes]:
    """The lines of a header, in which the charset that a template leaves open becomes UTF-8 unless ``keep``."""
    for line in entry.lines:
        yield line.raw if keep else _OPEN_CHARSET.sub(rb"\1UTF-8", line.raw)


def _check_language(header: _Entry, name: str, wanted: str) -> None:
    """Raise CorpusError when the header names another language than that of the translations wanted."""
    place = header.fields["msgstr"]
    found = _LANGUAGE.search(place.text)
    if found and wanted and not matches(wanted, found[1]):
        _refuse(name, header.lines[place.start].number, f"Language: {found[1]} in the header", f"{wanted}")


def _without_outer_breaks(source: str, target: str) -> tuple[str, str]:
    return source.strip("\n"), target.strip("\n")


def _refuse(name: str, number: int, found: str, wanted: str) -> NoReturn:
    raise CorpusError(
        f"corpus/po: {name} line {number:,}: found {found}, wanted {wanted}. "
        f"Remedy: mend the line; msgfmt -c {name} names all that is wrong with the file."
    )
