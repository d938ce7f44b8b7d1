"""TMX, the format of translation memories: versions 1.1 to 1.4b, as pairs to train on, and filled in place.

A unit (``tu``) holds one text (``tuv``, in it ``seg``) for each of any number of languages. Of these, one is the source
and another the target: each the first of those that come nearest to the language wanted (``language.distance``), so
that ``en`` takes ``en-US``, but ``en`` first. Further texts of these languages are passed over.

Inline elements: bpt, ept, it, ph and ut hold codes of the file that the text came from. Codes are no text, and neither
is a ``sub`` in them, a text of its own in the midst of another. All else in a segment (hi, and what is not of TMX)
marks text, which stays.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from headway.corpus.compression import FilePath
from headway.corpus.inline import InlineTags, Kind, Piece, Tag, plain, render_pair
from headway.corpus.language import check_language, distance, normalise
from headway.corpus.lines import name_of, open_binary_writer
from headway.corpus.pair import SentencePair
from headway.corpus.segment import PendingTargets, Segment
from headway.corpus.xml_stream import XmlStream
from headway.errors import CorpusError

_ROOM = "corpus/tmx"
_CODES: dict[str, Kind] = {"bpt": "open", "ept": "close", "it": "alone", "ph": "alone", "ut": "alone"}
_CODE_OR_TAG = re.compile(
    r"""<(bpt|ept|it|ph|ut)\b(?:[^>"']++|"[^"]*+"|'[^']*+')*(?<!/)>.*?</\1\s*>"""
    r"""|<!--.*?-->|<!\[CDATA\[.*?\]\]>|<(?:[^>"']++|"[^"]*+"|'[^']*+')*>""",
    re.DOTALL,
)
_STRUCTURE = frozenset({"tmx", "header", "body", "tu", "tuv", "seg"})
_MAX_LANGUAGES = 1000  # different codes that are remembered; a file of strangers may hold millions
_LANGUAGES_NAMED = 12  # in an error message
_TOO_FAR = 1000  # the distance of a language that does not serve; all others are smaller
_SPACE = " \t\r\n"

# Where the reading stands: before the root, outside of units, in a tu, in a tuv, in a seg.
_START, _OUTSIDE, _UNIT, _VARIANT, _SEGMENT = range(5)


@dataclass(slots=True, eq=False)
class _Language:
    """A language of the file: its distances to the source's and the target's, and how many texts are in it."""

    near: tuple[int, int]
    is_wanted: bool
    count: int = 0


@dataclass(slots=True, eq=False)
class _Variant:
    """A text of a unit in one of the languages wanted; the places are byte offsets, -1 where there is none."""

    near: tuple[int, int]
    attribute: str  # that names the language: xml:lang, or lang before TMX 1.4
    tag: int
    pieces: list[Piece]
    line: int = 0  # of its seg
    seg: int = -1
    seg_end: int = -1  # of the seg's end, and of the text's
    end: int = -1


@dataclass(slots=True, eq=False)
class _Unit:
    """A unit with the texts that are wanted; ``tag`` and ``end`` are the byte offsets of its tags."""

    line: int
    tag: int
    variants: list[_Variant] = field(default_factory=list[_Variant])
    end: int = -1

    def choose(self) -> tuple[_Variant | None, _Variant | None]:
        """The source and the target: two different texts, each the nearest that has a seg, or None."""
        source, target = self._nearest(0), self._nearest(1)
        if source is None or source is not target:
            return source, target
        # One text is nearest for both (en, where en-US and en-GB are wanted): one side takes its next, which of them is
        # nearer in all; a text that has no company is the source.
        others = self._nearest(0, source), self._nearest(1, source)
        if others[0] is None or others[1] is None:
            return source, others[1]
        if others[0].near[0] + source.near[1] < source.near[0] + others[1].near[1]:
            return others[0], target
        return source, others[1]

    def _nearest(self, side: int, other_than: _Variant | None = None) -> _Variant | None:
        best, least = None, _TOO_FAR
        for variant in self.variants:
            if variant.near[side] < least and variant.seg >= 0 and variant is not other_than:
                best, least = variant, variant.near[side]
        return best


def read_tmx(
    path: FilePath,
    *,
    languages: tuple[str, str],
    fields: tuple[str, str],
    inline_tags: InlineTags = "drop",
    languages_found: dict[str, int] | None = None,
) -> Iterator[SentencePair]:
    """Yield a pair for each unit of a TMX file; its line is that of the ``tu``. Memory holds one unit.

    A unit that lacks one of the languages is a pair with an empty side, so that cleaning counts it. White space with a
    line break in it becomes one space, and goes at the ends of a text: it is the layout of the file. ``inline_tags``:
    drop leaves them out, keep writes them as ``inline`` says. ``fields`` there are none to choose. ``languages_found``
    is filled with the codes of the file, as written, and the number of texts of each.

    Raises:
        CorpusError: the file is no TMX, is damaged or cut short (after the pairs before that place); no unit has both
            languages (at the end); languages are not given; fields were asked for.

    """
    if any(fields):
        raise CorpusError(
            f"{_ROOM}: {name_of(path)}: found source_field or target_field, wanted neither: a TMX file has no fields "
            f"to choose from. Remedy: leave them out; the languages tell the sides."
        )
    keep = inline_tags == "keep"
    units = _Units(path, languages, raw=False, keep_tags=keep)
    num_whole = 0
    for _ in units.stream.chunks():
        for unit in units.take():
            source, target = unit.choose()
            num_whole += source is not None and target is not None
            sides = source.pieces if source else [], target.pieces if target else []
            texts = render_pair(*sides) if keep else (plain(sides[0]), plain(sides[1]))
            yield SentencePair(_on_one_line(texts[0]), _on_one_line(texts[1]), unit.line)
        if languages_found is not None:
            languages_found.update(units.counts())
    if not num_whole:
        raise units.lacking("a unit with both")


def read_segments(path: FilePath, *, source_language: str, target_language: str) -> Iterator[Segment]:
    """Yield every unit of a TMX file that has the source language; see ``segment.DocumentFormat``.

    Without a source language, that of the header (srclang) is taken. White space with a line break in it is layout, and
    one space in ``source``, but for that in codes.
    """
    units = _Units(path, (source_language, target_language), raw=True)
    number = 0
    for _ in units.stream.chunks():
        for unit in units.take():
            source, target = unit.choose()
            if source is None:
                continue
            number += 1
            content = None if target is None else units.content(target)
            is_open = content is None or not content.strip()
            text = _content_on_one_line(units.content(source))
            yield Segment(number, source.line, text, content, is_open=is_open, syntax="xml")
        units.stream.release(units.start_of_rest())
    if not number:
        raise units.lacking("a unit with the source language")


def write_targets(
    path: FilePath,
    out: FilePath,
    targets: Iterable[tuple[int, str]],
    *,
    source_language: str,
    target_language: str,
    for_review: bool = True,
) -> None:
    """Write a copy of a TMX file with these targets; see ``segment.DocumentFormat``.

    A target fills the seg of the target language, or makes a new tuv behind the others, indented as the source's. What
    the encoding of the file lacks becomes a character reference. TMX has no word for what waits for review.
    """
    del for_review
    units = _Units(path, (source_language, target_language), raw=True)
    stream, pending = units.stream, PendingTargets(targets, name_of(path))
    number = copied = 0
    with open_binary_writer(out) as writer:
        for _ in stream.chunks():
            for unit in units.take():
                source, target = unit.choose()
                number += source is not None
                content = None if source is None else pending.take(number)
                if source is None or content is None:
                    continue
                stream.check_content(content, line=source.line)
                start, end, new = units.edit(unit, source, target, content)
                writer.write(stream.raw(copied, start) + new)
                copied = end
            safe = max(copied, units.start_of_rest())
            writer.write(stream.raw(copied, safe))
            stream.release(safe)
            copied = safe
        writer.write(stream.raw(copied, stream.num_bytes))
        pending.check_all_taken()


class _Units:
    """Makes units of a document's events. With ``raw`` it keeps their places and bytes, without it their text."""

    def __init__(self, path: FilePath, languages: tuple[str, str], *, raw: bool, keep_tags: bool = False) -> None:
        self.stream = XmlStream(path, self, room=_ROOM, keep_raw=raw)
        self._languages = languages
        self._raw = raw
        self._keep_tags = keep_tags
        self._check_languages()
        self._known: dict[str, _Language] = {}  # by code as written
        self._ready: list[_Unit] = []
        self._state = _START
        self._unit = _Unit(0, 0)
        self._variant: _Variant | None = None  # None where its language is not wanted
        self._has_segment = False
        self._code_depth = 0

    def take(self) -> list[_Unit]:
        """The units that have ended since the last call."""
        ready, self._ready = self._ready, []
        return ready

    def start_of_rest(self) -> int:
        """The byte offset behind which a unit may be open still, or a tag incomplete."""
        return self.stream.offset if self._state <= _OUTSIDE else min(self._unit.tag, self.stream.offset)

    def counts(self) -> dict[str, int]:
        """The languages met so far, as they are written, and how many texts are in each."""
        return {code: language.count for code, language in self._known.items()}

    def lacking(self, wanted: str) -> CorpusError:
        """The error of a file that has not one such unit: the languages that it has, and how often."""
        by_count = sorted(self._known.items(), key=lambda entry: -entry[1].count)
        found = ", ".join(
            f"{code[:40] or 'no language'} in {language.count:,} texts"
            for code, language in by_count[:_LANGUAGES_NAMED]
        )
        more = f" and {len(by_count) - _LANGUAGES_NAMED} more" if len(by_count) > _LANGUAGES_NAMED else ""
        source, target = self._languages
        return CorpusError(
            f"{_ROOM}: {self.stream.name}: found {found or 'no units'}{more}; wanted {wanted} ({source or 'source'}, "
            f"{target}). Remedy: give the languages of the file (--source-language, --target-language)."
        )

    # What expat calls

    def start(self, name: str, attributes: dict[str, str], /) -> None:
        """Take a start tag."""
        if name not in _STRUCTURE and self._state != _START:  # most are inline elements or notes and props of a unit
            if self._variant is not None and self._state == _SEGMENT and not self._raw:
                self._start_inline(name, attributes)
        elif name == "tuv" and self._state == _UNIT:
            self._start_variant(attributes)
        elif name == "seg" and self._state == _VARIANT and not self._has_segment:
            self._start_segment()
        elif name == "tu" and self._state == _OUTSIDE:
            self._unit = unit = _Unit(self.stream.line, self.stream.offset)
            self.stream.open_since = unit.tag
            self._state = _UNIT
        else:
            self._start_structure(name, attributes)

    def end(self, name: str, /) -> None:
        """Take an end tag."""
        if name not in _STRUCTURE:
            if self._variant is not None and self._state == _SEGMENT and not self._raw:
                self._end_inline(name)
        elif name == "seg":  # where each may stand was seen to at its start
            self._end_segment()
        elif name == "tuv":
            if self._raw and self._variant is not None:
                self._variant.end = self.stream.offset
            self._state = _UNIT
        elif name == "tu":
            if self._raw:
                self._unit.end = self.stream.offset
            self.stream.open_since = None
            self._ready.append(self._unit)
            self._state = _OUTSIDE

    # Structure

    def _start_structure(self, name: str, attributes: dict[str, str]) -> None:
        """Take what stands outside of units, and refuse what stands where it does not belong."""
        if self._state == _START:
            if name != "tmx":
                raise self.stream.error(f"<{name[:40]}>", "<tmx>", "check that this is a TMX file")
            self._state = _OUTSIDE
        elif name == "header" and self._state == _OUTSIDE:
            srclang = attributes.get("srclang", "")
            if not self._languages[0] and srclang != "*all*":
                self._languages = srclang, self._languages[1]
        elif name != "body" or self._state != _OUTSIDE:
            where = {_OUTSIDE: "outside of a unit", _UNIT: "in a tu", _VARIANT: "in a tuv", _SEGMENT: "in a seg"}
            found = "a second <seg>" if name == "seg" and self._state == _VARIANT else f"<{name}>"
            raise self.stream.error(
                f"{found} {where[self._state]}", "tu with tuv in it, and in each tuv one seg", "mend the file there"
            )

    def _start_variant(self, attributes: dict[str, str]) -> None:
        code = attributes.get("xml:lang")
        attribute = "lang" if code is None else "xml:lang"
        if code is None:
            code = attributes.get("lang", "")
        language = self._known.get(code) or self._learn(code)
        language.count += 1
        self._state = _VARIANT
        self._has_segment = False
        if language.is_wanted:
            self._variant = _Variant(language.near, attribute, self.stream.offset if self._raw else 0, [])
            self._unit.variants.append(self._variant)
        else:
            self._variant = None

    def _learn(self, code: str) -> _Language:
        """Take note of a language that was not met before."""
        if not self._languages[0]:
            raise self.stream.error(
                "no source language in the header (srclang)", "one", "say which language is the source"
            )
        far = [distance(wanted, code) for wanted in self._languages]
        near = (_TOO_FAR if far[0] is None else far[0], _TOO_FAR if far[1] is None else far[1])
        language = _Language(near, is_wanted=near != (_TOO_FAR, _TOO_FAR))
        if len(self._known) < _MAX_LANGUAGES:
            self._known[code] = language
        return language

    def _start_segment(self) -> None:
        self._state = _SEGMENT
        self._has_segment = True
        variant = self._variant
        if variant is None:
            return
        if self._raw:
            variant.seg, variant.line = self.stream.offset, self.stream.line
        else:
            variant.seg = 0
            self._code_depth = 0
            self.stream.hear(variant.pieces.append)

    def _end_segment(self) -> None:
        self._state = _VARIANT
        if self._variant is None:
            return
        if self._raw:
            self._variant.seg_end = self.stream.offset
        else:
            self.stream.hear(None)

    def _start_inline(self, name: str, attributes: dict[str, str]) -> None:
        """Take an inline element of a text that is wanted."""
        assert self._variant is not None
        if self._code_depth:
            self._code_depth += 1
        elif name not in _CODES:
            if self._keep_tags:
                self._variant.pieces.append(Tag("open", f"<{name}", attributes.get("x", "")))
        else:
            self._code_depth = 1
            tag = Tag(_CODES[name], attributes.get("i", ""), attributes.get("x", ""))
            self._variant.pieces.append(tag)
            self.stream.hear(tag.code.append)

    def _end_inline(self, name: str) -> None:
        assert self._variant is not None
        if self._code_depth:
            self._code_depth -= 1
            if not self._code_depth:
                self.stream.hear(self._variant.pieces.append)
        elif self._keep_tags:
            self._variant.pieces.append(Tag("close", f"<{name}"))

    def _check_languages(self) -> None:
        name = self.stream.name
        source, target = self._languages
        check_language(source, name="source language")
        check_language(target, name="target language")
        if not target or not (source or self._raw):
            raise CorpusError(
                f"{_ROOM}: {name}: found no {'target' if source else 'source'} language to look for, wanted one: a TMX "
                f"file holds many. Remedy: give both languages (data.source_language and data.target_language)."
            )
        if normalise(source) == normalise(target):
            raise CorpusError(
                f"{_ROOM}: {name}: found {source} as source and as target language, wanted two languages. "
                f"Remedy: give another code for one of them."
            )

    # Places in the document

    def content(self, variant: _Variant) -> str:
        """What stands between a seg's tags, as it is written."""
        start = self.stream.tag_end(variant.seg)
        return self.stream.raw(start, variant.seg_end).decode(self.stream.encoding)

    def edit(self, unit: _Unit, source: _Variant, target: _Variant | None, content: str) -> tuple[int, int, bytes]:
        """What to write in the place of which bytes, so that the unit has this target."""
        place = target or next((variant for variant in unit.variants if self._is_place(variant, source)), None)
        if place is None:
            language = f'{source.attribute}="{normalise(self._languages[1])}"'
            at = unit.end - len(self._encode(self._space_before(unit.end, unit.tag)))
            indent = self._space_before(source.tag, unit.tag)
            return at, at, self._encode(f"{indent}<tuv {language}><seg>{content}</seg></tuv>")
        if place.seg >= 0:
            return self._fill(place.seg, place.seg_end, content, "seg")
        return self._fill(place.tag, place.end, f"<seg>{content}</seg>", "tuv", behind=True)

    @staticmethod
    def _is_place(variant: _Variant, source: _Variant) -> bool:
        """Whether a text without a seg waits for a target."""
        return variant is not source and variant.seg < 0 and variant.near[1] < _TOO_FAR

    def _fill(self, tag: int, end: int, content: str, name: str, *, behind: bool = False) -> tuple[int, int, bytes]:
        """Put content between an element's tags, ``behind`` what is there or in its place."""
        tag_end = self.stream.tag_end(tag)
        written = self.stream.raw(tag, tag_end).decode(self.stream.encoding)
        if written.endswith("/>"):
            return tag, tag_end, self._encode(f"{written[:-2].rstrip(_SPACE)}>{content}</{name}>")
        return (end if behind else tag_end), end, self._encode(content)

    def _space_before(self, offset: int, start: int) -> str:
        """The white space that ends at an offset, after ``start``; of a long one its last part."""
        before = self.stream.raw(max(start, offset - 400), offset).decode(self.stream.encoding, "ignore")
        return before[len(before.rstrip(_SPACE)) :]

    def _encode(self, text: str) -> bytes:
        return text.encode(self.stream.encoding, "xmlcharrefreplace")


def _on_one_line(text: str) -> str:
    """White space with a line break in it as one space, and none of it at the ends; other text as it is."""
    if "\n" not in text and "\r" not in text:
        return text
    return _without_breaks(text).strip(_SPACE)


def _without_breaks(text: str) -> str:
    first, *rest = re.split(r"[\r\n]+", text)
    if not rest:
        return text
    middle = [part for line in rest[:-1] if (part := line.strip(_SPACE))]
    return " ".join([first.rstrip(_SPACE), *middle, rest[-1].lstrip(_SPACE)])


def _content_on_one_line(content: str) -> str:
    """The same for raw content: tags, and codes with what is in them, stay as they are."""
    if "\n" not in content and "\r" not in content:
        return content
    pieces: list[str] = []
    place = 0
    for found in _CODE_OR_TAG.finditer(content):
        pieces += [_without_breaks(content[place : found.start()]), found[0]]
        place = found.end()
    return "".join([*pieces, _without_breaks(content[place:])]).strip(_SPACE)
