"""A tree for the eye: lines of text, or an SVG document, at any length of sentence and word."""

import unicodedata
from dataclasses import dataclass
from html import escape

from headway.text.printable import drawable
from headway.trees.tree import Tree

LONGEST_ACROSS = 1400.0  # pixels; a wider tree is drawn from left to right, with a row a word
_FONT, _CHARACTER = 14, 8.5  # height and width of a letter, in pixels
_LEVEL, _ROW, _GAP, _MARGIN = 40.0, 22.0, 14.0, 16.0
_STYLE = (
    "text{font:14px ui-monospace,Menlo,Consolas,monospace;fill:#1f2328}.phrase{font-weight:bold}.word{fill:#0969da}"
    "path{fill:none;stroke:#8c959f}@media(prefers-color-scheme:dark){text{fill:#e6edf3}.word{fill:#58a6ff}"
    "path{stroke:#6e7681}}"
)


def draw_text(tree: Tree) -> str:
    """A node a line, its children below it; what governs only one node stands on the line of that node.

    ::

        TOP ─ S
        ├─ NP ─ NNP John
        ├─ VP ─ VBZ sleeps
        └─ . .
    """
    lines: list[str] = []
    rest: list[tuple[Tree | str, str, str]] = [
        (tree, "", "")
    ]  # a part, and what its first and further lines begin with
    while rest:
        part, first, further = rest.pop()
        labels: list[str] = []
        while isinstance(part, Tree) and len(part.children) == 1 and not part.is_preterminal:
            labels.append(drawable(part.label))
            part = part.children[0]
        if isinstance(part, str):
            labels.append(drawable(part))
        elif part.is_preterminal:
            labels.append(f"{drawable(part.label)} {drawable(str(part.children[0]))}")
        else:
            labels.append(drawable(part.label))
            rest.append((part.children[-1], f"{further}└─ ", f"{further}   "))
            rest.extend((child, f"{further}├─ ", f"{further}│  ") for child in reversed(part.children[:-1]))
        lines.append(first + " ─ ".join(labels))
    return "\n".join(lines)


def draw_svg(tree: Tree, *, from_left: bool | None = None) -> str:
    """An SVG document, readable on light and on dark ground: the root at the top and the sentence along the foot.

    ``from_left`` draws the root at the left and the sentence down the right side, a word a row; None does so where the
    tree would be wider than ``LONGEST_ACROSS``.
    """
    nodes = _nodes(tree)
    across = _place(nodes, [_width(node) + _GAP for node in nodes])
    if from_left or (from_left is None and across > LONGEST_ACROSS):
        height = _place(nodes, [_ROW if node.is_leaf else 0.0 for node in nodes])
        marks, width = _from_left(nodes)
    else:
        width = across
        marks, height = _from_top(nodes)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{width + 2 * _MARGIN:.0f}" '
            f'height="{height + 2 * _MARGIN:.0f}" viewBox="{-_MARGIN:.0f} {-_MARGIN:.0f} {width + 2 * _MARGIN:.0f} '
            f'{height + 2 * _MARGIN:.0f}">',
            f"<title>{escape(drawable(' '.join(tree.words())))}</title>",
            f"<style>{_STYLE}</style>",
            *marks,
            "</svg>",
            "",
        ]
    )


@dataclass(slots=True)
class _Node:
    """A label, or a tag with its word, and where it stands: its level below the root, and its centre beside others."""

    label: str
    word: str
    is_leaf: bool
    level: int
    parent: int
    centre: float = 0.0


def _nodes(tree: Tree) -> list[_Node]:
    """All nodes, each before its children; words are at the level of the deepest."""
    nodes: list[_Node] = []
    rest: list[tuple[Tree | str, int, int]] = [(tree, 0, -1)]
    while rest:
        part, level, parent = rest.pop()
        if isinstance(part, str):
            nodes.append(_Node("", drawable(part), True, level, parent))
        elif part.is_preterminal:
            nodes.append(_Node(drawable(part.label), drawable(str(part.children[0])), True, level, parent))
        else:
            rest.extend((child, level + 1, len(nodes)) for child in reversed(part.children))
            nodes.append(_Node(drawable(part.label), "", False, level, parent))
    deepest = max(node.level for node in nodes)
    for node in nodes:
        node.level = deepest if node.is_leaf else node.level
    return nodes


