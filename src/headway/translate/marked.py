"""Texts with markup, translated: what must be kept is kept, or reported for that text.

A model sees placeholders, URLs and the like in the text, and copies what it has learnt to copy. What it loses is
sought again: by a search that must write it, then behind a number or a name that stands in for it, and at last
it is put in by position. Tags are out of the model's sight and come back by alignment.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from headway.text.alignment import Edits, Link, Span, links, move_links
from headway.text.comparison import Match, difference, find_marks, match_marks
from headway.text.escape import Escaper
from headway.text.markup import Marked, parse
from headway.text.placeholder import Found, What
from headway.text.placement import Atom, place_marks
from headway.text.tag import Syntax
from headway.text.tokenizer import UNK_ID, Tokenizer
from headway.translate.decoding import Decoding
from headway.translate.lines import CHUNK, in_chunks
from headway.translate.phrases import has_phrases
from headway.translate.translation import Translation
from headway.translate.translator import Translator

_MOST_PHRASES = 8  # marks of one text that a search is asked for ...
_LONGEST_PHRASES = 200  # ... and their characters, all together
_MOST_MASKED = 24  # stretches of one text that others stand in for
_LONGEST_SHOWN = 60  # characters of a tag in a message
EMPTY = "the translation is empty"  # a problem of its own kind: the tags may all be there
_REMOVED = ("placeholder", "tag", "entity")  # what goes where a model invents it; the rest is reported


@dataclass(frozen=True, slots=True)
class MarkedTranslation:
    """A finished text in the syntax of its source.

    ``tags_ok``: it has exactly the tags, placeholders, URLs, addresses (and numbers, where asked for) of the source;
    None where that was not looked at.
    ``problems`` says what it lacks, has beyond, or could not write, and that it is ``EMPTY``; ``notes`` says what was
    put in or taken out without the model. ``translation`` is what the model made of the text without its tags; of text
    whose placeholders only came out right behind stand-ins, with these. ``alternatives``: the further ones of an n-best
    list.
    """

    text: str
    translation: Translation
    tags_ok: bool | None = True
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    alternatives: tuple["MarkedTranslation", ...] = field(default=())


@dataclass(frozen=True, slots=True)
class _Request:
    """How to translate: the translator and what it is told each time."""

    translator: Translator
    decoding: Decoding | None
    batch_tokens: int | None
    target_prefixes: Sequence[str] | None
    phrases: Sequence[Sequence[str]] | None
    tags: Sequence[str] | None
    with_alignment: bool

    def translate(self, texts: Sequence[str], places: Sequence[int], *, with_alignment: bool) -> list[Translation]:
        """Translate texts, which stand at ``places`` of all."""
        if not texts:
            return []
        prefixes, phrases, tags = self.target_prefixes, self.phrases, self.tags
        return self.translator.translate(
            texts,
            decoding=self.decoding,
            batch_tokens=self.batch_tokens,
            target_prefixes=None if prefixes is None else [prefixes[place] for place in places],
            phrases=None if phrases is None else [phrases[place] for place in places],
            tags=None if tags is None else [tags[place] for place in places],
            with_alignment=with_alignment or self.with_alignment,
        )

    def again(self, texts: dict[int, str], strings: dict[int, list[str]] | None = None) -> dict[int, Translation]:
        """Translate these once more with alignment, by a beam, each with ``strings`` that it must contain."""
        decoding = self.decoding or Decoding()
        if decoding.sampling or decoding.diversity or decoding.risk:
            decoding = replace(decoding, sampling=None, diversity=None, risk=None, n_best=None)
        request = replace(self, decoding=decoding)
        if strings:
            own = self.phrases or [()] * (max(texts) + 1)
            wanted = {place: [*own[place], *strings.get(place, ())] for place in texts}
            request = replace(request, phrases=[wanted.get(place, []) for place in range(max(texts) + 1)])
        found = request.translate(list(texts.values()), list(texts), with_alignment=True)
        return dict(zip(texts, found, strict=True))


@dataclass(frozen=True, slots=True)
class _Draft:
    """A translation without tags, and which inline marks of the source it has (places count inline marks only)."""

    translation: Translation
    text: str
    match: Match
    pairs: list[Link] | None = None

    @property
    def badness(self) -> tuple[int, int]:
        """How much is wrong: what is missing, what is there beyond."""
        return len(self.match.missing), len(self.match.extra)


def translate_marked(
    translator: Translator,
    texts: Sequence[str],
    *,
    syntax: Syntax = "plain",
    numbers: bool = False,
    decoding: Decoding | None = None,
    batch_tokens: int | None = None,
    target_prefixes: Sequence[str] | None = None,
    phrases: Sequence[Sequence[str]] | None = None,
    tags: Sequence[str] | None = None,
    with_alignment: bool = False,
) -> list[MarkedTranslation]:
    """Translate each text with its markup; the results come in the same order.

    ``syntax``: plain text, or the raw content of an HTML or XML element (see ``headway.text.markup.parse``).
    ``numbers`` compares numbers too, by their digits. The other settings and the errors are those of
    ``Translator.translate``.
    """
    return translate_parsed(
        translator,
        [parse(text, syntax=syntax, numbers=numbers) for text in texts],
        decoding=decoding,
        batch_tokens=batch_tokens,
        target_prefixes=target_prefixes,
        phrases=phrases,
        tags=tags,
        with_alignment=with_alignment,
    )


def translate_parsed(
    translator: Translator,
    sources: Sequence[Marked],
    *,
    decoding: Decoding | None = None,
    batch_tokens: int | None = None,
    target_prefixes: Sequence[str] | None = None,
    phrases: Sequence[Sequence[str]] | None = None,
    tags: Sequence[str] | None = None,
    with_alignment: bool = False,
) -> list[MarkedTranslation]:
    """Translate texts that ``headway.text.markup.parse`` has read, each in its own syntax.

    Text without marks takes the plain way; text with nothing but marks comes back as it is, without the model.
    """
    request = _Request(translator, decoding, batch_tokens, target_prefixes, phrases, tags, with_alignment)
    blank = {place for place, marked in enumerate(sources) if marked.marks and marked.is_blank}
    tagged = [place for place, marked in enumerate(sources) if marked.has_tags and place not in blank]
    others = [place for place, marked in enumerate(sources) if not marked.has_tags and place not in blank]
    drafts: dict[int, _Draft] = {}
    for places, is_aligned in ((others, False), (tagged, True)):
        found = request.translate([sources[place].text for place in places], places, with_alignment=is_aligned)
        drafts |= {place: _draft(sources[place], translation) for place, translation in zip(places, found, strict=True)}
    for retry in RETRIES:
        _try_again(retry, sources, drafts, request)
    untouched = Translation("", alignment=() if with_alignment else None)
    finished = [
        _finish(marked, drafts[place], own)
        if place in drafts
        else MarkedTranslation(marked.source, replace(untouched, text=marked.text, phrases_met=not own))
        for place, (marked, own) in enumerate(zip(sources, phrases or [()] * len(sources), strict=True))
    ]
    return finished if with_alignment else [_without_alignment(one) for one in finished]


def translate_parsed_lines(
    translator: Translator,
    sources: Iterable[Marked],
    *,
    decoding: Decoding | None = None,
    batch_tokens: int | None = None,
    target_prefix: str = "",
    phrases: Iterable[Sequence[str]] | None = None,
    with_alignment: bool = False,
    chunk: int = CHUNK,
) -> Iterator[MarkedTranslation]:
    """Translate as ``translate_parsed`` does, as texts come, ``chunk`` at most at a time; memory holds one chunk."""
    wanted = None if phrases is None else iter(phrases)
    for some in in_chunks(sources, chunk=chunk):
        yield from translate_parsed(
            translator,
            some,
            decoding=decoding,
            batch_tokens=batch_tokens,
            target_prefixes=[target_prefix] * len(some) if target_prefix else None,
            phrases=None if wanted is None else list(islice(wanted, len(some))),
            with_alignment=with_alignment,
        )


def _without_alignment(marked: MarkedTranslation) -> MarkedTranslation:
    """The same without what was only needed to place its marks."""
    if marked.translation.alignment is None:
        return marked
    return replace(marked, translation=replace(marked.translation, alignment=None))


def unchecked(translation: Translation, source: str) -> MarkedTranslation:
    """A translation as it is, its alternatives too, of a source whose markup was not looked at."""
    others = tuple(unchecked(other, source) for other in translation.alternatives)
    problems = (EMPTY,) if not translation.text.strip() and any(map(str.isalnum, source)) else ()
    return MarkedTranslation(translation.text, translation, tags_ok=None, problems=problems, alternatives=others)


def _draft(marked: Marked, translation: Translation) -> _Draft:
    """What the model made of a text, looked through."""
    pairs = None
    if translation.alignment is not None:
        pairs = links(
            marked.text,
            translation.text,
            source_tokens=translation.source_tokens,
            target_tokens=translation.tokens,
            alignment=translation.alignment,
        )
    return _mend_spelling(marked, _looked_through(marked, translation, translation.text, pairs))


def _looked_through(marked: Marked, translation: Translation, text: str, pairs: list[Link] | None) -> _Draft:
    """A text with which inline marks of the source it has."""
    found = find_marks(text, numbers=marked.numbers)
    wanted: list[tuple[str, What]] = [(mark.shown, mark.what) for mark in marked.marks if mark.kind == "inline"]
    return _Draft(translation, text, match_marks(wanted, text, found), pairs)


def _mend_spelling(marked: Marked, draft: _Draft) -> _Draft:
    """Where a mark came out in other case or with other white space, write it as the source has it."""
    if not (draft.match.missing and draft.match.extra):
        return draft
    inline = [mark for mark in marked.marks if mark.kind == "inline"]
    missing: dict[str, list[int]] = {}
    for place in draft.match.missing:
        missing.setdefault(_loosely(inline[place].shown), []).append(place)
    edits: list[tuple[int, int, str]] = []
    for piece in draft.match.extra:
        same = missing.get(_loosely(draft.text[piece.start : piece.end]))
        if same:
            edits.append((piece.start, piece.end, inline[same.pop(0)].shown))
    return _edited(marked, draft, edits)


def _loosely(string: str) -> str:
    """A string without what a model may change by mistake."""
    return "".join(string.split()).casefold()


def _edited(marked: Marked, draft: _Draft, edits: list[tuple[int, int, str]]) -> _Draft:
    """The draft after changes of its text."""
    if not edits:
        return draft
    made = Edits(tuple(sorted(edits)))
    pairs = None if draft.pairs is None else move_links(draft.pairs, target=made)
    return _looked_through(marked, draft.translation, made.apply(draft.text), pairs)


Retry = Callable[[dict[int, Marked], _Request], dict[int, _Draft]]


def _try_again(retry: Retry, sources: Sequence[Marked], drafts: dict[int, _Draft], request: _Request) -> None:
    """Translate once more, in another way, what lacks a mark; what comes out better is taken."""
    failed = {place: sources[place] for place, draft in drafts.items() if draft.match.missing}
    if not failed:
        return
    for place, draft in retry(failed, request).items():
        if draft.badness < drafts[place].badness:
            drafts[place] = draft


def _by_phrases(failed: dict[int, Marked], request: _Request) -> dict[int, _Draft]:
    """A retry in which the search must write every mark as often as the source has it; not where no search can."""
    if not request.translator.leads_to_phrases:
        return {}
    strings = {
        place: [mark.shown for mark in marked.marks if mark.kind == "inline"] for place, marked in failed.items()
    }
    tokenizer = request.translator.target_tokenizer
    strings = {place: own for place, own in strings.items() if _can_be_phrases(own, tokenizer)}
    found = request.again({place: failed[place].text for place in strings}, strings) if strings else {}
    return {place: _draft(failed[place], translation) for place, translation in found.items()}


def _can_be_phrases(strings: Sequence[str], tokenizer: Tokenizer) -> bool:
    """Whether a search can be asked for all of these: not too many or too long, no line end, in the vocabulary."""
    return (
        len(strings) <= _MOST_PHRASES
        and sum(map(len, strings)) <= _LONGEST_PHRASES
        and not any("\n" in string or "\r" in string for string in strings)
        and not any(UNK_ID in token_ids for token_ids in tokenizer.encode_batch(strings))
    )


@dataclass(frozen=True, slots=True)
class _Mask:
    """A text in which others stand in for its marks: where they stand, and what they stand for."""

    text: str
    spans: tuple[Span, ...]
    originals: tuple[str, ...]

    @property
    def undo(self) -> Edits:
        """What makes it the source's text again."""
        return Edits(tuple((*span, new) for span, new in zip(self.spans, self.originals, strict=True)))


