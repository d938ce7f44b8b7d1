"""XLIFF 1.x and 2.x (and the dialects of Trados, memoQ and Phrase): as pairs, and as documents filled in place.

A segment is a ``<segment>`` of XLIFF 2; in XLIFF 1 a ``<mrk mtype="seg">`` of ``<seg-source>``, or a whole
``<trans-unit>`` where it is not segmented, or where its target is not segmented as its source is. Only elements of the
XLIFF namespace count, whatever their prefix, and only in their places: alternatives (``<alt-trans>``, ``<mtc:match>``)
are not looked at.

Sources: XLIFF 1.2 (OASIS, 2008), XLIFF 2.1 (OASIS, 2018), https://docs.oasis-open.org/xliff/.
"""

import re
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from headway.corpus.compression import FilePath
from headway.corpus.inline import InlineTags
from headway.corpus.language import matches
from headway.corpus.lines import name_of, open_binary_writer
from headway.corpus.pair import SentencePair
from headway.corpus.segment import PendingTargets, Segment
from headway.corpus.xliff_content import tagged_texts_of, text_of, without_layout
from headway.corpus.xml_stream import XmlStream
from headway.errors import CorpusError

_ROOM = "corpus/xliff"
_XML_SPACE = "http://www.w3.org/XML/1998/namespace space"
_SDL_SEGMENT = "http://sdl.com/FileTypes/SdlXliff/1.0 seg"  # a segment's state in Trados; it comes behind the target
_EXPORT = "export the file again"
_ATTRIBUTE = re.compile(r"""(?P<before>\s+(?P<name>[^\s=/>]+)\s*=\s*)(?:"[^"]*"|'[^']*')""")


@dataclass(frozen=True, slots=True)
class _Dialect:
    """Where one major version of XLIFF has what."""

    unit: str  # the element that holds a source and its target ...
    parents: frozenset[str]  # ... and what may hold it
    texts: frozenset[str]  # what is looked at in it
    languages: tuple[str, str, str]  # the element that names the languages, and its two attributes
    holders: frozenset[str]  # elements whose attribute translate counts for all inside
    untranslated: frozenset[str]  # states of what waits for a translation
    state_on_unit: bool  # not on the target
    filled: dict[bool, str]  # the state of a target that was filled, by whether it needs review


_DIALECTS = {
    "1": _Dialect(
        unit="trans-unit",
        parents=frozenset({"body", "group"}),
        texts=frozenset({"source", "seg-source", "target"}),
        languages=("file", "source-language", "target-language"),
        holders=frozenset({"file", "group", "trans-unit"}),
        untranslated=frozenset({"new", "needs-translation"}),
        state_on_unit=False,
        filled={True: "needs-review-translation", False: "translated"},
    ),
    "2": _Dialect(
        unit="segment",
        parents=frozenset({"unit"}),
        texts=frozenset({"source", "target"}),
        languages=("xliff", "srcLang", "trgLang"),
        holders=frozenset({"file", "group", "unit"}),
        untranslated=frozenset({"initial"}),
        state_on_unit=True,
        filled={True: "translated", False: "translated"},  # which in XLIFF 2 is: not yet reviewed
    ),
}


@dataclass(slots=True)
class _Element:
    """One element's place in the file, in bytes: its start tag, its content, its end."""

    tag: int
    content: int
    attributes: dict[str, str]
    line: int
    preserve: bool  # its white space
    content_end: int = -1
    end: int = -1


