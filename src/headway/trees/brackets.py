r"""Files of trees in Penn brackets: ``(S (NP (NN work)) (VP (VBZ waits)))``, on one line each or spread over several.

Words and labels are separated by spaces, tabs and line ends; every other white space is part of a word. A tree may
stand in an outer bracket without a label, ``( (S ...) )``, which is read as TOP. Round brackets that are words come as
``-LRB-`` and ``-RRB-``, or bare where their tag says so: ``(-LRB- ()``; an opening one also where its tag is a sign,
``(: ()``. A node may hold words beside nodes: ``(A B (C c))``.
"""

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from headway.corpus.compression import FilePath
from headway.corpus.lines import name_of, open_writer, read_lines
from headway.errors import TreeError
from headway.trees.escape import escape_label, escape_word, unescape_word
from headway.trees.tree import Tree, fold

ROOT = "TOP"
WIDTH = 100  # columns that a pretty-printed node may fill before its children get lines of their own
_TOKEN = re.compile(
    r"""\( \s* (?P<bracket_tag> -[LR]RB- ) \s+ (?P<bracket> [()] ) \s* \)  # a round bracket that is a word
    | \( \s* (?P<sign> [^\w\s()]+ ) \s+ \( \s* \)  # the same with a sign as its tag; closing, it might be an empty node
    | \( \s* (?P<tag> [^\s()]+ ) \s+ (?P<word> [^\s()]+ ) \s* \)  # a tag with its word
    | [()]
    | [^\s()]+""",
    re.VERBOSE | re.ASCII,
)
_FAILED = re.compile(r"[\s()]*|\s*\(\s*[^\s()]+[\s()]*\)\s*", re.ASCII)


def read_trees(source: FilePath | Iterable[str], *, name: str = "trees") -> Iterator[Tree]:
    """Yield the trees of a file ("-" is standard input), or of lines; empty lines between trees do not matter.

    ``name`` is what messages call lines that come from no file.

    Raises:
        TreeError: brackets that do not match, a node without words or label, text outside of brackets, a second tree
            on the line on which one ended; the message names the line.
        CorpusError: the file cannot be read as lines of UTF-8.

    """
    lines, name = _lines_of(source, name)
    reader = _Reader(name)
    for number, line in enumerate(lines, 1):
        yield from reader.read(line, number)
    reader.finish()


def read_parses(source: FilePath | Iterable[str], *, name: str = "trees") -> Iterator[Tree | None]:
    """Yield what a parser wrote, one line a sentence: None where it found nothing.

    None stands for an empty line, for brackets without words, ``()``, ``(())``, ``(TOP)``. Several trees on a line,
    as some parsers write what they could not join, come under one TOP. Raises as ``read_trees``, also when a tree
    goes on after its line.
    """
    lines, name = _lines_of(source, name)
    for number, line in enumerate(lines, 1):
        if _FAILED.fullmatch(line):
            yield None
            continue
        reader = _Reader(name, may_have_several=True)
        trees = list(reader.read(line, number))
        if reader.is_open:
            raise TreeError(
                f"trees/brackets: {name} line {number:,}: the tree is not closed at the end of its line; wanted a tree "
                "on each line, as every line stands for a sentence. Close its brackets, or write each tree on one line "
                "(headway parse without --pretty)."
            )
        yield trees[0] if len(trees) == 1 else Tree(ROOT, tuple(trees))


def write_trees(path: FilePath, trees: Iterable[Tree], *, pretty: bool = False) -> None:
    """Write trees to a file ("-" is standard output), a tree a line or ``pretty``-printed; ``read_trees`` reads both.

    Raises:
        TreeError: a word or label that holds white space.
        CorpusError: the file cannot be written.

    """
    with open_writer(path) as out:
        for tree in trees:
            out.write(f"{pretty_print(tree) if pretty else tree}\n")