def _masked_by(names: Callable[[], Iterator[str]]) -> Retry:
    """A retry in which names stand in for marks."""

    def retry(failed: dict[int, Marked], request: _Request) -> dict[int, _Draft]:
        masks = {place: _mask(marked, names()) for place, marked in failed.items()}
        some = {place: mask for place, mask in masks.items() if mask is not None}
        found = request.again({place: mask.text for place, mask in some.items()}) if some else {}
        drafts = {place: _unmasked(failed[place], some[place], translation) for place, translation in found.items()}
        return {place: draft for place, draft in drafts.items() if draft is not None}

    return retry


def _mask(marked: Marked, names: Iterator[str]) -> _Mask | None:
    """The text with a name for each run of marks; None where they are too many or no name is left."""
    runs = _runs(marked)
    if len(runs) > _MOST_MASKED:
        return None
    unused = (name for name in names if name not in marked.text)
    edits = [(start, end, name) for (start, end), name in zip(runs, unused, strict=False)]
    if len(edits) < len(runs):
        return None
    made = Edits(tuple(edits))
    return _Mask(made.apply(marked.text), tuple(made.move(runs)), tuple(marked.text[start:end] for start, end in runs))


def _runs(marked: Marked) -> list[Span]:
    """The stretches of inline marks, those that touch as one."""
    runs: list[Span] = []
    for start, end in marked.inline_spans():
        if runs and runs[-1][1] == start:
            runs[-1] = (runs[-1][0], end)
        else:
            runs.append((start, end))
    return runs


