"""Trees for laws: any labels and words, unary chains, words without tags, tags that are labels of phrases too."""

from hypothesis import strategies as st

from headway.trees.tree import Tree

LABELS = st.sampled_from(["S", "NP", "VP", "NN", "NP-SBJ-1", "TOP", "XX", "/NP", "/", "\\NP", "-LRB-", "@X", "Ä"])
PLAIN_LABELS = st.sampled_from(["S", "NP", "VP", "PP", "QP"])
WORDS = st.text(
    st.characters(exclude_characters=" \t\n\r\f\v", exclude_categories=["Cs"]), min_size=1, max_size=4
).filter(lambda word: "RB-" not in word)


def trees(labels=LABELS, words=WORDS, *, bare=True, max_moves=23):
    """Trees of up to ``max_moves`` nodes; with ``bare`` some words share their node with others."""
    kinds = st.sampled_from(["open", "open", "tag", "tag", "close", "word" if bare else "tag"])
    return st.lists(st.tuples(kinds, labels, words), min_size=1, max_size=max_moves).map(_tree)


def rooted_trees(labels=LABELS, words=WORDS, *, bare=True):
    return trees(labels, words, bare=bare).map(lambda tree: Tree("TOP", (tree,)))


def chain(depth, label="X"):
    tree = Tree("NN", ("deep",))
    for _ in range(depth):
        tree = Tree(label, (tree,))
    return tree


def _tree(moves):
    nodes = [(moves[0][1], [])]
    for kind, label, word in moves[1:]:
        if kind == "open":
            nodes.append((label, []))
        elif kind == "tag":
            nodes[-1][1].append(Tree(label, (word,)))
        elif kind == "word":
            nodes[-1][1].append(word)
        elif len(nodes) > 1:
            _close(nodes, word)
    while True:
        tree = _close(nodes, moves[-1][2])
        if not nodes:
            return tree


def _close(nodes, word):
    label, children = nodes.pop()
    tree = Tree(label, tuple(children) or (word,))
    if nodes:
        nodes[-1][1].append(tree)
    return tree
