"""What a treebank notes beside the words and phrases of a sentence, taken off: traces and function tags."""

import re

from headway.trees.tree import Tree, fold

TRACE = "-NONE-"
_FUNCTION = re.compile(r"(?<=.)[-=].*", re.DOTALL)  # -SBJ, -1, =2; what begins with a hyphen is a label as a whole


def strip(tree: Tree, *, traces: bool = True, functions: bool = True, repeated: bool = False) -> Tree | None:
    """A tree as parsers learn it and are scored on; None when no word is left.

    Args:
        tree: as the treebank has it, ``(S (NP-SBJ-1 (-NONE- *)) (VP ...))``.
        traces: whether -NONE- goes with its word, and with it nodes that have no other.
        functions: whether labels lose what follows their first hyphen or equals sign: NP-SBJ-1 becomes NP, and NP=2,
            too; -LRB- and -NONE- stay.
        repeated: whether of a node that governs nothing but a phrase of the same label one stays, as after traces have
            gone: ``(NP (NP (NN work)))`` becomes ``(NP (NN work))``.

    """

    def node(old: Tree, children: list[Tree | str | None]) -> Tree | None:
        kept = tuple(child for child in children if child is not None)
        if not kept or (traces and old.label == TRACE):
            return None
        label = without_function(old.label) if functions else old.label
        only = kept[0] if len(kept) == 1 else None
        if repeated and isinstance(only, Tree) and only.label == label and not only.is_preterminal:
            return only
        return Tree(label, kept)

    def word(found: str) -> Tree | str | None:
        return found

    stripped = fold(tree, of_word=word, of_node=node)
    assert not isinstance(stripped, str)
    return stripped


def without_function(label: str) -> str:
    """A label without its function tags and indices."""
    return label if label.startswith("-") else _FUNCTION.sub("", label)