def _unmasked(marked: Marked, mask: _Mask, translation: Translation) -> _Draft | None:
    """The draft with the marks in their places; None where a name was lost or doubled."""
    edits: list[tuple[int, int, str]] = []
    for (start, end), original in zip(mask.spans, mask.originals, strict=True):
        name = mask.text[start:end]
        found = [match.span() for match in re.finditer(rf"(?<![0-9A-Za-z]){name}(?![0-9A-Za-z])", translation.text)]
        if len(found) != 1:
            return None
        edits.append((*found[0], original))
    made = Edits(tuple(sorted(edits)))
    pairs = links(
        mask.text,
        translation.text,
        source_tokens=translation.source_tokens,
        target_tokens=translation.tokens,
        alignment=translation.alignment or (),
    )
    return _looked_through(
        marked, translation, made.apply(translation.text), move_links(pairs, source=mask.undo, target=made)
    )


def _two_digit_numbers() -> Iterator[str]:
    """Numbers that text seldom has, and that a model copies digit by digit."""
    return (str(number) for number in range(97, 20, -1) if number % 10)


def _capitals() -> Iterator[str]:
    """Short names in capitals."""
    return (first + second for first in "XQZKV" for second in "BDFGJKRTWN")


RETRIES: tuple[Retry, ...] = (_by_phrases, _masked_by(_two_digit_numbers), _masked_by(_capitals))