def pretty_print(tree: Tree, *, width: int = WIDTH) -> str:
    """A tree over several lines: what fits into ``width`` columns stays on one, else each child begins its own."""
    sizes: dict[int, int] = {}  # of nodes on one line, by their identity

    def size(node: Tree, sizes_of_children: list[int]) -> int:
        sizes[id(node)] = 2 + len(escape_label(node.label)) + sum(1 + size for size in sizes_of_children)
        return sizes[id(node)]

    fold(tree, of_word=lambda word: len(escape_word(word)), of_node=size)
    pieces: list[str] = []
    rest: list[tuple[Tree | str, int] | None] = [(tree, 0)]  # None: a bracket closes
    while rest:
        item = rest.pop()
        if item is None:
            pieces.append(")")
            continue
        part, indent = item
        pieces.append(("\n" if pieces else "") + " " * indent)
        if isinstance(part, str):
            pieces.append(escape_word(part))
        elif part.is_preterminal or indent + sizes[id(part)] <= width:
            pieces.append(str(part))
        else:
            pieces.append(f"({escape_label(part.label)}")
            rest.append(None)
            rest.extend((child, indent + 2) for child in reversed(part.children))
    return "".join(pieces)


def _lines_of(source: FilePath | Iterable[str], name: str) -> tuple[Iterable[str], str]:
    if isinstance(source, str | os.PathLike):
        return read_lines(source), name_of(source)
    return source, name


@dataclass(slots=True)
class _Open:
    """A bracket that has not closed yet."""

    line: int
    label: str = ""
    children: list[Tree | str] = field(default_factory=list[Tree | str])


class _Reader:
    """Trees from tokens; what is open goes over from line to line."""

    def __init__(self, name: str, *, may_have_several: bool = False) -> None:
        self._name = name
        self._may_have_several = may_have_several
        self._open: list[_Open] = []
        self._has_ended = False  # a tree, on this line
        self._line = 0

    def read(self, line: str, number: int) -> Iterator[Tree]:
        """Yield the trees that end on this line."""
        self._line = number
        self._has_ended = False
        for found in _TOKEN.finditer(line):
            token = found[0]
            if found["word"] is not None:
                tree = self._add(Tree(found["tag"], (unescape_word(found["word"]),)))
            elif found["bracket"] is not None:
                tree = self._add(Tree(found["bracket_tag"], (found["bracket"],)))
            elif found["sign"] is not None:
                tree = self._add(Tree(found["sign"], ("(",)))
            elif token == ")":
                tree = self._add(self._closed())
            elif token == "(":
                self._check_alone()
                self._open.append(_Open(number))
                continue
            else:
                self._add_text(token)
                continue
            if tree is not None:
                self._has_ended = True
                yield tree

    @property
    def is_open(self) -> bool:
        """Whether a tree is not closed yet."""
        return bool(self._open)

    def finish(self) -> None:
        """Check that nothing is left open at the end."""
        if self._open:
            count = len(self._open)
            raise TreeError(
                f"{self._at(self._open[0].line)}: the tree that begins here is not closed where the text ends (line "
                f"{self._line:,}); {count:,} more ')' {'is' if count == 1 else 'are'} wanted. Close its brackets."
            )

    def _add(self, tree: Tree) -> Tree | None:
        """Give a node to its parent, or back when it has none."""
        if self._open:
            self._open[-1].children.append(tree)
            return None
        self._check_alone()
        return tree

    def _add_text(self, token: str) -> None:
        if not self._open:
            raise TreeError(
                f"{self._at()}: found {token!r} outside of brackets; wanted a tree, as in (S (NP (NN work)) ...). "
                f"Remove the text, or put it in brackets."
            )
        node = self._open[-1]
        if not node.label and not node.children:
            node.label = token
        else:
            node.children.append(unescape_word(token))

    def _closed(self) -> Tree:
        if not self._open:
            raise TreeError(
                f"{self._at()}: found ')' with no bracket open; wanted as many '(' before it. Remove it, or open the "
                f"bracket that it closes."
            )
        node = self._open.pop()
        if not node.children:
            raise TreeError(
                f"{self._at()}: found an empty node ({node.label}), begun on line {node.line:,}; wanted a word or a "
                f"node in every bracket. Remove the node, or write its word."
            )
        if not node.label and self._open:
            raise TreeError(
                f"{self._at()}: found a bracket without a label inside of a tree, begun on line {node.line:,}; only "
                f"the outermost may have none. Write its label."
            )
        return Tree(node.label or ROOT, tuple(node.children))

    def _check_alone(self) -> None:
        if not self._open and self._has_ended and not self._may_have_several:
            raise TreeError(
                f"{self._at()}: found a second tree on the line on which one has ended; wanted one root a line. Write "
                f"each tree on a line of its own, or put both in one bracket."
            )

    def _at(self, line: int | None = None) -> str:
        return f"trees/brackets: {self._name} line {line or self._line:,}"
