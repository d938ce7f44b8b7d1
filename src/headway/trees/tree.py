"""A constituency tree: phrases with labels over words with tags. Nothing here recurses: depth costs memory only."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TypeVar

from headway.errors import TreeError
from headway.trees.escape import escape_label, escape_word

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Tree:
    """A node and what it governs: words (str) and further nodes, at least one.

    A preterminal is ``Tree(tag, (word,))``. Words are as a reader sees them: ``(``, not ``-LRB-``. Raises TreeError
    when the label is empty or there are no children.
    """

    label: str
    children: "tuple[Tree | str, ...]"

    def __post_init__(self) -> None:
        if not self.label or not self.children:
            raise TreeError(
                f"trees/tree: a node has label {self.label!r} and {len(self.children)} children; wanted a label and at "
                f"least 1 child. Give an empty word its tag, or leave the node out."
            )

    @property
    def is_preterminal(self) -> bool:
        """Whether this is a tag over one word."""
        return len(self.children) == 1 and isinstance(self.children[0], str)

    def parts(self) -> "Iterator[Tree | str]":
        """All nodes and words, each node before what it governs, from left to right."""
        rest: list[Tree | str] = [self]
        while rest:
            part = rest.pop()
            yield part
            if isinstance(part, Tree):
                rest.extend(reversed(part.children))

    def preterminals(self) -> "Iterator[Tree]":
        """The tags with their words, from left to right; words without a tag of their own are not among them."""
        return (part for part in self.parts() if isinstance(part, Tree) and part.is_preterminal)

    def words(self) -> tuple[str, ...]:
        """The sentence."""
        return tuple(part for part in self.parts() if isinstance(part, str))

    def tags(self) -> tuple[str, ...]:
        """One tag a word, "" for a word that shares its node with others."""
        found: list[str] = []
        tag = ""
        for part in self.parts():
            if isinstance(part, str):
                found.append(tag)
                tag = ""
            else:
                tag = part.label if part.is_preterminal else ""
        return tuple(found)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tree):
            return NotImplemented
        return all(ours == theirs for ours, theirs in zip_longest(_shape(self), _shape(other)))

    def __hash__(self) -> int:
        return hash(tuple(_shape(self)))

    def __str__(self) -> str:
        """Penn brackets on one line."""
        pieces: list[str] = []
        rest: list[Tree | str | None] = [self]  # None: a bracket closes
        while rest:
            part = rest.pop()
            if part is None:
                pieces.append(")")
            elif isinstance(part, str):
                pieces.append(f" {escape_word(part)}")
            else:
                pieces.append(f" ({escape_label(part.label)}" if pieces else f"({escape_label(part.label)}")
                rest.append(None)
                rest.extend(reversed(part.children))
        return "".join(pieces)

    def __repr__(self) -> str:
        return f"<Tree {self}>"

    def __reduce__(self) -> "tuple[Callable[[tuple[str | tuple[str, int], ...]], Tree], tuple[object]]":
        """Pickled and copied as a flat row, for pickle itself recurses."""
        return _from_shape, (tuple(_shape(self)),)


def fold(tree: Tree, *, of_word: Callable[[str], Result], of_node: Callable[[Tree, list[Result]], Result]) -> Result:
    """What a tree comes to from its words upwards: ``of_node`` gets a node and the results of its children.

    Words are seen from left to right, and a node after all that it governs.
    """
    results: list[Result] = []  # of parts whose parents are still open
    rest: list[Tree | str | tuple[Tree]] = [tree]  # a tuple: the node in it, now that its children are done
    while rest:
        part = rest.pop()
        if isinstance(part, str):
            results.append(of_word(part))
        elif isinstance(part, Tree):
            rest.append((part,))
            rest.extend(reversed(part.children))
        else:
            first = len(results) - len(part[0].children)
            result = of_node(part[0], results[first:])
            del results[first:]
            results.append(result)
    return results[0]


def with_tags(tree: Tree, tags: Sequence[str]) -> Tree:
    """The same tree with these tags on its words, one a word.

    A word that shared its node with others gets a preterminal of its own, unless its tag is "". Scores of trees hang on
    tags: EVALB leaves punctuation out by its tag, so gold or predicted ones are put on before scoring. Raises TreeError
    when the counts differ.
    """
    num_words = sum(isinstance(part, str) for part in tree.parts())
    if len(tags) != num_words:
        raise TreeError(
            f"trees/tree: {len(tags):,} tags for {num_words:,} words ({tree}); equal counts are wanted. "
            f"Give one tag a word."
        )
    rest = iter(tags)

    def tagged(word: str) -> Tree | str:
        tag = next(rest)
        return Tree(tag, (word,)) if tag else word

    def node(old: Tree, children: list[Tree | str]) -> Tree | str:
        if old.is_preterminal:
            return children[0] if isinstance(children[0], Tree) else Tree(old.label, (children[0],))
        return Tree(old.label, tuple(children))

    tagged_tree = fold(tree, of_word=tagged, of_node=node)
    assert isinstance(tagged_tree, Tree)
    return tagged_tree


def _shape(tree: Tree) -> Iterator[str | tuple[str, int]]:
    """A tree as a row: words, and for each node its label and number of children. Equal rows are equal trees."""
    return (part if isinstance(part, str) else (part.label, len(part.children)) for part in tree.parts())


def _from_shape(shape: tuple[str | tuple[str, int], ...]) -> Tree:
    parts: list[Tree | str] = []  # the next part is the last
    for item in reversed(shape):
        if isinstance(item, str):
            parts.append(item)
        else:
            label, count = item
            children = tuple(reversed(parts[len(parts) - count :]))
            del parts[len(parts) - count :]
            parts.append(Tree(label, children))
    (tree,) = parts
    assert isinstance(tree, Tree)
    return tree
