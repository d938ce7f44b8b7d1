"""A tokenizer file from anywhere is refused in one line or works: no crash, no reserved id out of text."""

import json
import random
from collections import Counter

import numpy as np
import pytest
from test_tags import IMPORTED

from headway.errors import TextError
from headway.text.bpe_dropout import BpeDropout, Sentences, pair_keys
from headway.text.subword import LEARNERS
from headway.text.symbols import learn_symbols
from headway.text.tokenizer import Tokenizer

CORPUS = ["the house is blue", "das Haus", "東京に"] * 5
TEXT = "the house 東京 ☃ ⟨pad⟩⟨unk⟩⟨tag:de⟩ ⟨ pad ⟩ " + "x" * 71
VALUES = [
    None,
    0,
    -1,
    1,
    "",
    [],
    {},
    "a",
    "⟨pad⟩",
    True,
    1e300,
    2**40,
    -(2**70),
    ["a"],
    {"type": "NFKC"},
    "[a-",
    "(a+)+$",
]


@pytest.fixture(scope="module")
def whole():
    sizes = ((True, 300), (False, 60))
    learnt = [
        learn(CORPUS, vocab_size=size, byte_fallback=byte_fallback, tags=["de"]).to_json()
        for learn in LEARNERS.values()
        for byte_fallback, size in sizes
    ]
    return [*learnt, learn_symbols(CORPUS, vocab_size=60, tags=["de"]).to_json(), json.dumps(IMPORTED)]


def damaged(text, chance):
    """The text with some characters changed, taken out, put in, or copied from elsewhere."""
    characters = list(text)
    for _ in range(chance.choice([1, 1, 2, 5])):
        place, other = chance.randrange(len(characters)), chance.randrange(len(characters))
        how = chance.randrange(4)
        if how == 0:
            characters[place] = chance.choice('0123456789"[]{},:-ab⟨ \\')
        elif how == 1:
            del characters[place]
        elif how == 2:
            characters.insert(place, chance.choice('0123456789"[]{},:-'))
        else:
            characters[place : place + 9] = characters[other : other + 9]
    return "".join(characters)


def places(value, path=()):
    """Every place in a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*path, key)
        yield from places(inner, (*path, key))


def changed(text, chance):
    """The JSON with one value replaced; most often one outside the vocabulary, where there are fewer."""
    description = json.loads(text)
    every = list(places(description))
    few = [path for path in every if not {"vocab", "merges"} & set(path)]
    path = chance.choice(few if chance.random() < 0.7 else every)
    inner = description
    for key in path[:-1]:
        inner = inner[key]
    if chance.random() < 0.1 and isinstance(inner, dict):
        del inner[path[-1]]
    else:
        inner[path[-1]] = chance.choice(VALUES)
    return json.dumps(description)


def use(text):
    """Load a tokenizer and use all of it; tell how it went."""
    try:
        tokenizer = Tokenizer.from_json(text)
    except TextError as error:
        return "refused" if "Remedy" in str(error) and "\n" not in str(error) else str(error)
    ids = tokenizer.encode(TEXT)
    assert not {0, 2, 3, *tokenizer.tags.values()} & set(ids)
    tokenizer.decode(ids)
    tokenizer.tokens(ids)
    if tokenizer.model == "bpe" and not tokenizer.imported:
        BpeDropout(tokenizer, 0.3).redraw(Sentences.of([ids]), pair_keys(np.arange(1), seed=1, epoch=0, side="source"))
    return "used"


@pytest.mark.parametrize("count", [500, pytest.param(20_000, marks=pytest.mark.slow)])
def test_a_damaged_tokenizer_is_refused_in_one_line_or_works(whole, count):
    chance = random.Random(count)
    went = Counter(use(chance.choice([damaged, changed])(chance.choice(whole), chance)) for _ in range(count))
    assert went.keys() == {"refused", "used"}
    assert went["refused"] > count / 2
    assert went["used"] > count / 100


@pytest.mark.parametrize("text", ["", "[]", "3", "null", "{}", "[" * 100_000, '{"a":' * 100_000, '"\\ud800"', "NaN"])
def test_what_is_no_tokenizer_at_all_is_refused(text):
    assert use(text) == "refused"


@pytest.mark.parametrize(
    ("pattern", "behavior"), [("(a+)+$", "Isolated"), (".*", "Isolated"), (None, "Isolated"), (None, "Removed")]
)
def test_other_runs_than_headways_are_refused(whole, pattern, behavior):
    """They could search for ever, drop text, or let a control token's name be found in it."""
    description = json.loads(whole[1])
    step = description["pre_tokenizer"]
    step |= {"behavior": behavior, "pattern": {"Regex": pattern or step["pattern"]["Regex"]}}
    accepted = pattern is None and behavior == "Isolated"
    assert use(json.dumps(description)) == ("used" if accepted else "refused")


def test_patterns_of_an_imported_vocabulary_are_only_known_ones():
    replaced = [{"type": "Replace", "pattern": {"Regex": "(a+)+$"}, "content": " "}]
    assert use(json.dumps(IMPORTED | {"normalizer": {"type": "Sequence", "normalizers": replaced}})) == "refused"
    assert use(json.dumps(IMPORTED)) == "used"
