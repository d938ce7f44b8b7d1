"""Tags put back into a translation: around and before the words that belong to those of the source."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from headway.text.alignment import Link, Span, align_words, words
from headway.text.escape import Escaper
from headway.text.markup import Mark, Marked, is_spaceless

_MOST_WORK = 2_000_000  # words looked at for all nested tags together; what is left then stands at the start
_NEAR = 8  # words in which a neighbour that has a place in the target is sought
_UNKNOWN_COST = 0.25  # of a word without alignment inside a pair of tags, against 1 of one that belongs elsewhere


@dataclass(frozen=True, slots=True)
class Atom:
    """A stretch of the target that is a mark of the source: the place of the mark, and where it stands."""

    mark: int
    span: Span


@dataclass(frozen=True, slots=True)
class Placed:
    """A finished output. ``num_replaced``: characters that XML cannot hold, written as U+FFFD."""

    text: str
    num_replaced: int = 0


def place_marks(
    marked: Marked, target: str, *, atoms: Sequence[Atom], absent: Sequence[int] = (), pairs: Sequence[Link] | None
) -> Placed:
    """Put the tags of a source, and its ``absent`` inline marks, into a target without any.

    A pair of tags spans the words that belong to those it spanned, and never crosses another; a tag alone stands before
    the word of the word that followed it (a closing one after that of the word before it); tags at an end stay there.
    White space stands outside or inside of a tag as in the source. ``atoms`` are the marks that the target has, in the
    order of the target; ``pairs`` the alignment (None: words in the same order). The result is in the syntax of the
    source, and well-formed XML where the source was.
    """
    out_of_text = {place for place, mark in enumerate(marked.marks) if mark.kind != "inline"} | set(absent)
    spans = [span for place, span in _inline(marked) if place not in out_of_text]
    source_words = words(marked.text, whole=spans, cuts=[marked.marks[place].offset for place in sorted(out_of_text)])
    target_words = words(target, whole=[atom.span for atom in atoms])
    aligned = align_words(
        marked.text,
        target,
        source_words=source_words,
        target_words=target_words,
        pairs=pairs,
        anchors=_anchors(marked, atoms, source_words, target_words),
    )
    places = sorted(out_of_text)
    walk = _Walk(
        _tree(marked, source_words, places),
        aligned,
        len(source_words),
        {place for place in places if _leans_back(marked, place)},
    )
    events = _in_order(marked.marks, list(walk.events()))
    return _write(marked, target, target_words=target_words, atoms=atoms, events=events)


def _leans_back(marked: Marked, place: int) -> bool:
    """Whether a mark belongs to the word before it: it closes something, or white space comes only after it."""
    mark = marked.marks[place]
    if mark.kind == "close":
        return True
    return (
        mark.kind == "standalone"
        and bool(_space_after(marked.source, mark.end))
        and not _space_before(marked.source, mark.start)
    )


def _inline(marked: Marked) -> Iterator[tuple[int, Span]]:
    """The places and stretches of the inline marks."""
    for place, mark in enumerate(marked.marks):
        if mark.kind == "inline":
            yield place, (mark.offset, mark.offset + len(mark.shown))


def _anchors(
    marked: Marked, atoms: Sequence[Atom], source_words: Sequence[Span], target_words: Sequence[Span]
) -> list[tuple[int, int]]:
    """Each mark in the target with itself in the source, as places of words."""
    of_source = {start: place for place, (start, _) in enumerate(source_words)}
    of_target = {start: place for place, (start, _) in enumerate(target_words)}
    return [
        (of_source[marked.marks[atom.mark].offset], of_target[atom.span[0]])
        for atom in atoms
        if marked.marks[atom.mark].offset in of_source
    ]


@dataclass(frozen=True, slots=True)
class _Node:
    """A pair of tags, or one mark alone (``last`` is ``first``), over the source words ``start`` to ``end``."""

    first: int
    last: int
    start: int
    end: int
    children: "list[_Node]" = field(default_factory=list)

    @property
    def is_pair(self) -> bool:
        return self.first != self.last


@dataclass(frozen=True, slots=True)
class _Item:
    """Where a node stands in the target: words ``start`` to ``end``, or a place between words where they are equal."""

    start: int
    end: int
    node: _Node


class _Walk:
    """Lays out the nodes of a source over the words of a target, outer ones before inner ones."""

    def __init__(self, roots: list[_Node], aligned: list[int], num_source_words: int, leans_back: set[int]) -> None:
        self._root = _Node(-1, -1, 0, num_source_words, roots)
        self._aligned = aligned
        self._leans_back = leans_back
        self._targets_of: dict[int, list[int]] = {}
        for target, source in enumerate(aligned):
            self._targets_of.setdefault(source, []).append(target)
        self._work = 0

    def events(self) -> Iterator[tuple[int, int]]:
        """(place between target words, mark) in the order of the output."""
        todo: list[tuple[int, int] | _Item] = [_Item(0, len(self._aligned), self._root)]
        while todo:
            task = todo.pop()
            if not isinstance(task, _Item):
                yield task
                continue
            for item in reversed(self._lay_out(task)):
                if item.node.is_pair:
                    todo += [(item.end, item.node.last), item, (item.start, item.node.first)]
                else:
                    todo.append((item.start, item.node.first))

    def _lay_out(self, parent: _Item) -> list[_Item]:
        """The children of a node, each with its place inside of the parent's, in order."""
        nodes = parent.node.children
        if not nodes:
            return []
        self._work += parent.end - parent.start + len(nodes)
        is_cheap = self._work > _MOST_WORK
        spanning = {} if is_cheap else self._spans_of_pairs(parent)
        fence = _Fence(spanning)
        items: list[tuple[int, int, int, _Item]] = []
        for order, node in enumerate(nodes):
            if order in spanning:
                start, end = spanning[order]
            else:
                start = end = parent.start if is_cheap else fence.outside(self._place_between(parent, node), order)
            items.append((start, int(end > start), order, _Item(start, end, node)))
        return [item for *_, item in sorted(items, key=lambda entry: entry[:3])]

    def _spans_of_pairs(self, parent: _Item) -> dict[int, Span]:
        """For the pairs that hold words the target words they span, by their place among the children.

        No two overlap, as none goes across a word of another.
        """
        holders = [
            (node.start, node.end, order)
            for order, node in enumerate(parent.node.children)
            if node.is_pair and node.end > node.start
        ]
        if parent.start == parent.end:
            return {}
        if len(holders) == 1 and holders[0][:2] == (parent.node.start, parent.node.end):
            return {holders[0][2]: (parent.start, parent.end)}
        best = self._best_stretches(parent, holders)
        for start, end, order in holders:
            if order not in best:
                near = self._free_word(parent, start, end, _Fence(best))
                if near >= 0:
                    best[order] = (near, near + 1)
        return best

    def _best_stretches(self, parent: _Item, holders: Sequence[tuple[int, int, int]]) -> dict[int, Span]:
        """For each pair the stretch of highest value: a word of its own counts 1, a word of no pair -1."""
        starts = [start for start, _, _ in holders]
        value: dict[int, float] = {}
        best: dict[int, Span] = {}
        owner, total, began = -1, 0.0, 0
        for place in range(parent.start, parent.end):
            source = self._aligned[place]
            rank = bisect_right(starts, source) - 1
            if source < 0 or rank < 0 or source >= holders[rank][1]:
                total -= _UNKNOWN_COST if source < 0 else 1
                continue
            if holders[rank][2] != owner or total <= 0:
                owner, total, began = holders[rank][2], 0.0, place
            total += 1
            if total > value.get(owner, 0.0):
                value[owner], best[owner] = total, (began, place + 1)
        return best

    def _free_word(self, parent: _Item, start: int, end: int, fence: "_Fence") -> int:
        """A target word of a neighbour of the source words, outside of other pairs; -1 for none."""
        for distance in range(1, _NEAR + 1):
            for source in (start - distance, end - 1 + distance):
                inside = self._targets_inside(source, parent)
                place = next((place for place in inside[:_NEAR] if not fence.holds(place)), -1)
                if place >= 0:
                    return place
        return -1

    def _place_between(self, parent: _Item, node: _Node) -> int:
        """Before the word of the following word, or after that of the word before; at an end where it stood there."""
        outer = parent.node
        if node.start <= outer.start:
            return parent.start
        if node.end >= outer.end:
            return parent.end
        before = [(source, 1) for source in range(node.start - 1, max(node.start - 1 - _NEAR, outer.start - 1), -1)]
        after = [(source, 0) for source in range(node.end, min(node.end + _NEAR, outer.end))]
        near = before[:1] if node.first in self._leans_back else []
        for source, shift in [*near, *after, *before]:
            inside = self._targets_inside(source, parent)
            if inside:
                return inside[-1] + 1 if shift else inside[0]
        share = (node.start - outer.start) / (outer.end - outer.start)
        return parent.start + round(share * (parent.end - parent.start))

    def _targets_inside(self, source: int, parent: _Item) -> Sequence[int]:
        """The target words of a source word inside of a stretch; the first and the last ones where there are many."""
        places = self._targets_of.get(source, []) if source >= 0 else []
        first, last = bisect_left(places, parent.start), bisect_left(places, parent.end)
        if last - first <= 2 * _NEAR:
            return places[first:last]
        return [*places[first : first + _NEAR], *places[last - _NEAR : last]]


