"""The demo corpus: English phrases and their translations, both written from CLDR data through Babel."""

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from headway.errors import ConfigError, MissingExtraError

if TYPE_CHECKING:
    from babel import Locale

    from headway.demo.kinds import Generator

SOURCE = "en"
TARGETS = ("de", "fr", "zh")

_SENTENCES = (
    "Saturday, March 14, 2026, 9:26\u202fPM",
    "Sep 28\u2009–\u2009Oct 3, 2027",
    "1,250 Canadian dollars",
    "3 hours, 45 minutes, and 1 second",
    "Japan, Germany, Brazil, or New Zealand",
)

# Translated before the reader's eyes at the end of the demo; never in the corpus.
EXAMPLES: dict[str, tuple[str, ...]] = dict.fromkeys(TARGETS, _SENTENCES)

# This many repeated draws in a row mean that a kind has nothing new to say.
_PATIENCE = 2000


@dataclass(frozen=True, slots=True)
class Phrase:
    """One pair of the demo corpus and the kind that it belongs to."""

    kind: str
    source: str
    target: str


class Parts(NamedTuple):
    """A corpus in three parts; no source is in two of them."""

    train: list[Phrase]
    validation: list[Phrase]
    test: list[Phrase]


def generate(target: str, *, num_pairs: int = 40_000, seed: int = 1) -> list[Phrase]:
    """Write `num_pairs` phrases in English and in `target`, about equally many of each kind, in random order.

    The same arguments and the same Babel give the same phrases. Sources are all distinct, none is the same as its own
    target, and none is one of `EXAMPLES`. Raises ConfigError for an unknown target or more pairs than there are
    phrases, MissingExtraError without Babel.
    """
    if target not in TARGETS:
        raise ConfigError(
            f"demo/phrases: target language is {target!r}; wanted one of {', '.join(TARGETS)}. "
            f"Remedy: choose one of these."
        )
    kinds = _load_kinds()
    if num_pairs < len(kinds):
        raise ConfigError(
            f"demo/phrases: {num_pairs} pairs asked for; wanted at least {len(kinds)}, one of each kind. "
            f"Remedy: ask for more pairs."
        )
    locales = _load_locales(target)
    written = dict.fromkeys(EXAMPLES[target], "")
    phrases: list[Phrase] = []
    for index, (kind, generator) in enumerate(kinds.items()):
        count = num_pairs // len(kinds) + (index < num_pairs % len(kinds))
        rng = Random(f"{seed} {kind}")
        phrases += _draw(kind, generator, count=count, rng=rng, locales=locales, written=written)
    Random(seed).shuffle(phrases)
    return phrases


def split(phrases: list[Phrase], *, seed: int, validation: int, test: int) -> Parts:
    """Take `validation` and `test` phrases away at random, each kind in proportion; the rest is for training.

    Every part keeps the order of `phrases`. Sources must be distinct, as `generate` gives them. Raises ConfigError when
    nothing would be left to train on.
    """
    if validation < 0 or test < 0 or validation + test >= len(phrases):
        raise ConfigError(
            f"demo/phrases: {validation} phrases for validation and {test} for test asked of {len(phrases)}; wanted "
            f"at least one left to train on. Remedy: ask for smaller parts, or generate more pairs."
        )
    assert len({phrase.source for phrase in phrases}) == len(phrases), "a source stands twice in the corpus"
    # Shuffled, then sorted by kind (which keeps the random order within a kind), phrase i of n falls to test or
    # validation where i * share / n passes a whole number: every kind gives its share, within one phrase.
    order = list(range(len(phrases)))
    Random(seed).shuffle(order)
    order.sort(key=lambda index: phrases[index].kind)
    held_out = _every_so_often(order, validation + test)
    in_test = set(_every_so_often(held_out, test))
    in_validation = set(held_out) - in_test
    parts = Parts([], [], [])
    for index, phrase in enumerate(phrases):
        part = parts.test if index in in_test else parts.validation if index in in_validation else parts.train
        part.append(phrase)
    return parts


def _every_so_often(items: list[int], count: int) -> list[int]:
    """Exactly `count` of the items, evenly spaced."""
    return [item for i, item in enumerate(items) if (i + 1) * count // len(items) > i * count // len(items)]


def _load_kinds() -> "dict[str, Generator]":
    try:
        from headway.demo.kinds import KINDS  # noqa: PLC0415  Babel is an extra: asked for only when phrases are made
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "babel":
            raise
        raise MissingExtraError(
            "demo/phrases: the package babel is not installed; it holds the CLDR data that the demo corpus is made of. "
            "Remedy: pip install 'headway[demo]'"
        ) from error
    return KINDS


def _load_locales(target: str) -> "tuple[Locale, Locale]":
    from babel import Locale  # noqa: PLC0415  Babel is an extra: asked for only when phrases are made

    return Locale.parse(SOURCE), Locale.parse(target)


def _draw(  # one argument a fact of the draw
    kind: str,
    generator: "Generator",
    *,
    count: int,
    rng: Random,
    locales: "tuple[Locale, Locale]",
    written: dict[str, str],
) -> list[Phrase]:
    """Draw `count` phrases of one kind that `written` (source to target) does not hold yet, and enter them there."""
    phrases: list[Phrase] = []
    repeated = 0
    while len(phrases) < count:
        render = generator(rng)
        source, target = render(locales[0]), render(locales[1])
        if source in written or source == target:
            assert written.get(source, "") in ("", target), f"{source!r} has two targets"
            repeated += 1
            if repeated > _PATIENCE:
                raise ConfigError(
                    f"demo/phrases: {count} phrases of kind {kind!r} asked for; found {len(phrases)} before new ones "
                    f"became rare. Remedy: ask for fewer pairs."
                )
            continue
        repeated = 0
        written[source] = target
        phrases.append(Phrase(kind, source, target))
    return phrases
