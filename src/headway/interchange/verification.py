"""Whether another's folder does as our model does: the same tokens by greedy search, the same forced scores."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from headway.errors import InterchangeError

TOLERANCE = 1e-4  # between log-probabilities of one token
EXTRA_TOKENS = 50  # an output may have so many more than the longest source
BATCH = 16  # sentences

Ids = tuple[int, ...]


class Reading(Protocol):
    """What two models are compared by."""

    @property
    def name(self) -> str:
        """Whose reading it is."""
        ...

    def encode(self, texts: Sequence[str]) -> list[Ids] | None:
        """Ids of each source text, EOS last; None where this reading has no tokenizer."""
        ...

    def greedy(self, sources: Sequence[Ids], longest: int) -> list[Ids]:
        """The output of greedy search, EOS last, of at most so many tokens."""
        ...

    def score(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[list[float]]:
        """The log-probability of each token of each target."""
        ...


@dataclass(frozen=True, slots=True)
class Verified:
    """What was compared. ``ties`` are outputs that part where two tokens are equally probable within the tolerance."""

    reading: str
    sentences: int
    tokens: int
    ties: int
    largest: float  # difference of two log-probabilities
    compares_text: bool


@dataclass(frozen=True, slots=True)
class Exported:
    """The new folder, how it was verified, and what a user must hear."""

    path: Path
    verified: Verified
    notices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Outcome:
    tokens: int
    ties: int
    largest: float


def verify(
    ours: Reading, theirs: Reading, *, sources: Sequence[Ids], texts: Sequence[str], longest: int | None = None
) -> Verified:
    """Compare two readings of the same sources, of which ``texts`` are the texts, by outputs of at most ``longest``.

    Raises InterchangeError that names the first difference: sentence, position, tokens and scores.
    """
    if not sources:
        raise InterchangeError(
            "interchange/verification: no sentence to compare by. Remedy: give some with --sentences FILE."
        )
    encoded = theirs.encode(texts)
    if encoded is not None:
        _compare_sources(sources, encoded, theirs.name)
    outcomes = [
        _compare(ours, theirs, sources[first : first + BATCH], first, longest)
        for first in range(0, len(sources), BATCH)
    ]
    return Verified(
        theirs.name,
        len(sources),
        tokens=sum(outcome.tokens for outcome in outcomes),
        ties=sum(outcome.ties for outcome in outcomes),
        largest=max(outcome.largest for outcome in outcomes),
        compares_text=encoded is not None,
    )


def _compare_sources(ours: Sequence[Ids], theirs: Sequence[Ids], name: str) -> None:
    for sentence, (one, other) in enumerate(zip(ours, theirs, strict=True), start=1):
        if one != other:
            place = _parting(one, other)
            raise _differs(
                sentence, f"token {place + 1} of the source", _at(one, place), f"{_at(other, place)} ({name})"
            )


def _compare(ours: Reading, theirs: Reading, sources: Sequence[Ids], first: int, most: int | None) -> _Outcome:
    """Compare one batch, whose first sentence has the number ``first`` + 1."""
    longest = max(map(len, sources)) + EXTRA_TOKENS
    longest = longest if most is None else min(longest, most)
    our_outputs, their_outputs = ours.greedy(sources, longest), theirs.greedy(sources, longest)
    our_scores, their_scores = ours.score(sources, our_outputs), theirs.score(sources, our_outputs)
    parted = [place for place, pair in enumerate(zip(our_outputs, their_outputs, strict=True)) if pair[0] != pair[1]]
    others = (
        ours.score([sources[place] for place in parted], [their_outputs[place] for place in parted]) if parted else []
    )
    other_scores = dict(zip(parted, others, strict=True))
    largest = 0.0
    for place, output in enumerate(our_outputs):
        sentence = first + place + 1
        for position, (one, other) in enumerate(zip(our_scores[place], their_scores[place], strict=True)):
            if not abs(one - other) <= TOLERANCE:
                raise _differs(
                    sentence,
                    f"position {position + 1}: log-probability of token {output[position]}",
                    f"{one:.6f}",
                    f"{other:.6f} ({theirs.name})",
                )
            largest = max(largest, abs(one - other))
        if place in other_scores:
            position = _parting(output, their_outputs[place])
            one, other = _score_at(our_scores[place], position), _score_at(other_scores[place], position)
            if not abs(one - other) <= TOLERANCE:
                raise _differs(
                    sentence,
                    f"position {position + 1}",
                    f"token {_at(output, position)} ({one:.6f})",
                    f"token {_at(their_outputs[place], position)} ({other:.6f}, {theirs.name})",
                )
    return _Outcome(sum(map(len, our_outputs)), len(parted), largest)


def _parting(one: Ids, other: Ids) -> int:
    """The first place where two differ, from 0."""
    return next(
        (place for place, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]),
        min(len(one), len(other)),
    )


def _at(ids: Ids, place: int) -> str:
    return str(ids[place]) if place < len(ids) else "no token"


def _score_at(scores: Sequence[float], place: int) -> float:
    return scores[place] if place < len(scores) else float("nan")


def _differs(sentence: int, where: str, ours: str, theirs: str) -> InterchangeError:
    return InterchangeError(
        f"interchange/verification: sentence {sentence}, {where}: Headway has {ours}, the written folder {theirs}; "
        f"wanted the same within {TOLERANCE:g}. Nothing is kept. Remedy: report this, with the model's config.json."
    )