class _Fence:
    """Stretches of the target that belong to pairs of tags, which what stands beside must not enter."""

    def __init__(self, spanning: dict[int, Span]) -> None:
        """``spanning``: the stretch of each pair, by its place among its siblings."""
        self._stretches = sorted((span, order) for order, span in spanning.items())
        self._starts = [span[0] for span, _ in self._stretches]

    def holds(self, word: int) -> bool:
        """Whether a word is inside of a pair."""
        rank = bisect_right(self._starts, word) - 1
        return rank >= 0 and word < self._stretches[rank][0][1]

    def outside(self, place: int, order: int) -> int:
        """The place, or the nearer end in the order of the source of the pair that it would break."""
        rank = bisect_left(self._starts, place) - 1
        if rank < 0 or place >= self._stretches[rank][0][1]:
            return place
        (start, end), other = self._stretches[rank]
        return start if order < other else end


def _tree(marked: Marked, source_words: Sequence[Span], places: Sequence[int]) -> list[_Node]:
    """The marks that are put in, by nesting."""
    starts = [start for start, _ in source_words]
    roots: list[_Node] = []
    stack: list[tuple[int, int, list[_Node]]] = []  # the opening mark, its first word, and what it holds
    for place in places:
        mark = marked.marks[place]
        inside = stack[-1][2] if stack else roots
        start = bisect_left(starts, mark.offset)
        if not mark.nests:
            inside.append(_Node(place, place, start, bisect_left(starts, mark.offset + len(mark.shown))))
        elif mark.kind == "open":
            stack.append((place, start, []))
        else:
            first, begin, children = stack.pop()
            (stack[-1][2] if stack else roots).append(_Node(first, place, begin, start, children))
    return roots