def _finish(marked: Marked, draft: _Draft, phrases: Sequence[str]) -> MarkedTranslation:
    """The text with everything put in, checked against its source, and for the phrases asked for."""
    alternatives = tuple(_finish(marked, _draft(marked, other), phrases) for other in draft.translation.alternatives)
    if not marked.marks:
        escaper = Escaper(marked)
        text, notes, num_replaced = escaper.write(draft.text), (), escaper.num_replaced
        missing, extra, crossed = (), tuple(draft.text[piece.start : piece.end] for piece in draft.match.extra), ()
    else:
        draft, notes = _mend(marked, draft)
        inline = [place for place, mark in enumerate(marked.marks) if mark.kind == "inline"]
        absent = [inline[place] for place in draft.match.missing if marked.marks[inline[place]].what != "number"]
        placed = place_marks(
            marked,
            draft.text,
            atoms=[
                Atom(inline[place], (piece.start, piece.end))
                for piece, place in draft.match.kept
                if marked.marks[inline[place]].what != "number"  # 1,234.50 may have become 1.234,50
            ],
            absent=absent,
            pairs=draft.pairs,
        )
        notes = (*notes, *(f"{_shown(marked.marks[place].raw)} was put in by position" for place in absent))
        text, num_replaced = placed.text, placed.num_replaced
        found = difference(marked, text)
        missing, extra, crossed = found.missing, found.extra, found.crossed
    problems = _problems(missing, extra, crossed, num_replaced)
    problems = (EMPTY, *problems) if _is_empty(marked, draft) else problems
    tags_ok = not (missing or extra or crossed)
    # What was mended may have been a phrase.
    is_met = has_phrases(draft.text, [phrase.strip() for phrase in phrases])
    translation = replace(draft.translation, phrases_met=is_met)
    return MarkedTranslation(text, translation, tags_ok, problems, _counted(notes), alternatives)


