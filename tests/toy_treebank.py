"""Trees of a small grammar in which words decide what attaches where: ``of`` to the noun, ``with`` to the verb."""

import random

WORDS = {
    "DT": ["the", "a", "every"],
    "NN": ["dog", "tree", "star", "house", "boat"],
    "JJ": ["old", "red", "small"],
    "NNP": ["Ann", "Bo"],
    "VBZ": ["sees", "likes", "finds"],
    "VBD": ["knew", "said"],
}


def tree(chance):
    """One sentence in brackets."""
    return f"(TOP {_sentence(chance, depth=0)})"


def treebank(seed, count):
    """So many trees, all different."""
    chance = random.Random(seed)
    found = {}
    while len(found) < count:
        found[tree(chance)] = None
    return list(found)


def word(chance, tag):
    return f"({tag} {chance.choice(WORDS[tag])})"


def _sentence(chance, *, depth):
    stop = "" if depth else " (. .)"
    return f"(S {_noun_phrase(chance)} {_verb_phrase(chance, depth=depth)}{stop})"


def _noun_phrase(chance, *, depth=0):
    if chance.random() < 0.2:
        return f"(NP {word(chance, 'NNP')})"
    adjective = f" {word(chance, 'JJ')}" if chance.random() < 0.3 else ""
    plain = f"(NP {word(chance, 'DT')}{adjective} {word(chance, 'NN')})"
    if depth < 1 and chance.random() < 0.25:
        return f"(NP {plain} (PP (IN of) {_noun_phrase(chance, depth=depth + 1)}))"
    return plain


def _verb_phrase(chance, *, depth):
    if depth < 1 and chance.random() < 0.25:
        return f"(VP {word(chance, 'VBD')} (SBAR (IN that) {_sentence(chance, depth=depth + 1)}))"
    with_phrase = f" (PP (IN with) {_noun_phrase(chance, depth=1)})" if chance.random() < 0.3 else ""
    return f"(VP {word(chance, 'VBZ')} {_noun_phrase(chance)}{with_phrase})"
