"""What a model made of a text with marks, before its tags are put back: which marks it has, and what can be mended."""

from collections.abc import Sequence
from dataclasses import dataclass

from headway.text.alignment import Edits, Link, links, move_links
from headway.text.comparison import Match, find_marks, match_marks
from headway.text.markup import Marked
from headway.text.placeholder import Found, What
from headway.translate.translation import Translation

_LONGEST_SHOWN = 60  # characters of a tag in a message
_REMOVED = ("placeholder", "tag", "entity")  # what goes where a model invents it; the rest is reported


@dataclass(frozen=True, slots=True)
class Draft:
    """A translation without tags, and which inline marks of the source it has (places count inline marks only)."""

    translation: Translation
    text: str
    match: Match
    pairs: list[Link] | None = None

    @property
    def badness(self) -> tuple[int, int]:
        """How much is wrong: what is missing, what is there beyond."""
        return len(self.match.missing), len(self.match.extra)


def draft_of(marked: Marked, translation: Translation) -> Draft:
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
    return _mend_spelling(marked, looked_through(marked, translation, translation.text, pairs))


def looked_through(marked: Marked, translation: Translation, text: str, pairs: list[Link] | None) -> Draft:
    """A text with which inline marks of the source it has."""
    found = find_marks(text, numbers=marked.numbers)
    wanted: list[tuple[str, What]] = [(mark.shown, mark.what) for mark in marked.marks if mark.kind == "inline"]
    return Draft(translation, text, match_marks(wanted, text, found), pairs)


def _mend_spelling(marked: Marked, draft: Draft) -> Draft:
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


def _edited(marked: Marked, draft: Draft, edits: list[tuple[int, int, str]]) -> Draft:
    """The draft after changes of its text."""
    if not edits:
        return draft
    made = Edits(tuple(sorted(edits)))
    pairs = None if draft.pairs is None else move_links(draft.pairs, target=made)
    return looked_through(marked, draft.translation, made.apply(draft.text), pairs)


def mend(marked: Marked, draft: Draft) -> tuple[Draft, tuple[str, ...]]:
    """Put what is missing in the place of what was invented, and take out the rest of that; with notes of it."""
    inline = [mark for mark in marked.marks if mark.kind == "inline"]
    missing = [place for place in draft.match.missing if inline[place].what != "number"]
    invented = [piece for piece in draft.match.extra if piece.what in _REMOVED]
    edits: list[tuple[int, int, str]] = []
    notes: list[str] = []
    for piece in invented:
        found = shown(draft.text[piece.start : piece.end])
        same = [place for place in missing if inline[place].what == piece.what]
        if same:
            chosen = _meant(piece, [(inline[place].offset, place) for place in same], draft.pairs)
            missing.remove(chosen)
            edits.append((piece.start, piece.end, inline[chosen].shown))
            notes.append(f"{shown(inline[chosen].shown)} was put in the place of {found}")
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


def shown(string: str) -> str:
    """A mark in a message, in one line."""
    line = " ".join(string.split())
    return line if len(line) <= _LONGEST_SHOWN else f"{line[: _LONGEST_SHOWN - 4]} ..."