@dataclass(slots=True)
class _Unit:
    """What is known of a unit, gathered while it goes by; complete at its end, when ``raw`` holds its bytes."""

    element: _Element
    dialect: _Dialect
    encoding: str
    translate: bool
    is_turned: bool  # the file goes from the target language to the source language
    raw: bytes = b""
    texts: dict[str, _Element] = field(default_factory=dict[str, _Element])
    marks: dict[str, dict[str, _Element]] = field(default_factory=dict[str, dict[str, _Element]])  # of a text, by mid
    has_like_marks: bool = False  # two of one text cannot be told apart
    locked: set[str] = field(default_factory=set[str])

    def slice(self, start: int, end: int) -> str:
        """The text between two places of the file."""
        return self.raw[start - self.element.tag : end - self.element.tag].decode(self.encoding)

    def content(self, element: _Element | None) -> str | None:
        """What stands between an element's tags, as it is written."""
        return None if element is None else self.slice(element.content, element.content_end)

    @property
    def source(self) -> _Element:
        """The element of the whole source."""
        return self.texts["source"]

    @property
    def target(self) -> _Element | None:
        """The element of the whole target."""
        return self.texts.get("target")

    def segments(self) -> list[tuple[str, _Element, _Element | None]]:
        """Its segments: mid, source and target; one with the mid "" where the unit is not segmented.

        It is segmented where its source is, and its target has no other marks and is not text without any.
        """
        sources, targets = self.marks.get("seg-source", {}), self.marks.get("target", {})
        is_blank = not (self.content(self.target) or "").strip()
        if sources and not self.has_like_marks and targets.keys() <= sources.keys() and (targets or is_blank):
            return [(mid, source, targets.get(mid)) for mid, source in sources.items()]
        return [("", self.source, self.target)]


def read_xliff(
    path: FilePath, *, languages: tuple[str, str], fields: tuple[str, str], inline_tags: InlineTags = "drop"
) -> Iterator[SentencePair]:
    """Yield a pair for each segment of an XLIFF file, in its order.

    ``inline_tags``: drop leaves inline elements out, keep writes them as ``inline`` says. A file the other way round
    (de to en where en to de is asked for) is read with its sides exchanged. A segment without a target is a pair with
    an empty side, so that cleaning counts it. There are no fields to choose.

    Raises:
        CorpusError: the file is no XLIFF, is damaged, or of other languages; fields were asked for.

    """
    if any(fields):
        raise CorpusError(
            f"{_ROOM}: {name_of(path)}: found source_field or target_field, wanted neither: an XLIFF file has no "
            f"fields to choose from. Remedy: leave them out."
        )
    keep = inline_tags == "keep"
    for unit in _Reader(path, languages, may_turn=True).units():
        for segment in _segments(unit, 1):
            source, target = segment.source, segment.target or ""
            if unit.is_turned:
                source, target = target, source
            texts = tagged_texts_of(source, target) if keep else (text_of(source), text_of(target))
            yield SentencePair(*texts, segment.line)


def read_segments(path: FilePath, *, source_language: str, target_language: str) -> Iterator[Segment]:
    """Yield the segments of an XLIFF file; see ``segment.DocumentFormat``.

    A line break followed by an indentation is layout, and in ``source`` one space, none at its ends, unless
    ``xml:space="preserve"``.
    """
    number = 1
    for unit in _Reader(path, (source_language, target_language)).units():
        segments = _segments(unit, number)
        number += len(segments)
        yield from segments


def write_targets(
    path: FilePath,
    out: FilePath,
    targets: Iterable[tuple[int, str]],
    *,
    source_language: str,
    target_language: str,
    for_review: bool = True,
) -> None:
    """Write a copy of an XLIFF file with these targets; see ``segment.DocumentFormat``.

    A new ``<target>`` stands behind the source with the same indentation. A filled one has the state of a translation
    that needs review, or (not ``for_review``) of one that is made. An XLIFF 2 file gets the ``trgLang`` it lacks.
    """
    reader = _Reader(path, (source_language, target_language))
    with open_binary_writer(out) as writer:
        pending = PendingTargets(targets, reader.stream.name)
        reader.adds_language = not pending.is_empty
        number = 0
        for piece in reader.pieces():
            if isinstance(piece, bytes):
                writer.write(piece)
                continue
            filled: dict[str, str] = {}
            for mid, source, _ in piece.segments():
                number += 1
                target = pending.take(number)
                if target is not None:
                    reader.stream.check_content(target, line=source.line)
                    filled[mid] = target
            writer.write(_fill(piece, filled, for_review=for_review))
        pending.check_all_taken()


def _segments(unit: _Unit, number: int) -> list[Segment]:
    """A unit's segments, the first of which has this number."""
    segments: list[Segment] = []
    for mid, source_element, target_element in unit.segments():
        source, target = unit.content(source_element) or "", unit.content(target_element)
        is_copy = target == source and _state(unit) in unit.dialect.untranslated
        segments.append(
            Segment(
                number + len(segments),
                source_element.line,
                source if source_element.preserve else without_layout(source),
                target,
                is_open=is_copy or not (target or "").strip(),
                translate=unit.translate and not (mid and mid in unit.locked),
                syntax="xml",
            )
        )
    return segments


