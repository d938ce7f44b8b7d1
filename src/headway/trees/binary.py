"""Trees of at most two branches a node, and back: a node of more is cut into a chain of nodes that say so by ``@``.

``(NP (DT a) (JJ old) (NN dog))`` becomes ``(NP (DT a) (@NP (JJ old) (NN dog)))``. A label that begins with ``@`` or a
backslash gets a backslash before it.
"""

from headway.trees.tree import Tree, fold

MARK = "@"


def binarise(tree: Tree) -> Tree:
    """The same tree with the third and further children of each node in nodes of their own, to the right."""

    def node(old: Tree, children: list[Tree | str]) -> Tree | str:
        label = f"\\{old.label}" if old.label.startswith((MARK, "\\")) else old.label
        rest = tuple(children[-2:])
        for child in reversed(children[1:-2]):
            rest = (child, Tree(f"{MARK}{label}", rest))
        return Tree(label, (children[0], Tree(f"{MARK}{label}", rest)) if len(children) > 2 else rest)

    return _only_tree(fold(tree, of_word=str, of_node=node))


def unbinarise(tree: Tree) -> Tree:
    """Undo ``binarise``: what a node marked by ``@`` governs goes to the node above it.

    A tag marked so, which only a parser's mistake gives, loses the mark; so does the root.
    """

    def node(old: Tree, children: list[tuple[Tree | str, ...]]) -> tuple[Tree | str, ...]:
        parts = tuple(part for child in children for part in child)
        if old.label.startswith(MARK) and not old.is_preterminal and old is not tree:
            return parts
        label = old.label.removeprefix(MARK) if old.label != MARK else "X"
        return (Tree(label.removeprefix("\\") or "X", parts),)

    (root,) = fold(tree, of_word=lambda word: (word,), of_node=node)
    return _only_tree(root)


def _only_tree(part: Tree | str) -> Tree:
    assert isinstance(part, Tree)
    return part
