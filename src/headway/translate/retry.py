"""Further ways to translate a text whose translation lacks a mark: asked for in the search, or behind a stand-in."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from headway.text.alignment import Edits, Span, links, move_links
from headway.text.markup import Marked
from headway.text.tokenizer import UNK_ID, Tokenizer
from headway.translate.decoding import Decoding
from headway.translate.draft import Draft, draft_of, looked_through
from headway.translate.translation import Translation
from headway.translate.translator import Translator

_MOST_PHRASES = 8  # marks of one text that a search is asked for ...
_LONGEST_PHRASES = 200  # ... and their characters, all together
_MOST_MASKED = 24  # stretches of one text that others stand in for


@dataclass(frozen=True, slots=True)
class MarkedRequest:
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


Retry = Callable[[dict[int, Marked], MarkedRequest], dict[int, Draft]]


def try_again(retry: Retry, sources: Sequence[Marked], drafts: dict[int, Draft], request: MarkedRequest) -> None:
    """Translate once more, in another way, what lacks a mark; what comes out better is taken."""
    failed = {place: sources[place] for place, draft in drafts.items() if draft.match.missing}
    if not failed:
        return
    for place, draft in retry(failed, request).items():
        if draft.badness < drafts[place].badness:
            drafts[place] = draft


def _by_phrases(failed: dict[int, Marked], request: MarkedRequest) -> dict[int, Draft]:
    """A retry in which the search must write every mark as often as the source has it; not where no search can."""
    if not request.translator.leads_to_phrases:
        return {}
    strings = {
        place: [mark.shown for mark in marked.marks if mark.kind == "inline"] for place, marked in failed.items()
    }
    tokenizer = request.translator.target_tokenizer
    strings = {place: own for place, own in strings.items() if _can_be_phrases(own, tokenizer)}
    found = request.again({place: failed[place].text for place in strings}, strings) if strings else {}
    return {place: draft_of(failed[place], translation) for place, translation in found.items()}


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

    def retry(failed: dict[int, Marked], request: MarkedRequest) -> dict[int, Draft]:
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


def _unmasked(marked: Marked, mask: _Mask, translation: Translation) -> Draft | None:
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
    return looked_through(
        marked, translation, made.apply(translation.text), move_links(pairs, source=mask.undo, target=made)
    )


def _two_digit_numbers() -> Iterator[str]:
    """Numbers that text seldom has, and that a model copies digit by digit."""
    return (str(number) for number in range(97, 20, -1) if number % 10)


def _capitals() -> Iterator[str]:
    """Short names in capitals."""
    return (first + second for first in "XQZKV" for second in "BDFGJKRTWN")


RETRIES: tuple[Retry, ...] = (_by_phrases, _masked_by(_two_digit_numbers), _masked_by(_capitals))