def _state(unit: _Unit) -> str:
    if unit.dialect.state_on_unit:
        return unit.element.attributes.get("state", "initial")
    return unit.target.attributes.get("state", "") if unit.target else ""


def _fill(unit: _Unit, filled: dict[str, str], *, for_review: bool) -> bytes:
    """A unit's bytes with some targets in their places, by mid ("": the whole target)."""
    if not filled:
        return unit.raw
    edits: list[tuple[int, int, str]] = []
    state = {"state": unit.dialect.filled[for_review]}
    targets = unit.marks.get("target", {})
    if unit.dialect.state_on_unit:
        edits.append(_edit_tag(unit, unit.element, state))
        state = {}
    elif for_review and unit.element.attributes.get("approved") == "yes":  # what somebody approved is no longer there
        edits.append(_edit_tag(unit, unit.element, {"approved": "no"}))
    if "" not in filled and filled.keys() <= targets.keys():
        assert unit.target, "marks are in a target"
        edits.append(_edit_tag(unit, unit.target, state))
        for mid, text in filled.items():
            edits += _edit_content(unit, targets[mid], text, {})
    else:
        content = filled[""] if "" in filled else _skeleton(unit, filled)
        edits += _edit_content(unit, unit.target, content, state) if unit.target else [_insertion(unit, content, state)]
    pieces: list[bytes] = []
    copied = unit.element.tag
    for start, end, text in sorted(edits):
        pieces += [
            unit.raw[copied - unit.element.tag : start - unit.element.tag],
            text.encode(unit.encoding, "xmlcharrefreplace"),
        ]
        copied = end
    return b"".join([*pieces, unit.raw[copied - unit.element.tag :]])


def _skeleton(unit: _Unit, filled: dict[str, str]) -> str:
    """The content of a target that is built anew: the segmented source with targets in the place of its segments."""
    whole = unit.texts["seg-source"]
    pieces: list[str] = []
    copied = whole.content
    for mid, source, target in unit.segments():
        blank = unit.content(source) or ""
        text = filled.get(mid, unit.content(target) or ("" if blank.strip() else blank))
        pieces.append(unit.slice(copied, source.tag))
        pieces += [text for _, _, text in _edit_content(unit, source, text, {})]
        copied = source.end if source.end == source.content else source.content_end
    return "".join([*pieces, unit.slice(copied, whole.content_end)])


def _edit_tag(unit: _Unit, element: _Element, attributes: dict[str, str]) -> tuple[int, int, str]:
    """An element's start tag with these attributes."""
    tag = unit.slice(element.tag, element.content)
    return element.tag, element.content, _with_attributes(tag, attributes)


def _edit_content(
    unit: _Unit, element: _Element, content: str, attributes: dict[str, str]
) -> list[tuple[int, int, str]]:
    """An element with this content, and these attributes in its start tag; an empty tag is opened."""
    start, end, tag = _edit_tag(unit, element, attributes)
    if not tag.endswith("/>"):
        return [(start, end, tag), (element.content, element.content_end, content)]
    return [(start, end, f"{tag[:-2].rstrip()}>{content}</{_name(tag)}>")]


def _insertion(unit: _Unit, content: str, attributes: dict[str, str]) -> tuple[int, int, str]:
    """A new target behind the source, with its indentation, prefix and treatment of white space."""
    before = unit.slice(unit.element.content, unit.source.tag)
    indentation = before[len(before.rstrip(" \t\r\n")) :]
    prefix = _name(unit.slice(unit.source.tag, unit.source.content)).rpartition("source")[0]
    if _XML_SPACE in unit.source.attributes:
        attributes = {"xml:space": unit.source.attributes[_XML_SPACE], **attributes}
    tag = _with_attributes(f"<{prefix}target>", attributes)
    place = unit.texts.get("seg-source", unit.source).end
    return place, place, f"{indentation}{tag}{content}</{prefix}target>"


