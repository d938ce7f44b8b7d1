"""Texts with markup, translated: what must be kept is kept, or reported for that text.

A model sees placeholders, URLs and the like in the text, and copies what it has learnt to copy. What it loses is
sought again: by a search that must write it, then behind a number or a name that stands in for it, and at last
it is put in by position. Tags are out of the model's sight and come back by alignment.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from headway.text.alignment import Span
from headway.text.comparison import difference
from headway.text.escape import Escaper
from headway.text.markup import Marked, parse
from headway.text.placement import Atom, place_marks
from headway.text.tag import Syntax
from headway.translate.decoding import Decoding
from headway.translate.draft import Draft, draft_of, mend, shown
from headway.translate.lines import CHUNK, in_chunks
from headway.translate.phrases import has_phrases
from headway.translate.retry import RETRIES, MarkedRequest, try_again
from headway.translate.translation import Translation
from headway.translate.translator import Translator

EMPTY = "the translation is empty"  # a problem of its own kind: the tags may all be there


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
    request = MarkedRequest(translator, decoding, batch_tokens, target_prefixes, phrases, tags, with_alignment)
    blank = {place for place, marked in enumerate(sources) if marked.marks and marked.is_blank}
    tagged = [place for place, marked in enumerate(sources) if marked.has_tags and place not in blank]
    others = [place for place, marked in enumerate(sources) if not marked.has_tags and place not in blank]
    drafts: dict[int, Draft] = {}
    for places, is_aligned in ((others, False), (tagged, True)):
        found = request.translate([sources[place].text for place in places], places, with_alignment=is_aligned)
        drafts |= {
            place: draft_of(sources[place], translation) for place, translation in zip(places, found, strict=True)
        }
    for retry in RETRIES:
        try_again(retry, sources, drafts, request)
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


def _finish(marked: Marked, draft: Draft, phrases: Sequence[str]) -> MarkedTranslation:
    """The text with everything put in, checked against its source, and for the phrases asked for."""
    alternatives = tuple(_finish(marked, draft_of(marked, other), phrases) for other in draft.translation.alternatives)
    if not marked.marks:
        escaper = Escaper(marked)
        text, notes, num_replaced = escaper.write(draft.text), (), escaper.num_replaced
        missing, extra, crossed = (), tuple(draft.text[piece.start : piece.end] for piece in draft.match.extra), ()
    else:
        draft, notes = mend(marked, draft)
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
        notes = (*notes, *(f"{shown(marked.marks[place].raw)} was put in by position" for place in absent))
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


def _is_empty(marked: Marked, draft: Draft) -> bool:
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
    problems = [f"{shown(string)} is missing" for string in missing]
    problems += [f"{shown(string)} is more than the source has" for string in extra]
    problems += [f"{shown(string)} stands before the tag that it closes" for string in crossed]
    if num_replaced:
        what = "1 character" if num_replaced == 1 else f"{num_replaced:,} characters"
        problems.append(f"{what} that XML cannot hold became U+FFFD")
    return _counted(problems)