def _place(nodes: list[_Node], sizes: list[float]) -> float:
    """Give every node a centre, so that ``sizes`` beside each other never overlap; returns the size of all."""
    count = len(nodes)
    inner = [0.0] * count  # what the children of a node need
    for number in range(count - 1, 0, -1):
        inner[nodes[number].parent] += max(sizes[number], inner[number])
    begin = [0.0] * count  # where the next child of a node begins
    whole = max(sizes[0], inner[0])
    nodes[0].centre = whole / 2
    begin[0] = (whole - inner[0]) / 2
    for number in range(1, count):
        parent = nodes[number].parent
        size = max(sizes[number], inner[number])
        begin[number] = begin[parent] + (size - inner[number]) / 2
        nodes[number].centre = begin[parent] + size / 2
        begin[parent] += size
    return whole


def _from_top(nodes: list[_Node]) -> tuple[list[str], float]:
    """Lines and texts of a tree whose centres run across, and its height."""
    marks: list[str] = []
    for node in nodes:
        y = _FONT + _LEVEL * node.level
        if node.parent >= 0:
            parent = nodes[node.parent]
            upper = _FONT + _LEVEL * parent.level + 5
            lower = y - _FONT if node.label else y + _ROW - _FONT
            marks.append(_line(f"M{parent.centre:.1f} {upper:.1f}v8H{node.centre:.1f}V{lower:.1f}"))
        marks.append(_text(node.label, node.centre, y, "phrase" if not node.is_leaf else "tag", anchor="middle"))
        marks.append(_text(node.word, node.centre, y + _ROW, "word", anchor="middle"))
    return list(filter(None, marks)), _FONT + _LEVEL * max(node.level for node in nodes) + _ROW + 5


def _from_left(nodes: list[_Node]) -> tuple[list[str], float]:
    """Lines and texts of a tree whose centres run down, and its width."""
    widths = [0.0] * (1 + max(node.level for node in nodes))  # of the labels of each level
    for node in nodes:
        widths[node.level] = max(widths[node.level], _characters(node.label) * _CHARACTER)
    begins = [0.0]
    for width in widths:
        begins.append(begins[-1] + width + 2 * _GAP)
    marks: list[str] = []
    for node in nodes:
        x = begins[node.level]
        if node.parent >= 0:
            parent = nodes[node.parent]
            right = begins[parent.level] + _characters(parent.label) * _CHARACTER + 3
            left = (x if node.label else begins[-1] - _GAP) - 3
            turn = begins[parent.level + 1] - _GAP
            marks.append(_line(f"M{right:.1f} {parent.centre:.1f}H{turn:.1f}V{node.centre:.1f}H{left:.1f}"))
        marks.append(_text(node.label, x, node.centre + 5, "phrase" if not node.is_leaf else "tag", anchor="start"))
        marks.append(_text(node.word, begins[-1] - _GAP, node.centre + 5, "word", anchor="start"))
    words = max(_characters(node.word) for node in nodes) * _CHARACTER
    return list(filter(None, marks)), begins[-1] - _GAP + words


def _line(course: str) -> str:
    """A line that turns at right angles between a label and its children: so none runs over another label."""
    return f'<path d="{course}"/>'


def _text(text: str, x: float, y: float, kind: str, *, anchor: str) -> str:
    if not text:
        return ""
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _width(node: _Node) -> float:
    return max(_characters(node.label), _characters(node.word)) * _CHARACTER


def _characters(text: str) -> int:
    """Columns that a text fills: two for a wide character of East Asia."""
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)