def _name(tag: str) -> str:
    """The name in a start tag, as written."""
    return tag[1:].split(None, 1)[0].rstrip("/>")


def _with_attributes(tag: str, attributes: dict[str, str]) -> str:
    """A start tag whose attributes have these values; a subState is that of the state before, and goes."""
    end = len(_name(tag)) + 1
    pieces = [tag[:end]]
    missing = {
        name: value.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
        for name, value in attributes.items()
    }
    while found := _ATTRIBUTE.match(tag, end):
        end = found.end()
        if "state" in attributes and found["name"] == "subState":
            continue
        value = missing.pop(found["name"], None)
        pieces.append(found[0] if value is None else f'{found["before"]}"{value}"')
    pieces += [f' {name}="{value}"' for name, value in missing.items()]
    return "".join([*pieces, tag[end:]])


class _Reader:
    """One passage over an XLIFF file: an ``XmlHandler`` that finds the units."""

    def __init__(self, path: FilePath, languages: tuple[str, str], *, may_turn: bool = False) -> None:
        """``languages`` are those wanted; ``may_turn``: a file the other way round will do."""
        self.stream = XmlStream(path, self, room=_ROOM, keep_raw=True, namespaces=True)
        self.adds_language = False  # that XLIFF 2 must have once there are targets
        self._languages = languages
        self._may_turn = may_turn
        self._found: deque[tuple[int, int, _Unit | bytes]] = deque()  # places in the file, and what stands there
        self._namespace = ""
        self._dialect = _DIALECTS["1"]
        self._is_turned = False
        self._names: list[str] = []  # of the open elements; "" for those of other namespaces
        self._translate = [True]  # as the open elements say
        self._preserve = [False]
        self._unit: _Unit | None = None
        self._open: list[tuple[int, _Element]] = []  # what is being gathered, with its depth
        self._text = ""  # the one being read

    def units(self) -> Iterator[_Unit]:
        """The units in the order of the file; memory holds one."""
        for piece in self.pieces():
            if isinstance(piece, _Unit):
                yield piece

    def pieces(self) -> Iterator[_Unit | bytes]:
        """The whole file in order: its units, and the bytes between them."""
        copied = 0
        for _ in self.stream.chunks():
            while self._found:
                start, end, piece = self._found.popleft()
                yield self.stream.raw(copied, start)
                yield piece
                copied = end
            if self._names and self._unit is None and self.stream.offset > copied:
                yield self.stream.raw(copied, self.stream.offset)
                copied = self.stream.offset
            self.stream.release(copied)
        yield self.stream.raw(copied, sys.maxsize)

    def start(self, name: str, attributes: dict[str, str], /) -> None:
        """Take a start tag."""
        namespace, _, local = name.rpartition(" ")
        if not self._names:
            self._begin(namespace, local, attributes)
        core = local if namespace == self._namespace else ""
        parent = self._names[-1] if self._names else ""
        self._names.append(core)
        self._inherit(core, attributes)
        if core == self._dialect.languages[0]:
            self._check_languages(attributes)
        if self._unit is not None:
            self._start_inside(self._unit, name, core, attributes)
        elif core == self._dialect.unit and parent in self._dialect.parents:
            element = self._gather(attributes)
            self.stream.open_since = element.tag
            self._unit = _Unit(
                element,
                self._dialect,
                self.stream.encoding,
                translate=self._translate[-1] and not _is_locked(attributes),
                is_turned=self._is_turned,
            )

    def end(self, name: str, /) -> None:
        """Take an end tag, or the end of an empty tag."""
        del name
        depth = len(self._names)
        self._names.pop()
        self._translate.pop()
        self._preserve.pop()
        if self._unit is None or self._open[-1][0] != depth:
            return
        element = self._open.pop()[1]
        element.content_end = self.stream.offset
        is_empty_tag = element.content == element.content_end and self._is_empty_tag(element)
        element.end = element.content if is_empty_tag else self.stream.tag_end(element.content_end)
        if len(self._open) == 1:
            self._text = ""
        if not self._open:
            self._finish(self._unit)

    def _is_empty_tag(self, element: _Element) -> bool:
        return self.stream.raw(element.tag, element.content).decode(self.stream.encoding).endswith("/>")

    def _begin(self, namespace: str, local: str, attributes: dict[str, str]) -> None:
        """Learn the version from the root element."""
        version = attributes.get("version", "") or namespace.rpartition(":")[2]
        if local != "xliff":
            raise self.stream.error(f"<{local[:40]}> as the outermost element", "<xliff>", "check the file's suffix")
        if version.partition(".")[0] not in _DIALECTS:
            raise self.stream.error(
                f"XLIFF of the version {version[:40]!r}", "1.0 to 1.2, or 2.0 to 2.2", f"{_EXPORT} as one of these"
            )
        self._namespace = namespace
        self._dialect = _DIALECTS[version.partition(".")[0]]
        holder, _, attribute = self._dialect.languages
        if self.adds_language and holder == "xliff" and attribute not in attributes and self._languages[1]:
            start = self.stream.offset
            end = self.stream.tag_end(start)
            tag = self.stream.raw(start, end).decode(self.stream.encoding)
            added = _with_attributes(tag, {attribute: self._languages[1]})
            self._found.append((start, end, added.encode(self.stream.encoding)))

    def _inherit(self, core: str, attributes: dict[str, str]) -> None:
        """Note what an element says of itself and of what is inside it."""
        translate = attributes.get("translate", "") if core in self._dialect.holders else ""
        self._translate.append({"yes": True, "no": False}.get(translate, self._translate[-1]))
        space = attributes.get(_XML_SPACE, "")
        self._preserve.append({"preserve": True, "default": False}.get(space, self._preserve[-1]))

    def _check_languages(self, attributes: dict[str, str]) -> None:
        """Raise CorpusError when the file is not for the languages that were asked for."""
        names = self._dialect.languages[1:]
        found = [attributes.get(name, "") for name in names]
        wanted = self._languages
        mismatches = [place for place in (0, 1) if not _serves(wanted[place], found[place])]
        self._is_turned = bool(
            mismatches and self._may_turn and _serves(wanted[1], found[0]) and _serves(wanted[0], found[1])
        )
        if mismatches and not self._is_turned:
            place = mismatches[0]
            raise self.stream.error(
                f'{names[place]}="{found[place][:40]}"', wanted[place], "take the model or file of these languages"
            )

    def _gather(self, attributes: dict[str, str]) -> _Element:
        """Begin an element whose place is wanted."""
        start = self.stream.offset
        element = _Element(start, self.stream.tag_end(start), attributes, self.stream.line, self._preserve[-1])
        self._open.append((len(self._names), element))
        return element

    def _start_inside(self, unit: _Unit, name: str, core: str, attributes: dict[str, str]) -> None:
        """Take a start tag inside a unit."""
        depth = len(self._names) - self._open[0][0]
        if depth == 1 and core in self._dialect.texts:
            if core in unit.texts:
                raise self.stream.error(f"a second <{core}> in one <{self._dialect.unit}>", "one", _EXPORT)
            self._text = core
            unit.texts[core] = self._gather(attributes)
        elif core == "mrk" and attributes.get("mtype") == "seg" and self._text and len(self._open) == 2:
            marks = unit.marks.setdefault(self._text, {})
            mid = attributes.get("mid", "")
            unit.has_like_marks |= not mid or mid in marks
            marks[mid] = self._gather(attributes)
        elif name == _SDL_SEGMENT and attributes.get("locked") == "true":
            unit.locked.add(attributes.get("id", ""))

    def _finish(self, unit: _Unit) -> None:
        """Hand a unit over."""
        element = unit.element
        if "source" not in unit.texts:
            raise self.stream.error(
                f"a <{self._dialect.unit}> without a <source>", "one in each", _EXPORT, line=element.line
            )
        unit.raw = self.stream.raw(element.tag, element.end)
        self._found.append((element.tag, element.end, unit))
        self._unit = None
        self.stream.open_since = None


def _is_locked(attributes: dict[str, str]) -> bool:
    """Whether a unit is locked: ``mq:locked="locked"`` (memoQ), ``m:locked="true"`` (Phrase)."""
    return any(name.endswith(" locked") and value in ("locked", "true") for name, value in attributes.items())


def _serves(wanted: str, found: str) -> bool:
    return not wanted or not found or matches(wanted, found)
