r"""Trees as rows of symbols, the targets of a parser: "Grammar as a Foreign Language" (Vinyals et al., 2015).

A tree is written depth first, without its root and its words: a node's label where it opens, ``/LABEL`` where it
closes; the tag of a word alone, for it closes at once. So ``(TOP (S (NP (NNP John)) (VP (VBZ sleeps)) (. .)))`` is

    S NP NNP /NP VP VBZ /VP . /S

Where a tag is the label of phrases too, it closes as they do, ``NP /NP``. A word without a tag of its own is ``/``. A
label that begins with ``/`` or a backslash gets a backslash before it.

Every row of symbols is read back as a tree over the sentence. What is wrong with it is mended by these rules, in this
order, and counted:

1. A symbol that is no label is dropped; so is a closing one with nothing of its label open.
2. A closing symbol closes what is open inside of its node, too; at the end all that is open closes.
3. Tags beyond the last word are dropped.
4. A node without words is dropped. (``NP /NP`` is a word whose tag is NP, where tags are not hidden.)
5. Words without a tag come at the end of the last phrase under the root.
6. When no tag is left, the tree is flat: all words in one S.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, fields

from headway.errors import TreeError
from headway.trees.binary import MARK, binarise, unbinarise
from headway.trees.brackets import ROOT
from headway.trees.escape import escape_label
from headway.trees.tree import Tree, with_tags

HIDDEN = "XX"  # stands for every tag in the style of Vinyals et al., and for that of a word that the symbols leave out
BARE = "/"  # a word without a tag of its own
ROOTS = frozenset({ROOT, "ROOT", "S1"})  # what treebanks and parsers call the node above the sentence
PENN_PHRASES = frozenset(
    [
        *("S", "SBAR", "SBARQ", "SINV", "SQ", "ADJP", "ADVP", "CONJP", "FRAG", "INTJ", "LST", "NAC", "NML", "NP", "NX"),
        *("PP", "PRN", "PRT", "QP", "RRC", "UCP", "VP", "WHADJP", "WHADVP", "WHNP", "WHPP", "X"),
    ]
)
_NO_LABEL = re.compile(r"|\\|.*[ \t\n\r\f\v].*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Style:
    """A way to write trees: with all tags as XX, in binary branches."""

    hides_tags: bool = False
    is_binary: bool = False


STYLES = {
    "tags": Style(),  # the paper's
    "xx": Style(hides_tags=True),  # Vinyals et al.
    "binary": Style(is_binary=True),
    "binary-xx": Style(hides_tags=True, is_binary=True),
}


@dataclass(frozen=True, slots=True)
class Repairs:
    """How often each rule had to mend what a parser gave; sums with ``+``."""

    dropped_symbols: int = 0
    closed_nodes: int = 0
    dropped_tags: int = 0
    dropped_nodes: int = 0
    added_words: int = 0
    flat_trees: int = 0

    @property
    def total(self) -> int:
        """All repairs; 0 when the symbols were a tree over the sentence."""
        return sum(getattr(self, each.name) for each in fields(self))

    def __add__(self, other: "Repairs") -> "Repairs":
        return Repairs(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(self)))


@dataclass(frozen=True, slots=True)
class Delinearised:
    """A tree over the sentence, and what had to be mended for it."""

    tree: Tree
    repairs: Repairs


def rooted(tree: Tree) -> Tree:
    """The tree under TOP, as ``delinearise`` gives it: a root of another treebank's name becomes TOP."""
    return Tree(ROOT, tree.children if tree.label in ROOTS else (tree,))


def phrase_labels(trees: Iterable[Tree]) -> frozenset[str]:
    """Labels of all that is no tag, but for the root: what to give as ``phrases`` for a treebank that is not Penn's."""
    return frozenset(
        part.label for tree in trees for part in _below(rooted(tree)) if isinstance(part, Tree) and _is_phrase(part)
    )


def linearise(tree: Tree, *, style: str = "tags", phrases: Collection[str] = PENN_PHRASES) -> list[str]:
    """Return a tree as symbols.

    ``phrases``: labels that are read as phrases even where a parser forgets to close them; give the same to
    ``delinearise``. Raises TreeError for an unknown style.
    """
    chosen = style_of(style)
    root = rooted(tree)
    root = binarise(root) if chosen.is_binary else root
    closed = _closed(phrases, chosen).union(
        part.label for part in _below(root) if isinstance(part, Tree) and _is_phrase(part)
    )
    symbols: list[str] = []
    rest: list[Tree | str] = list(reversed(root.children))
    closings: list[tuple[int, str]] = []  # how long ``rest`` is when a node has been written, and its symbol
    while rest:
        part = rest.pop()
        if isinstance(part, str):
            symbols.append(BARE)
        elif _is_phrase(part):
            symbols.append(symbol_of(part.label))
            closings.append((len(rest), symbols[-1]))
            rest.extend(reversed(part.children))
        else:
            tag = HIDDEN if chosen.hides_tags else part.label
            symbols.append(symbol_of(tag))
            if tag in closed:
                symbols.append(closing_of(symbols[-1]))
        while closings and closings[-1][0] == len(rest):
            symbols.append(closing_of(closings.pop()[1]))
    return symbols