def _is_empty(marked: Marked, draft: _Draft) -> bool:
    """Whether the source has words and the translation has nothing but marks and white space; numbers are words."""
    pieces = [*(piece for piece, _ in draft.match.kept), *draft.match.extra]
    marks = [(piece.start, piece.end) for piece in pieces if piece.what != "number"]
    if _outside(draft.text, sorted(marks)).strip():
        return False
    return any(map(str.isalnum, _outside(marked.text, marked.inline_spans())))


def _outside(text: str, spans: Sequence[Span]) -> str:
    """What stands outside these stretches, which are in order."""
    starts = [0, *(end for _, end in spans)]
    ends = [*(start for start, _ in spans), len(text)]
    return "".join(text[start:end] for start, end in zip(starts, ends, strict=True))


def _counted(sentences: Sequence[str]) -> tuple[str, ...]:
    """Each sentence once, with how often it was there where that is more."""
    counts = Counter(sentences)
    return tuple(text if count == 1 else f"{text} ({count:,} times)" for text, count in counts.items())


def _problems(
    missing: Sequence[str], extra: Sequence[str], crossed: Sequence[str], num_replaced: int
) -> tuple[str, ...]:
    """What is wrong with a finished text, a sentence each."""
    problems = [f"{_shown(string)} is missing" for string in missing]
    problems += [f"{_shown(string)} is more than the source has" for string in extra]
    problems += [f"{_shown(string)} stands before the tag that it closes" for string in crossed]
    if num_replaced:
        what = "1 character" if num_replaced == 1 else f"{num_replaced:,} characters"
        problems.append(f"{what} that XML cannot hold became U+FFFD")
    return _counted(problems)


def _mend(marked: Marked, draft: _Draft) -> tuple[_Draft, tuple[str, ...]]:
    """Put what is missing in the place of what was invented, and take out the rest of that; with notes of it."""
    inline = [mark for mark in marked.marks if mark.kind == "inline"]
    missing = [place for place in draft.match.missing if inline[place].what != "number"]
    invented = [piece for piece in draft.match.extra if piece.what in _REMOVED]
    edits: list[tuple[int, int, str]] = []
    notes: list[str] = []
    for piece in invented:
        found = _shown(draft.text[piece.start : piece.end])
        same = [place for place in missing if inline[place].what == piece.what]
        if same:
            chosen = _meant(piece, [(inline[place].offset, place) for place in same], draft.pairs)
            missing.remove(chosen)
            edits.append((piece.start, piece.end, inline[chosen].shown))
            notes.append(f"{_shown(inline[chosen].shown)} was put in the place of {found}")
        else:
            edits.append(_removal(draft.text, piece))
            notes.append(f"{found}, which the source does not have, was taken out")
    return _edited(marked, draft, edits), tuple(notes)


def _meant(piece: Found, candidates: Sequence[tuple[int, int]], pairs: Sequence[Link] | None) -> int:
    """Which missing mark an invented one stands for: the one it is aligned with, or else the first."""
    for link in pairs or ():
        if link.target[0] < piece.end and link.target[1] > piece.start:
            for offset, place in candidates:
                if link.source[0] <= offset < link.source[1]:
                    return place
    return candidates[0][1]


def _removal(text: str, piece: Found) -> tuple[int, int, str]:
    """The edit that takes a piece out, with the space before it where another space or the end follows."""
    start = piece.start
    if text[start - 1 : start] == " " and text[piece.end : piece.end + 1] in ("", " "):
        start -= 1
    return start, piece.end, ""


def _shown(string: str) -> str:
    """A mark in a message, in one line."""
    line = " ".join(string.split())
    return line if len(line) <= _LONGEST_SHOWN else f"{line[: _LONGEST_SHOWN - 4]} ..."