def _in_order(marks: Sequence[Mark], events: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The events with the tags of crossing pairs in order: a closing one that came first changes with its partner."""
    rank_of = {mark: rank for rank, (_, mark) in enumerate(events)}
    events = list(events)
    for mark, rank in rank_of.items():
        partner = marks[mark].partner
        if marks[mark].kind == "close" and partner >= 0 and not marks[mark].nests and rank < rank_of[partner]:
            other = rank_of[partner]
            events[rank], events[other] = (events[rank][0], partner), (events[other][0], mark)
    return events


def _write(
    marked: Marked,
    target: str,
    *,
    target_words: Sequence[Span],
    atoms: Sequence[Atom],
    events: Sequence[tuple[int, int]],
) -> Placed:
    """Write words, marks and the white space between them."""
    escaper = Escaper(marked)
    parts: list[str] = []
    text: list[str] = []  # not yet escaped

    def write_raw(raw: str) -> None:
        parts.extend([escaper.write("".join(text)), raw])
        text.clear()

    mark_at = {atom.span[0]: atom.mark for atom in atoms}
    rank, position = 0, 0
    for place, (start, end) in enumerate([*target_words, (len(target), len(target))]):
        here: list[Mark] = []
        while rank < len(events) and events[rank][0] == place:
            here.append(marked.marks[events[rank][1]])
            rank += 1
        is_edge = place in (0, len(target_words))
        slots = _spaces(
            marked.source,
            here,
            gap=target[position:start],
            near=target[position - 1 : position] + target[start : start + 1],
            is_edge=is_edge,
        )
        for slot, mark in zip(slots, here, strict=False):
            text.append(slot)
            write_raw(mark.raw)
        text.append(slots[-1])
        if start in mark_at:
            write_raw(marked.marks[mark_at[start]].raw)
        else:
            text.append(target[start:end])
        position = end
    write_raw("")
    return Placed("".join(parts), escaper.num_replaced)


def _spaces(source: str, marks: Sequence[Mark], *, gap: str, near: str, is_edge: bool) -> list[str]:
    """The white space before each of the marks in a gap between two words, and after the last.

    It stands where the source has some; where the source has none, outside of tags. ``near``: the characters beside.
    """
    if not marks:
        return [gap]
    slots = [""] * (len(marks) + 1)
    wanted = [_space_at(source, marks, slot) for slot in range(len(slots))]
    places = [slot for slot, space in enumerate(wanted) if space]
    if not gap:
        if not any(is_spaceless(character) for character in near):
            for slot in places:  # of what the model left out, white space must come with it
                beside = marks[max(slot - 1, 0) : slot + 1]
                slots[slot] = " " if any(mark.kind == "inline" for mark in beside) else ""
        return slots
    if len(places) > 1:
        return wanted
    if places:
        slots[places[0]] = gap
    elif is_edge or not any(mark.adds_space for mark in marks):
        slots[next((slot for slot, mark in enumerate(marks) if mark.kind != "close"), len(marks))] = gap
    return slots


def _space_at(source: str, marks: Sequence[Mark], slot: int) -> str:
    """The white space (no line end) that the source has after the mark before a slot, or before the mark after it."""
    after = _space_after(source, marks[slot - 1].end) if slot else ""
    return after or (_space_before(source, marks[slot].start) if slot < len(marks) else "")


def _space_after(source: str, start: int) -> str:
    """The white space that starts here."""
    end = start
    while end < len(source) and source[end].isspace() and source[end] != "\n":
        end += 1
    return source[start:end]


def _space_before(source: str, end: int) -> str:
    """The white space that ends here."""
    start = end
    while start and source[start - 1].isspace() and source[start - 1] != "\n":
        start -= 1
    return source[start:end]