def delinearise(
    symbols: Sequence[str],
    words: Sequence[str],
    tags: Sequence[str] | None = None,
    *,
    style: str = "tags",
    phrases: Collection[str] = PENN_PHRASES,
) -> Delinearised:
    """Return the tree under TOP that symbols and the words of the sentence make; mended where they make none.

    ``tags``: what stands over the words in place of the tags among the symbols; one a word, "" leaves it as it is.
    What ``linearise`` gives comes back as it was (``rooted``), in styles that hide tags when these are given. Raises
    TreeError for an unknown style, for no words, and for tags of another count than the words.
    """
    chosen = style_of(style)
    if not words:
        raise TreeError("trees/linear: 0 words to put into a tree; at least 1 is wanted. Leave empty sentences out.")
    builder = _Builder(words)
    known = _closed(phrases, chosen)
    closing = frozenset(symbol for symbol in symbols if len(symbol) > 1 and symbol.startswith("/"))
    number = 0
    while number < len(symbols):
        symbol = symbols[number]
        number += 1
        if symbol == BARE:
            builder.add_word(None)
        elif _NO_LABEL.fullmatch(symbol):
            builder.dropped_symbols += 1
        elif symbol in closing:
            builder.close(symbol[1:])
        elif chosen.hides_tags and symbol != HIDDEN:
            builder.open(symbol)
        elif number < len(symbols) and symbols[number] == closing_of(symbol):
            builder.add_word(label_of(symbol))
            number += 1
        elif closing_of(symbol) in closing or label_of(symbol) in known:
            builder.open(symbol)
        else:
            builder.add_word(label_of(symbol))
    tree = builder.finish()
    tree = unbinarise(tree) if chosen.is_binary else tree
    return Delinearised(_tagged(tree, tags) if tags is not None else tree, builder.repairs())


def symbol_of(label: str) -> str:
    """The symbol with which a node of this label opens."""
    escaped = escape_label(label)
    return f"\\{escaped}" if escaped.startswith(("/", "\\")) else escaped


def closing_of(symbol: str) -> str:
    """The symbol that closes what ``symbol`` opened."""
    return f"/{symbol}"


def label_of(symbol: str) -> str:
    """The label of the node that a symbol opens."""
    return escape_label(symbol.removeprefix("\\"))


def style_of(name: str) -> Style:
    """Look a style up. Raises TreeError for an unknown one."""
    if name not in STYLES:
        raise TreeError(f"trees/linear: no style is named {name!r}; wanted one of {', '.join(STYLES)}. Choose one.")
    return STYLES[name]


def _tagged(root: Tree, tags: Sequence[str]) -> Tree:
    """The tree with these tags; a root right over its only word stays above its tag."""
    if root.is_preterminal and len(tags) == 1 and tags[0] not in ("", root.label):
        return Tree(root.label, (Tree(tags[0], root.children),))
    return with_tags(root, tags)


def _closed(phrases: Collection[str], style: Style) -> frozenset[str]:
    """Labels that always close."""
    return frozenset([*phrases, *(f"{MARK}{label}" for label in phrases)] if style.is_binary else phrases)


def _is_phrase(node: Tree) -> bool:
    return not node.is_preterminal


def _below(root: Tree) -> "Iterable[Tree | str]":
    parts = iter(root.parts())
    next(parts)
    return parts


@dataclass(slots=True)
class _Builder:
    """A tree in the making: nodes that are open, the outermost being the root, and the words that have their place."""

    words: Sequence[str]
    num_placed: int = 0
    dropped_symbols: int = 0
    closed_nodes: int = 0
    dropped_tags: int = 0
    dropped_nodes: int = 0
    added_words: int = 0
    flat_trees: int = 0
    nodes: list[tuple[str, list[Tree | str]]] = field(default_factory=lambda: [(ROOT, [])])

    def add_word(self, tag: str | None) -> None:
        """Put the next word under its tag."""
        if self.num_placed == len(self.words):
            self.dropped_tags += 1
            return
        word = self.words[self.num_placed]
        self.nodes[-1][1].append(word if tag is None else Tree(tag, (word,)))
        self.num_placed += 1

    def open(self, symbol: str) -> None:
        self.nodes.append((symbol, []))

    def close(self, symbol: str) -> None:
        """Close the innermost node of this symbol and all that is open inside of it."""
        depth = len(self.nodes) - 1
        while depth and self.nodes[depth][0] != symbol:
            depth -= 1
        if not depth:
            self.dropped_symbols += 1
            return
        self.closed_nodes += len(self.nodes) - 1 - depth
        while len(self.nodes) > depth:
            self._pop()

    def finish(self) -> Tree:
        """Close what is open, and give all words a place."""
        self.closed_nodes += len(self.nodes) - 1
        while len(self.nodes) > 1:
            self._pop()
        parts = self.nodes[0][1]
        missing = tuple(Tree(HIDDEN, (word,)) for word in self.words[self.num_placed :])
        last = parts[-1] if parts else None
        if last is None:
            self.flat_trees = 1
            return Tree(ROOT, (Tree("S", missing),))
        self.added_words = len(missing)
        if missing and isinstance(last, Tree) and _is_phrase(last):
            parts[-1] = Tree(last.label, last.children + missing)
        else:
            parts.extend(missing)
        return Tree(ROOT, tuple(parts))

    def repairs(self) -> Repairs:
        return Repairs(*(getattr(self, each.name) for each in fields(Repairs)))

    def _pop(self) -> None:
        symbol, children = self.nodes.pop()
        if children:
            self.nodes[-1][1].append(Tree(label_of(symbol), tuple(children)))
        else:
            self.dropped_nodes += 1
